"""Small builders of run records: from the recorded traces of an H200, and from noise made up on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelgate.bench.record import Case, Device, Environment, Launch, Order, RunRecord, Telemetry

DATA = Path(__file__).parent.parent / "data"

Samples = list[NDArray[np.float64]]
"""Times in microseconds, one array a launch."""


@cache
def traces(name: str) -> NDArray[np.float64]:
    """Recorded times in microseconds, (launch, variant, round): name is <quiet|contended>_<fma|copy>_<block|inter>."""
    with np.load(DATA / "h200_traces.npz") as stored:
        return stored[name].astype(float)


@cache
def factors() -> tuple[float, ...]:
    """The work of each variant of the traces; 0 and 1 are the same code."""
    with np.load(DATA / "h200_traces.npz") as stored:
        return tuple(stored["factors"].tolist())


def draw(
    rng: np.random.Generator, name: str, head: int, launches: int = 5, rounds: int = 100
) -> tuple[Samples, Samples]:
    """Base (variant 0) and head of launches drawn at random, and rounds drawn at random in their order."""
    stored = traces(name)
    chosen = rng.choice(len(stored), launches, replace=False)
    kept = [np.sort(rng.choice(stored.shape[2], rounds, replace=False)) for _ in chosen]
    return (
        [stored[launch, 0, index] for launch, index in zip(chosen, kept, strict=True)],
        [stored[launch, head, index] for launch, index in zip(chosen, kept, strict=True)],
    )


def noise(
    rng: np.random.Generator, change: float = 0.0, launches: int = 5, rounds: int = 100, spread: float = 0.01
) -> tuple[Samples, Samples]:
    """Lognormal times around 100 µs, and (1 + change) times as much."""
    base = [100 * np.exp(rng.normal(0, spread, rounds)) for _ in range(launches)]
    head = [100 * (1 + change) * np.exp(rng.normal(0, spread, rounds)) for _ in range(launches)]
    return base, head


def case(base: Sequence[Any], head: Sequence[Any], id_: str = "one", order: Order = "interleaved") -> Case:
    launches = [
        Launch(order=order, samples_us={"base": tuple(map(float, b)), "head": tuple(map(float, h))})
        for b, h in zip(base, head, strict=True)
    ]
    return Case(id=id_, launches=tuple(launches))


def duel(
    base: Sequence[Any], head: Sequence[Any], order: Order = "interleaved", device: str | None = None
) -> RunRecord:
    return RunRecord(cases=(case(base, head, order=order),), environment=Environment(device=Device(name=device)))


def heads(head: Sequence[Any], id_: str = "one", device: str | None = None) -> RunRecord:
    """A record with head samples only, as a baseline file has them."""
    launches = tuple(Launch(samples_us={"head": tuple(map(float, samples))}) for samples in head)
    return RunRecord(cases=(Case(id=id_, launches=launches),), environment=Environment(device=Device(name=device)))


def with_telemetry(record: RunRecord, *readings: Telemetry) -> RunRecord:
    """The record with a reading for each launch of its one case."""
    (one,) = record.cases
    launches = tuple(
        launch.model_copy(update={"telemetry": reading}) for launch, reading in zip(one.launches, readings, strict=True)
    )
    return record.model_copy(update={"cases": (one.model_copy(update={"launches": launches}),)})
