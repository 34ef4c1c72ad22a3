"""How two measurements of one case compare, though they were not made together; compare.js does the same.

What is nearest to a paired comparison counts: one in the same processes; else both over the same pinned commit,
each in its own processes, so that the day and the machine cancel out, though a new environment may change the two
unequally; else their times, in the same environment alone, where the days themselves may differ. Times of two
environments do not compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from kernelgate.ci.report.dashboard.dashboard import SitePoint, SiteSeries

Means = Literal["together", "pinned", "moved", "times"]
RUN = 5
"""Measurements in a row whose median is a level, or all where there are fewer: the best single one is the luckiest."""


@dataclass(frozen=True)
class Against:
    """`means` is how it is known."""

    change_pct: float
    interval_pct: tuple[float, float] | None
    means: Means


def now(series: SiteSeries) -> SitePoint | None:
    """The newest measurement that may be trusted."""
    return next((point for point in reversed(series.points) if not point.finding), None)


def between(series: SiteSeries, head: SitePoint, base: SitePoint) -> Against | None:
    """The head's change against the base; None where they do not compare."""
    together = _together(series, head.commit, base.commit)
    if together is not None:
        return together
    if head.pinned is not None and base.pinned is not None:
        means: Means = "pinned" if head.environment == base.environment else "moved"
        return _apart(head.pinned - base.pinned, head.pinned_reach, base.pinned_reach, means)
    if head.environment == base.environment:
        return _apart(math.log(head.us) - math.log(base.us), head.reach, base.reach, "times")
    return None


def released(series: SiteSeries, commits: frozenset[str]) -> SitePoint | None:
    """The last measurement up to the release."""
    return next((one for one in reversed(series.points) if one.commit in commits and not one.finding), None)


def best(series: SiteSeries) -> Against | None:
    """The newest measurement against the lowest level that compares with it; None where there is no other."""
    newest = now(series)
    if newest is None:
        return None
    by_pin = newest.pinned is not None
    points = list(_alike(series, newest))
    if len(points) < 2:
        return None
    width = min(RUN, len(points))
    runs = [points[start : start + width] for start in range(len(points) - width + 1)]
    lowest, run = min(((median(_level(one, by_pin) for one in run), run) for run in runs), key=lambda pair: pair[0])
    here = all(one.environment == newest.environment for one in run)
    means: Means = "times" if not by_pin else "pinned" if here else "moved"
    return _apart(_level(newest, by_pin) - lowest, newest.pinned_reach if by_pin else newest.reach, 0.0, means)


def _together(series: SiteSeries, head: str, base: str) -> Against | None:
    """The newest comparison of both, whichever way round."""
    for one in reversed(series.comparisons):
        if (one.base, one.head) == (base, head):
            return Against(one.change_pct, one.interval_pct, "together")
        if (one.base, one.head) == (head, base):
            low, high = one.interval_pct or (0.0, 0.0)
            interval = (_inverted(high), _inverted(low)) if one.interval_pct else None
            return Against(_inverted(one.change_pct), interval, "together")
    return None


def _inverted(change_pct: float) -> float:
    return 100 * (100 / (100 + max(change_pct, -99.99)) - 1)


def _alike(series: SiteSeries, newest: SitePoint) -> Iterator[SitePoint]:
    for one in series.points:
        comparable = one.pinned is not None if newest.pinned is not None else one.environment == newest.environment
        if comparable and not one.finding:
            yield one


def _level(point: SitePoint, by_pin: bool) -> float:
    return point.pinned if by_pin and point.pinned is not None else math.log(point.us)


def _apart(change: float, head: float | None, base: float | None, means: Means) -> Against:
    interval = None
    if head is not None and base is not None:
        reach = math.hypot(head, base)
        interval = (_pct(change - reach), _pct(change + reach))
    return Against(_pct(change), interval, means)


def _pct(log: float) -> float:
    return 100 * math.expm1(min(log, 50.0))
