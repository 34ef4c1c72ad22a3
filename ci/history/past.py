"""What the index knows of a record's cases: how far their processes scatter, and what the same code took on other days.

Only what was made before the record counts, so that judging a record again gives the same verdict, and no record is
judged by itself. Asked are the newest records on the same kind of GPU that hold a card of the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.record import BaselineDay, CaseKey, RunRecord
from kernelgate.ci.history import database
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import moment
from kernelgate.ci.history.index import text
from kernelgate.ci.history.tables import COMPARISON, POINT, RECORD, SERIES, SPREAD
from kernelgate.ci.judge.days import KEPT_DAYS
from kernelgate.ci.judge.history import MOST_PCT, History, joined
from kernelgate.ci.judge.spread import KnownSpread
from kernelgate.ci.policy.policy import Policy

FORGOTTEN = 0.001
"""The weight of all that is older, below which nothing older is looked at."""

_Case = tuple[str, str]
"""Card and id, as the index writes them."""
_Time = tuple[_Case, str, str, float]
"""Of a case: which code took so long on which day."""


@dataclass(frozen=True)
class SeenSpread:
    """What one comparison, or several together, show of a case's processes."""

    case: _Case
    made: str
    spread_pct: float
    noise_pct: float
    df: float
    comparisons: int


@dataclass(frozen=True)
class AskedCases:
    """What is wanted: cases on a kind of GPU, before a moment."""

    gpu: str
    repository: str
    before: str | None
    """As `moment` writes it; None: until now."""
    keys: frozenset[CaseKey]


def asked(record: RunRecord) -> AskedCases | None:
    """What to ask for this record; None where the GPU has no name, or nothing was timed."""
    gpu, keys = record.environment.device.name, frozenset(case.key for case in record.cases)
    if not gpu or not keys:
        return None
    return AskedCases(text(gpu), text(record.run.repository), moment(record.run.created_at), keys)


def of_database(index: Database, wanted: AskedCases, policy: Policy) -> History:
    """The history of these cases. Raises HistoryIndexError."""
    own = {(text(key.card), text(key.id)): (wanted.gpu, key) for key in wanted.keys}
    with database.reading(index) as connection:
        newest = _newest(wanted, policy.history.newest_records)
        spreads, times = list(_imported(connection, wanted)), list[_Time]()
        if _known(connection, wanted):
            spreads += _compared(connection, wanted, newest)
            times += _timed(connection, wanted, newest)
    return History(
        {own[case]: known for case, known in _spreads(spreads, policy.spread.history_memory_df) if case in own},
        {own[case]: days for case, days in _days(times) if case in own},
    )


# ---- the index is asked ----------------------------------------------------------------------------------------------


def _known(connection: sa.Connection, wanted: AskedCases) -> bool:
    """Whether any record may hold such a card: of one that is new, all records would be looked through in vain."""
    cards = {text(key.card) for key in wanted.keys}
    query = sa.select(SERIES.c.id).where(SERIES.c.gpu == wanted.gpu, SERIES.c.card.in_(cards))
    return connection.execute(query.limit(1)).first() is not None


def _newest(wanted: AskedCases, count: int) -> sa.CTE:
    """The newest records that hold a card of these cases."""
    cards = sorted({text(key.card) for key in wanted.keys})
    of_card = [RECORD.c.cards.contains(json.dumps(card, ensure_ascii=False), autoescape=True) for card in cards]
    query = (
        sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.environment)
        .where(RECORD.c.made < wanted.before if wanted.before else RECORD.c.made.is_not(None))
        .where(RECORD.c.gpu == wanted.gpu, sa.or_(*of_card))
        .order_by(RECORD.c.made.desc(), RECORD.c.name)
        .limit(sa.literal_column(str(count)))  # in sight, SQLite begins with these few
    )
    if wanted.repository:
        query = query.where(RECORD.c.repository.in_([wanted.repository, ""]))
    return query.cte("newest")


def _of(table: sa.Table, newest: sa.CTE, wanted: AskedCases, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """These columns of the cases' rows in the newest records, after card, case and moment."""
    there = sa.and_(table.c.series_id == SERIES.c.id, table.c.record_id == newest.c.id)
    return (
        sa.select(SERIES.c.card, SERIES.c.case, newest.c.made, *columns)
        .select_from(newest.join(SERIES, SERIES.c.environment == newest.c.environment).join(table, there))
        .where(SERIES.c.card.in_({text(key.card) for key in wanted.keys}))
        .where(SERIES.c.case.in_({text(key.id) for key in wanted.keys}))
    )


def _compared(connection: sa.Connection, wanted: AskedCases, newest: sa.CTE) -> Iterator[SeenSpread]:
    """Each paired comparison's spread."""
    columns = (COMPARISON.c.spread_pct, COMPARISON.c.noise_pct, COMPARISON.c.processes)
    query = _of(COMPARISON, newest, wanted, *columns).where(
        COMPARISON.c.noise_pct.is_not(None), COMPARISON.c.spread_pct.is_not(None), COMPARISON.c.processes > 1
    )
    for card, case, made, spread, noise, processes in connection.execute(query):
        yield SeenSpread((card, case), made, spread, noise, processes - 1, 1)


def _imported(connection: sa.Connection, wanted: AskedCases) -> Iterator[SeenSpread]:
    """What was known before comparisons came to the history one by one."""
    one = SPREAD.c
    query = sa.select(one.card, one.case, one.last_seen, one.spread_pct, one.noise_pct, one.df, one.comparisons)
    query = query.where(one.gpu == wanted.gpu)
    if wanted.before:
        query = query.where(sa.or_(one.last_seen.is_(None), one.last_seen < wanted.before))
    for card, case, made, spread, noise, df, comparisons in connection.execute(query):
        yield SeenSpread((card, case), made or "", spread, noise, df, comparisons)


def _timed(connection: sa.Connection, wanted: AskedCases, newest: sa.CTE) -> Iterator[_Time]:
    """What each commit took on each day, as far as nothing speaks against these times."""
    day = sa.func.substr(newest.c.made, sa.literal_column("1"), sa.literal_column("10"))
    query = _of(POINT, newest, wanted).where(POINT.c.commit_id.is_not(None), POINT.c.finding.is_(None))
    # Of another environment the same commit is other code, and another series.
    columns = (SERIES.c.card, SERIES.c.case, POINT.c.series_id, POINT.c.commit_id, day)
    daily = query.with_only_columns(*columns, sa.func.avg(POINT.c.us)).group_by(*columns)
    for row in connection.execute(daily):
        card, case, series, commit, made, us = row
        yield (card, case), f"{series}/{commit}", made, us


# ---- and put together ------------------------------------------------------------------------------------------------


def _spreads(seen: Iterable[SeenSpread], memory_df: float) -> Iterator[tuple[_Case, KnownSpread]]:
    """Of each case what its comparisons show together, as far as they are still remembered."""
    newest_first = sorted(seen, key=lambda one: one.made, reverse=True)
    by_case: dict[_Case, list[SeenSpread]] = {}
    left: dict[_Case, float] = {}
    for one in newest_first:
        if left.setdefault(one.case, 1.0) > FORGOTTEN:
            by_case.setdefault(one.case, []).append(one)
            left[one.case] *= max(0.0, 1 - one.df / memory_df)
    for case, kept in by_case.items():
        whole, *later = map(_as_known, reversed(kept))
        for known in later:
            whole = joined(whole, known, memory_df)
        yield case, whole


def _as_known(one: SeenSpread) -> KnownSpread:
    return KnownSpread(
        spread_pct=min(one.spread_pct, MOST_PCT),
        noise_pct=min(one.noise_pct, MOST_PCT),
        df=one.df,
        comparisons=one.comparisons,
        last_seen=one.made or None,
    )


def _days(times: Iterable[_Time]) -> Iterator[tuple[_Case, tuple[BaselineDay, ...]]]:
    """The newest days of code that was timed on several."""
    codes: dict[tuple[_Case, str], list[tuple[str, float]]] = {}
    for case, code, day, us in times:
        codes.setdefault((case, code), []).append((day, us))
    by_case: dict[_Case, list[BaselineDay]] = {}
    for (case, code), taken in codes.items():
        if len(taken) > 1:
            days = (BaselineDay(measured=day, code=code, median_us=us) for day, us in taken)
            by_case.setdefault(case, []).extend(days)
    for case, found in by_case.items():
        yield case, tuple(sorted(found, key=lambda one: (one.measured, one.code))[-KEPT_DAYS:])
