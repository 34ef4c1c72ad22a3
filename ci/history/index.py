"""Writes the index: what a measurement's entry adds to it, each in one transaction, and nothing twice.

Whoever calls this holds the lock of `database.writing`: what is not there now is not there when it is inserted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.core.errors import one_line
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, EVENT, POINT, RECORD, SERIES, SESSION
from kernelgate.ci.history.entry import CaseEntry, Entry, SeriesEvent, moment

SHARED = ("repository", "gpu", "driver", "torch", "triton", "cuda", "clock_policy", "producer")
"""Columns that the series of a record have in common."""
BATCH = 500
"""Values of one query: SQLite takes 32,766 of them, 999 of old."""


def add(connection: sa.Connection, entry: Entry, condensed: str | None = None) -> None:
    """Puts the entry in the place of whatever the index has of this measurement.

    `condensed`: the name of what is kept in the record's place, where that is not the record itself.
    """
    where = _environment(entry)
    record = _record(connection, entry, where, condensed)
    commits = _commits(connection, entry)
    named = [{**where, "card": text(case.card), "case": text(case.case)} for case in entry.cases]
    keys = [hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest() for one in named]
    series = _series(connection, dict(zip(keys, named, strict=True)))
    points, comparisons = [], []
    for key, case in dict(zip(keys, entry.cases, strict=True)).items():  # names that differ in control characters alone
        own = {"series_id": series[key], "record_id": record, "finding": case.finding and text(case.finding)}
        points += [own | one for one in _points(case, commits)]
        comparisons += [own | one for one in _comparisons(case, commits)]
    costs = [
        {"record_id": record, "number": number, **cost.model_dump(), "phase": text(cost.phase)}
        for number, cost in enumerate(entry.costs)
    ]
    for table, rows in ((POINT, points), (COMPARISON, comparisons), (COST, costs)):
        insert(connection, table, rows)
    _renew(connection, entry, [series[key] for key in keys])


def clear(connection: sa.Connection) -> None:
    """Forgets all but the commits, whose places only checkouts know."""
    for table in (POINT, COMPARISON, COST, EVENT, SESSION, SERIES, RECORD):
        connection.execute(sa.delete(table))


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


def add_event(connection: sa.Connection, name: str, event: SeriesEvent) -> None:
    """Puts in what was decided, which is known by the name of its file."""
    if connection.execute(sa.select(EVENT.c.name).filter_by(name=name)).first() is None:
        insert(connection, EVENT, [{"name": name, **{key: text(value) for key, value in event.model_dump().items()}}])


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), list(rows))


# ---- the parts of an entry -------------------------------------------------------------------------------------------


def _record(connection: sa.Connection, entry: Entry, where: Mapping[str, str], condensed: str | None) -> int:
    """The measurement's row, which holds nothing else yet."""
    run = entry.run
    row = {
        "name": entry.name,
        "rules": entry.rules,
        "made": moment(run.created_at),
        "repository": where["repository"],
        "producer": where["producer"],
        "event": text(run.event),
        "base_sha": run.base_sha and text(run.base_sha),
        "head_sha": run.head_sha and text(run.head_sha),
        "gpu": where["gpu"],
        "outcome": entry.outcome,
        "reason": entry.reason and text(entry.reason),
        "cards": json.dumps(sorted({text(case.card) for case in entry.cases}), ensure_ascii=False),
        "environment": environment_of(where),
        "condensed": condensed,
    }
    record: int | None = connection.execute(sa.select(RECORD.c.id).filter_by(name=entry.name)).scalar()
    if record is None:
        fresh: int = connection.execute(sa.insert(RECORD).values(**row).returning(RECORD.c.id)).scalar_one()
        return fresh
    connection.execute(sa.update(RECORD).where(RECORD.c.id == record).values(**row))
    _forget(connection, record)
    return record


def _forget(connection: sa.Connection, record: int) -> None:
    every = sa.select(SERIES.c.id)  # both tables lie in the order of series
    for table in (POINT, COMPARISON):
        connection.execute(sa.delete(table).where(table.c.series_id.in_(every), table.c.record_id == record))
    connection.execute(sa.delete(COST).where(COST.c.record_id == record))


def _commits(connection: sa.Connection, entry: Entry) -> dict[str, int]:
    """The numbers of all commits that the entry names."""
    named = {one.commit for case in entry.cases for one in case.points}
    named |= {sha for case in entry.cases for one in case.comparisons for sha in (one.base, one.head)}
    shas = sorted({text(sha) for sha in named if sha is not None})
    asked = sa.select(COMMIT.c.sha, COMMIT.c.id)
    known = _ids(connection, asked, COMMIT.c.sha, shas)
    new = [sha for sha in shas if sha not in known]
    insert(connection, COMMIT, [{"sha": sha} for sha in new])
    return known | _ids(connection, asked, COMMIT.c.sha, new)


def _series(connection: sa.Connection, named: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """The numbers of these series by their keys; most are known from earlier measurements."""
    asked = sa.select(SERIES.c.key, SERIES.c.id)
    known = _ids(connection, asked, SERIES.c.key, list(named))
    new = {key: one for key, one in named.items() if key not in known}
    rows = [{"key": key, **one, "environment": environment_of(one), "newest": ""} for key, one in new.items()]
    insert(connection, SERIES, rows)
    return known | _ids(connection, asked, SERIES.c.key, list(new))


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


def _ids(
    connection: sa.Connection, asked: sa.Select[Any], key: sa.Column[str], wanted: Sequence[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(wanted), BATCH):
        rows = connection.execute(asked.where(key.in_(wanted[start : start + BATCH]))).all()
        found.update({row[0]: row[1] for row in rows})
    return found


def environment_of(fields: Mapping[str, str]) -> str:
    """A short name of what the series of a record have in common."""
    return hashlib.sha256(json.dumps([fields[key] for key in SHARED]).encode()).hexdigest()[:16]


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
        "producer": " ".join(filter(None, (text(entry.run.producer), text(entry.run.version)))),
    }


def _points(case: CaseEntry, commits: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for point in case.points:
        commit = commits[text(point.commit)] if point.commit is not None else None
        yield {**point.model_dump(exclude={"commit"}), "commit_id": commit}


def _comparisons(case: CaseEntry, commits: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(case.comparisons):
        low, high = one.interval_pct or (None, None)
        yield {
            **one.model_dump(exclude={"base", "head", "interval_pct"}),
            "number": number,
            "base_id": commits[text(one.base)],
            "head_id": commits[text(one.head)] if one.head is not None else None,
            "low_pct": low,
            "high_pct": high,
        }


def text(value: str | None) -> str:
    """What Postgres takes, too, which knows no character 0."""
    known = value or ""
    return known if known.isprintable() else one_line(known)
