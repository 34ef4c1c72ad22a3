"""The CUDA kernel beside the backends of PyTorch's SDPA, on a machine with a GPU.

    python -m benchmarks.kernel RECORD.json [--library LIBRARY]

LIBRARY is a folder that `kernelgate build -o` wrote: it is measured into the record first. All sides are replayed as
CUDA graphs in rounds of random order in one process, on the same inputs; times are medians. The record holds every
sample and the errors against float64.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any
from unittest.mock import patch

import click
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.tables import markdown
from kernelgate.bench.build import library
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.hardware import gpu
from kernelgate.bench.kernel.operands import TORCH_DTYPES, load
from kernelgate.bench.system import nvml
from kernelgate.bench.timing.timer import Call, CudaTimer, Interval

SCHEMA = "kernelgate.kernel-benchmark/1"
CARD = "attention"
HEADS, HEAD_DIM = 8, 64
SCALE = HEAD_DIM**-0.5


@dataclass(frozen=True)
class AttentionCase:
    """Attention forward on tensors of shape (batch, 8, seq, 64)."""

    seq: int
    batch: int
    dtype: str
    causal: bool = False

    @property
    def id(self) -> str:
        """As the card's cases have it."""
        causal = "_causal" if self.causal else ""
        return f"s{self.seq}_b{self.batch}_h{HEADS}_d{HEAD_DIM}_{self.dtype}{causal}"

    @property
    def flops(self) -> int:
        """Two products of one multiplication and one addition for each visible pair and channel."""
        pairs_of_a_head = self.seq * (self.seq + 1) // 2 if self.causal else self.seq * self.seq
        return 4 * HEAD_DIM * self.batch * HEADS * pairs_of_a_head


def cases(seqs: tuple[int, ...], batches: tuple[int, ...], dtype: str) -> tuple[AttentionCase, ...]:
    return tuple(AttentionCase(*one) for one in product(seqs, batches, (dtype,), (False, True)))


CASES = (*cases((256, 512, 1024, 2048, 4096), (8, 32, 128), "fp16"), *cases((512, 2048), (32,), "bf16"))

CASE_US = 3e6
"""A case takes about so long at most: rounds are fewer where they take longer."""
ROUNDS = 60
WARM_UP_ROUNDS = 20
SAMPLE_US = 600.0
"""A graph holds so many calls that it lasts about as long, and 16 at most."""
SETS, SET_BYTES = 4, 2**29
ERROR_CASES = (*cases((512, 2048), (8,), "fp16"), *cases((512,), (8,), "bf16"))
ERROR_SEEDS = 8
NAMES = ("fa_s512", "fa_s512 mma_sync", "FLASH", "cuDNN", "default")
OURS, MMA_SYNC, FLASH, CUDNN, DEFAULT = NAMES
MMA_SYNC_SHARE = 2 / 3
"""Of Hopper's dense tensor rate, which only wgmma reaches (docs/CUDA_COOKBOOK.md)."""


@dataclass(frozen=True)
class KernelInputs:
    case: AttentionCase
    pool: torch.Tensor
    """(sets, 3, B, H, S, 64)"""
    out: torch.Tensor


def inputs(case: AttentionCase, seed: int = 0) -> KernelInputs:
    shape = (case.batch, HEADS, case.seq, HEAD_DIM)
    sets = max(1, min(SETS, SET_BYTES // (3 * math.prod(shape) * DTYPES[case.dtype].bytes)))
    generator = torch.Generator("cuda").manual_seed(seed)
    pool = torch.randn((sets, 3, *shape), dtype=TORCH_DTYPES[case.dtype], device="cuda", generator=generator)
    return KernelInputs(case, pool, torch.empty_like(pool[0, 0]))


def sides(given: KernelInputs, operators: Any) -> dict[str, Callable[[int], object]]:
    """What is timed, from the number of an input set to one call on it."""
    case = given.case

    def ours(chosen: dict[str, str], number: int) -> None:
        """`chosen`: what takes the place of the dispatch table."""
        with patch.dict(os.environ, chosen):
            operators.forward_out(*given.pool[number], given.out, SCALE, case.causal)

    def theirs(backend: SDPBackend | None, number: int) -> torch.Tensor:
        with sdpa_kernel(backend) if backend else nullcontext():
            q, k, v = given.pool[number]
            return scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    return {
        OURS: partial(ours, {}),
        MMA_SYNC: partial(ours, {"FA_S512_KERNEL": "mma_sync"}),
        FLASH: partial(theirs, SDPBackend.FLASH_ATTENTION),
        CUDNN: partial(theirs, SDPBackend.CUDNN_ATTENTION),
        DEFAULT: partial(theirs, None),
    }


def samples_us(
    given: KernelInputs, calls: dict[str, Callable[[int], object]], timer: CudaTimer
) -> dict[str, list[float]]:
    """The time of one call in each round, of all sides in random order. Input sets take turns within a graph."""
    estimate_us = given.case.flops / 350e6 + 4
    count = max(2, min(16, round(SAMPLE_US / estimate_us)))
    rounds = max(10, min(ROUNDS, round(CASE_US / (estimate_us * count * len(calls)))))
    graphs: dict[str, Call] = {}
    for name, call in calls.items():
        each_call = [partial(call, number % len(given.pool)) for number in range(count)]
        for warm_up in each_call:
            warm_up()
        graph = timer.capture(each_call)
        if graph is None:
            raise SystemExit(f"{name} cannot be captured in a graph")
        graphs[name] = graph
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for number in range(WARM_UP_ROUNDS + rounds):
        for name in random.sample(list(graphs), len(graphs)):
            (taken,) = timer.measure([Interval((graphs[name],))]).times_us
            if number >= WARM_UP_ROUNDS:
                samples[name].append(round(taken / count, 4))
    return samples


def errors(case: AttentionCase, operators: Any) -> dict[str, dict[str, float]]:
    """How far each side is from float64: the largest and the mean difference, each the mean over some draws."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(ERROR_SEEDS):
        given = inputs(case, seed)
        q, k, v = given.pool[0]
        batches = zip(*(tensors.double().split(1) for tensors in (q, k, v)), strict=True)
        exact = torch.cat([scaled_dot_product_attention(a, b, c, is_causal=case.causal) for a, b, c in batches])
        for name, call in sides(given, operators).items():
            result = call(0)
            difference = ((given.out if result is None else result).double() - exact).abs()  # type: ignore[attr-defined]
            found.setdefault(name, []).append((float(difference.max()), float(difference.mean())))
    return {
        name: {"max": fmean(largest for largest, _ in draws), "mean": fmean(mean for _, mean in draws)}
        for name, draws in found.items()
    }


def measured(folder: Path) -> dict[str, Any]:
    built = library.read_all(folder).built[CARD]
    operators = load(built)
    timer = CudaTimer()
    rows = []
    for case in CASES:
        given = inputs(case)
        samples = samples_us(given, sides(given, operators), timer)
        axes = {"S": case.seq, "B": case.batch, "H": HEADS, "dtype": case.dtype, "causal": case.causal}
        rows.append({"case": case.id, **axes, "samples_us": samples})
        print(case.id, {name: round(median(taken), 2) for name, taken in samples.items()}, file=sys.stderr, flush=True)
        del given
        torch.cuda.empty_cache()
    with nvml.opened():
        driver = nvml.driver_version()
    machine = {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__}
    made_of = {"key": built.manifest.key, "targets": built.manifest.targets}
    accuracy = {case.id: errors(case, operators) for case in ERROR_CASES}
    return {"schema": SCHEMA, "machine": machine, "library": made_of, "rows": rows, "errors": accuracy}


def predicted_us(case: AttentionCase, mma_sync_us: float) -> tuple[float, float]:
    """On an L4 at its highest clock: where all overlaps, and where nothing does.

    DRAM and tensor cores need what their rates say; the rest as many of the multiprocessors' cycles as on an H200.
    """
    l4, h200 = gpu("l4"), gpu("h200")
    dram = 4 * case.batch * HEADS * case.seq * HEAD_DIM * DTYPES[case.dtype].bytes / l4.bytes_per_s * 1e6
    tensor = case.flops / l4.flops[case.dtype] * 1e6
    rest = mma_sync_us - case.flops / (MMA_SYNC_SHARE * h200.flops[case.dtype]) * 1e6
    rest *= (h200.sm_count * h200.max_sm_mhz) / (l4.sm_count * l4.max_sm_mhz)
    return max(dram, tensor, rest), dram + tensor + rest


def tables(record: dict[str, Any]) -> str:
    """Markdown: each case, an L4's prediction, the geometric mean over all, and the errors."""
    rows, ratios = [], []
    for row in record["rows"]:
        times = {name: median(taken) for name, taken in row["samples_us"].items()}
        ratios.append(times[OURS] / times[CUDNN])
        cells = [f"{times[name]:,.1f}" if name in times else "–" for name in NAMES]
        case = AttentionCase(row["S"], row["B"], row["dtype"], row["causal"])
        low, high = predicted_us(case, times[MMA_SYNC])
        rows.append([f"`{row['case']}`", *cells, f"{ratios[-1]:.3f}", f"{low:,.0f} to {high:,.0f}"])
    errors_ = [
        [f"`{case}`", *(f"{found[name]['max']:.2e}, {found[name]['mean']:.2e}" for name in NAMES[:4])]
        for case, found in record["errors"].items()
    ]
    mean = f"Geometric mean of {OURS} / cuDNN: {geometric_mean(ratios):.3f}; largest: {max(ratios):.3f}."
    header = ["largest and mean error against float64, over draws", *NAMES[:4]]
    return "\n\n".join(
        (markdown(["case", *NAMES, f"{OURS} / cuDNN", "L4, predicted"], rows), mean, markdown(header, errors_))
    )


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--library", "folder", type=click.Path(exists=True, path_type=Path), help="Measure it into RECORD first.")
def main(record: Path, folder: Path | None) -> None:
    """Print a record's medians and errors."""
    if folder is not None:
        record.write_text(json.dumps(measured(folder)) + "\n", encoding="utf-8")
    print(tables(json.loads(record.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
