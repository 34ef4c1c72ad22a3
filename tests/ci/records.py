"""Small builders of run records: from the recorded traces of an H200, and from noise made up on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelgate.bench.record import Calls, Role, RunRecord, TimedCase, timed_cases
from kernelgate.ci.judge.prior import History, KnownSpread
from tests import runs
from tests.runs import changed, on, process, run_record

DATA = Path(__file__).parent.parent / "data"

Samples = list[NDArray[np.float64]]
"""Times in microseconds, one array a process."""


@cache
def traces(name: str) -> NDArray[np.float64]:
    """Recorded times in microseconds, (process, variant, round): name is <quiet|contended>_<fma|copy>_<block|inter>."""
    with np.load(DATA / "h200_traces.npz") as stored:
        return stored[name].astype(float)


@cache
def factors() -> tuple[float, ...]:
    """The work of each variant of the traces; 0 and 1 are the same code."""
    with np.load(DATA / "h200_traces.npz") as stored:
        return tuple(stored["factors"].tolist())


def draw(
    rng: np.random.Generator, name: str, head: int, processes: int = 5, rounds: int = 100
) -> tuple[Samples, Samples]:
    """Base (variant 0) and head of processes drawn at random, and rounds drawn at random in their order."""
    stored = traces(name)
    chosen = rng.choice(len(stored), processes, replace=False)
    kept = [np.sort(rng.choice(stored.shape[2], rounds, replace=False)) for _ in chosen]
    return (
        [stored[process, 0, index] for process, index in zip(chosen, kept, strict=True)],
        [stored[process, head, index] for process, index in zip(chosen, kept, strict=True)],
    )


def noise(
    rng: np.random.Generator, change: float = 0.0, processes: int = 5, rounds: int = 100, spread: float = 0.01
) -> tuple[Samples, Samples]:
    """Lognormal times around 100 µs, and (1 + change) times as much."""
    base = [100 * np.exp(rng.normal(0, spread, rounds)) for _ in range(processes)]
    head = [100 * (1 + change) * np.exp(rng.normal(0, spread, rounds)) for _ in range(processes)]
    return base, head


def case(base: Sequence[Any], head: Sequence[Any], id_: str = "one", role: Role = "paired") -> TimedCase:
    processes = [process({"base": b, "head": h}, role) for b, h in zip(base, head, strict=True)]
    return runs.case(id_, processes)


def with_calls(made: TimedCase, **calls: Calls) -> TimedCase:
    """The case with what is known of a side's calls in its first process."""
    return runs.case(made.id, [changed(made.processes[0], calls=calls), *made.processes[1:]])


def paired_record(
    base: Sequence[Any], head: Sequence[Any], role: Role = "paired", device: str | None = None
) -> RunRecord:
    return run_record((case(base, head, role=role),), on(device))


def heads(head: Sequence[Any], id_: str = "one", device: str | None = None) -> RunRecord:
    """A record with head samples only, as a baseline file has them."""
    return run_record((runs.case(id_, [process({"head": samples}) for samples in head]),), on(device))


def remembered(record: RunRecord, spread_pct: float = 0.05) -> History:
    """As if each case had been compared five times before, on a machine as quiet as the H200 of the kept records."""
    known = KnownSpread(spread_pct=spread_pct, noise_pct=spread_pct / 2, df=10.0, comparisons=5)
    return History({(record.environment.device.name or "", case.key): known for case in timed_cases(record)})
