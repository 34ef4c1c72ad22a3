"""Runs the nights of labelled series through suspicion, schedule and comparison, as a project would live them.

Beside the labelled series are years in which the code stays, drawn anew from their own seeds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy import stats

from benchmarks.history.series import (
    CODE_A_NIGHT,
    NIGHTS,
    PROCESSES,
    Generator,
    SeriesLabel,
    nights,
    recorded_spreads,
    scatter,
    truth,
)
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import changes, culprits
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.culprits import WantedPair
from kernelgate.ci.history.facts import CaseName, Change
from kernelgate.ci.history.nights import PairMeasured, settled
from kernelgate.ci.judge.prior import HISTORY_MEMORY_DF, KnownSpread
from kernelgate.ci.judge.stats import student_half_width
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.dashboard import SitePoint, SiteSeries

POLICY = Policy()
WANDER = math.log(1.65)
"""How far the spread between processes moves from day to day, as a standard deviation of its logarithm: as recorded."""
CASE = CaseName("", "card", "case", "gpu")
SEEN_BACK = 150
"""Nights that the simulated nightly looks at; a year takes a twentieth of the time then."""


@dataclass
class Lived:
    """What a series has seen."""

    measured: list[PairMeasured] = field(default_factory=list)
    told: dict[tuple[str, str], Change] = field(default_factory=dict)


def known_spread(label: SeriesLabel) -> KnownSpread:
    """What the nights so far show of the case's processes."""
    spread_pct = label.spread_pct * math.exp(WANDER**2)
    return KnownSpread(spread_pct=spread_pct, noise_pct=0.0, df=HISTORY_MEMORY_DF, comparisons=10)


def compared(label: SeriesLabel, change: Change, processes: int, rng: Generator) -> PairMeasured:
    """A paired comparison of the two commits: environments, bad nights and nights' own errors have no part in it."""
    level = truth(label)
    effect = level[change.place // CODE_A_NIGHT] - level[change.previous_place // CODE_A_NIGHT]
    spread = label.spread_pct / 100 * math.exp(rng.normal(0, WANDER))
    values = rng.normal(effect, spread, processes)
    shown = float(np.std(values, ddof=1))
    ends = (change.previous, change.previous_place, change.commit, change.place)
    return PairMeasured(*ends, float(values.mean()), shown / math.sqrt(processes), shown, processes)


def night(label: SeriesLabel, seen: Sequence[Night], lived: Lived, rng: Generator) -> tuple[Change, ...]:
    """One night: what is suspected, which is returned, what is measured, what is told."""
    known, found = known_spread(label), changes.of_series(seen)
    suspected = [settled(one, lived.measured, known) for one in found]
    asked = [
        WantedPair(CASE, one.previous, one.commit, 1.0, culprits.needed(one.change_pct, label.spread_pct, POLICY))
        for one in suspected
        if one.state == "suspected"
    ]
    planned = culprits.planned(asked, POLICY)
    by_pair = {(one.previous, one.commit): one for one in suspected}
    for pair in planned.pairs:
        lived.measured.append(compared(label, by_pair[pair.previous, pair.commit], pair.processes, rng))
    for one in suspected:
        now = settled(one, lived.measured, known)
        if now.state == "confirmed":
            lived.told[now.previous, now.commit] = now
    return found


def year(label: SeriesLabel) -> Lived:
    """Every night of a series."""
    every, lived, rng = nights(label), Lived(), np.random.default_rng(label.seed + 1)
    for last in range(10, NIGHTS):
        night(label, every[max(0, last + 1 - SEEN_BACK) : last + 1], lived, rng)
    return lived


def found(label: SeriesLabel, within: int) -> tuple[bool, bool]:
    """Whether its first step was suspected within so many nights, and confirmed then or in the two nights after."""
    every, lived, rng = nights(label), Lived(), np.random.default_rng(label.seed + 2)
    step, flagged = label.steps[0][0], False
    for last in range(step, step + within + 3):
        found_now = night(label, every[: last + 1], lived, rng)
        flagged |= last <= step + within and any(_around(one, step) for one in found_now)
    return flagged, any(_around(one, step) for one in lived.told.values())


def false(label: SeriesLabel, lived: Lived) -> list[Change]:
    """What was told though the code was the same."""
    level = truth(label)
    return [
        one
        for one in lived.told.values()
        if level[one.place // CODE_A_NIGHT] == level[one.previous_place // CODE_A_NIGHT]
    ]


def _around(change: Change, step: int) -> bool:
    return change.previous_place < CODE_A_NIGHT * step <= change.place


def share(outcomes: Iterable[bool]) -> str:
    """How many of how many, with the 95% interval of Clopper and Pearson."""
    every = list(outcomes)
    return _share(sum(every), len(every))


def _share(hits: int, of: int) -> str:
    low, high = stats.binomtest(hits, of).proportion_ci()
    return f"{hits} of {of} ({100 * low:.3g} to {100 * high:.3g}%)"


def best(label: SeriesLabel, last: int = 150) -> bool:
    """Whether the interval of what is lost since the best holds the truth after so many nights."""
    factor, level = student_half_width(PROCESSES - 1), truth(label)[:last]
    every = [
        SitePoint(one.commit, "", int(one.environment), 100.0, None, one.log_ratio, factor * one.error, factor)
        for one in nights(label)[:last]
    ]
    shown = SiteSeries("", "card", "case", "gpu", (), tuple(every)).best
    low, high = (shown and shown.interval_pct) or (-math.inf, math.inf)
    return low <= 100 * math.expm1(level[-1] - level.min()) <= high


# ---- many series -----------------------------------------------------------------------------------------------------

CHUNK = 2_000
"""Comparisons of one task."""
UNCHANGED: dict[str, Callable[[Generator], dict[str, Any]]] = {
    "nights apart from each other": lambda _: {},
    "two new environments": lambda rng: {"environments": _environments(rng)},
    "5% bad nights, in runs of one or two": lambda rng: {"bad": 0.05, "bad_runs": int(rng.integers(1, 3))},
    "nights like the one before (correlation 0.6)": lambda _: {"memory": 0.6},
}
"""Years without a change of the code, by what makes them hard."""

Asked = TypeVar("Asked")
Made = TypeVar("Made")
COMPARISONS = 200_000


def unchanged(years: int) -> dict[str, str]:
    """So many years of each kind, and what comparisons of the same code say."""
    labels = [
        _unchanged(kind, (number + 1) * 1_000_000 + at) for number, kind in enumerate(UNCHANGED) for at in range(years)
    ]
    told = share(everywhere(_told, labels, "years"))
    hits = sum(everywhere(_confirmed_of, range(COMPARISONS // CHUNK), "comparisons"))
    return {
        "a year without a change: something is reported": told,
        "a comparison of the same code confirms a change": _share(hits, COMPARISONS),
    }


def everywhere(task: Callable[[Asked], Made], asked: Iterable[Asked], name: str) -> Iterator[Made]:
    """Each outcome in the order of what was asked for."""
    every = list(asked)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, made in enumerate(pool.map(task, every), 1):
            if number % 100 == 0 or number == len(every):
                say(f"{name}: {number} of {len(every)}")
            yield made


def _unchanged(kind: str, seed: int) -> SeriesLabel:
    rng = np.random.default_rng(seed)
    return SeriesLabel(seed=seed, **scatter(rng, (0.05, 0.1, 0.15, 0.3)), **UNCHANGED[kind](rng))


def _environments(rng: Generator) -> tuple[tuple[int, float], ...]:
    nights = sorted(rng.choice(np.arange(20, NIGHTS - 20), 2, replace=False).tolist())
    return tuple((night, float(rng.normal(0, 1.0))) for night in nights)


def _told(label: SeriesLabel) -> bool:
    return bool(false(label, year(label)))


def _confirmed_of(chunk: int) -> int:
    """How many of a chunk's comparisons of the same code confirm what was suspected."""
    rng = np.random.default_rng([5, chunk])
    suspected = Change("step", "0000000", 0, "0000001", CODE_A_NIGHT, "", 0.5, (0.3, 0.7))
    spreads, hits = list(recorded_spreads().values()), 0
    for _ in range(CHUNK):
        label = SeriesLabel(seed=0, sd_pct=0.3, spread_pct=float(rng.choice(spreads)))
        measured = [compared(label, suspected, int(rng.integers(4, 8)), rng)]
        hits += settled(suspected, measured, known_spread(label)).state == "confirmed"
    return hits
