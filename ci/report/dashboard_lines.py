"""What the dashboard says of each case: its newest time against release, best and reference, its changes, its times.

How two measurements compare that were not made together, compare.js has as well. What is nearest to a paired comparison
counts: one in the same processes; else both over the same pinned commit, each in its own processes, so that the day and
the machine cancel out, though a new environment may change the two unequally; else their times, in the same environment
alone, where the days themselves may differ. Times of two environments do not compare.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import Literal

from markupsafe import Markup

from kernelgate.ci.document import drawing, formatting
from kernelgate.ci.document.model import Line, Link, Mark
from kernelgate.ci.history.facts import Change
from kernelgate.ci.report.dashboard import Dashboard, SitePoint, SiteSeries

# How two measurements compare -----------------------------------------------------------------------------------------

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


def released(series: SiteSeries, commits: frozenset[str]) -> SitePoint | None:
    """The last measurement up to the release."""
    return next((one for one in reversed(series.points) if one.commit in commits and not one.finding), None)


def between(series: SiteSeries, head: SitePoint, base: SitePoint) -> Against | None:
    """The head's change against the base; None where they do not compare."""
    for one in reversed(series.comparisons):  # the newest of both, whichever way round
        if (one.base, one.head) == (base.commit, head.commit):
            return Against(one.change_pct, one.interval_pct, "together")
        if (one.base, one.head) == (head.commit, base.commit):
            low, high = one.interval_pct or (0.0, 0.0)
            interval = (_inverted(high), _inverted(low)) if one.interval_pct else None
            return Against(_inverted(one.change_pct), interval, "together")
    if head.pinned is not None and base.pinned is not None:
        means: Means = "pinned" if head.environment == base.environment else "moved"
        return _apart(head.pinned - base.pinned, head.pinned_reach, base.pinned_reach, means)
    if head.environment == base.environment:
        return _apart(math.log(head.us) - math.log(base.us), head.reach, base.reach, "times")
    return None


def best(series: SiteSeries) -> Against | None:
    """The newest measurement against the lowest level that compares with it; None where there is no other."""
    newest = now(series)
    if newest is None:
        return None
    by_pin = newest.pinned is not None
    points = [
        one
        for one in series.points
        if not one.finding and (one.pinned is not None if by_pin else one.environment == newest.environment)
    ]
    if len(points) < 2:
        return None
    width = min(RUN, len(points))
    runs = [points[start : start + width] for start in range(len(points) - width + 1)]
    lowest, run = min(((median(_level(one, by_pin) for one in run), run) for run in runs), key=lambda pair: pair[0])
    here = all(one.environment == newest.environment for one in run)
    means: Means = "times" if not by_pin else "pinned" if here else "moved"
    return _apart(_level(newest, by_pin) - lowest, newest.pinned_reach if by_pin else newest.reach, 0.0, means)


def _inverted(change_pct: float) -> float:
    return 100 * (100 / (100 + max(change_pct, -99.99)) - 1)


def _level(point: SitePoint, by_pin: bool) -> float:
    return point.pinned if by_pin and point.pinned is not None else math.log(point.us)


def _apart(change: float, head: float | None, base: float | None, means: Means) -> Against:
    reach = math.hypot(head, base) if head is not None and base is not None else None
    interval = None if reach is None else (_pct(change - reach), _pct(change + reach))
    return Against(_pct(change), interval, means)


def _pct(log: float) -> float:
    return 100 * math.expm1(min(log, 50.0))


# Changes --------------------------------------------------------------------------------------------------------------

MARKS = {"suspected": Mark.UNKNOWN, "refuted": Mark.NONE, "accepted": Mark.PASSED}
"""Of a confirmed change its direction says more."""
TOLD = ("confirmed", "accepted")
"""Changes of these states are told; a suspicion is shown on its case's page alone, until a comparison has decided."""
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,100}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class ChangeLine:
    series: SiteSeries
    change: Change
    made: str
    """When its commit was measured."""
    mark: Line
    size: str
    interval: str
    commit: Line
    diff: Line
    """What changed in the code."""


@dataclass(frozen=True)
class News:
    """What one commit changed: the largest of its changes, and how many cases changed beside it."""

    line: ChangeLine
    others: int


def changes(series: SiteSeries) -> list[ChangeLine]:
    """Newest first."""
    address, lines = address_of(series.repository), []
    for change in reversed(series.changes):
        size, interval = formatting.signed(change.change_pct, change.interval_pct)
        direction = Mark.SLOWER if change.change_pct > 0 else Mark.FASTER
        known = address and formatting.is_commit(change.previous) and formatting.is_commit(change.commit)
        diff = Link("diff", f"{address}/compare/{change.previous}..{change.commit}")
        lines.append(
            ChangeLine(
                series,
                change,
                series.made(change.commit),
                (MARKS.get(change.state, direction),),
                size,
                interval,
                commit(change.commit, series.repository),
                (diff,) if known else (),
            )
        )
    return lines


def news(shown: Dashboard) -> list[News]:
    """What people are told of, newest first."""

    def of_commit(line: ChangeLine) -> tuple[str, str, str]:
        return line.made[:10], line.change.commit, line.change.state

    lines = [line for one in shown.series for line in changes(one) if line.change.state in TOLD]
    lines.sort(key=of_commit, reverse=True)
    alike = [list(group) for _, group in groupby(lines, key=of_commit)]
    return [News(max(group, key=lambda one: abs(one.change.change_pct)), len(group) - 1) for group in alike]


def address_of(repository: str) -> str | None:
    """Of a repository on GitHub; None where a record calls it something else."""
    return f"https://github.com/{repository}" if _REPOSITORY.fullmatch(repository) else None


def commit(sha: str, repository: str) -> Line:
    address = address_of(repository)
    if address and formatting.is_commit(sha):
        return (Link(sha[:7], f"{address}/commit/{sha}"),)
    return (formatting.commit(sha or None, formatting.MISSING),)


# Cases ----------------------------------------------------------------------------------------------------------------

DRAWN = 60
"""Points of a sparkline."""
WIDTH, HEIGHT = 150.0, 28.0
FLAT = 0.01
"""A sparkline is at least 1% of the time high, so that noise draws no mountains."""
MEANS = {
    "together": "measured in the same processes",
    "pinned": "each against the same pinned commit",
    "moved": "≈ each against the same pinned commit, in two environments",
    "times": "≈ times of different days",
}
CERTAIN = ("together", "pinned")
"""What is known in another way may be the machine's doing."""


@dataclass(frozen=True)
class Cell:
    """`sort` orders by it: the change in percent."""

    text: str
    interval: str = ""
    how: str = ""
    mark: Mark | None = None
    sort: float | None = None


@dataclass(frozen=True)
class CaseLine:
    series: SiteSeries
    time: str
    reference: Cell
    release: Cell
    best: Cell
    spark: Markup | None
    last: str
    news: ChangeLine | None
    """The newest change that people are told of."""


@dataclass(frozen=True)
class CardGroup:
    """The cases of a card on one kind of GPU."""

    repository: str
    card: str
    gpu: str
    lines: tuple[CaseLine, ...]

    @property
    def times_reference(self) -> str:
        """What stands above the cases' multiples of it."""
        named = {line.series.times_reference for line in self.lines}
        return named.pop() if len(named) == 1 else "× reference"


def groups(shown: Dashboard) -> list[CardGroup]:
    ordered = sorted(shown.series, key=lambda one: (one.repository, one.card, one.gpu, one.case))
    return [
        CardGroup(*key, tuple(line(one, shown) for one in of_card))
        for key, of_card in groupby(ordered, key=lambda one: (one.repository, one.card, one.gpu))
    ]


def line(series: SiteSeries, shown: Dashboard) -> CaseLine:
    newest, base = now(series), released(series, shown.released)
    times = reference_times(newest) if newest else None
    return CaseLine(
        series=series,
        time=formatting.durations(newest.us)[0] if newest else formatting.MISSING,
        reference=Cell(multiple(times), sort=times),
        release=cell(between(series, newest, base) if newest and base else None, shown.margin_pct),
        best=cell(best(series), shown.margin_pct),
        spark=sparkline(series.points),
        last=newest.made[:10] if newest else "",
        news=next((one for one in changes(series) if one.change.state in TOLD), None),
    )


def reference_times(point: SitePoint) -> float | None:
    return None if point.reference_us is None else point.reference_us / point.us


def multiple(times: float | None) -> str:
    return formatting.MISSING if times is None else f"{formatting.significant(times, 3)}×"


def cell(against: Against | None, margin_pct: float) -> Cell:
    """Marked as slower or faster only where that is certain, of some size, and not the machine's doing."""
    if against is None:
        return Cell(formatting.MISSING)
    change, interval = formatting.signed(against.change_pct, against.interval_pct)
    low, high = against.interval_pct or (-1.0, 1.0)
    paired = against.means in CERTAIN
    certain = paired and (low > 0 or high < 0) and abs(against.change_pct) >= margin_pct
    direction = Mark.SLOWER if against.change_pct > 0 else Mark.FASTER
    return Cell(
        change if paired else f"≈ {change}",
        interval if against.interval_pct else "",
        MEANS[against.means],
        direction if certain else None,
        against.change_pct,
    )


def sparkline(points: Sequence[SitePoint]) -> Markup | None:
    """The last times, the longest highest; the line breaks where the environment changes."""
    last = [point for point in points if not point.finding][-DRAWN:]
    if len(last) < 2:
        return None
    low = min(point.us for point in last)
    height = max(max(point.us for point in last) - low, FLAT * low)
    step = (WIDTH - 6) / (DRAWN - 1)
    first = WIDTH - 3 - step * (len(last) - 1)
    places = [(first + step * at, HEIGHT - 3 - (HEIGHT - 6) * (one.us - low) / height) for at, one in enumerate(last)]
    breaks = [at for at, (one, other) in enumerate(pairwise(last), 1) if one.environment != other.environment]
    parts = [places[start:end] for start, end in pairwise([0, *breaks, len(last)])]
    drawn = [drawing.path(part, "spark") for part in parts if len(part) > 1]
    end = drawing.tag("circle", cx=places[-1][0], cy=places[-1][1], r=2.5, class_="now")
    least, most = formatting.durations(last[0].us, last[-1].us)
    aloud = f"the last {len(last)} times, from {least} to {most}"
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}"}
    return drawing.tag("svg", *drawn, end, role="img", aria_label=aloud, **size)
