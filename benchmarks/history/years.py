"""Series beyond the labelled ones, as many as rare outcomes take: planted steps, and years in which the code stays.

Drawn anew from their own seeds, on all cores that the process may use.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

import numpy as np

from benchmarks.history.detection import compared, detect, false, found, known_spread, share, year
from benchmarks.history.series import CODE_A_NIGHT, NIGHTS, Generator, SeriesLabel, recorded_spreads
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import confirm
from kernelgate.ci.history.facts import Change

SPREADS = (0.013, 0.142)
"""Percent, between processes, as recorded: bound by arithmetic, bound by memory."""
CHUNK = 2_000
"""Comparisons of one task."""
UNCHANGED: dict[str, Callable[[Generator], dict[str, Any]]] = {
    "nights apart from each other": lambda _: {},
    "two new environments": lambda rng: {"environments": _environments(rng)},
    "5% bad nights, in runs of one or two": lambda rng: {"bad": 0.05, "bad_runs": int(rng.integers(1, 3))},
    "nights like the one before (correlation 0.7)": lambda _: {"memory": 0.7},
    "all three at once": lambda rng: {"environments": _environments(rng), "bad": 0.05, "bad_runs": 2, "memory": 0.7},
}
"""Years without a change of the code, by what makes them hard."""

Asked = TypeVar("Asked")
Made = TypeVar("Made")


def unchanged_table(years: int, comparisons: int) -> list[str]:
    """So many years of each kind, and what so many comparisons of the same code add to them."""
    hits = sum(_everywhere(_confirmed_of, range(math.ceil(comparisons / CHUNK)), "comparisons"))
    made = CHUNK * math.ceil(comparisons / CHUNK)
    chance, most = share([True] * hits + [False] * (made - hits)), _upper(hits, made)
    lines = [
        "| a year without a change | told | comparisons | GPU-seconds | told at most, by its comparisons |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for number, kind in enumerate(UNCHANGED):
        labels = [_unchanged(kind, (number + 1) * 1_000_000 + at) for at in range(years)]
        lived = list(_everywhere(_year, labels, kind))
        asked, seconds = (np.mean([one[at] for one in lived]) for at in (1, 2))
        told = share(one[0] for one in lived)
        lines.append(f"| {kind} | {told} | {asked:.1f} | {seconds:.0f} | {100 * asked * most:.2g}% |")
    return [*lines, "", f"A comparison of the same code confirms a change: {chance}."]


def planted(count: int, sds: Sequence[float], within: int) -> list[tuple[bool, bool]]:
    """Steps of 1% on so many series with one of these standard deviations: suspected in time, and confirmed."""
    asked = []
    for number in range(count):
        rng = np.random.default_rng([17, number])
        step = ((int(rng.integers(30, NIGHTS - 30)), float(rng.choice([1.0, -1.0]))),)
        asked.append((SeriesLabel(seed=9_000_000 + number, **_noise(rng, sds), steps=step), within))
    return list(_everywhere(_found, asked, f"steps at {sds}"))


def _everywhere(task: Callable[[Asked], Made], asked: Iterable[Asked], name: str) -> Iterator[Made]:
    """Each outcome in the order of what was asked for."""
    every = list(asked)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, made in enumerate(pool.map(task, every), 1):
            if number % 100 == 0 or number == len(every):
                say(f"{name}: {number} of {len(every)}")
            yield made


def _unchanged(kind: str, seed: int) -> SeriesLabel:
    rng = np.random.default_rng(seed)
    return SeriesLabel(seed=seed, **_noise(rng, (0.05, 0.1, 0.15, 0.3)), **UNCHANGED[kind](rng))


def _noise(rng: Generator, sds: Sequence[float]) -> dict[str, Any]:
    sd = float(rng.choice(sds))
    return {"sd_pct": sd, "spread_pct": float(rng.choice([one for one in SPREADS if one <= sd]))}


def _environments(rng: Generator) -> tuple[tuple[int, float], ...]:
    nights = sorted(rng.choice(np.arange(20, NIGHTS - 20), 2, replace=False).tolist())
    return tuple((night, float(rng.normal(0, 1.0))) for night in nights)


def _year(label: SeriesLabel) -> tuple[bool, int, float]:
    """Whether anything was told, how many comparisons were made, and their GPU-seconds."""
    lived = year(label)
    return bool(false(label, lived)), len(lived.measured), lived.seconds


def _found(asked: tuple[SeriesLabel, int]) -> tuple[bool, bool]:
    label, within = asked
    return found(label, label.steps[0][0], within, detect)


def _confirmed_of(chunk: int) -> int:
    """How many of a chunk's comparisons of the same code confirm what was suspected."""
    rng = np.random.default_rng([5, chunk])
    suspected = Change("step", "0000000", 0, "0000001", CODE_A_NIGHT, "", 0.5, (0.3, 0.7))
    spreads, hits = list(recorded_spreads().values()), 0
    for _ in range(CHUNK):
        label = SeriesLabel(seed=0, sd_pct=0.3, spread_pct=float(rng.choice(spreads)))
        measured = [compared(label, suspected, int(rng.integers(4, 8)), rng)]
        hits += confirm.settled(suspected, measured, known_spread(label)).state == "confirmed"
    return hits


def _upper(hits: int, n: int) -> float:
    """The upper end of the 95% interval of Clopper and Pearson."""
    from scipy import special

    return float(special.betaincinv(hits + 1, n - hits, 0.975))
