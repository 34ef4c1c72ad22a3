"""Runs the nights of labelled series through suspicion, schedule and comparison, as a project would live them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from benchmarks.history.series import CODE_A_NIGHT, NIGHTS, Generator, SeriesLabel, nights, truth
from kernelgate.ci.history import changes, confirm, tonight
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.history.facts import CaseName, Change
from kernelgate.ci.history.tonight import Suspicion
from kernelgate.ci.judge.spread import HISTORY_MEMORY_DF, KnownSpread
from kernelgate.ci.policy.policy import Policy

POLICY = Policy()
WANDER = math.log(1.65)
"""How far the spread between processes moves from day to day, as a standard deviation of its logarithm: as recorded."""
PROCESS_SECONDS = 3.0
CASE = CaseName("", "card", "case", "gpu")
SEEN_BACK = 150
"""Nights that the simulated nightly looks at; a year takes a twentieth of the time then."""

Detector = Callable[[Sequence[Night]], tuple[Change, ...]]


def detect(seen: Sequence[Night]) -> tuple[Change, ...]:
    return changes.of_series(seen)


@dataclass
class Lived:
    """What a series has seen."""

    measured: list[PairMeasured] = field(default_factory=list)
    told: dict[tuple[str, str], Change] = field(default_factory=dict)
    seconds: float = 0.0


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
    found = float(np.std(values, ddof=1))
    return PairMeasured(
        base=change.previous,
        base_place=change.previous_place,
        head=change.commit,
        head_place=change.place,
        effect=float(values.mean()),
        error=found / math.sqrt(processes),
        spread=found,
        processes=processes,
    )


def night(label: SeriesLabel, seen: Sequence[Night], lived: Lived, rng: Generator, detector: Detector = detect) -> None:
    """One night: what is suspected, what is measured, what is told."""
    known = known_spread(label)
    suspected = [confirm.settled(one, lived.measured, known) for one in detector(seen)]
    asked = [Suspicion(CASE, one, PROCESS_SECONDS, label.spread_pct) for one in suspected]
    planned = tonight.planned(asked, POLICY)
    lived.seconds += sum(pair.gpu_seconds for pair in planned.pairs)
    by_pair = {(one.previous, one.commit): one for one in suspected}
    for pair in planned.pairs:
        lived.measured.append(compared(label, by_pair[pair.previous, pair.commit], pair.processes, rng))
    for one in suspected:
        now = confirm.settled(one, lived.measured, known)
        if now.state == "confirmed":
            lived.told[now.previous, now.commit] = now


def year(label: SeriesLabel, detector: Detector = detect) -> Lived:
    """Every night of a series."""
    every, lived, rng = nights(label), Lived(), np.random.default_rng(label.seed + 1)
    for last in range(10, NIGHTS):
        night(label, every[max(0, last + 1 - SEEN_BACK) : last + 1], lived, rng, detector)
    return lived


def found(label: SeriesLabel, step: int, within: int, detector: Detector = detect) -> tuple[bool, bool]:
    """Whether a step was suspected at most so many nights after it, and whether it was confirmed then or in the two
    nights that follow."""
    every, lived, rng = nights(label), Lived(), np.random.default_rng(label.seed + 2)
    flagged = False
    for last in range(step, step + within + 3):
        seen = every[: last + 1]
        flagged |= last <= step + within and any(_around(one, step) for one in detector(seen))
        night(label, seen, lived, rng, detector)
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
    hits, n = sum(every), len(every)
    low = float(special.betaincinv(hits, n - hits + 1, 0.025)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return f"{hits} of {n} ({100 * low:.3g} to {100 * high:.3g}%)"
