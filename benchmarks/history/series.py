"""Labelled series: a year of nights of a case, with steps, drift, environments and bad nights as the label says.

The nights follow from a label and its seed. Spreads are those of the recorded H200 processes
(tests/data/h200_traces.npz): `recorded_spreads` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.ci.history.changes import Night

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "data" / "h200_traces.npz"
PROCESSES = 5
NIGHTS = 365
CODE_A_NIGHT = 3
"""Commits from one night to the next."""
SPREADS = (0.013, 0.142)
"""Percent, between processes, as recorded: bound by arithmetic, bound by memory."""

Generator = np.random.Generator


@dataclass(frozen=True)
class SeriesLabel:
    """What a series holds. Percentages are changes of time; nights count from 0."""

    seed: int
    sd_pct: float
    """Of a night, all in all."""
    spread_pct: float
    """Between the processes of a night; the rest is the night's own."""
    steps: tuple[tuple[int, float], ...] = ()
    """Night and size."""
    drift: tuple[int, int, float] | None = None
    """From which night to which, and by how much in all."""
    environments: tuple[tuple[int, float], ...] = ()
    """From which night on, and by how much the ratio differs there from the first one's."""
    bad: float = 0.01
    """Share of nights that show something else."""
    bad_runs: int = 1
    """How many nights in a row are bad."""
    memory: float = 0.0
    """Correlation of a night's own error with the next night's."""


def truth(label: SeriesLabel) -> np.ndarray:
    """The log ratio of the code alone, by night."""
    level = np.zeros(NIGHTS)
    for night, size in label.steps:
        level[night:] += math.log1p(size / 100)
    if label.drift:
        first, last, size = label.drift
        level += np.clip((np.arange(NIGHTS) - first) / (last - first), 0, 1) * math.log1p(size / 100)
    return level


def nights(label: SeriesLabel) -> list[Night]:
    """What was measured."""
    rng = np.random.default_rng(label.seed)
    error = label.spread_pct / 100 / math.sqrt(PROCESSES)
    own = math.sqrt(max(0.0, (label.sd_pct / 100) ** 2 - error**2))
    noise = rng.normal(0, own, NIGHTS)
    for at in range(1, NIGHTS):
        noise[at] = label.memory * noise[at - 1] + math.sqrt(1 - label.memory**2) * noise[at]
    seen = truth(label) + noise + rng.normal(0, error, NIGHTS)
    names = np.full(NIGHTS, "0")
    for at, (night, size) in enumerate(label.environments):
        before = label.environments[at - 1][1] if at else 0.0
        seen[night:] += math.log1p(size / 100) - math.log1p(before / 100)
        names[night:] = str(at + 1)
    for first in np.flatnonzero(rng.random(NIGHTS) < label.bad / label.bad_runs):
        off = rng.choice([-1, 1], p=[0.2, 0.8]) * math.exp(rng.normal(math.log(0.03), 1.0))
        seen[first : first + label.bad_runs] += off
    shown = error * np.sqrt(rng.chisquare(PROCESSES - 1 + 10, NIGHTS) / (PROCESSES - 1 + 10))
    return [
        Night(f"{at:07x}", CODE_A_NIGHT * at, str(names[at]), float(seen[at]), float(shown[at])) for at in range(NIGHTS)
    ]


def recorded_spreads() -> dict[str, float]:
    """Percent: how far the log ratio of identical code scatters from process to process in the recorded traces."""
    traces = np.load(TRACES)
    found = {}
    for name in ("quiet_fma_inter", "quiet_copy_inter", "contended_fma_inter", "contended_copy_inter"):
        medians = np.median(np.log(traces[name]), axis=2)
        found[name] = float(100 * np.std(medians[:, 1] - medians[:, 0], ddof=1))
    return found


def scatter(rng: Generator, sds: Sequence[float]) -> dict[str, Any]:
    """Of a series: one of these, and a spread between processes that is no larger."""
    sd = float(rng.choice(sds))
    return {"sd_pct": sd, "spread_pct": float(rng.choice([one for one in SPREADS if one <= sd]))}


@cache
def labelled() -> tuple[SeriesLabel, ...]:
    """The 510 series of docs/history.md."""
    return tuple(_drawn(np.random.default_rng(122)))


def _drawn(rng: Generator) -> Iterator[SeriesLabel]:
    seeds = count(12_200_001)

    def noise(*sds: float) -> dict[str, Any]:
        return {"seed": next(seeds), **scatter(rng, sds or (0.05, 0.1, 0.15))}

    def night(last: int = NIGHTS - 30) -> int:
        return int(rng.integers(30, last))

    for _ in range(60):
        yield SeriesLabel(**noise(0.05, 0.1, 0.15, 0.3))
    for _ in range(80):
        yield SeriesLabel(**noise(), steps=((night(), float(rng.choice([1.0, 1.0, 1.0, -1.0]))),))
    for _ in range(40):
        yield SeriesLabel(**noise(0.3), steps=((night(), 1.0),))
    for _ in range(30):
        first = night(120)
        yield SeriesLabel(**noise(), drift=(first, first + int(rng.integers(60, 200)), float(rng.uniform(1.0, 2.0))))
    for _ in range(100):
        yield SeriesLabel(**noise(), environments=((night(), float(rng.normal(0, 1.0))),))
    for _ in range(20):
        yield SeriesLabel(**noise(), bad=0.05, bad_runs=int(rng.integers(1, 3)))
    for _ in range(120):
        yield SeriesLabel(**noise(0.05, 0.1, 0.15, 0.3), memory=0.6)
    for _ in range(60):
        five = sorted(rng.choice(np.arange(20, NIGHTS - 20, 5), 5, replace=False).tolist())
        yield SeriesLabel(
            **noise(), steps=tuple((one, float(rng.choice([-1, 1]) * rng.uniform(0.5, 5))) for one in five)
        )
