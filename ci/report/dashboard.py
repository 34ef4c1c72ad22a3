"""What the dashboard knows of each case, from the index: its newest time against release, best and reference; and of
each week what the GPUs cost and how well they measured. Levels are natural logarithms, and a `reach` is half of a 95%
interval of one; changes are of time, in percent. Of two measurements that were not made together, what is nearest to a
paired comparison counts (compare.js has the rule as well): one in the same processes; else both over the same pinned
commit, where a new environment may change the two unequally; else their times, in the same environment alone."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from markupsafe import Markup

from kernelgate.bench.record import Run
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.document.model import Line, Mark, Table
from kernelgate.ci.history import canary, levels, nights
from kernelgate.ci.history.canary import CanaryMachine
from kernelgate.ci.history.database import COMPARISON, COST, EVENT, NAMES, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change, HistoryComparison, pct
from kernelgate.ci.history.series import POINTS, Wanted, loaded
from kernelgate.ci.judge.stats import NORMAL_95, student_half_width
from kernelgate.ci.policy.policy import Costs, Policy
from kernelgate.ci.report import links
from kernelgate.ci.report.links import Links

ID_CHARACTERS = 60
TOLD = ("confirmed", "accepted")
"""Changes of these states are told; a suspicion is shown on its case's page alone, until a comparison has decided."""
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,100}/[A-Za-z0-9._-]{1,100}")


def page_id(names: tuple[str, str, str, str]) -> str:
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
        change, interval = formatting.signed(self.change_pct, self.interval_pct)
        return change if self.is_paired else f"≈ {change}", interval if self.interval_pct else ""

    def mark(self, margin_pct: float) -> Mark | None:
        """Slower or faster only where that is certain, of some size, and not the machine's doing."""
        low, high = self.interval_pct or (-1.0, 1.0)
        if not self.is_paired or low <= 0 <= high or abs(self.change_pct) < margin_pct:
            return None
        return Mark.SLOWER if self.change_pct > 0 else Mark.FASTER


def _apart(change: float, head: float | None, base: float | None, means: Means) -> Against:
    """Without an interval between two environments: how unequally the new one changes the two, no scatter shows."""
    known = head is not None and base is not None and means != "moved"
    reach = math.hypot(head or 0.0, base or 0.0) if known else None
    interval = None if reach is None else (as_percent(change - reach), as_percent(change + reach))
    return Against(as_percent(change), interval, means)


@dataclass(frozen=True)
class SitePoint:
    commit: str
    made: str
    """ISO 8601, UTC; empty where the record does not say."""
    environment: int
    us: float
    reach: float | None = None
    """Of the time's logarithm, from the scatter between processes; None of a single process."""
    pinned: float | None = None
    """The logarithm of its time over the pinned commit's, in the same processes."""
    pinned_reach: float | None = None
    reaches: float = NORMAL_95
    """How many standard errors these two are: by Student's t, more than of a normal distribution."""
    reference_us: float | None = None
    finding: str = ""

    def level(self, pinned: bool) -> float:
        """The logarithm of its time over the pinned commit's, or of its time."""
        return math.log(self.us) if not pinned or self.pinned is None else self.pinned

    def error(self, pinned: bool) -> float:
        return ((self.pinned_reach if pinned else self.reach) or 0.0) / self.reaches

    @property
    def times(self) -> float | None:
        return None if self.reference_us is None else self.reference_us / self.us

    @property
    def multiple(self) -> str:
        return formatting.MISSING if self.times is None else f"{formatting.significant(self.times, 3)}×"


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
    comparisons: tuple[HistoryComparison, ...] = ()
    changes: tuple[Change, ...] = ()
    note: str = ""
    """Which measurements are not among the points, and what their order is where it is not that."""

    @property
    def id(self) -> str:
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
        return next((point.made for point in self.points if point.commit == commit), "")

    def since(self, commits: frozenset[str]) -> Against | None:
        """The newest measurement against the last one of these commits."""
        base = next((one for one in reversed(self.trusted) if one.commit in commits), None)
        return self.between(self.trusted[-1], base) if base is not None else None

    def between(self, head: SitePoint, base: SitePoint) -> Against | None:
        """The head's change against the base; None where they do not compare."""
        for one in reversed(self.comparisons):  # the newest of both
            if (one.base, one.head) == (base.commit, head.commit):
                return Against(pct(one.effect) or 0.0, one.interval_pct, "together")
        if head.pinned is not None and base.pinned is not None:
            means: Means = "pinned" if head.environment == base.environment else "moved"
            return _apart(head.pinned - base.pinned, head.pinned_reach, base.pinned_reach, means)
        if head.environment == base.environment:
            return _apart(math.log(head.us) - math.log(base.us), head.reach, base.reach, "times")
        return None

    @cached_property
    def best(self) -> Against | None:
        """The newest measurement against the lowest level that compares with it (ci/history/levels.py: the lowest
        measurement would be the luckiest); None where there is no other. What a refuted change ended was a level of the
        machine, not of the code."""
        newest = self.newest
        if newest is None:
            return None
        pinned = newest.pinned is not None
        alike = [one for one in self.trusted if one.pinned is not None or not pinned]
        begun = {one.commit: at for at, one in reversed([*enumerate(alike)])}
        ends = [begun.get(one.commit, 0) for one in self.changes]
        for first, last, one in list(zip([0, *ends], ends, self.changes, strict=False))[::-1]:
            if one.state == "refuted":
                del alike[first:last]
        if not pinned:  # times compare in one environment alone
            alike = [one for one in alike if one.environment == newest.environment]
        if len(alike) < 2:
            return None
        found = {}
        for place in sorted({one.environment for one in alike}):
            some = [one for one in alike if one.environment == place]
            errors = np.array([one.error(pinned) for one in some])
            found[place] = levels.of_series(np.array([one.level(pinned) for one in some]), errors)
        where = min(found, key=lambda key: float(found[key].means[found[key].lowest]))
        best = found[where].lowest
        own = NORMAL_95 * math.hypot(newest.error(pinned), found[newest.environment].spread)
        means: Means = "times" if not pinned else "pinned" if where == newest.environment else "moved"
        lost = newest.level(pinned) - float(found[where].means[best])
        return _apart(lost, own, NORMAL_95 * float(found[where].deviations[best]), means)

    # What is told of it

    @property
    def told(self) -> Change | None:
        return next((one for one in reversed(self.changes) if one.state in TOLD), None)

    def mark(self, change: Change) -> Mark:
        """Its direction, also of one that is accepted."""
        direction = Mark.SLOWER if change.change_pct > 0 else Mark.FASTER
        return {"suspected": Mark.UNKNOWN, "refuted": Mark.NONE}.get(change.state, direction)

    def commit(self, sha: str) -> Line:
        return links.commit(sha or None, formatting.MISSING, Links(self.address))

    def commits(self, change: Change) -> Line:
        """Where it is seen; of a drift, which no commit made, from where to where."""
        before = (*self.commit(change.previous), " to ") if change.kind == "drift" else ()
        return (*before, *self.commit(change.commit))

    def diff(self, change: Change) -> Line:
        return links.diff(Run(base_sha=change.previous, head_sha=change.commit), Links(self.address))


@dataclass
class SiteWeek:
    monday: str
    gpu: str
    records: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    untrusted: int = 0
    """Cases whose times no verdict may rest on."""
    spreads_pct: list[float] = field(default_factory=list)
    """Of the cases: the standard deviation between processes."""
    gpu_seconds: Counter[str] = field(default_factory=Counter)
    retried_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return sum(self.gpu_seconds.values())


@dataclass(frozen=True)
class SiteSessions:
    table: Table | None = None
    """Newest first."""
    figures: tuple[tuple[str, str], ...] = ()
    """What can be said over them: a name, and the figure with its interval or why there is none."""
    remarks: tuple[str, ...] = ()
    drawings: tuple[Markup, ...] = ()


@dataclass(frozen=True)
class Dashboard:
    made: str
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
    canaries: tuple[CanaryMachine, ...] = ()
    costs: Costs = field(default_factory=Costs)
    sessions: SiteSessions = SiteSessions()

    @property
    def groups(self) -> list[list[SiteSeries]]:
        ordered = sorted(self.series, key=lambda one: (one.repository, one.card, one.gpu, one.case))
        return [list(alike) for _, alike in groupby(ordered, key=lambda one: (one.repository, one.card, one.gpu))]

    @property
    def news(self) -> list[tuple[SiteSeries, Change, int]]:
        """What people are told of, newest first: of each commit the largest change, and how many are beside."""

        def of_commit(line: tuple[SiteSeries, Change]) -> tuple[str, str, str]:
            series, change = line
            return series.made(change.commit)[:10], change.commit, change.state

        told = ((one, change) for one in self.series for change in reversed(one.changes) if change.state in TOLD)
        lines = sorted(told, key=of_commit, reverse=True)
        alike = [list(group) for _, group in groupby(lines, key=of_commit)]
        return [(*max(group, key=lambda one: abs(one[1].change_pct)), len(group) - 1) for group in alike]


# Filled from the index -----------------------------------------------------------------------------------------------

SHOWN = 10_000
"""Measurements of a case that its page has."""
WEEKS = 26


def dashboard(connection: sa.Connection, policy: Policy, release: tuple[str, Iterable[str]] | None) -> Dashboard:
    """All that the index holds. `release`: its name, and the commits up to it."""
    name, commits = release or ("", ())
    decided = sa.select(EVENT).where(EVENT.c.kind.in_(("accepted", "excluded")))
    events = connection.execute(decided.order_by(EVENT.c.made.desc(), EVENT.c.name.desc()))
    return Dashboard(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        series=tuple(series(connection)),
        weeks=weeks(connection),
        canaries=canary.machines(connection),
        decisions=tuple(SeriesEvent.model_validate(row, from_attributes=True) for row in events),
        release=name,
        released=frozenset(commits),
        margin_pct=policy.gates.margin_pct,
        costs=policy.costs,
    )


def series(connection: sa.Connection) -> Iterator[SiteSeries]:
    """Each case on each kind of GPU that has a measurement of its head; its changes need a pinned commit."""
    ordered = sa.select(SERIES).order_by(*(SERIES.c[name] for name in NAMES), SERIES.c.id)
    rows = [row._asdict() for row in connection.execute(ordered)]
    pinned = sa.select(COMPARISON.c.series_id).where(COMPARISON.c.status.is_(None)).limit(1)
    known = nights.of_index(connection, Wanted()) if connection.execute(pinned).first() is not None else ()
    changes = {tuple(getattr(one.series, name) for name in NAMES): one.changes for one in known}
    for key, alike in groupby(rows, key=lambda row: tuple(row[name] for name in NAMES)):
        if of_case := _series(connection, list(alike), changes.get(key, ())):
            yield of_case


def _series(
    connection: sa.Connection, rows: Sequence[Mapping[str, Any]], changes: Sequence[Change]
) -> SiteSeries | None:
    group = loaded(connection, rows, POINTS.where(POINT.c.side.in_(("head", "reference"))))
    points = [(number, one) for number, each in enumerate(group) for one in each.points]
    reference = {(number, one.record): one.us for number, one in points if one.side == "reference"}
    every = [(number, one) for number, one in points if one.side == "head"]
    placed = any(one.place is not None for _, one in every)
    heads = [(number, one) for number, one in every if not placed or one.place is not None]
    heads = sorted(heads, key=lambda head: (head[1].place or 0, head[1].made or "", head[1].record))[-SHOWN:]
    if not heads:
        return None
    # From the place of the oldest head on that is shown, where places are known.
    oldest = heads[0][1].place
    compared = [
        (number, one)
        for number, each in enumerate(group)
        for one in each.comparisons
        if one.head and one.finding is None and (oldest is None or (one.place is not None and one.place >= oldest))
    ]
    compared.sort(key=lambda found: (found[1].made or "", found[1].record))
    pins = Counter(one.base for _, one in compared if one.status is None)
    pin = pins.most_common(1)[0][0] if pins else ""
    over = {(number, one.record): one for number, one in compared if one.status is None and one.base == pin}
    numbers = {number: at for at, number in enumerate(dict.fromkeys(number for number, _ in heads))}
    shown = []
    for number, head in heads:
        pinned = over.get((number, head.record))
        shown.append(
            SitePoint(
                commit=head.commit or "",
                made=head.made or "",
                environment=numbers[number],
                us=head.us,
                reach=_reach(head.error, head.processes),
                pinned=pinned.effect if pinned else None,
                pinned_reach=_reach(pinned.error, pinned.processes) if pinned else None,
                reaches=student_half_width(max(1, head.processes - 1)),
                reference_us=reference.get((number, head.record)),
                finding=head.finding or "",
            )
        )
    order = "" if placed else "Where these commits stand on the default branch is not known: they are in order of time."
    left_out = ""
    if count := len(every) - len(heads):
        why = [f"older than the last {SHOWN:,}"] if len(heads) == SHOWN else []
        why += ["of commits that are not on the default branch"] if placed else []
        left_out = f"{count:,} measurement{'' if count == 1 else 's'} left out: {' or '.join(why)}. "
    return SiteSeries(
        **{name: rows[0][name] for name in NAMES},
        environments=tuple(group[number].environment for number in numbers),
        points=tuple(shown),
        reference=max(rows, key=lambda row: (row["newest"], row["id"]))["reference"] or "",
        pin=pin,
        comparisons=tuple(one for _, one in compared if one.status is not None),
        changes=tuple(changes),
        note=f"{left_out}{order}".strip(),
    )


def _reach(error: float | None, processes: int) -> float | None:
    """Half of the interval of a mean over the processes, by Student's t."""
    return None if error is None or processes < 2 else error * student_half_width(processes - 1)


def weeks(connection: sa.Connection) -> tuple[SiteWeek, ...]:
    """Newest first; of records that say when they were made, and of nothing that another tool measured."""
    counts = sa.func.count().label("cases"), sa.func.count(POINT.c.finding).label("odd")
    points = sa.select(POINT.c.record_id, *counts).where(POINT.c.side == "head").group_by(POINT.c.record_id).subquery()
    asked = sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.gpu, RECORD.c.reason, points.c.cases, points.c.odd)
    asked = asked.outerjoin(points, points.c.record_id == RECORD.c.id)
    every = connection.execute(asked.where(RECORD.c.made.is_not(None), RECORD.c.rules != "")).all()
    kept = sorted({_monday(row.made) for row in every})[-WEEKS:]
    weeks: dict[tuple[str, str], SiteWeek] = {}
    of: dict[int, SiteWeek] = {}
    for row in every:
        if (monday := _monday(row.made)) in kept:
            week = of[row.id] = weeks.setdefault((monday, row.gpu), SiteWeek(monday, row.gpu))
            week.records += 1
            week.cases += row.cases or 0
            week.untrusted += row.odd or 0
            if not row.cases:
                week.unjudged[row.reason or "no times"] += 1
    spreads = sa.select(COMPARISON.c.record_id, COMPARISON.c.spread_pct)
    told = COMPARISON.c.status.is_not(None), COMPARISON.c.spread_pct.is_not(None)
    for id_, spread_pct in connection.execute(spreads.where(*told)):
        if id_ in of:
            of[id_].spreads_pct.append(spread_pct)
    for cost in connection.execute(sa.select(COST)):
        if cost.record_id in of:
            of[cost.record_id].gpu_seconds[cost.phase] += cost.gpu_seconds
            of[cost.record_id].retried_seconds += cost.gpu_seconds if cost.retried else 0.0
    return tuple(weeks[key] for key in sorted(weeks, reverse=True))


def _monday(made: str) -> str:
    day = date.fromisoformat(made[:10])
    return (day - timedelta(days=day.weekday())).isoformat()
