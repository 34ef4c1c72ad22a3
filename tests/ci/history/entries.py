"""Builders of what a history holds, and what its index then holds, whatever numbers its rows have."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from kernelgate.bench.record import Device, Environment, Run, RunRecord, to_json
from kernelgate.ci.history import database, index
from kernelgate.ci.history.database import DAY, IS_HEAD, POINT, Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry, PointEntry
from kernelgate.ci.history.series import EXPORTED, exported
from tests.ci.records import case, noise
from tests.runs import run_record

Answer = TypeVar("Answer")
BASE, HEAD = "b" * 40, "a" * 40
H200 = Environment(device=Device(name="NVIDIA H200", driver="580.1"), torch="2.11.0", cuda="13.0")


def a_record(change: float = 0.02, day: int = 1, processes: int = 3, **parts: Any) -> RunRecord:
    """Base and head of one case, as a pull request's measurement has them."""
    base, head = noise(np.random.default_rng(day), change, processes, rounds=20, spread=0.001)
    run = Run(base_sha=BASE, head_sha=HEAD, created_at=f"2026-08-{day:02}T12:00:00+00:00")
    return run_record((case(base, head),), H200, **{"run": run, **parts})


def as_file(record: RunRecord) -> bytes:
    return to_json(record).encode()


def an_entry(name: str, sha: str = HEAD, us: float = 100.0, day: int = 1, **parts: Any) -> Entry:
    """One time of one case, and its change against BASE."""
    point = PointEntry(side="head", commit=sha, us=us, error=0.001, processes=3, rounds=60)
    change = ComparisonEntry(
        base=BASE, head=sha, effect=0.02, error=0.001, spread_pct=0.1, processes=3, status="slower", interval_pct=(1, 3)
    )
    one = CaseEntry(card="norm", case="one", points=(point,), comparisons=(change,))
    run = Run(head_sha=sha, base_sha=BASE, created_at=f"2026-08-{day:02}")
    return Entry(**{"name": named(name), "rules": "r", "run": run, "environment": H200, "cases": (one,), **parts})


def named(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def put(index_at: Database, *entries: Entry) -> None:
    with database.writing(index_at) as connection:
        for one in entries:
            index.add(connection, one)


def write(index_at: Database, change: Callable[..., object], *words: object) -> None:
    with database.writing(index_at) as connection:
        change(connection, *words)


def read(index_at: Database, ask: Callable[..., Answer], *words: object) -> Answer:
    with database.reading(index_at) as connection:
        return ask(connection, *words)


def contents(index_at: Database) -> dict[str, list[str]]:
    """All rows, in an order that does not depend on when they were written."""
    with database.reading(index_at) as connection:
        return {name: sorted(map(repr, exported(connection, name))) for name in EXPORTED}


def as_counted(index_at: Database) -> bool:
    """Whether the index counts of each series, day and side of the default branch the heads that it has."""
    with database.reading(index_at) as connection:
        heads = connection.execute(sa.select(POINT.c.series_id, POINT.c.made, POINT.c.place).where(IS_HEAD))
        there = Counter((row.series_id, row.made[:10], row.place is not None) for row in heads)
        rows = connection.execute(sa.select(DAY).where(DAY.c.heads != 0))
        return there == {(row.series_id, row.day, row.placed): row.heads for row in rows}


def counted(index_at: Database, table: sa.Table) -> int:
    with database.reading(index_at) as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
