"""Fills an index with copies of what was really added to it: the rows of each record again, under other names.

Adding 100,000 records takes half an hour, of which most is reading and packing files. A copy's rows have the form, the
values' sizes and the order of those that `index.add` writes, so that tables and indices grow as they do by adding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.system.progress import say
from kernelgate.ci.history import database, index
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.tables import COMMIT, COMPARISON, POINT, RECORD, SERIES

Row = Mapping[str, Any]


def copied(filled: Database, copies: int) -> None:
    """Adds so many copies of all that the index holds. Each has a driver of its own, and commits of its own."""
    with database.reading(filled) as connection:
        seen = {table: _rows(connection, table) for table in (RECORD, COMMIT, SERIES)}
    span = {table.name: max(row["id"] for row in rows) for table, rows in seen.items()}
    heads = {row["head_sha"] for row in seen[RECORD]}
    kept = [row["id"] for row in seen[COMMIT] if row["sha"] not in heads]
    for copy in range(1, copies + 1):
        with database.writing(filled) as connection:
            index.insert_new(connection, SERIES, [_series(row, copy, span) for row in seen[SERIES]])
            own = [row for row in seen[COMMIT] if row["sha"] in heads]
            index.insert_new(connection, COMMIT, [_commit(row, copy, span) for row in own])
            index.insert_new(connection, RECORD, [_record(row, copy, span) for row in seen[RECORD]])
            for table in (POINT, COMPARISON):
                _repeat(connection, table, copy, span, kept)
        say(f"{(copy + 1) * len(seen[RECORD])} records")
    with database.writing(filled) as connection:
        if connection.dialect.name == "postgresql":
            for name in span:
                connection.execute(sa.text(f"SELECT setval('{name}_id_seq', (SELECT max(id) FROM \"{name}\"))"))  # noqa: S608
            connection.execute(sa.text("ANALYZE"))  # as its own housekeeping does within minutes


def _rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    return [row._asdict() for row in connection.execute(sa.select(table).order_by(table.c.id))]


def _series(row: Row, copy: int, span: Mapping[str, int]) -> dict[str, Any]:
    return {**row, "id": row["id"] + copy * span["series"], "key": _named(row["key"], copy), "driver": f"590.{copy}"}


def _commit(row: Row, copy: int, span: Mapping[str, int]) -> dict[str, Any]:
    place = None if row["place"] is None else row["place"] + copy * span["commit"]
    return {"id": row["id"] + copy * span["commit"], "sha": _named(row["sha"], copy)[:40], "place": place}


def _record(row: Row, copy: int, span: Mapping[str, int]) -> dict[str, Any]:
    made = f"{2026 + copy // 12}-{copy % 12 + 1:02}{row['made'][7:]}"
    head = _named(row["head_sha"], copy)[:40]
    return {**row, "id": row["id"] + copy * span["record"], "name": _named(row["name"], copy), "made": made} | {
        "head_sha": head
    }


def _named(name: str, copy: int) -> str:
    return hashlib.sha256(f"{name} {copy}".encode()).hexdigest()


def _repeat(connection: sa.Connection, table: sa.Table, copy: int, span: Mapping[str, int], kept: list[int]) -> None:
    """In the order in which records were added; times differ a little."""
    moved: list[Any] = []
    for column in table.c:
        moved.append(column)
        if column.name == "us":
            off = (table.c.record_id * 7919 + table.c.series_id * 104729 + copy * 31) % 1000
            moved[-1] = column * (1 + (off - 500) / 1e5)
        elif column.foreign_keys:
            (key,) = column.foreign_keys
            further = column + copy * span[key.column.table.name]
            moved[-1] = sa.case((column.in_(kept), column), else_=further) if key.column.table is COMMIT else further
    asked = sa.select(*moved).where(table.c.record_id <= span["record"])
    ordered = asked.order_by(table.c.record_id, table.c.series_id)
    connection.execute(sa.insert(table).from_select([column.name for column in table.c], ordered))
