"""What is read from the profiler: one table from each figure's name to the counter that holds it.

Counters are named by Nsight Compute for each GPU; where compute capability 8.9 (L4) and 9.0 (H100, H200) differ, both
names stand here, and the names that NVIDIA's own sections use come after them. Figures have the units of the run
record: microseconds, bytes, MHz, percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One figure, its counters, and what people call it."""

    key: str
    label: str
    unit: str
    counters: tuple[str, ...] = ()
    """The first is that of compute capability 9.0; none for a sum of other figures."""
    scale: float = 1.0
    """Multiplies the counter's value in SI units."""
    sm_89: str | None = None
    """The counter of 8.9, where that is another."""
    waits: str = ""
    """Of a reason to wait: for what, as a sentence goes on that begins "longer waits"."""
    quick: bool = False
    """Whether a quick profile reads it on every GPU."""


def _figure(key: str, label: str, unit: str, *counters: str, scale: float = 1.0, sm_89: str | None = None) -> Metric:
    return Metric(key, label, unit, counters, scale, sm_89, quick=True)


def _of_section(key: str, label: str, unit: str, *counters: str) -> Metric:
    """In reports with NVIDIA's own sections; too many passes for a quick profile."""
    return Metric(key, label, unit, counters)


def _stall(reason: str, label: str, waits: str = "", quick: bool = False) -> Metric:
    """One of Nsight Compute's warp states, in cycles per issued instruction. All of them would need 14 passes on an
    H200; the quick ones, with one more, need 12."""
    counter = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    return Metric(f"{STALL_PREFIX}{reason}", label, "cycles/issue", (counter,), waits=waits, quick=quick)


STALL_PREFIX = "stall_"
_PIPE = "sm__pipe_tensor_cycles_active"
_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"
_LSU = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_FLOPS = "smsp__sass_thread_inst_executed_op_"

_ROWS: tuple[Metric, ...] = (
    # What it took, and at which clocks.
    _figure("duration_us", "duration", "µs", "gpu__time_duration.sum", scale=1e6),
    _figure("sm_mhz", "SM clock", "MHz", "smsp__cycles_elapsed.avg.per_second", scale=1e-6),
    _figure("memory_mhz", "memory clock", "MHz", "dram__cycles_elapsed.avg.per_second", scale=1e-6),
    # The six: tensor cores, DRAM, L2, stalls (below), bank conflicts, occupancy.
    _figure("tensor_pct", "tensor cores busy", "%", f"{_PIPE}{_ELAPSED}", f"{_PIPE}_v2{_ELAPSED}", f"{_PIPE}{_ACTIVE}",
            sm_89=f"{_PIPE}_v2{_ELAPSED}"),
    _figure("dram_pct", "DRAM throughput", "%", f"dram__throughput{_ELAPSED}", f"gpu__dram_throughput{_ELAPSED}"),
    _figure("l2_hit_pct", "L2 hit rate", "%", "lts__t_sector_hit_rate.pct"),
    _figure("conflicts_ld", "bank conflicts, loads", "", f"{_LSU}_op_ld.sum"),
    _figure("conflicts_st", "bank conflicts, stores", "", f"{_LSU}_op_st.sum"),
    _figure("shared_wavefronts", "shared-memory wavefronts", "", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    _figure("occupancy_pct", "achieved occupancy", "%", f"sm__warps_active{_ACTIVE}"),
    # Beside them.
    _figure("theoretical_occupancy_pct", "theoretical occupancy", "%", "sm__maximum_warps_per_active_cycle_pct"),
    _figure("issue_pct", "issue slots busy", "%", f"smsp__issue_active{_ACTIVE}"),
    _figure("l2_sectors_pct", "L2 sector rate", "%", f"lts__t_sectors{_ELAPSED}"),
    _figure("lsu_data_pct", "L1 and shared memory busy", "%", f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}"),
    _figure("dram_read_bytes", "DRAM read", "bytes", "dram__bytes_read.sum"),
    _figure("dram_write_bytes", "DRAM written", "bytes", "dram__bytes_write.sum"),
    _figure("dram_bytes_per_s", "DRAM rate", "bytes/s", "dram__bytes.sum.per_second"),
    _figure("dram_bytes_per_cycle", "DRAM peak", "bytes/cycle", "dram__bytes.sum.peak_sustained"),
    _figure("sm_active_cycles", "SM active cycles, mean", "cycles", "sm__cycles_active.avg"),
    _figure("sm_active_cycles_max", "SM active cycles, most", "cycles", "sm__cycles_active.max"),
    _figure("elapsed_cycles", "elapsed cycles", "cycles", "sm__cycles_elapsed.max"),
    _figure("load_sectors", "sectors loaded", "", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    _figure("load_requests", "load requests", "", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    _figure("store_sectors", "sectors stored", "", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    _figure("store_requests", "store requests", "", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    _figure("instructions", "instructions", "", "smsp__inst_executed.sum", "inst_executed"),
    _figure("threads_per_instruction", "threads active in an instruction", "",
          "smsp__thread_inst_executed_per_inst_executed.ratio"),
    _figure("async_copies", "asynchronous copies (cp.async)", "", "smsp__inst_executed_op_ldgsts.sum"),
    _figure("l2_sectors", "L2 sectors", "", "lts__t_sectors.sum"),
    _figure("local_loads", "local loads", "", "smsp__inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads"),
    _figure("local_stores", "local stores", "", "smsp__inst_executed_op_local_st.sum",
          "sass__inst_executed_local_stores"),
    _figure("latency_cycles", "cycles a warp needs for an instruction", "cycles",
          "smsp__average_warp_latency_per_inst_issued.ratio"),
    _figure("fma_pct", "FMA pipe", "%", f"sm__inst_executed_pipe_fma{_ACTIVE}"),
    _figure("alu_pct", "ALU pipe", "%", f"sm__inst_executed_pipe_alu{_ACTIVE}"),
    _figure("xu_pct", "special functions", "%", f"sm__inst_executed_pipe_xu{_ACTIVE}"),
    _figure("fp64_pct", "float64 pipe", "%", f"sm__inst_executed_pipe_fp64{_ACTIVE}"),
    _figure("lsu_pct", "load/store pipe", "%", f"sm__inst_executed_pipe_lsu{_ACTIVE}"),
    _figure("ffma_peak", "float32 multiply-adds, peak per cycle", "",
          "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"),
    *(_figure(f"{op}_per_cycle", f"{op.upper()} per cycle", "", f"{_FLOPS}{op}_pred_on.sum.per_cycle_elapsed")
      for op in ("ffma", "fadd", "fmul", "dfma", "hfma")),
    _figure("tensor_fp16_ops", "tensor operations, float16", "", "sm__ops_path_tensor_src_fp16.sum",
            "sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum",
            sm_89="sm__ops_path_tensor_src_fp16_dst_fp32.sum"),
    _figure("tensor_bf16_ops", "tensor operations, bfloat16", "", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"),
    # The launch.
    _figure("registers", "registers per thread", "", "launch__registers_per_thread"),
    _figure("static_shared_bytes", "static shared memory", "bytes", "launch__shared_mem_per_block_static"),
    _figure("dynamic_shared_bytes", "dynamic shared memory", "bytes", "launch__shared_mem_per_block_dynamic"),
    _figure("grid", "blocks", "", "launch__grid_size"),
    _figure("block_threads", "threads per block", "", "launch__block_size"),
    _figure("waves", "waves", "", "launch__waves_per_multiprocessor"),
    _figure("blocks_by_registers", "blocks that registers allow", "", "launch__occupancy_limit_registers"),
    _figure("blocks_by_shared", "blocks that shared memory allows", "", "launch__occupancy_limit_shared_mem"),
    _figure("blocks_by_warps", "blocks that warps allow", "", "launch__occupancy_limit_warps"),
    _figure("blocks_by_limit", "blocks that a multiprocessor takes", "", "launch__occupancy_limit_blocks"),
    # Of sections.
    _of_section("sm_pct", "compute throughput", "%", f"sm__throughput{_ELAPSED}"),
    _of_section("l2_pct", "L2 throughput", "%", f"lts__throughput{_ELAPSED}"),
    _of_section("l1_pct", "L1 throughput", "%", f"l1tex__throughput{_ACTIVE}"),
    _figure("l1_hit_pct", "L1 hit rate", "%", "l1tex__t_sector_hit_rate.pct"),
    _of_section("global_sectors", "sectors of global memory", "", "memory_l2_theoretical_sectors_global"),
    _of_section("global_sectors_ideal", "sectors if coalesced", "", "memory_l2_theoretical_sectors_global_ideal"),
    _of_section("threads_working", "threads working in an instruction", "",
          "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
    # Stalls.
    _stall("barrier", "barrier", "at barriers", quick=True),
    _stall("branch_resolving", "branch resolving", "for branches"),
    _stall("dispatch_stall", "dispatch stall", "for the dispatcher", quick=True),
    _stall("drain", "drain (stores on the way)", "for stores on their way", quick=True),
    _stall("gmma", "warpgroup matrix operation", "for warpgroup matrix operations"),
    _stall("imc_miss", "constant cache miss", "for the constant cache"),
    _stall("lg_throttle", "local/global queue full", "for the queue of global and local memory", quick=True),
    _stall("long_scoreboard", "long scoreboard (L1, L2, DRAM)", "for L1, L2 or DRAM (long scoreboard)", quick=True),
    _stall("math_pipe_throttle", "math pipe busy", "for a busy math pipe", quick=True),
    _stall("membar", "memory barrier"),
    _stall("mio_throttle", "MIO queue full (shared memory, special functions)",
           "for the queue of shared memory and special functions", quick=True),
    _stall("misc", "other"),
    _stall("no_instruction", "no instruction (cache miss, branch)",
           "for the next instruction (instruction cache)", quick=True),
    _stall("not_selected", "not selected (another warp was)", "for other warps' turns to issue", quick=True),
    _stall("selected", "selected (issuing)", quick=True),
    _stall("short_scoreboard", "short scoreboard (shared memory, special functions)",
           "for shared memory or special functions (short scoreboard)", quick=True),
    _stall("sleeping", "sleeping"),
    _stall("tex_throttle", "texture queue full"),
    _stall("wait", "wait (fixed latency)", "of fixed latency", quick=True),
    # Sums of the above, as far as their parts are known.
    Metric("bank_conflicts", "shared-memory bank conflicts", ""),
    _of_section("local_instructions", "local-memory instructions (spills)", "",
          "sass__inst_executed_register_spilling"),
    Metric("shared_bytes", "shared memory per block", "bytes"),
    Metric("dram_bytes", "DRAM traffic", "bytes"),
    Metric("sectors_per_request", "sectors moved for a request", ""),
    Metric("launches", "kernel launches in a call", ""),
    Metric("call_us", "all kernels of a call", "µs"),
    Metric("active_pct", "multiprocessors that have a block", "%"),
    Metric("code_instructions", "instructions in the code", ""),  # of older records, as code_local is
    Metric("code_local", "local-memory instructions in the code", ""),
    Metric("code_load_bytes", "widest global load in the code", "bytes"),
    Metric("code_store_bytes", "widest global store in the code", "bytes"),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {row.key: row for row in _ROWS}


def is_stall(key: str) -> bool:
    return key.startswith(STALL_PREFIX)


STALLS: Mapping[str, Metric] = {key.removeprefix(STALL_PREFIX): row for key, row in METRICS.items() if is_stall(key)}


def quick_stalls(compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """Warpgroup products where there are any; elsewhere the branches of a warp that diverges."""
    every = (reason for reason, row in STALLS.items() if row.quick)
    return (*every, "gmma" if compute_capability == (9, 0) else "branch_resolving")


def quick_counters(compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """What `kernelgate profile --set quick` asks ncu for: at most 12 replay passes."""
    on_89 = compute_capability == (8, 9)
    read = [row for key, row in METRICS.items() if row.quick and not is_stall(key)]
    own = [row.sm_89 if on_89 and row.sm_89 else row.counters[0] for row in read]
    stalls = (STALLS[reason].counters[0] for reason in quick_stalls(compute_capability))
    return (*own, *stalls)


def label(key: str) -> str:
    """What people call a figure of the record; the key itself where it is not one of the table."""
    return METRICS[key].label if key in METRICS else key


def unit(key: str) -> str:
    return METRICS[key].unit if key in METRICS else "cycles/issue" if is_stall(key) else ""


# ---- as people read them ---------------------------------------------------------------------------------------------

COUNTS = ((1e9, " G"), (1e6, " M"))
BYTES = ((2.0**30, " GiB"), (2.0**20, " MiB"), (2.0**10, " KiB"))
APART = 0.5
"""Below this of the other side's unit, a figure has its own."""


def show(key: str, value: float) -> str:
    """A figure with its unit."""
    kind = unit(key)
    if kind == "%":
        return f"{value:.1f}%"
    if kind == "bytes":
        return _bytes(value)
    if kind == "cycles/issue":
        return f"{value:.1f}"
    number = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{number} {kind}".rstrip()


def pair(key: str, before: float, after: float) -> str:
    """Both sides, in one unit where that serves: "24.9 → 25.9 M"."""
    kind = unit(key)
    if kind == "%":
        return f"{before:.1f} → {after:.1f}%"
    if kind == "cycles/issue":
        return f"{before:.2f} → {after:.2f} cycles"
    steps = BYTES if kind == "bytes" else COUNTS
    plain = {"": "", "bytes": " B"}.get(kind, f" {kind}")
    scale, suffix = _step(max(before, after), steps, plain)
    if min(before, after) < APART * scale:
        return f"{_alone(before, steps, plain)} → {_alone(after, steps, plain)}"
    old, new = before / scale, after / scale
    return f"{_digits(old, new)} → {_digits(new, old)}{suffix}"


def _step(value: float, steps: tuple[tuple[float, str], ...], plain: str) -> tuple[float, str]:
    return next((step for step in steps if value >= step[0]), (1.0, plain))


def _alone(value: float, steps: tuple[tuple[float, str], ...], plain: str) -> str:
    scale, suffix = _step(value, steps, plain)
    return f"{_digits(value / scale, 0.0)}{suffix if value else ''}"


def _digits(value: float, beside: float) -> str:
    """Three digits of the larger one, or as many as tell the two apart."""
    if value == int(value) and beside == int(beside):
        return f"{value:,.0f}"
    least = max(0, 2 - math.floor(math.log10(max(value, beside))))
    places = next((n for n in range(least, least + 4) if f"{value:.{n}f}" != f"{beside:.{n}f}"), least)
    return f"{value:,.{places}f}"


def _bytes(value: float) -> str:
    """Up to the unit in which it is 1 to 1024, with three digits."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 100 or value == int(value) else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:,.3g} GiB"
