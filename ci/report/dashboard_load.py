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
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, EVENT, POINT, RECORD, SERIES
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change, pct
from kernelgate.ci.history.series import ENVIRONMENT, Wanted
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.dashboard import (
    Dashboard,
    SiteComparison,
    SitePoint,
    SiteSeries,
    SiteWeek,
)

SHOWN = 10_000
"""Measurements of a case that its page has."""
LEVEL = 0.95
"""Of the intervals."""
WEEKS = 26
"""The newest weeks, which are shown."""

BASE, HEAD, REFERENCE = COMMIT.alias("base"), COMMIT.alias("head"), POINT.alias("reference")
HEADS = (
    sa.select(
        POINT.c.series_id,
        POINT.c.record_id,
        COMMIT.c.sha,
        COMMIT.c.place,
        RECORD.c.made,
        POINT.c.us,
        POINT.c.error,
        POINT.c.processes,
        POINT.c.finding,
        REFERENCE.c.us.label("reference_us"),
    )
    .join(RECORD, RECORD.c.id == POINT.c.record_id)
    .outerjoin(COMMIT, COMMIT.c.id == POINT.c.commit_id)
    .outerjoin(
        REFERENCE,
        sa.and_(
            REFERENCE.c.series_id == POINT.c.series_id,
            REFERENCE.c.record_id == POINT.c.record_id,
            REFERENCE.c.side == "reference",
        ),
    )
    .where(POINT.c.side == "head")
    .order_by(COMMIT.c.place.desc(), RECORD.c.made.desc(), POINT.c.record_id.desc())
    .limit(SHOWN)
)
COMPARED = (
    sa.select(
        COMPARISON.c.series_id,
        COMPARISON.c.record_id,
        BASE.c.sha.label("base"),
        HEAD.c.sha.label("head"),
        COMPARISON.c.effect,
        COMPARISON.c.error,
        COMPARISON.c.processes,
        COMPARISON.c.status,
        COMPARISON.c.low_pct,
        COMPARISON.c.high_pct,
    )
    .join(BASE, BASE.c.id == COMPARISON.c.base_id)
    .join(HEAD, HEAD.c.id == COMPARISON.c.head_id)
    .order_by(COMPARISON.c.record_id)
)

Row = Any
"""Of a query above, its columns as attributes."""


def dashboard(connection: sa.Connection, policy: Policy, release: tuple[str, Iterable[str]] | None) -> Dashboard:
    """All that the index holds. `release`: its name, and the commits up to it."""
    name, commits = release or ("", ())
    decided = (
        sa.select(EVENT)
        .where(EVENT.c.kind.in_(("accepted", "excluded")))
        .order_by(EVENT.c.made.desc(), EVENT.c.name.desc())
    )
    return Dashboard(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        series=tuple(series(connection)),
        weeks=weeks(connection),
        decisions=tuple(SeriesEvent.model_validate(row, from_attributes=True) for row in connection.execute(decided)),
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
    rows = connection.execute(sa.select(SERIES).order_by(*names, SERIES.c.id)).all()
    pinned = sa.select(COMPARISON.c.series_id).where(COMPARISON.c.status.is_(None)).limit(1)
    known = nights.of_index(connection, Wanted()) if connection.execute(pinned).first() is not None else ()
    changes = {(one.series.repository, one.series.card, one.series.case, one.series.gpu): one.changes for one in known}
    for key, alike in groupby(rows, key=lambda row: (row.repository, row.card, row.case, row.gpu)):
        of_case = _series(connection, list(alike), changes.get(key, ()))
        if of_case is not None:
            yield of_case


def _series(connection: sa.Connection, rows: Sequence[Row], changes: Sequence[Change]) -> SiteSeries | None:
    ids = [row.id for row in rows]
    mine = POINT.c.series_id.in_(ids)
    heads = connection.execute(HEADS.where(mine, COMMIT.c.place.is_not(None))).all()
    placed = bool(heads)
    if not placed:
        heads = connection.execute(HEADS.where(mine)).all()
    if not heads:
        return None
    heads = heads[::-1]
    numbers = {id_: number for number, id_ in enumerate(dict.fromkeys(head.series_id for head in heads))}
    environments = {row.id: {key: getattr(row, key) for key in ENVIRONMENT if getattr(row, key)} for row in rows}
    asked = COMPARED.where(COMPARISON.c.series_id.in_(ids), COMPARISON.c.finding.is_(None))
    # From the place of the oldest head on that is shown, where places are known.
    asked = asked if heads[0].place is None else asked.where(HEAD.c.place >= heads[0].place)
    compared = connection.execute(asked).all()
    pinned = [one for one in compared if one.status is None]
    pin = Counter(one.base for one in pinned).most_common(1)[0][0] if pinned else ""
    over = {(one.series_id, one.record_id): one for one in pinned if one.base == pin}
    every = connection.execute(sa.select(sa.func.count()).select_from(POINT).where(mine, POINT.c.side == "head"))
    return SiteSeries(
        repository=rows[0].repository,
        card=rows[0].card,
        case=rows[0].case,
        gpu=rows[0].gpu,
        environments=tuple(environments[id_] for id_ in numbers),
        points=tuple(_point(one, numbers, over.get((one.series_id, one.record_id))) for one in heads),
        reference=max(rows, key=lambda row: (row.newest, row.id)).reference or "",
        pin=pin,
        comparisons=tuple(_comparison(one) for one in compared if one.status is not None),
        changes=tuple(changes),
        note=_note(every.scalar_one() - len(heads), len(heads) == SHOWN, placed),
    )


def _point(head: Row, numbers: Mapping[int, int], over: Row | None) -> SitePoint:
    return SitePoint(
        commit=head.sha or "",
        made=head.made or "",
        environment=numbers[head.series_id],
        us=head.us,
        reach=_reach(head.error, head.processes),
        pinned=over.effect if over else None,
        pinned_reach=_reach(over.error, over.processes) if over else None,
        reference_us=head.reference_us,
        finding=head.finding or "",
    )


def _comparison(row: Row) -> SiteComparison:
    interval = None if row.low_pct is None or row.high_pct is None else (row.low_pct, row.high_pct)
    return SiteComparison(row.base, row.head, pct(row.effect) or 0.0, interval)


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

Week = tuple[str, str]
"""A week's Monday, and a kind of GPU."""


def weeks(connection: sa.Connection) -> tuple[SiteWeek, ...]:
    """Newest first; of records that say when they were made, and of nothing that another tool measured."""
    asked = sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.gpu, RECORD.c.reason)
    every = connection.execute(asked.where(RECORD.c.made.is_not(None), RECORD.c.rules != "")).all()
    kept = sorted({_monday(row.made) for row in every})[-WEEKS:]
    records = [row for row in every if _monday(row.made) in kept]
    week_of: dict[int, Week] = {row.id: (_monday(row.made), row.gpu) for row in records}

    def of_these(query: sa.Select[Any]) -> Iterator[Row]:
        return (row for row in connection.execute(query) if row[0] in week_of)

    measured: set[int] = set()
    cases: Counter[Week] = Counter()
    untrusted: Counter[Week] = Counter()
    points = sa.select(POINT.c.record_id, sa.func.count(), sa.func.count(POINT.c.finding))
    for id_, count, odd in of_these(points.where(POINT.c.side == "head").group_by(POINT.c.record_id)):
        measured.add(id_)
        cases[week_of[id_]] += count
        untrusted[week_of[id_]] += odd
    spreads: defaultdict[Week, list[float]] = defaultdict(list)
    spread = sa.select(COMPARISON.c.record_id, COMPARISON.c.spread_pct)
    for id_, pct_ in of_these(spread.where(COMPARISON.c.status.is_not(None), COMPARISON.c.spread_pct.is_not(None))):
        spreads[week_of[id_]].append(pct_)
    seconds: defaultdict[Week, Counter[str]] = defaultdict(Counter)
    retried: defaultdict[Week, float] = defaultdict(float)
    for id_, phase, spent, again in of_these(
        sa.select(COST.c.record_id, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)
    ):
        seconds[week_of[id_]][phase] += spent
        retried[week_of[id_]] += spent if again else 0.0
    unjudged: defaultdict[Week, Counter[str]] = defaultdict(Counter)
    for row in records:
        if row.id not in measured:
            unjudged[week_of[row.id]][row.reason or "no times"] += 1
    counts = Counter(week_of.values())
    return tuple(
        SiteWeek(
            monday=week[0],
            gpu=week[1],
            records=counts[week],
            unjudged=unjudged[week],
            cases=cases[week],
            untrusted=untrusted[week],
            spread_pct=median(spreads[week]) if spreads[week] else None,
            gpu_seconds=seconds[week],
            retried_seconds=retried[week],
        )
        for week in sorted(counts, reverse=True)
    )


def _monday(made: str) -> str:
    day = date.fromisoformat(made[:10])
    return (day - timedelta(days=day.weekday())).isoformat()
