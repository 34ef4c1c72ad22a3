"""The L4 reference, `.ci/baseline_s512.json`, from published samples: `python -m benchmarks.l4_baseline`.

The samples are public measurement data of PyTorch's own attention on one NVIDIA L4, in order of measurement.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.bench import record
from kernelgate.bench.record import (
    BaselineSummary,
    Case,
    Device,
    Environment,
    Note,
    Process,
    Run,
    RunRecord,
    Summary,
    Timing,
    Work,
    rates,
)

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "tests" / "data" / "l4_sdpa_latencies.json"
BASELINE = ROOT / ".ci" / "baseline_s512.json"
CASE = "s512_b32_h8_d64_fp16"
SHAPE = {"seq": 512, "batch": 32, "heads": 8, "dim": 64}
RESAMPLES = 10_000
SEED = 2
"""The upper end of the interval falls into a gap between clock ticks: 337.4, 337.9 or 340.0 µs, by the seed."""


def baseline() -> RunRecord:
    """One process of 100 samples, as published."""
    published = json.loads(SAMPLES.read_text(encoding="utf-8"))
    (found,) = (one for one in published["configurations"] if all(one[key] == SHAPE[key] for key in SHAPE))
    times_us = tuple(round(1e3 * milliseconds, 3) for milliseconds in found["latency_ms"])
    case = Case(
        id=CASE,
        axes={"S": 512.0, "B": 32.0, "H": 8.0, "D": 64.0, "dtype": "fp16", "causal": 0.0},
        work=_work(**SHAPE),
    )
    return RunRecord(
        run=Run(created_at=published["environment"]["date"]),
        environments=(_environment(published["environment"]),),
        cases=(case,),
        processes=(
            Process(
                id="1",
                role="block",
                timings=(Timing(case=CASE, samples_us={"head": times_us}, inner_repeats=1),),
            ),
        ),
        notes=(Note(text="One process: its spread from process to process is taken from the policy."),),
        summary=Summary(source=published["about"], cases={CASE: _summary(case, times_us)}),
    )


def _environment(published: dict[str, Any]) -> Environment:
    device = Device(
        name=published["gpu"], compute_capability=published["compute_capability"], driver=published["driver"]
    )
    return Environment(device=device, torch=published["torch"], cuda=published["cuda"])


def _work(seq: int, batch: int, heads: int, dim: int) -> Work:
    """Two matrix products; float16 queries, keys, values and output, once each."""
    return Work(flops=4 * batch * heads * seq**2 * dim, bytes=4 * 2 * batch * heads * seq * dim)


def _summary(case: Case, times_us: tuple[float, ...]) -> BaselineSummary:
    """The median with its 95% bootstrap interval, for people: a judgement goes back to the samples."""
    drawn = np.random.default_rng(SEED).choice(sorted(times_us), (RESAMPLES, len(times_us)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    interval = (round(float(low), 1), round(float(high), 1))
    middle = float(np.median(times_us))
    return BaselineSummary(
        median_us=round(middle, 1),
        interval_us=interval,
        gflops=rates.gflops(case, middle),
        samples=len(times_us),
        processes=1,
    )


if __name__ == "__main__":
    record.write(baseline(), BASELINE)
