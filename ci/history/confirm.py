"""What a paired comparison of both commits makes of a suspicion, and which commits between them it came down to. Only
what is confirmed here is told to people.

The comparison is judged as any other (ci/judge/spread.py): its processes are the unit, and how far they scatter is not
known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kernelgate.ci.document import formatting
from kernelgate.ci.history.facts import Change
from kernelgate.ci.history.levels import SMALLEST_PCT
from kernelgate.ci.judge import prior
from kernelgate.ci.judge.prior import KnownSpread
from kernelgate.ci.judge.stats import INTERVAL_LEVEL, Array, Pooled

LONGER = 4
"""A comparison over so many times as many commits says nothing of a change."""

CONFIRM_P: Final = 1e-4
"""People are told of a change once a comparison of both commits shows one in the same direction that chance makes this
rarely."""
LOOKS: Final = 3
"""A comparison that decides nothing is repeated, until there were so many."""


@dataclass(frozen=True)
class PairMeasured:
    """One comparison of two commits in one case, as the store keeps it. Logarithms of head over base."""

    base: str
    base_place: int
    head: str
    head_place: int
    effect: float
    error: float
    """Its standard error, as the judge gave it."""
    spread: float
    """Standard deviation of the processes' effects."""
    processes: int
    """At least 2."""


def settled(change: Change, measured: Sequence[PairMeasured], known: KnownSpread | None = None) -> Change:
    """The change as all comparisons leave it: confirmed, refuted, or still suspected.

    `measured`: all comparisons of the case, in the order in which they were made. `known`: what they show of the case's
    processes. A change that was compared has the commits and the size that were measured side by side.
    """
    if change.state == "accepted":
        return change
    if covering := _nearest(change, [one for one in measured if _covers(one, change)]):
        return _judged(change, covering, known)
    # With later nights the place of a change shifts a little. A pair that holds only a part of it may confirm it, but
    # that it shows nothing does not refute it.
    inside = _nearest(change, [one for one in measured if _shares(one, change)])
    found = _judged(change, inside, known) if inside else change
    return found if found.state == "confirmed" else change


def _judged(change: Change, own: Sequence[PairMeasured], known: KnownSpread | None) -> Change:
    pair = own[0]
    pooled = together(own, known)
    half = pooled.half_width(1 - INTERVAL_LEVEL)
    low, size, high = (100 * math.expm1(pooled.change + off) for off in (-half, 0.0, half))
    seen = replace(
        change,
        previous=pair.base,
        previous_place=pair.base_place,
        commit=pair.head,
        place=pair.head_place,
        change_pct=size,
        interval_pct=(low, high),
    )
    # Looking again is another chance of being wrong: each look has half of the level that the one before it had.
    certain = pooled.p() <= CONFIRM_P / 2 ** len(own)
    along = (size > 0) == (change.change_pct > 0)
    most = high if change.change_pct > 0 else -low
    said = f"measured side by side: {formatting.percent(size, 2, sign=True)}"
    if certain and along and abs(size) >= SMALLEST_PCT:
        return replace(seen, state="confirmed", why=said)
    if certain and not along:
        return replace(seen, state="refuted", why=f"{said}, which is the other direction")
    if most < SMALLEST_PCT:
        return replace(seen, state="refuted", why=f"{said}, and no change as large as {SMALLEST_PCT:g}%")
    if len(own) >= LOOKS:
        times = formatting.counted(len(own), "comparison")
        return replace(seen, state="refuted", why=f"{said}, which {times} could not tell from no change")
    between = f"{formatting.percent(low, 2, sign=True)} to {formatting.percent(high, 2, sign=True)}"
    return replace(seen, state="suspected", why=f"measured side by side: {between}, which decides nothing yet")


def _nearest(change: Change, near: Sequence[PairMeasured]) -> list[PairMeasured]:
    """The comparisons of the one pair of commits that comes closest to the change's."""
    if not near:
        return []
    best = min(near, key=lambda one: abs(one.base_place - change.previous_place) + abs(one.head_place - change.place))
    return [one for one in near if (one.base, one.head) == (best.base, best.head)]


def _covers(pair: PairMeasured, change: Change) -> bool:
    """Whether the change lies between these commits, and not in a small part of what lies between them."""
    holds = pair.base_place <= change.previous_place and pair.head_place >= change.place
    return pair.processes > 1 and holds and _length(pair) <= LONGER * (change.place - change.previous_place)


def _shares(pair: PairMeasured, change: Change) -> bool:
    common = min(change.place, pair.head_place) - max(change.previous_place, pair.base_place)
    mine, its = change.place - change.previous_place, _length(pair)
    return pair.processes > 1 and 2 * common >= min(mine, its) and its <= LONGER * mine


def _length(pair: PairMeasured) -> int:
    return pair.head_place - pair.base_place


def together(measured: Sequence[PairMeasured], known: KnownSpread | None = None) -> Pooled:
    """All processes of all comparisons, as the judge combines them; no more certain than the judge said of any part."""
    values = np.concatenate([_processes(one) for one in measured])
    # What rounds add is part of the spread that is seen.
    before = prior.prior(prior.CHANGE_PCT, known)
    found = prior.fit(values, np.zeros(len(values)), before).pooled(before.share, math.inf)
    floor = 1 / math.sqrt(sum(1 / max(one.error, 1e-12) ** 2 for one in measured))
    return replace(found, error=max(found.error, floor))


def _processes(measured: PairMeasured) -> Array:
    """Effects with this mean and standard deviation: of more than these, equally precise processes tell nothing."""
    n = measured.processes
    shape = np.linspace(-1.0, 1.0, n)
    return np.asarray(measured.effect + measured.spread * shape / np.std(shape, ddof=1))


# ---- among several commits -------------------------------------------------------------------------------------------
#
# The older end is compared with commits between, by halves: each comparison holds both in the same processes, and shows
# more than half of the change, or less. It takes one commit to have made most of it. `kernelgate bisect` finds it in
# one go, on a machine at hand; this is for workflows, a pair of commits at a time.


@dataclass(frozen=True)
class NarrowedRange:
    """The change was made after `low`, and not after `high`: places on the default branch."""

    low: int
    high: int
    middle: tuple[int, ...]
    """Places to compare next, the one that halves the range first; none where nothing tells more."""


def narrowed(change: Change, measured: Sequence[PairMeasured]) -> NarrowedRange:
    """`measured`: of the case."""
    low, high = change.previous_place, change.place
    asked: dict[int, list[PairMeasured]] = {}
    for one in measured:
        if one.base == change.previous and low < one.head_place < high:
            asked.setdefault(one.head_place, []).append(one)
    open_ = set()
    for place, own in sorted(asked.items()):
        shows = _shows(change, own)
        if shows is None:
            open_ |= {place} if len(own) >= LOOKS else set()
        elif shows:
            high = min(high, place)
        else:
            low = max(low, place)
    low = min(low, high - 1)
    half = (low + high) / 2
    between = (place for place in range(low + 1, high) if place not in open_)
    return NarrowedRange(low, high, tuple(sorted(between, key=lambda place: (abs(place - half), place))))


def _shows(change: Change, own: Sequence[PairMeasured]) -> bool | None:
    """Whether most of the change was there already; None where that is not certain."""
    pooled = together(own)
    half = math.log1p(change.change_pct / 100) / 2
    reach = pooled.half_width(CONFIRM_P)
    along = math.copysign(1.0, half)
    if along * pooled.change - reach > abs(half):
        return True
    return False if along * pooled.change + reach < abs(half) else None
