"""What the index knows of each week: what the GPUs cost, and how well they measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from statistics import median
from typing import Any

import sqlalchemy as sa

from kernelgate.ci.history.tables import COMPARISON, COST, POINT, RECORD
from kernelgate.ci.report.dashboard.dashboard import SiteWeek

WEEKS = 26
"""The newest weeks, which are shown."""
Key = tuple[str, str]
"""A week's Monday, and a kind of GPU."""


def weeks(connection: sa.Connection) -> tuple[SiteWeek, ...]:
    """Newest first; of records that say when they were made, and of nothing that another tool measured."""
    asked = sa.select(RECORD.c.id, RECORD.c.made, RECORD.c.gpu, RECORD.c.reason)
    every = connection.execute(asked.where(RECORD.c.made.is_not(None), RECORD.c.rules != "")).all()
    kept = sorted({monday(row.made) for row in every})[-WEEKS:]
    records = [row for row in every if kept and monday(row.made) >= kept[0]]
    keys = {row.id: (monday(row.made), row.gpu) for row in records}
    measured, cases, untrusted = _cases(connection, keys)
    spreads = _spreads(connection, keys)
    seconds, retried = _costs(connection, keys)
    unjudged: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for row in records:
        if row.id not in measured:
            unjudged[keys[row.id]][row.reason or "no times"] += 1
    counts = Counter(keys.values())
    return tuple(
        SiteWeek(
            monday=key[0],
            gpu=key[1],
            records=counts[key],
            unjudged=unjudged[key],
            cases=cases[key],
            untrusted=untrusted[key],
            spread_pct=median(spreads[key]) if spreads[key] else None,
            gpu_seconds=seconds[key],
            retried_seconds=retried[key],
        )
        for key in sorted(counts, reverse=True)
    )


def monday(made: str) -> str:
    day = date.fromisoformat(made[:10])
    return (day - timedelta(days=day.weekday())).isoformat()


def _cases(connection: sa.Connection, keys: Mapping[int, Key]) -> tuple[set[int], Counter[Key], Counter[Key]]:
    """The records that measured anything; how many cases that were, and how many of them no verdict may rest on."""
    asked = sa.select(POINT.c.record_id, sa.func.count(), sa.func.count(POINT.c.finding))
    measured: set[int] = set()
    cases: Counter[Key] = Counter()
    untrusted: Counter[Key] = Counter()
    for id_, count, odd in _of(connection, asked.where(POINT.c.side == "head").group_by(POINT.c.record_id), keys):
        measured.add(id_)
        cases[keys[id_]] += count
        untrusted[keys[id_]] += odd
    return measured, cases, untrusted


def _spreads(connection: sa.Connection, keys: Mapping[int, Key]) -> Mapping[Key, list[float]]:
    asked = sa.select(COMPARISON.c.record_id, COMPARISON.c.spread_pct)
    known = asked.where(COMPARISON.c.status.is_not(None), COMPARISON.c.spread_pct.is_not(None))
    found: defaultdict[Key, list[float]] = defaultdict(list)
    for id_, spread in _of(connection, known, keys):
        found[keys[id_]].append(spread)
    return found


def _costs(
    connection: sa.Connection, keys: Mapping[int, Key]
) -> tuple[Mapping[Key, Mapping[str, float]], Mapping[Key, float]]:
    asked = sa.select(COST.c.record_id, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)
    seconds: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    retried: defaultdict[Key, float] = defaultdict(float)
    for id_, phase, spent, again in _of(connection, asked, keys):
        seconds[keys[id_]][phase] += spent
        retried[keys[id_]] += spent if again else 0.0
    return seconds, retried


def _of(connection: sa.Connection, asked: sa.Select[Any], keys: Mapping[int, Key]) -> Iterator[Any]:
    return (row for row in connection.execute(asked) if row[0] in keys)
