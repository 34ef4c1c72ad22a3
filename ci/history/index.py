"""Writes the index: what a measurement's entry adds to it, each in one transaction, and nothing twice.

Whoever calls this holds the lock of `database.writing`: what is not there now is not there when it is inserted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from kernelgate.bench.core.errors import one_line
from kernelgate.ci.history import store
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, DAY, EVENT, IS_HEAD, POINT, RECORD, SERIES, SESSION
from kernelgate.ci.history.entry import Entry, SeriesEvent, moment
from kernelgate.ci.history.store import Kind, Store

INDEXED: Final[tuple[Kind, ...]] = ("records", "condensed", "events")
"""Kinds of the store of which the index knows each file."""
BATCH = 500
"""Values of one query: SQLite takes 32,766 of them, 999 of old."""


def add(connection: sa.Connection, entry: Entry, condensed: str | None = None) -> None:
    """Puts the entry in the place of what the index has. `condensed`: the name of what is kept in its place."""
    where = _environment(entry)
    record = _record(connection, entry, where, condensed)
    shas = [entry.run.base_sha, entry.run.head_sha]  # of a pair that could not be compared, nothing else has them
    shas += [one.commit for case in entry.cases for one in case.points]
    shas += [sha for case in entry.cases for one in case.comparisons for sha in (one.base, one.head)]
    commits = {"": None, **_numbers(connection, COMMIT.c.sha, {text(sha): {} for sha in shas if sha})}
    placed = connection.execute(sa.select(COMMIT.c.id, COMMIT.c.place).where(COMMIT.c.id.in_(commits.values())))
    places = {row.id: row.place for row in placed}
    made = moment(entry.run.created_at) or ""
    cases = {}
    for case in entry.cases:  # the last, of names that differ in control characters alone
        named = {**where, "card": text(case.card), "case": text(case.case)}
        cases[_digest(named)] = named, case
    series = _numbers(connection, SERIES.c.key, {key: {**named, "newest": ""} for key, (named, _) in cases.items()})
    points, comparisons, renewed = [], [], []
    for key, (_, case) in cases.items():
        own = {"series_id": series[key], "record_id": record, "finding": case.finding and text(case.finding)}
        for point in case.points:
            commit = commits[text(point.commit)]
            order = (made, places.get(commit)) if point.side == "head" else (None, None)
            there = {"commit_id": commit, "made": order[0], "place": order[1]}
            points.append(own | point.model_dump(exclude={"commit"}) | there)
        for number, one in enumerate(case.comparisons):
            low, high = one.interval_pct or (None, None)
            there = {"number": number, "base_id": commits[text(one.base)], "head_id": commits[text(one.head)]}
            told = one.model_dump(exclude={"base", "head", "interval_pct"})
            comparisons.append(own | told | there | {"low_pct": low, "high_pct": high})
        renewed.append({"number": series[key], "name": case.reference and text(case.reference)})
    costs = [
        {"record_id": record, "number": number, **cost.model_dump(), "phase": text(cost.phase)}
        for number, cost in enumerate(entry.costs)
    ]
    for table, rows in ((POINT, points), (COMPARISON, comparisons), (COST, costs)):
        insert(connection, table, rows)
    _count(connection, 1, POINT.c.series_id.in_(series.values()), POINT.c.record_id == record)
    # Whoever forgets a record leaves what it was the newest of as it is: that says only where to look first.
    older = sa.update(SERIES).where(SERIES.c.id == sa.bindparam("number"), SERIES.c.newest <= made)
    if renewed:
        connection.execute(older.values(newest=made, reference=sa.bindparam("name")), renewed)


def clear(connection: sa.Connection) -> None:
    """Forgets all but the commits, whose places only checkouts know."""
    for table in (POINT, DAY, COMPARISON, COST, EVENT, SESSION, SERIES, RECORD):
        connection.execute(sa.delete(table))
    connection.execute(sa.delete(COMMIT).where(COMMIT.c.place != sa.cast(COMMIT.c.place, sa.Integer)))  # such as a blob


def unplaced(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(COMMIT.c.id).where(COMMIT.c.place.is_(None)).limit(1)).first() is not None


def place(connection: sa.Connection, line: Sequence[str]) -> None:
    """Gives commits their places in `line`, the default branch from its oldest commit on; others keep theirs."""
    places = {sha: number for number, sha in enumerate(line)}
    rows = connection.execute(sa.select(COMMIT.c.id, COMMIT.c.sha, COMMIT.c.place)).all()
    moved = [{"row": id_, "now": places[sha]} for id_, sha, was in rows if sha in places and places[sha] != was]
    commits = sa.update(COMMIT).where(COMMIT.c.id == sa.bindparam("row"))
    heads = sa.update(POINT).where(POINT.c.commit_id == sa.bindparam("row"), IS_HEAD)
    for start in range(0, len(moved), BATCH):
        some = moved[start : start + BATCH]
        own = POINT.c.commit_id.in_([one["row"] for one in some])
        _count(connection, -1, own)
        for update in (commits, heads):
            connection.execute(update.values(place=sa.bindparam("now")), some)
        _count(connection, 1, own)


def _count(connection: sa.Connection, by: int, *own: sa.ColumnElement[bool]) -> None:
    """Counts these heads by day, or no longer (-1)."""
    heads = connection.execute(sa.select(POINT.c.series_id, POINT.c.made, POINT.c.place).where(IS_HEAD, *own))
    more = Counter((number, made[:10], at is not None) for number, made, at in heads)
    if rows := [dict(zip(DAY.c.keys(), (*key, by * count), strict=True)) for key, count in more.items()]:
        put = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(DAY)
        now = {"heads": DAY.c.heads + put.excluded.heads}
        connection.execute(put.on_conflict_do_update(index_elements=DAY.primary_key, set_=now), rows)


def add_event(connection: sa.Connection, name: str, event: SeriesEvent) -> None:
    """Puts in what was decided, which is known by the name of its file."""
    if connection.execute(sa.select(EVENT.c.name).filter_by(name=name)).first() is None:
        insert(connection, EVENT, [{"name": name, **{key: text(value) for key, value in event.model_dump().items()}}])


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), list(rows))


@dataclass(frozen=True)
class Difference:
    """Between the store, which is the truth, and its index: names of files."""

    unindexed: Mapping[Kind, set[str]]
    lost: set[str]
    """Measurements that the index has, and the store neither as they were nor condensed."""

    def __str__(self) -> str:
        lacks = sum(map(len, self.unindexed.values()))
        words = [f"lacks {lacks} that the store has"] if lacks else []
        words += [f"has {len(self.lost)} that the store lacks"] if self.lost else []
        return " and ".join(words)


def difference(kept: Store, connection: sa.Connection) -> Difference:
    records, events = (_every(connection, column) for column in (RECORD.c.name, EVENT.c.name))
    condensed = _every(connection, RECORD.c.condensed)
    known: Mapping[Kind, Set[str]] = {"records": records, "condensed": condensed, "events": events}
    held = {kind: set(store.names(kept, kind)) for kind in INDEXED}
    lost = records - held["records"]
    if lost and condensed:
        asked = connection.execute(sa.select(RECORD.c.name, RECORD.c.condensed).where(RECORD.c.condensed.is_not(None)))
        lost -= {name for name, own in asked if own in held["condensed"]}
    return Difference({kind: held[kind] - known[kind] for kind in INDEXED}, lost)


def _every(connection: sa.Connection, column: sa.Column[Any]) -> set[str]:
    """All names in a column. As one text: whoever shows something asks, and 100,000 rows took a second."""
    names = connection.execute(sa.select(sa.func.aggregate_strings(column, " "))).scalar()
    return set(names.split()) if names else set()


def _record(connection: sa.Connection, entry: Entry, where: Mapping[str, str], condensed: str | None) -> int:
    """The measurement's row, which holds nothing else yet."""
    run = entry.run
    known = connection.execute(sa.select(RECORD.c.id).filter_by(name=entry.name)).scalar()
    if known is not None:
        every = sa.select(SERIES.c.id)  # both tables lie in the order of series
        _count(connection, -1, POINT.c.series_id.in_(every), POINT.c.record_id == known)
        for table in (POINT, COMPARISON):
            connection.execute(sa.delete(table).where(table.c.series_id.in_(every), table.c.record_id == known))
        connection.execute(sa.delete(COST).where(COST.c.record_id == known))
        connection.execute(sa.delete(RECORD).where(RECORD.c.id == known))
    row = {
        "name": entry.name,
        "rules": entry.rules,
        "made": moment(run.created_at),
        **{key: where[key] for key in ("repository", "gpu", "environment")},
        "event": text(run.event),
        "base_sha": run.base_sha and text(run.base_sha),
        "head_sha": run.head_sha and text(run.head_sha),
        "outcome": entry.outcome,
        "reason": entry.reason and text(entry.reason),
        "cards": json.dumps(sorted({text(case.card) for case in entry.cases}), ensure_ascii=False),
        "condensed": condensed,
    }
    return int(connection.execute(sa.insert(RECORD).values(**row).returning(RECORD.c.id)).scalar_one())


def _numbers(connection: sa.Connection, key: sa.Column[str], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The numbers of these rows of the key's table, by their keys. Most are there; the others are put in."""

    def numbers() -> dict[str, int]:
        found: dict[str, int] = {}
        names = list(rows)
        for start in range(0, len(names), BATCH):
            asked = sa.select(key, key.table.c.id).where(key.in_(names[start : start + BATCH]))
            found.update((name, number) for name, number in connection.execute(asked))
        return found

    known = numbers()
    if new := [{key.name: name, **rows[name]} for name in sorted(rows.keys() - known.keys())]:
        insert(connection, key.table, new)
        known = numbers()
    return known


def _digest(fields: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _environment(entry: Entry) -> dict[str, str]:
    """What the series of a record have in common, and a short name of that."""
    where = entry.environment
    shared = {
        "repository": text(entry.run.repository),
        "gpu": text(where.device.name),
        "driver": text(where.device.driver),
        "torch": text(where.torch),
        "triton": text(where.triton),
        "cuda": text(where.cuda),
        "clock_policy": text(where.clock_policy),
        "machine": text(where.device.uuid or where.host),
    }
    return {**shared, "environment": _digest(shared)[:16]}


def text(value: str | None) -> str:
    """What Postgres takes, too, which knows no character 0."""
    return one_line(value or "")
