"""Fills the dashboard from the index: each series, and of each week what the GPUs cost and how well they measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import groupby
from statistics import median
from typing import Any

import sqlalchemy as sa

from kernelgate.ci.history import nights
from kernelgate.ci.history.database import COMPARISON, COST, EVENT, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change, pct
from kernelgate.ci.history.series import POINTS, Wanted, loaded
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.dashboard import Dashboard, SiteComparison, SitePoint, SiteSeries, SiteWeek

SHOWN = 10_000
"""Measurements of a case that its page has."""
LEVEL = 0.95
"""Of the intervals."""
WEEKS = 26
"""The newest weeks, which are shown."""


def dashboard(connection: sa.Connection, policy: Policy, release: tuple[str, Iterable[str]] | None) -> Dashboard:
    """All that the index holds. `release`: its name, and the commits up to it."""
    name, commits = release or ("", ())
    decided = sa.select(EVENT).where(EVENT.c.kind.in_(("accepted", "excluded")))
    events = connection.execute(decided.order_by(EVENT.c.made.desc(), EVENT.c.name.desc()))
    return Dashboard(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        series=tuple(series(connection)),
        weeks=weeks(connection),
        decisions=tuple(SeriesEvent.model_validate(row, from_attributes=True) for row in events),
        release=name,
        released=frozenset(commits),
        margin_pct=policy.gates.margin_pct,
        prices=policy.costs.gpu_hour,
        currency=policy.costs.currency,
    )


# Series ---------------------------------------------------------------------------------------------------------------


def series(connection: sa.Connection) -> Iterator[SiteSeries]:
    """Each case on each kind of GPU that has a measurement of its head, with its changes as `kernelgate history
    changes` has them; there are none without a pinned commit."""
    names = (SERIES.c.repository, SERIES.c.card, SERIES.c.case, SERIES.c.gpu)
    rows = [row._asdict() for row in connection.execute(sa.select(SERIES).order_by(*names, SERIES.c.id))]
    pinned = sa.select(COMPARISON.c.series_id).where(COMPARISON.c.status.is_(None)).limit(1)
    known = nights.of_index(connection, Wanted()) if connection.execute(pinned).first() is not None else ()
    changes = {(one.series.repository, one.series.card, one.series.case, one.series.gpu): one.changes for one in known}
    for key, alike in groupby(rows, key=lambda row: tuple(row[name.key] for name in names)):
        of_case = _series(connection, list(alike), changes.get(key, ()))
        if of_case is not None:
            yield of_case


def _series(
    connection: sa.Connection, rows: Sequence[Mapping[str, Any]], changes: Sequence[Change]
) -> SiteSeries | None:
    group = loaded(connection, rows, None, POINTS.where(POINT.c.side.in_(("head", "reference"))))
    every = [(number, one) for number, each in enumerate(group) for one in each.points if one.side == "head"]
    placed = any(one.place is not None for _, one in every)
    heads = [(number, one) for number, one in every if not placed or one.place is not None]
    heads = sorted(heads, key=lambda head: (head[1].place or 0, head[1].made or "", head[1].record))[-SHOWN:]
    if not heads:
        return None
    reference = {
        (number, one.record): one.us
        for number, each in enumerate(group)
        for one in each.points
        if one.side == "reference"
    }
    # From the place of the oldest head on that is shown, where places are known.
    oldest = heads[0][1].place
    compared = sorted(
        (
            (one.record, number, one)
            for number, each in enumerate(group)
            for one in each.comparisons
            if one.head and one.finding is None and (oldest is None or (one.place is not None and one.place >= oldest))
        ),
        key=lambda found: (found[2].made or "", found[0]),
    )
    pins = Counter(one.base for _, _, one in compared if one.status is None)
    pin = pins.most_common(1)[0][0] if pins else ""
    over = {(number, record): one for record, number, one in compared if one.status is None and one.base == pin}
    numbers = {number: at for at, number in enumerate(dict.fromkeys(number for number, _ in heads))}
    points = []
    for number, head in heads:
        pinned = over.get((number, head.record))
        points.append(
            SitePoint(
                commit=head.commit or "",
                made=head.made or "",
                environment=numbers[number],
                us=head.us,
                reach=_reach(head.error, head.processes),
                pinned=pinned.effect if pinned else None,
                pinned_reach=_reach(pinned.error, pinned.processes) if pinned else None,
                reference_us=reference.get((number, head.record)),
                finding=head.finding or "",
            )
        )
    return SiteSeries(
        repository=rows[0]["repository"],
        card=rows[0]["card"],
        case=rows[0]["case"],
        gpu=rows[0]["gpu"],
        environments=tuple(group[number].environment for number in numbers),
        points=tuple(points),
        reference=max(rows, key=lambda row: (row["newest"], row["id"]))["reference"] or "",
        pin=pin,
        comparisons=tuple(
            SiteComparison(one.base, one.head or "", pct(one.effect) or 0.0, one.interval_pct)
            for _, _, one in compared
            if one.status is not None
        ),
        changes=tuple(changes),
        note=_note(len(every) - len(heads), len(heads) == SHOWN, placed),
    )


def _note(count: int, cut: bool, placed: bool) -> str:
    order = "" if placed else "Where these commits stand on the default branch is not known: they are in order of time."
    if not count:
        return order
    why = [f"older than the last {SHOWN:,}"] if cut else []
    why += ["of commits that are not on the default branch"] if placed else []
    return f"{count:,} measurement{'' if count == 1 else 's'} left out: {' or '.join(why)}. {order}".strip()


def _reach(error: float | None, processes: int) -> float | None:
    """Half of the interval of a mean over the processes, by Student's t."""
    return None if error is None or processes < 2 else error * _quantile(processes)


@cache
def _quantile(processes: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(processes - 1, (1 + LEVEL) / 2))


# Weeks ----------------------------------------------------------------------------------------------------------------


def weeks(connection: sa.Connection) -> tuple[SiteWeek, ...]:
    """Newest first; of records that say when they were made, and of nothing that another tool measured."""
    asked = sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.gpu, RECORD.c.reason)
    every = connection.execute(asked.where(RECORD.c.made.is_not(None), RECORD.c.rules != "")).all()
    kept = sorted({_monday(row.made) for row in every})[-WEEKS:]
    groups: defaultdict[tuple[str, str], dict[int, str | None]] = defaultdict(dict)
    for row in every:
        if _monday(row.made) in kept:
            groups[_monday(row.made), row.gpu][row.id] = row.reason
    points = sa.select(POINT.c.record_id, sa.func.count(), sa.func.count(POINT.c.finding))
    heads = connection.execute(points.where(POINT.c.side == "head").group_by(POINT.c.record_id))
    cases = {id_: (count, odd) for id_, count, odd in heads}
    spread = sa.select(COMPARISON.c.record_id, COMPARISON.c.spread_pct)
    spreads: defaultdict[int, list[float]] = defaultdict(list)
    for id_, spread_pct in connection.execute(
        spread.where(COMPARISON.c.status.is_not(None), COMPARISON.c.spread_pct.is_not(None))
    ):
        spreads[id_].append(spread_pct)
    costs: defaultdict[int, list[tuple[str, float, bool]]] = defaultdict(list)
    for id_, *cost in connection.execute(sa.select(COST.c.record_id, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)):
        costs[id_].append((cost[0], cost[1], cost[2]))
    found = []
    for (monday, gpu), records in sorted(groups.items(), reverse=True):
        seconds: defaultdict[str, float] = defaultdict(float)
        for phase, spent, _ in (cost for id_ in records for cost in costs[id_]):
            seconds[phase] += spent
        known = [one for id_ in records for one in spreads[id_]]
        found.append(
            SiteWeek(
                monday=monday,
                gpu=gpu,
                records=len(records),
                unjudged=Counter(reason or "no times" for id_, reason in records.items() if id_ not in cases),
                cases=sum(cases[id_][0] for id_ in records if id_ in cases),
                untrusted=sum(cases[id_][1] for id_ in records if id_ in cases),
                spread_pct=median(known) if known else None,
                gpu_seconds=seconds,
                retried_seconds=sum(spent for id_ in records for _, spent, again in costs[id_] if again),
            )
        )
    return tuple(found)


def _monday(made: str) -> str:
    day = date.fromisoformat(made[:10])
    return (day - timedelta(days=day.weekday())).isoformat()
