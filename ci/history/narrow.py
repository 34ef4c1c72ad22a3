"""Which commits a confirmed change came down to: the older end compared with commits between, by halves.

Each comparison holds its older end and another commit in the same processes, and shows more than half of the change, or
less. It takes one commit to have made most of it. `kernelgate bisect` finds it in one go, on a machine at hand; this is
for workflows, a pair of commits at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.ci.history import confirm
from kernelgate.ci.history.changes import Change
from kernelgate.ci.history.confirm import PairMeasured
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class NarrowedRange:
    """The change was made after `low`, and not after `high`: places on the default branch."""

    low: int
    high: int
    middle: tuple[int, ...]
    """Places to compare next, the one that halves the range first; none where nothing tells more."""


def of_change(change: Change, measured: Sequence[PairMeasured], policy: Policy) -> NarrowedRange:
    """`measured`: of the case."""
    low, high = change.previous_place, change.place
    asked: dict[int, list[PairMeasured]] = {}
    for one in measured:
        if one.base == change.previous and low < one.head_place < high:
            asked.setdefault(one.head_place, []).append(one)
    open_ = set()
    for place, own in sorted(asked.items()):
        shows = _shows(change, own, policy)
        if shows is None:
            open_ |= {place} if len(own) >= policy.changes.looks else set()
        elif shows:
            high = min(high, place)
        else:
            low = max(low, place)
    low = min(low, high - 1)
    half = (low + high) / 2
    between = (place for place in range(low + 1, high) if place not in open_)
    return NarrowedRange(low, high, tuple(sorted(between, key=lambda place: (abs(place - half), place))))


def _shows(change: Change, own: Sequence[PairMeasured], policy: Policy) -> bool | None:
    """Whether most of the change was there already; None where that is not certain."""
    pooled = confirm.together(own, policy)
    half = math.log1p(change.change_pct / 100) / 2
    reach = pooled.half_width(policy.changes.confirm_p)
    along = math.copysign(1.0, half)
    if along * pooled.change - reach > abs(half):
        return True
    return False if along * pooled.change + reach < abs(half) else None
