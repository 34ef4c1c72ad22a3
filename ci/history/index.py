"""Writes the index: what a measurement's entry adds to it, each in one transaction, and nothing twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from kernelgate.bench.core.errors import one_line
from kernelgate.ci.history.entry import CaseEntry, Entry, SeriesEvent, SpreadEntry, moment
from kernelgate.ci.history.tables import COMMIT, COMPARISON, COST, EVENT, POINT, RECORD, SERIES, SPREAD

SHARED = ("repository", "gpu", "driver", "torch", "triton", "cuda", "clock_policy", "producer")
BATCH = 500
"""Values of one query: SQLite takes 32,766 of them, 999 of old."""


def holds(connection: sa.Connection, name: str, rules: str) -> bool:
    """Whether the index has this measurement, as these rules judge it."""
    return connection.execute(sa.select(RECORD.c.id).filter_by(name=name, rules=rules)).first() is not None


def condensed(connection: sa.Connection, names: Iterable[str]) -> set[str]:
    """Those of these records that are kept without their samples."""
    wanted, found = list(names), set[str]()
    for start in range(0, len(wanted), BATCH):
        asked = sa.select(RECORD.c.name).where(RECORD.c.name.in_(wanted[start : start + BATCH]))
        found.update(connection.execute(asked.where(RECORD.c.condensed.is_not(None))).scalars())
    return found


def add(connection: sa.Connection, entry: Entry, condensed: str | None = None) -> None:
    """Puts the entry in the place of whatever the index has of this measurement.

    `condensed`: the name of what is kept in the record's place, where that is not the record itself.
    """
    record = _record(connection, entry, condensed)
    commits = _commits(connection, entry)
    named = [_identity(entry, case) for case in entry.cases]
    keys = [hashlib.sha256(json.dumps(one).encode()).hexdigest() for one in named]
    series = _series(connection, dict(zip(keys, named, strict=True)))
    points, comparisons = [], []
    for case, key in zip(entry.cases, keys, strict=True):
        points += list(_points(case, series[key], record, commits))
        comparisons += list(_comparisons(case, series[key], record, commits))
    costs = [
        {"record_id": record, "number": number, "phase": text(cost.phase), **cost.model_dump(exclude={"phase"})}
        for number, cost in enumerate(entry.costs)
    ]
    spreads = [_spread(one, number, record) for number, one in enumerate(entry.spreads)]
    for table, rows in ((POINT, points), (COMPARISON, comparisons), (COST, costs), (SPREAD, spreads)):
        insert_new(connection, table, rows)
    _renew(connection, entry, [series[key] for key in keys])


def remove(connection: sa.Connection, names: Iterable[str]) -> None:
    """Forgets these measurements."""
    for name in names:
        record = connection.execute(sa.select(RECORD.c.id).filter_by(name=name)).scalar()
        if record is not None:
            _forget(connection, record)
            connection.execute(sa.delete(RECORD).where(RECORD.c.id == record))


def remove_events(connection: sa.Connection, names: Iterable[str]) -> None:
    """Forgets these events."""
    for name in names:
        connection.execute(sa.delete(EVENT).where(EVENT.c.name == name))


def known(connection: sa.Connection) -> tuple[set[str], set[str]]:
    """The names of all measurements and of all events that the index has."""
    measured, decided = (connection.execute(sa.select(table.c.name)).scalars() for table in (RECORD, EVENT))
    return set(measured), set(decided)


def unplaced(connection: sa.Connection) -> bool:
    """Whether the index has commits whose place in the history is not known."""
    return connection.execute(sa.select(COMMIT.c.id).where(COMMIT.c.place.is_(None)).limit(1)).first() is not None


def place(connection: sa.Connection, line: Sequence[str]) -> None:
    """Gives commits their places in `line`, the default branch's first parents from the oldest on.

    Others keep what they have: they may be another repository's.
    """
    places = {sha: number for number, sha in enumerate(line)}
    rows = connection.execute(sa.select(COMMIT.c.id, COMMIT.c.sha, COMMIT.c.place)).all()
    moved = [{"row": id_, "now": places[sha]} for id_, sha, was in rows if sha in places and places[sha] != was]
    if moved:
        update = sa.update(COMMIT).where(COMMIT.c.id == sa.bindparam("row")).values(place=sa.bindparam("now"))
        connection.execute(update, moved)


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts the rows that the table's unique columns do not know yet."""
    if rows:
        connection.execute(_insert(connection, table), list(rows))


def add_event(connection: sa.Connection, name: str, event: SeriesEvent) -> None:
    """Puts in what was decided, which is known by the name of its file."""
    said = {key: text(value) if value is not None else None for key, value in event.model_dump().items()}
    insert_new(connection, EVENT, [{"name": name, **said}])


def _insert(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    made = postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
    return made.on_conflict_do_nothing()


# ---- the parts of an entry -------------------------------------------------------------------------------------------


def _record(connection: sa.Connection, entry: Entry, condensed: str | None) -> int:
    """The measurement's row, which holds nothing else yet. Another writer of it waits here until this one has ended."""
    run = entry.run
    row = {
        "name": entry.name,
        "rules": entry.rules,
        "made": moment(run.created_at),
        "repository": text(run.repository),
        "producer": _producer(entry),
        "event": text(run.event),
        "base_sha": run.base_sha and text(run.base_sha),
        "head_sha": run.head_sha and text(run.head_sha),
        "gpu": text(entry.environment.device.name),
        "outcome": entry.outcome,
        "reason": entry.reason and text(entry.reason),
        "cards": json.dumps(sorted({text(case.card) for case in entry.cases}), ensure_ascii=False),
        "environment": environment_of(_environment(entry)),
        "condensed": condensed,
    }
    fresh: int | None = connection.execute(_insert(connection, RECORD).returning(RECORD.c.id), row).scalar()
    if fresh is not None:
        return fresh
    updated = sa.update(RECORD).where(RECORD.c.name == entry.name).values(**row).returning(RECORD.c.id)
    record: int = connection.execute(updated).scalar_one()
    _forget(connection, record)
    return record


def _forget(connection: sa.Connection, record: int) -> None:
    every = sa.select(SERIES.c.id)  # both tables lie in the order of series
    for table in (POINT, COMPARISON):
        connection.execute(sa.delete(table).where(table.c.series_id.in_(every), table.c.record_id == record))
    for table in (COST, SPREAD):
        connection.execute(sa.delete(table).where(table.c.record_id == record))


def _commits(connection: sa.Connection, entry: Entry) -> dict[str, int]:
    named = {one.commit for case in entry.cases for one in case.points}
    named |= {sha for case in entry.cases for one in case.comparisons for sha in (one.base, one.head)}
    shas = sorted({text(sha) for sha in named if sha is not None})
    insert_new(connection, COMMIT, [{"sha": sha} for sha in shas])
    return _ids(connection, COMMIT.c.sha, COMMIT.c.id, shas)


def _series(connection: sa.Connection, named: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """The numbers of these series by their keys; most are known from earlier measurements."""
    known = _ids(connection, SERIES.c.key, SERIES.c.id, list(named))
    new = [{"key": key, **one, "environment": environment_of(one)} for key, one in named.items() if key not in known]
    insert_new(connection, SERIES, new)
    return known if len(known) == len(named) else _ids(connection, SERIES.c.key, SERIES.c.id, list(named))


def _renew(connection: sa.Connection, entry: Entry, ids: Sequence[int]) -> None:
    """Tells the entry's series that it is their newest, unless they have a newer one. Whoever forgets a record leaves
    that as it is: it says only where to look first.
    """
    made = moment(entry.run.created_at) or ""
    names = [case.reference and text(case.reference) for case in entry.cases]
    for name in sorted(set(names), key=str):
        mine = [number for number, known in zip(ids, names, strict=True) if known == name]
        older = SERIES.c.id.in_(mine), SERIES.c.newest <= made
        connection.execute(sa.update(SERIES).where(*older).values(newest=made, reference=name))


def _ids(connection: sa.Connection, key: sa.Column[str], id_: sa.Column[int], wanted: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(wanted), BATCH):
        asked = sa.select(key, id_).where(key.in_(wanted[start : start + BATCH]))
        found.update((str(name), int(number)) for name, number in connection.execute(asked))
    return found


def environment_of(fields: Mapping[str, str]) -> str:
    """A short name of what the series of a record have in common."""
    said = json.dumps([fields[key] for key in SHARED])
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _identity(entry: Entry, case: CaseEntry) -> dict[str, str]:
    return {
        "repository": text(entry.run.repository),
        "card": text(case.card),
        "case": text(case.case),
        **{key: value for key, value in _environment(entry).items() if key != "repository"},
    }


def _environment(entry: Entry) -> dict[str, str]:
    where = entry.environment
    return {
        "repository": text(entry.run.repository),
        "gpu": text(where.device.name),
        "driver": text(where.device.driver),
        "torch": text(where.torch),
        "triton": text(where.triton),
        "cuda": text(where.cuda),
        "clock_policy": text(where.clock_policy),
        "producer": _producer(entry),
    }


def _producer(entry: Entry) -> str:
    return " ".join(filter(None, (text(entry.run.producer), text(entry.run.version))))


def _points(case: CaseEntry, series: int, record: int, commits: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    for point in case.points:
        yield {
            "series_id": series,
            "record_id": record,
            "side": point.side,
            "commit_id": commits[text(point.commit)] if point.commit is not None else None,
            "us": point.us,
            "error": point.error,
            "processes": _int32(point.processes),
            "rounds": _int32(point.rounds),
            "finding": case.finding and text(case.finding),
        }


def _comparisons(case: CaseEntry, series: int, record: int, commits: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    for number, one in enumerate(case.comparisons):
        low, high = one.interval_pct or (None, None)
        yield {
            "series_id": series,
            "record_id": record,
            "base_id": commits[text(one.base)],
            "number": number,
            "head_id": commits[text(one.head)] if one.head is not None else None,
            "effect": one.effect,
            "error": one.error,
            "spread_pct": one.spread_pct,
            "noise_pct": one.noise_pct,
            "processes": _int32(one.processes),
            "status": one.status,
            "low_pct": low,
            "high_pct": high,
            "finding": case.finding and text(case.finding),
        }


def _spread(one: SpreadEntry, number: int, record: int) -> dict[str, Any]:
    known = one.known
    return {
        "record_id": record,
        "number": number,
        "card": text(one.card),
        "case": text(one.case),
        "gpu": text(one.gpu),
        **known.model_dump(exclude={"last_seen"}),
        "last_seen": moment(known.last_seen),
    }


def _int32(value: int) -> int:
    return min(value, 2**31 - 1)


def text(value: str | None) -> str:
    """What Postgres takes, too, which knows no character 0."""
    known = value or ""
    return known if known.isprintable() else one_line(known)
