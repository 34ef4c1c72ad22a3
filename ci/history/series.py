"""Reads the index: the series that were asked for, and all of it for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history.database import COMMIT, COMPARISON, COST, EVENT, POINT, RECORD, SERIES, SESSION
from kernelgate.ci.history.entry import KeptSession
from kernelgate.ci.history.facts import CaseName, HistoryComparison, HistoryPoint, MeasuredSeries, pct

ENVIRONMENT = ("driver", "torch", "triton", "cuda", "clock_policy", "producer")
EXPORT = "kernelgate.history-export/1"
AT_ONCE = 10_000
"""Rows of an export that are in memory."""

BASE, HEAD = COMMIT.alias("base"), COMMIT.alias("head")
POINTS = (
    sa.select(
        RECORD.c.name.label("record"),
        RECORD.c.made,
        POINT.c.side,
        COMMIT.c.sha.label("commit"),
        COMMIT.c.place,
        *(POINT.c.us, POINT.c.error, POINT.c.processes, POINT.c.rounds, POINT.c.finding),
    )
    .join(RECORD, RECORD.c.id == POINT.c.record_id)
    .outerjoin(COMMIT, COMMIT.c.id == POINT.c.commit_id)
)
COMPARISONS = (
    sa.select(
        RECORD.c.name.label("record"),
        RECORD.c.made,
        BASE.c.sha.label("base"),
        HEAD.c.sha.label("head"),
        HEAD.c.place,
        *(COMPARISON.c.effect, COMPARISON.c.error, COMPARISON.c.spread_pct, COMPARISON.c.noise_pct),
        *(COMPARISON.c.processes, COMPARISON.c.status, COMPARISON.c.low_pct, COMPARISON.c.high_pct),
        COMPARISON.c.finding,
    )
    .join(RECORD, RECORD.c.id == COMPARISON.c.record_id)
    .join(BASE, BASE.c.id == COMPARISON.c.base_id)
    .outerjoin(HEAD, HEAD.c.id == COMPARISON.c.head_id)
)
_NAMES = tuple(SERIES.c[key] for key in ("repository", "card", "case", "gpu", *ENVIRONMENT))
EXPORTED: Mapping[str, sa.Select[Any]] = {
    "points": POINTS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == POINT.c.series_id),
    "comparisons": COMPARISONS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == COMPARISON.c.series_id),
    "events": sa.select(EVENT),
    "costs": sa.select(RECORD.c.name.label("record"), RECORD.c.made, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)
    .join(RECORD, RECORD.c.id == COST.c.record_id)
    .order_by(RECORD.c.name, COST.c.number),
}
"""What an export holds, by its name; rows of points and comparisons name their series."""


@dataclass(frozen=True)
class Wanted:
    """Which series, and since when; None asks for all. `gpu` is any part of a kind's name, such as "h200"."""

    card: str | None = None
    case: str | None = None
    gpu: str | None = None
    since: str | None = None
    """As `entry.moment` writes it."""


def series(connection: sa.Connection, wanted: Wanted) -> tuple[MeasuredSeries, ...]:
    """The series that hold anything since then, whole. Raises KernelgateError where nothing has these names."""
    return loaded(connection, chosen(connection, wanted), wanted.since)


def loaded(
    connection: sa.Connection,
    rows: Iterable[Mapping[str, Any]],
    since: str | None,
    points: sa.Select[Any] | None = POINTS,
) -> tuple[MeasuredSeries, ...]:
    """The series of these rows that hold anything since then. `points`: which of them are wanted."""

    def asked(query: sa.Select[Any]) -> sa.CursorResult[Any]:
        return connection.execute(query if since is None else query.where(RECORD.c.made >= since))

    found = []
    for row in rows:
        taken = [] if points is None else asked(points.where(POINT.c.series_id == row["id"])).all()
        compared = asked(COMPARISONS.where(COMPARISON.c.series_id == row["id"]))
        one = replace(
            named(row),
            points=tuple(sorted((HistoryPoint(**each._asdict()) for each in taken), key=_place)),
            comparisons=tuple(sorted((HistoryComparison(**each._asdict()) for each in compared), key=_place)),
        )
        if one.points or one.comparisons:
            found.append(one)
    return tuple(sorted(found, key=_order))


def chosen(connection: sa.Connection, wanted: Wanted) -> list[dict[str, Any]]:
    """The rows of the series that have these names. Raises KernelgateError where there are none."""
    rows = [row._asdict() for row in connection.execute(sa.select(SERIES).order_by(SERIES.c.id))]
    if not rows:
        raise KernelgateError("the history is empty: `kernelgate history add RECORD` puts measurements into it")
    for key, asked in (("card", wanted.card), ("case", wanted.case)):
        kept = [row for row in rows if asked in (None, row[key])]
        if not kept:
            raise KernelgateError(f"the history has no {key} {asked!r}; it has: {_names(row[key] for row in rows)}")
        rows = kept
    gpu = wanted.gpu or ""
    if kept := [row for row in rows if gpu.lower() in row["gpu"].lower()]:
        return kept
    raise KernelgateError(f"the history has nothing of that on a {gpu!r}; it has: {_names(row['gpu'] for row in rows)}")


def cases_at(connection: sa.Connection, wanted: Wanted, sha: str) -> tuple[CaseName, ...]:
    """The cases with these names that were measured at a commit. Raises KernelgateError where there are none."""
    measured = sa.select(POINT.c.series_id).join(COMMIT, COMMIT.c.id == POINT.c.commit_id).where(COMMIT.c.sha == sha)
    there = set(connection.execute(measured).scalars())
    rows = [row for row in chosen(connection, wanted) if row["id"] in there]
    if not rows:
        raise KernelgateError(f"the history has no measurement of that at {sha[:12]}")
    return tuple(sorted({CaseName(row["repository"], row["card"], row["case"], row["gpu"]) for row in rows}))


def _names(values: Iterator[str], most: int = 8) -> str:
    names = sorted({value or "(no name)" for value in values})
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def named(row: Mapping[str, Any]) -> MeasuredSeries:
    """A series by its row, without what was measured."""
    where = {key: row[key] for key in ENVIRONMENT if row[key]}
    return MeasuredSeries(row["repository"], row["card"], row["case"], row["gpu"], where, row["reference"])


def _place(one: HistoryPoint | HistoryComparison) -> tuple[bool, int, str, str]:
    """What is on the default branch first, in its order: dates are no topology."""
    return one.place is None, one.place or 0, one.made or "", one.record


def _order(one: MeasuredSeries) -> tuple[str, str, str, str]:
    made = [each.made or "" for each in one.points] + [each.made or "" for each in one.comparisons]
    return one.card, one.case, one.gpu, min(made, default="")


def sessions(connection: sa.Connection) -> list[KeptSession]:
    asked = sa.select(SESSION).order_by(SESSION.c.repository, SESSION.c.name)
    return [KeptSession.model_validate(row, from_attributes=True) for row in connection.execute(asked)]


def exported(connection: sa.Connection, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one part of an export, as flat data; effects and errors in percent of time."""
    for row in connection.execution_options(yield_per=AT_ONCE).execute(EXPORTED[name]):
        flat = row._asdict()
        if "effect" in flat:
            flat["change_pct"] = pct(flat.pop("effect"))
        if "error" in flat:
            flat["error_pct"] = pct(flat.pop("error"))
        yield flat


def as_json(connection: sa.Connection, sessions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One object: `schema`, and a list of flat rows for each of `EXPORTED` and for the sessions, a row a line."""
    yield json.dumps({"schema": EXPORT})[:-1]
    for name, rows in (*((name, exported(connection, name)) for name in EXPORTED), ("sessions", sessions)):
        yield f',\n"{name}": ['
        for number, row in enumerate(rows):
            yield f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False)}"
        yield "]"
    yield "}\n"
