"""What is read from the profiler: one table from each figure's name to the counter that holds it.

Counters are named by Nsight Compute for each GPU; where compute capability 8.9 (L4) and 9.0 (H100, H200) differ, both
names stand here, and other names that reports of other GPUs, sections and versions use come after them. Figures have
the units of the run record: microseconds, bytes, MHz, percent.
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
    counters: tuple[str, ...]
    """The first is that of compute capability 9.0."""
    scale: float = 1.0
    """Multiplies the counter's value in SI units."""
    sm_89: str | None = None
    """The counter of 8.9, where that is another."""


def _same(key: str, label: str, unit: str, *counters: str, scale: float = 1.0) -> Metric:
    return Metric(key, label, unit, counters, scale)


_PIPE = "sm__pipe_tensor_cycles_active"
_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"
_LSU = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_FLOPS = "smsp__sass_thread_inst_executed_op_"

METRICS: tuple[Metric, ...] = (
    # What it took, and at which clocks.
    _same("duration_us", "duration", "µs", "gpu__time_duration.sum", "gpu__time_duration.avg", scale=1e6),
    _same("sm_mhz", "SM clock", "MHz", "smsp__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second",
          "sm__cycles_elapsed.avg.per_second", scale=1e-6),
    _same("memory_mhz", "memory clock", "MHz", "dram__cycles_elapsed.avg.per_second", scale=1e-6),
    # The six: tensor cores, DRAM, L2, stalls (below), bank conflicts, occupancy.
    Metric("tensor_pct", "tensor cores busy", "%",
           (f"{_PIPE}{_ELAPSED}", f"{_PIPE}_v2{_ELAPSED}", f"{_PIPE}{_ACTIVE}",
            f"sm__inst_executed_pipe_tensor{_ACTIVE}", f"sm__inst_executed_pipe_tensor_op_hmma{_ACTIVE}"),
           sm_89=f"{_PIPE}_v2{_ELAPSED}"),
    _same("dram_pct", "DRAM throughput", "%", f"dram__throughput{_ELAPSED}", f"gpu__dram_throughput{_ELAPSED}",
          "dram__bytes.sum.pct_of_peak_sustained_elapsed"),
    _same("l2_hit_pct", "L2 hit rate", "%", "lts__t_sector_hit_rate.pct"),
    _same("conflicts_ld", "bank conflicts, loads", "", f"{_LSU}_op_ld.sum"),
    _same("conflicts_st", "bank conflicts, stores", "", f"{_LSU}_op_st.sum"),
    _same("shared_wavefronts", "shared-memory wavefronts", "", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
          "memory_l1_wavefronts_shared"),
    _same("occupancy_pct", "achieved occupancy", "%", f"sm__warps_active{_ACTIVE}"),
    # Beside them.
    _same("theoretical_occupancy_pct", "theoretical occupancy", "%", "sm__maximum_warps_per_active_cycle_pct"),
    _same("issue_pct", "issue slots busy", "%", f"smsp__issue_active{_ACTIVE}", f"sm__issue_active{_ACTIVE}"),
    _same("l2_sectors_pct", "L2 sector rate", "%", f"lts__t_sectors{_ELAPSED}"),
    _same("lsu_data_pct", "L1 and shared memory busy", "%", f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}"),
    _same("dram_read_bytes", "DRAM read", "bytes", "dram__bytes_read.sum"),
    _same("dram_write_bytes", "DRAM written", "bytes", "dram__bytes_write.sum"),
    _same("dram_bytes_per_s", "DRAM rate", "bytes/s", "dram__bytes.sum.per_second"),
    _same("dram_bytes_per_cycle", "DRAM peak", "bytes/cycle", "dram__bytes.sum.peak_sustained"),
    _same("sm_active_cycles", "SM active cycles, mean", "cycles", "sm__cycles_active.avg"),
    _same("sm_active_cycles_max", "SM active cycles, most", "cycles", "sm__cycles_active.max"),
    _same("elapsed_cycles", "elapsed cycles", "cycles", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"),
    _same("load_sectors", "sectors loaded", "", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    _same("load_requests", "load requests", "", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    _same("store_sectors", "sectors stored", "", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    _same("store_requests", "store requests", "", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    _same("instructions", "instructions", "", "smsp__inst_executed.sum", "sm__inst_executed.sum", "inst_executed"),
    _same("threads_per_instruction", "threads active in an instruction", "",
          "smsp__thread_inst_executed_per_inst_executed.ratio"),
    _same("async_copies", "asynchronous copies (cp.async)", "", "smsp__inst_executed_op_ldgsts.sum"),
    _same("l2_sectors", "L2 sectors", "", "lts__t_sectors.sum"),
    _same("local_loads", "local loads", "", "smsp__inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads"),
    _same("local_stores", "local stores", "", "smsp__inst_executed_op_local_st.sum",
          "sass__inst_executed_local_stores"),
    _same("latency_cycles", "cycles a warp needs for an instruction", "cycles",
          "smsp__average_warp_latency_per_inst_issued.ratio"),
    _same("fma_pct", "FMA pipe", "%", f"sm__inst_executed_pipe_fma{_ACTIVE}",
          f"sm__pipe_fma_cycles_active{_ELAPSED}"),
    _same("alu_pct", "ALU pipe", "%", f"sm__inst_executed_pipe_alu{_ACTIVE}",
          f"sm__pipe_alu_cycles_active{_ELAPSED}"),
    _same("xu_pct", "special functions", "%", f"sm__inst_executed_pipe_xu{_ACTIVE}",
          f"sm__inst_executed_pipe_xu{_ELAPSED}"),
    _same("fp64_pct", "float64 pipe", "%", f"sm__inst_executed_pipe_fp64{_ACTIVE}",
          f"sm__pipe_fp64_cycles_active{_ELAPSED}"),
    _same("lsu_pct", "load/store pipe", "%", f"sm__inst_executed_pipe_lsu{_ACTIVE}",
          f"sm__inst_executed_pipe_lsu{_ELAPSED}"),
    _same("ffma_peak", "float32 multiply-adds, peak per cycle", "",
          "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"),
    *(_same(f"{op}_per_cycle", f"{op.upper()} per cycle", "", f"{_FLOPS}{op}_pred_on.sum.per_cycle_elapsed")
      for op in ("ffma", "fadd", "fmul", "dfma", "hfma")),
    Metric("tensor_fp16_ops", "tensor operations, float16", "",
           ("sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
            "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum"), sm_89="sm__ops_path_tensor_src_fp16_dst_fp32.sum"),
    _same("tensor_bf16_ops", "tensor operations, bfloat16", "", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"),
    # The launch.
    _same("registers", "registers per thread", "", "launch__registers_per_thread"),
    _same("static_shared_bytes", "static shared memory", "bytes", "launch__shared_mem_per_block_static"),
    _same("dynamic_shared_bytes", "dynamic shared memory", "bytes", "launch__shared_mem_per_block_dynamic"),
    _same("grid", "blocks", "", "launch__grid_size"),
    _same("block_threads", "threads per block", "", "launch__block_size"),
    _same("waves", "waves", "", "launch__waves_per_multiprocessor"),
    _same("blocks_by_registers", "blocks that registers allow", "", "launch__occupancy_limit_registers"),
    _same("blocks_by_shared", "blocks that shared memory allows", "", "launch__occupancy_limit_shared_mem"),
    _same("blocks_by_warps", "blocks that warps allow", "", "launch__occupancy_limit_warps"),
    _same("blocks_by_limit", "blocks that a multiprocessor takes", "", "launch__occupancy_limit_blocks"),
)  # fmt: skip

# In reports with NVIDIA's own sections; too many passes for a quick profile.
SECTION_METRICS: tuple[Metric, ...] = (
    _same("sm_pct", "compute throughput", "%", f"sm__throughput{_ELAPSED}"),
    _same("memory_pct", "memory throughput", "%", f"gpu__compute_memory_throughput{_ELAPSED}"),
    _same("l2_pct", "L2 throughput", "%", f"lts__throughput{_ELAPSED}"),
    _same("l1_pct", "L1 throughput", "%", f"l1tex__throughput{_ACTIVE}"),
    _same("l1_hit_pct", "L1 hit rate", "%", "l1tex__t_sector_hit_rate.pct"),
    _same("adu_pct", "barriers and branches", "%", f"sm__inst_executed_pipe_adu{_ELAPSED}"),
    _same("global_sectors", "sectors of global memory", "", "memory_l2_theoretical_sectors_global"),
    _same("global_sectors_ideal", "sectors if coalesced", "", "memory_l2_theoretical_sectors_global_ideal"),
    _same("load_bytes_per_sector", "bytes used of a loaded sector", "bytes",
          "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    _same("store_bytes_per_sector", "bytes used of a stored sector", "bytes",
          "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
    _same("threads_working", "threads working in an instruction", "",
          "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
    _same("spill_requests", "spill instructions", "", "sass__inst_executed_register_spilling",
          "derived__local_spilling_requests"),
)  # fmt: skip

STALL_PREFIX = "stall_"
STALLS: Mapping[str, str] = {
    "barrier": "barrier",
    "branch_resolving": "branch resolving",
    "dispatch_stall": "dispatch stall",
    "drain": "drain (stores on the way)",
    "gmma": "warpgroup matrix operation",
    "imc_miss": "constant cache miss",
    "lg_throttle": "local/global queue full",
    "long_scoreboard": "long scoreboard (L1, L2, DRAM)",
    "math_pipe_throttle": "math pipe busy",
    "membar": "memory barrier",
    "mio_throttle": "MIO queue full (shared memory, special functions)",
    "misc": "other",
    "no_instruction": "no instruction (cache miss, branch)",
    "not_selected": "not selected (another warp was)",
    "selected": "selected (issuing)",
    "short_scoreboard": "short scoreboard (shared memory, special functions)",
    "sleeping": "sleeping",
    "tex_throttle": "texture queue full",
    "wait": "wait (fixed latency)",
}
"""Nsight Compute's warp states, in cycles per issued instruction."""

QUICK_STALLS = (
    "barrier",
    "dispatch_stall",
    "drain",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "mio_throttle",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "wait",
)
"""Those that a quick profile reads, with one more: all of them would need 14 passes on an H200, these need 12."""


def quick_stalls(compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """Warpgroup products where there are any; elsewhere the branches of a warp that diverges."""
    return (*QUICK_STALLS, "gmma" if compute_capability == (9, 0) else "branch_resolving")


BY_KEY: Mapping[str, Metric] = {metric.key: metric for metric in (*METRICS, *SECTION_METRICS)}


def stall_counter(reason: str) -> str:
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def quick_counters(compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """What `kernelgate profile --set quick` asks ncu for: at most 12 replay passes."""
    on_89 = compute_capability == (8, 9)
    own = [metric.sm_89 if on_89 and metric.sm_89 else metric.counters[0] for metric in METRICS]
    return (*own, "l1tex__t_sector_hit_rate.pct", *map(stall_counter, quick_stalls(compute_capability)))


def is_stall(key: str) -> bool:
    return key.startswith(STALL_PREFIX)


DERIVED: Mapping[str, tuple[str, str]] = {
    "bank_conflicts": ("shared-memory bank conflicts", ""),
    "local_instructions": ("local-memory instructions (spills)", ""),
    "shared_bytes": ("shared memory per block", "bytes"),
    "dram_bytes": ("DRAM traffic", "bytes"),
    "sectors_per_request": ("sectors moved for a request", ""),
    "launches": ("kernel launches in a call", ""),
    "call_us": ("all kernels of a call", "µs"),
    "active_pct": ("multiprocessors that have a block", "%"),
    "code_instructions": ("instructions in the code", ""),
    "code_load_bytes": ("widest global load in the code", "bytes"),
    "code_store_bytes": ("widest global store in the code", "bytes"),
    "code_local": ("local-memory instructions in the code", ""),
}
"""Sums of the above: label and unit."""

_NAMED = {
    **{metric.key: (metric.label, metric.unit) for metric in BY_KEY.values()},
    **DERIVED,
    **{STALL_PREFIX + reason: (words, "cycles/issue") for reason, words in STALLS.items()},
}


def label(key: str) -> str:
    """What people call a figure of the record; the key itself where it is not one of the table."""
    return _NAMED[key][0] if key in _NAMED else key


def unit(key: str) -> str:
    return _NAMED[key][1] if key in _NAMED else "cycles/issue" if is_stall(key) else ""


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
