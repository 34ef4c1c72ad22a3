"""What the dashboard knows of each case, and what it says: its newest time against release, best and reference.

Levels are natural logarithms, and a `reach` is half of a 95% interval of one. Changes are of time, in percent: positive
is slower.

How two measurements compare that were not made together, compare.js has as well. What is nearest to a paired comparison
counts: one in the same processes; else both over the same pinned commit, each in its own processes, so that the day and
the machine cancel out, though a new environment may change the two unequally; else their times, in the same environment
alone, where the days themselves may differ. Times of two environments do not compare.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median
from typing import Literal

from markupsafe import Markup

from kernelgate.ci.document import drawing, formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Line, Link, Mark, Table
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change

ID_CHARACTERS = 60
RUN = 5
"""Measurements in a row whose median is a level, or all where there are fewer: the best single one is the luckiest."""
TOLD = ("confirmed", "accepted")
"""Changes of these states are told; a suspicion is shown on its case's page alone, until a comparison has decided."""
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,100}/[A-Za-z0-9._-]{1,100}")


def page_id(names: tuple[str, str, str, str]) -> str:
    """Of the page of a series, by its repository, card, case and kind of GPU."""
    readable = re.sub(r"[^a-z0-9]+", "-", " ".join(names[1:]).lower())[:ID_CHARACTERS].strip("-")
    return f"{readable}-{hashlib.sha256(repr(names).encode()).hexdigest()[:10]}".lstrip("-")


# How two measurements compare -----------------------------------------------------------------------------------------

Means = Literal["together", "pinned", "moved", "times"]
MEANS: Mapping[Means, str] = {
    "together": "measured in the same processes",
    "pinned": "each against the same pinned commit",
    "moved": "≈ each against the same pinned commit, in two environments",
    "times": "≈ times of different days",
}


@dataclass(frozen=True)
class Against:
    """`means` is how it is known."""

    change_pct: float
    interval_pct: tuple[float, float] | None
    means: Means

    @property
    def how(self) -> str:
        return MEANS[self.means]

    @property
    def is_paired(self) -> bool:
        """What is known in another way may be the machine's doing."""
        return self.means in ("together", "pinned")

    @property
    def words(self) -> tuple[str, str]:
        """The change and its interval."""
        change, interval = formatting.signed(self.change_pct, self.interval_pct)
        return change if self.is_paired else f"≈ {change}", interval if self.interval_pct else ""

    def mark(self, margin_pct: float) -> Mark | None:
        """Slower or faster only where that is certain, of some size, and not the machine's doing."""
        low, high = self.interval_pct or (-1.0, 1.0)
        if not self.is_paired or low <= 0 <= high or abs(self.change_pct) < margin_pct:
            return None
        return Mark.SLOWER if self.change_pct > 0 else Mark.FASTER


def _apart(change: float, head: float | None, base: float | None, means: Means) -> Against:
    reach = math.hypot(head, base) if head is not None and base is not None else None
    interval = None if reach is None else (_pct(change - reach), _pct(change + reach))
    return Against(_pct(change), interval, means)


def _pct(log: float) -> float:
    return 100 * math.expm1(min(log, 50.0))


def _inverted(change_pct: float) -> float:
    return 100 * (100 / (100 + max(change_pct, -99.99)) - 1)


# Series ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SitePoint:
    """What one record measured of a case's head."""

    commit: str
    made: str
    """ISO 8601, UTC; empty where the record does not say."""
    environment: int
    """Which of the series' environments."""
    us: float
    reach: float | None = None
    """Of the time's logarithm, from the scatter between processes; None of a single process."""
    pinned: float | None = None
    """The logarithm of its time over the pinned commit's, in the same processes."""
    pinned_reach: float | None = None
    reference_us: float | None = None
    finding: str = ""
    """Why no verdict may rest on it."""

    @property
    def times(self) -> float | None:
        """How many times as fast as the reference it is."""
        return None if self.reference_us is None else self.reference_us / self.us

    @property
    def multiple(self) -> str:
        return formatting.MISSING if self.times is None else f"{formatting.significant(self.times, 3)}×"


@dataclass(frozen=True)
class SiteComparison:
    """Two commits in the same processes, as the judge has it."""

    base: str
    head: str
    change_pct: float
    interval_pct: tuple[float, float] | None


@dataclass(frozen=True)
class SiteSeries:
    """One case of a card on one kind of GPU, in all environments that it was measured in."""

    repository: str
    card: str
    case: str
    gpu: str
    environments: tuple[Mapping[str, str], ...]
    points: tuple[SitePoint, ...]
    """In the order of the default branch's commits, then of time."""
    reference: str = ""
    """What the points' `reference_us` is of, where a card said so."""
    pin: str = ""
    """The commit that `pinned` compares with."""
    comparisons: tuple[SiteComparison, ...] = ()
    changes: tuple[Change, ...] = ()
    note: str = ""
    """Which measurements are not among the points, and what their order is where it is not that."""

    @property
    def id(self) -> str:
        """Names the series' page: the same as long as its names are."""
        return page_id((self.repository, self.card, self.case, self.gpu))

    @property
    def times_reference(self) -> str:
        return f"× {visible(self.reference) or 'reference'}"

    @property
    def address(self) -> str | None:
        """Of the repository on GitHub; None where a record calls it something else."""
        return f"https://github.com/{self.repository}" if _REPOSITORY.fullmatch(self.repository) else None

    @cached_property
    def trusted(self) -> tuple[SitePoint, ...]:
        return tuple(point for point in self.points if not point.finding)

    @property
    def newest(self) -> SitePoint | None:
        return self.trusted[-1] if self.trusted else None

    def made(self, commit: str) -> str:
        """When a commit was first measured."""
        return next((point.made for point in self.points if point.commit == commit), "")

    def since(self, commits: frozenset[str]) -> Against | None:
        """The newest measurement against the last one of these commits."""
        base = next((one for one in reversed(self.trusted) if one.commit in commits), None)
        return self.between(self.trusted[-1], base) if base is not None else None

    def between(self, head: SitePoint, base: SitePoint) -> Against | None:
        """The head's change against the base; None where they do not compare."""
        for one in reversed(self.comparisons):  # the newest of both, whichever way round
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

    @property
    def best(self) -> Against | None:
        """The newest measurement against the lowest level that compares with it; None where there is no other."""
        newest = self.newest
        if newest is None:
            return None
        level, means, reach = newest.pinned, "pinned", newest.pinned_reach
        if level is not None:
            alike = [(one, one.pinned) for one in self.trusted if one.pinned is not None]
        else:
            level, means, reach = math.log(newest.us), "times", newest.reach
            alike = [(one, math.log(one.us)) for one in self.trusted if one.environment == newest.environment]
        if len(alike) < 2:
            return None
        width = min(RUN, len(alike))
        runs = (alike[start : start + width] for start in range(len(alike) - width + 1))
        lowest, run = min(((median(one for _, one in run), run) for run in runs), key=lambda pair: pair[0])
        here = all(one.environment == newest.environment for one, _ in run)
        return _apart(level - lowest, reach, 0.0, "times" if means == "times" else "pinned" if here else "moved")

    # What is told of it

    @property
    def told(self) -> Change | None:
        """The newest change that people are told of."""
        return next((one for one in reversed(self.changes) if one.state in TOLD), None)

    def mark(self, change: Change) -> Mark:
        """Of a confirmed change its direction says most."""
        direction = Mark.SLOWER if change.change_pct > 0 else Mark.FASTER
        return {"suspected": Mark.UNKNOWN, "refuted": Mark.NONE, "accepted": Mark.PASSED}.get(change.state, direction)

    def commit(self, sha: str) -> Line:
        if self.address and formatting.is_commit(sha):
            return (Link(sha[:7], f"{self.address}/commit/{sha}"),)
        return (formatting.commit(sha or None, formatting.MISSING),)

    def diff(self, change: Change) -> Line:
        """What changed in the code."""
        known = self.address and formatting.is_commit(change.previous) and formatting.is_commit(change.commit)
        return (Link("diff", f"{self.address}/compare/{change.previous}..{change.commit}"),) if known else ()

    @property
    def spark(self) -> Markup | None:
        return sparkline(self.trusted[-DRAWN:])


DRAWN = 60
"""Points of a sparkline."""
WIDTH, HEIGHT = 150.0, 28.0
FLAT = 0.01
"""A sparkline is at least 1% of the time high, so that noise draws no mountains."""


def sparkline(last: Sequence[SitePoint]) -> Markup | None:
    """The last times, the longest highest; the line breaks where the environment changes."""
    if len(last) < 2:
        return None
    low = min(point.us for point in last)
    up = drawing.Scale(low, max(max(point.us for point in last), low * (1 + FLAT)), HEIGHT - 3, 3)
    step = (WIDTH - 6) / (DRAWN - 1)
    places = [(WIDTH - 3 - step * (len(last) - 1 - at), up.at(one.us)) for at, one in enumerate(last)]
    breaks = [at for at, (one, other) in enumerate(pairwise(last), 1) if one.environment != other.environment]
    parts = [places[start:end] for start, end in pairwise([0, *breaks, len(last)])]
    drawn = [drawing.path(part, "spark") for part in parts if len(part) > 1]
    end = drawing.tag("circle", cx=places[-1][0], cy=places[-1][1], r=2.5, class_="now")
    least, most = formatting.durations(last[0].us, last[-1].us)
    aloud = f"the last {len(last)} times, from {least} to {most}"
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}"}
    return drawing.tag("svg", *drawn, end, role="img", aria_label=aloud, **size)


# The whole ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SiteWeek:
    """What one kind of GPU did in the week from Monday `monday` on."""

    monday: str
    gpu: str
    records: int
    unjudged: Mapping[str, int]
    """Records without a verdict, by their reason."""
    cases: int
    untrusted: int
    """Cases whose times no verdict may rest on."""
    spread_pct: float | None
    """Median over the cases of the standard deviation between processes."""
    gpu_seconds: Mapping[str, float]
    """By phase."""
    retried_seconds: float

    @property
    def seconds(self) -> float:
        return sum(self.gpu_seconds.values())


@dataclass(frozen=True)
class SiteSessions:
    """Optimisation sessions, in words."""

    table: Table | None = None
    """Newest first."""
    figures: tuple[tuple[str, str], ...] = ()
    """What can be said over them: a name, and the figure with its interval or why there is none."""
    remarks: tuple[str, ...] = ()
    drawings: tuple[Markup, ...] = ()


@dataclass(frozen=True)
class Dashboard:
    made: str
    """When the site was written."""
    series: tuple[SiteSeries, ...]
    weeks: tuple[SiteWeek, ...] = ()
    """Newest first."""
    decisions: tuple[SeriesEvent, ...] = ()
    """What people decided against a verdict, or of a measurement: newest first."""
    release: str = ""
    """The name of the last release, such as v1.2; empty where there is none."""
    released: frozenset[str] = frozenset()
    """The commits of the default branch up to that release; a series' last point of them stands for it."""
    margin_pct: float = 1.0
    """Changes below it are of no concern."""
    prices: Mapping[str, float] | None = None
    """What a GPU-hour costs, by kind."""
    currency: str = ""
    sessions: SiteSessions = SiteSessions()

    @property
    def groups(self) -> list[list[SiteSeries]]:
        """The cases of a card on one kind of GPU."""
        ordered = sorted(self.series, key=lambda one: (one.repository, one.card, one.gpu, one.case))
        return [list(alike) for _, alike in groupby(ordered, key=lambda one: (one.repository, one.card, one.gpu))]

    @property
    def news(self) -> list[tuple[SiteSeries, Change, int]]:
        """What people are told of, newest first: of each commit the largest change, and how many there are beside."""

        def of_commit(line: tuple[SiteSeries, Change]) -> tuple[str, str, str]:
            series, change = line
            return series.made(change.commit)[:10], change.commit, change.state

        told = ((one, change) for one in self.series for change in reversed(one.changes) if change.state in TOLD)
        lines = sorted(told, key=of_commit, reverse=True)
        alike = [list(group) for _, group in groupby(lines, key=of_commit)]
        return [(*max(group, key=lambda one: abs(one[1].change_pct)), len(group) - 1) for group in alike]
