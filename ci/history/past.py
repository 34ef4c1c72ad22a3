"""What the index knows of a record's cases: how far their processes scatter, what the same code took on other days, and
their last times. For a verdict only what was made before the record counts, so that judging it again gives the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa

from kernelgate.bench.record import BaselineDay, CaseKey, RunRecord
from kernelgate.ci.history import database
from kernelgate.ci.history.database import COMMIT, COMPARISON, POINT, RECORD, SERIES, Database
from kernelgate.ci.history.entry import moment
from kernelgate.ci.history.facts import CaseName
from kernelgate.ci.history.index import text
from kernelgate.ci.judge.prior import HISTORY_MEMORY_DF, KEPT_DAYS, MOST_PCT, History, KnownSpread, joined

FORGOTTEN = 0.001
"""The weight of all that is older, below which nothing older is looked at."""
LAST = 20
"""Times of a case for whoever looks at one pull request."""

_Case = tuple[str, str]
"""Card and id, as the index writes them."""

NEWEST_RECORDS: Final = 100
"""The judge asks the history for a case's spread and for its drift from day to day: in so many of the newest records,
on the same kind of GPU, that hold the case's card. Of older comparisons hardly anything is left."""


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


def of_database(index: Database, wanted: AskedCases) -> History:
    """The history of these cases. Raises HistoryIndexError."""
    own = {(text(key.card), text(key.id)): (wanted.gpu, key) for key in wanted.keys}
    of_cards = SERIES.c.gpu == wanted.gpu, SERIES.c.card.in_({card for card, _ in own})
    with database.reading(index) as connection:
        # Of a card that is new, all records would be looked through in vain.
        if connection.execute(sa.select(SERIES.c.id).where(*of_cards).limit(1)).first() is None:
            return History()
        newest = _newest(wanted)
        spreads = dict(_spreads(connection, _of(COMPARISON, newest, own)))
        days = dict(_days(connection, _of(POINT, newest, own)))
    return History(
        {own[case]: known for case, known in spreads.items() if case in own},
        {own[case]: known for case, known in days.items() if case in own},
    )


def last_times(connection: sa.Connection, case: CaseName) -> list[tuple[str, float]]:
    """Heads of the default branch that a verdict may rest on: each one's day, such as 2026-08-01, and its time. The
    oldest first, of the newest environment: times of two do not compare. The day is empty where it is not known."""
    query = (
        sa.select(POINT.c.series_id, POINT.c.us, RECORD.c.made)
        .join(RECORD, RECORD.c.id == POINT.c.record_id)
        .join(COMMIT, COMMIT.c.id == POINT.c.commit_id)
        .where(POINT.c.series_id.in_(sa.select(SERIES.c.id).filter_by(**vars(case))))
        .where(POINT.c.side == "head", POINT.c.finding.is_(None), COMMIT.c.place.is_not(None))
        .order_by(COMMIT.c.place.desc(), RECORD.c.made.desc(), RECORD.c.id.desc())
        .limit(LAST)
    )
    rows = connection.execute(query).all()
    return [((row.made or "")[:10], row.us) for row in reversed(rows) if row.series_id == rows[0].series_id]


def _newest(wanted: AskedCases) -> sa.CTE:
    cards = sorted({text(key.card) for key in wanted.keys})
    of_card = [RECORD.c.cards.contains(json.dumps(card, ensure_ascii=False), autoescape=True) for card in cards]
    query = (
        sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.environment)
        .where(RECORD.c.made < wanted.before if wanted.before else RECORD.c.made.is_not(None))
        .where(RECORD.c.gpu == wanted.gpu, sa.or_(*of_card))
        .order_by(RECORD.c.made.desc(), RECORD.c.name)
        .limit(sa.literal_column(str(NEWEST_RECORDS)))  # in sight, SQLite begins with these few
    )
    if wanted.repository:
        query = query.where(RECORD.c.repository.in_([wanted.repository, ""]))
    return query.cte("newest")


def _of(table: sa.Table, newest: sa.CTE, cases: Iterable[_Case]) -> sa.Select[Any]:
    """Card, case and moment of the cases' rows in the newest records."""
    there = sa.and_(table.c.series_id == SERIES.c.id, table.c.record_id == newest.c.id)
    cards, ids = zip(*cases, strict=True)
    return (
        sa.select(SERIES.c.card, SERIES.c.case, newest.c.made)
        .select_from(newest.join(SERIES, SERIES.c.environment == newest.c.environment).join(table, there))
        .where(SERIES.c.card.in_(set(cards)), SERIES.c.case.in_(set(ids)))
    )


def _spreads(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[tuple[_Case, KnownSpread]]:
    """Of each case what its paired comparisons show together, as far as they still count."""
    columns = (COMPARISON.c.spread_pct, COMPARISON.c.noise_pct, COMPARISON.c.processes)
    told = (COMPARISON.c.noise_pct.is_not(None), COMPARISON.c.spread_pct.is_not(None), COMPARISON.c.processes > 1)
    rows: Sequence[Any] = connection.execute(query.add_columns(*columns).where(*told)).all()
    newest_first = sorted(rows, key=lambda row: row.made, reverse=True)
    by_case = sorted(newest_first, key=lambda row: (row.card, row.case))
    for case, seen in groupby(by_case, key=lambda row: (row.card, row.case)):
        kept, left = [], 1.0
        for row in seen:
            if left > FORGOTTEN:
                pct = {name: min(getattr(row, name), MOST_PCT) for name in ("spread_pct", "noise_pct")}
                kept.append(KnownSpread(**pct, df=row.processes - 1, comparisons=1, last_seen=row.made))
                left *= max(0.0, 1 - (row.processes - 1) / HISTORY_MEMORY_DF)
        yield case, reduce(joined, reversed(kept))


def _days(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[tuple[_Case, tuple[BaselineDay, ...]]]:
    """The newest days of code that was timed on several, as far as nothing speaks against these times."""
    made = query.selected_columns.made
    day = sa.func.substr(made, sa.literal_column("1"), sa.literal_column("10"))
    # Of another environment the same commit is other code, and another series.
    columns = (SERIES.c.card, SERIES.c.case, POINT.c.series_id, POINT.c.commit_id, day)
    right = query.where(POINT.c.commit_id.is_not(None), POINT.c.finding.is_(None))
    daily = right.with_only_columns(*columns, sa.func.avg(POINT.c.us)).group_by(*columns)
    codes: dict[tuple[_Case, str], list[tuple[str, float]]] = {}
    for card, case, series, commit, taken_on, us in connection.execute(daily):
        codes.setdefault(((card, case), f"{series}/{commit}"), []).append((taken_on, us))
    by_case: dict[_Case, list[BaselineDay]] = {}
    for (key, code), taken in codes.items():
        if len(taken) > 1:
            known = (BaselineDay(measured=on, code=code, median_us=us) for on, us in taken)
            by_case.setdefault(key, []).extend(known)
    for key, found in by_case.items():
        yield key, tuple(sorted(found, key=lambda one: (one.measured, one.code))[-KEPT_DAYS:])
