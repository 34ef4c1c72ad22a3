"""The CUDA kernel beside the backends of PyTorch's SDPA, on a machine with a GPU.

    python -m benchmarks.kernel measure LIBRARY RECORD.json [--cases all|few] [--flex]
    python -m benchmarks.kernel table RECORD.json
    python -m benchmarks.kernel plot RECORD.json PLOT.svg

LIBRARY is a folder that `kernelgate build -o` wrote. All sides are replayed as CUDA graphs in rounds of random order in
one process, on the same inputs; times are medians. The record holds every sample and the errors against float64.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks import replays
from kernelgate.bench.build import library
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.kernel.calls import load
from kernelgate.bench.kernel.operands import TORCH_DTYPES
from kernelgate.bench.timing.timer import CudaTimer

SCHEMA = "kernelgate.kernel-benchmark/1"
CARD = "attention"
HEAD_DIM = 64
SCALE = HEAD_DIM**-0.5


@dataclass(frozen=True)
class AttentionCase:
    """Attention forward on tensors of shape (batch, heads, seq, 64)."""

    seq: int
    batch: int
    heads: int
    dtype: str
    causal: bool = False

    @property
    def id(self) -> str:
        """As the card's cases have it."""
        causal = "_causal" if self.causal else ""
        return f"s{self.seq}_b{self.batch}_h{self.heads}_d{HEAD_DIM}_{self.dtype}{causal}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (self.batch, self.heads, self.seq, HEAD_DIM)

    @property
    def tensor_bytes(self) -> int:
        """Of q, of k, of v and of the output."""
        return self.batch * self.heads * self.seq * HEAD_DIM * DTYPES[self.dtype].bytes

    @property
    def pairs(self) -> int:
        """Visible pairs of query and key, of all heads."""
        of_a_head = self.seq * (self.seq + 1) // 2 if self.causal else self.seq * self.seq
        return self.batch * self.heads * of_a_head

    @property
    def flops(self) -> int:
        """Two products of one multiplication and one addition for each visible pair and channel."""
        return 4 * HEAD_DIM * self.pairs


TARGET = AttentionCase(512, 32, 8, "fp16")
FEW = (
    TARGET,
    AttentionCase(512, 32, 8, "fp16", causal=True),
    AttentionCase(512, 32, 8, "bf16"),
    AttentionCase(4096, 4, 8, "fp16"),
)
SEQS, BATCHES, HEADS = (256, 512, 1024, 2048, 4096), (8, 32, 128), 8
ALL = (
    *(AttentionCase(seq, batch, HEADS, "fp16", causal) for seq, batch, causal in product(SEQS, BATCHES, (False, True))),
    *(AttentionCase(seq, 32, HEADS, "bf16", causal) for seq, causal in product((512, 2048), (False, True))),
)
FLEX = {(seq, 32, causal) for seq in (512, 2048) for causal in (False, True)}
"""FlexAttention is compiled anew for each shape, which takes seconds."""

CASE_US = 3e6
"""A case takes about so long at most: rounds are fewer where they take longer."""
ROUNDS = 60
SETS, SET_BYTES = 4, 2**29
ERROR_CASES = (
    *(AttentionCase(seq, 8, HEADS, "fp16", causal) for seq, causal in product((512, 2048), (False, True))),
    *(AttentionCase(512, 8, HEADS, "bf16", causal) for causal in (False, True)),
)
ERROR_SEEDS = 8

CLOCK_HZ, SMS, DRAM_BYTES_S = 1.98e9, 132, 4.8e12
TENSOR_FLOPS_CLOCK, EXP_CLOCK = 4096, 16
"""Of one SM of an H200: dense float16 operations and exponentials a clock."""
FLASH_ATTENTION_3_TFLOPS = {512: 333, 1024: 392, 2048: 460, 4096: 476}
"""Published for head dimension 64, forward, not causal, on an H100 (J. Shah et al., arXiv:2407.08608)."""

OURS, MMA_SYNC, FLASH, CUDNN, DEFAULT, FLEX_ATTENTION = (
    "fa_s512",
    "fa_s512 mma_sync",
    "FLASH",
    "cuDNN",
    "default",
    "Flex",
)


# ----------------------------------------------------------------------------------------------------------------------
# Measuring
# ----------------------------------------------------------------------------------------------------------------------


@contextmanager
def override(kernel: str | None) -> Iterator[None]:
    """FA_S512_KERNEL takes the place of the dispatch table."""
    if kernel:
        os.environ["FA_S512_KERNEL"] = kernel
    try:
        yield
    finally:
        os.environ.pop("FA_S512_KERNEL", None)


@dataclass(frozen=True)
class KernelInputs:
    case: AttentionCase
    pool: torch.Tensor
    """(sets, 3, B, H, S, 64)"""
    out: torch.Tensor


def inputs(case: AttentionCase, seed: int = 0) -> KernelInputs:
    sets = max(1, min(SETS, SET_BYTES // (3 * case.tensor_bytes)))
    generator = torch.Generator("cuda").manual_seed(seed)
    pool = torch.randn((sets, 3, *case.shape), dtype=TORCH_DTYPES[case.dtype], device="cuda", generator=generator)
    return KernelInputs(case, pool, torch.empty_like(pool[0, 0]))


def sides(given: KernelInputs, operators: Any, flex: bool) -> dict[str, Callable[[int], object]]:
    """What is timed, from the number of an input set to one call on it."""
    case = given.case

    def ours(name: str | None, number: int) -> None:
        with override(name):
            operators.forward_out(*given.pool[number], given.out, SCALE, case.causal)

    def theirs(backend: SDPBackend | None, number: int) -> torch.Tensor:
        q, k, v = given.pool[number]
        if backend is None:
            return scaled_dot_product_attention(q, k, v, is_causal=case.causal)
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    calls: dict[str, Callable[[int], object]] = {
        OURS: partial(ours, None),
        MMA_SYNC: partial(ours, "mma_sync"),
        FLASH: partial(theirs, SDPBackend.FLASH_ATTENTION),
        CUDNN: partial(theirs, SDPBackend.CUDNN_ATTENTION),
        DEFAULT: partial(theirs, None),
    }
    if flex and case.dtype == "fp16" and (case.seq, case.batch, case.causal) in FLEX:
        calls[FLEX_ATTENTION] = _flex(given)
    return calls


def _flex(given: KernelInputs) -> Callable[[int], torch.Tensor]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def visible(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return query >= key

    seq = given.case.seq
    mask = create_block_mask(visible, None, None, seq, seq) if given.case.causal else None
    compiled: Any = torch.compile(flex_attention, dynamic=False)
    return lambda number: compiled(*given.pool[number], block_mask=mask)


def samples_us(
    given: KernelInputs, calls: dict[str, Callable[[int], object]], timer: CudaTimer
) -> dict[str, list[float]]:
    estimate_us = given.case.flops / 350e6 + 4
    count = replays.calls_each(estimate_us)
    rounds = max(10, min(ROUNDS, round(CASE_US / (estimate_us * count * len(calls)))))
    each_set = {name: [partial(call, number) for number in range(len(given.pool))] for name, call in calls.items()}
    return replays.samples_us(each_set, count, rounds, timer)


def errors(case: AttentionCase, operators: Any) -> dict[str, dict[str, float]]:
    """How far each side is from float64: the largest and the mean difference, each the mean over some draws."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(ERROR_SEEDS):
        given = inputs(case, seed)
        q, k, v = given.pool[0]
        batches = [tensors.double().split(1) for tensors in (q, k, v)]
        exact = torch.cat(
            [
                scaled_dot_product_attention(query, key, value, is_causal=case.causal)
                for query, key, value in zip(*batches, strict=True)
            ]
        )
        for name, call in sides(given, operators, flex=False).items():
            result = call(0)
            difference = ((given.out if result is None else result).double() - exact).abs()  # type: ignore[attr-defined]
            found.setdefault(name, []).append((float(difference.max()), float(difference.mean())))
    return {
        name: {"max": fmean(largest for largest, _ in draws), "mean": fmean(mean for _, mean in draws)}
        for name, draws in found.items()
    }


def measure(folder: Path, cases: tuple[AttentionCase, ...], flex: bool) -> dict[str, Any]:
    built = library.read_all(folder).built[CARD]
    operators = load(built)
    timer = CudaTimer()
    rows = []
    for case in cases:
        given = inputs(case)
        samples = samples_us(given, sides(given, operators, flex), timer)
        axes = {"S": case.seq, "B": case.batch, "H": case.heads, "dtype": case.dtype, "causal": case.causal}
        rows.append({"case": case.id, **axes, "samples_us": samples})
        print(case.id, {name: round(median(taken), 2) for name, taken in samples.items()}, file=sys.stderr, flush=True)
        del given
        torch.cuda.empty_cache()
    from kernelgate.bench.system import nvml

    with nvml.opened():
        driver = nvml.driver_version()
    accuracy = {case.id: errors(case, operators) for case in ERROR_CASES}
    return {
        "schema": SCHEMA,
        "machine": {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__},
        "library": {"key": built.manifest.key, "targets": built.manifest.targets},
        "rows": rows,
        "errors": accuracy,
    }


# ----------------------------------------------------------------------------------------------------------------------
# Showing
# ----------------------------------------------------------------------------------------------------------------------


def medians(row: dict[str, Any]) -> dict[str, float]:
    return {name: median(taken) for name, taken in row["samples_us"].items()}


def table(record: dict[str, Any]) -> str:
    """Markdown: each case, the geometric mean over all, and the errors."""
    names = (OURS, MMA_SYNC, FLASH, CUDNN, DEFAULT, FLEX_ATTENTION)
    lines = [
        f"| case | {' | '.join(names)} | {OURS} / cuDNN |",
        f"| --- |{' --: |' * (len(names) + 1)}",
    ]
    ratios = []
    for row in record["rows"]:
        times = medians(row)
        ratios.append(times[OURS] / times[CUDNN])
        cells = [f"{times[name]:,.1f}" if name in times else "–" for name in names]
        lines.append(f"| `{row['case']}` | {' | '.join(cells)} | {ratios[-1]:.3f} |")
    lines += ["", f"Geometric mean of {OURS} / cuDNN: {geometric_mean(ratios):.3f}; largest: {max(ratios):.3f}.", ""]
    lines += [
        "| largest and mean error against float64, over draws | " + " | ".join(names[:4]) + " |",
        "| --- |" + " --: |" * 4,
    ]
    for case, found in record["errors"].items():
        cells = [f"{found[name]['max']:.2e}, {found[name]['mean']:.2e}" for name in names[:4]]
        lines.append(f"| `{case}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def limits_us(case: AttentionCase) -> dict[str, float]:
    """The least time that each unit of an H200 needs at its highest clock."""
    rate = SMS * CLOCK_HZ
    return {
        "matrix products": case.flops / (rate * TENSOR_FLOPS_CLOCK) * 1e6,
        "exponentials": case.pairs / (rate * EXP_CLOCK) * 1e6,
        "DRAM": 4 * case.tensor_bytes / DRAM_BYTES_S * 1e6,
    }


def plot(record: dict[str, Any], path: Path) -> None:
    """Time for each visible pair of query and key over S, at B = 32 and H = 8, with the limits."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "kernelgate"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for causal, panel in zip((False, True), panels, strict=True):
        rows = [row for row in record["rows"] if row["B"] == 32 and row["dtype"] == "fp16" and row["causal"] == causal]
        cases = {row["S"]: AttentionCase(row["S"], 32, HEADS, "fp16", causal) for row in rows}

        def each_pair_ps(times_us: dict[int, float], cases: dict[int, AttentionCase] = cases) -> list[float]:
            return [time_us * 1e6 / cases[seq].pairs for seq, time_us in times_us.items()]

        for name in (FLASH, MMA_SYNC, CUDNN, OURS):
            panel.plot(list(cases), each_pair_ps({row["S"]: medians(row)[name] for row in rows}), "o-", label=name)
        flex = {row["S"]: medians(row)[FLEX_ATTENTION] for row in rows if FLEX_ATTENTION in row["samples_us"]}
        panel.plot(list(flex), each_pair_ps(flex), "s", label="FlexAttention")
        if not causal:
            seqs = FLASH_ATTENTION_3_TFLOPS.items()
            published = {seq: cases[seq].flops / tflops / 1e6 for seq, tflops in seqs if seq in cases}
            panel.plot(list(published), each_pair_ps(published), "kx", label="FlashAttention-3, published (H100)")
        for name, style in (("exponentials", "--"), ("DRAM", ":")):
            label = "limit: exponentials, and matrix products" if name == "exponentials" else "limit: DRAM"
            limits = {seq: limits_us(case)[name] for seq, case in cases.items()}
            panel.plot(list(limits), each_pair_ps(limits), style, color="grey", label=label)
        panel.set_ylim(bottom=0)
        panel.set(xscale="log", xlabel="S", title="causal" if causal else "full")
        panel.set_xticks(list(cases), [str(seq) for seq in cases])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("ps for each visible pair of query and key")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    machine = record["machine"]
    figure.suptitle(f"Attention forward, B = 32, H = 8, D = 64, float16: {machine['gpu']}, torch {machine['torch']}")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("library", type=Path)
    measuring.add_argument("record", type=Path)
    measuring.add_argument("--cases", choices=("all", "few"), default="all")
    measuring.add_argument("--flex", action="store_true", help="time FlexAttention too, on a few cases")
    showing = commands.add_parser("table")
    showing.add_argument("record", type=Path)
    drawing = commands.add_parser("plot")
    drawing.add_argument("record", type=Path)
    drawing.add_argument("plot", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        record = measure(options.library, ALL if options.cases == "all" else FEW, options.flex)
        options.record.write_text(json.dumps(record) + "\n", encoding="utf-8")
        print(table(record))
        return
    record = json.loads(options.record.read_text(encoding="utf-8"))
    if options.command == "table":
        print(table(record))
    else:
        plot(record, options.plot)


if __name__ == "__main__":
    main()
