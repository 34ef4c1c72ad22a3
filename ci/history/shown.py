"""Reads the index: the series that were asked for, as `history show` and `history export` give them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history.answer import SeriesShown, ShownComparison, ShownHistory, ShownPoint
from kernelgate.ci.history.tables import COMMIT, COMPARISON, COST, EVENT, POINT, RECORD, SERIES, SESSION

ENVIRONMENT = ("driver", "torch", "triton", "cuda", "clock_policy", "producer")
AT_ONCE = 10_000
"""Rows of an export that are in memory."""

BASE, HEAD = COMMIT.alias("base"), COMMIT.alias("head")
POINTS = (
    sa.select(
        POINT.c.series_id,
        RECORD.c.name.label("record"),
        RECORD.c.made,
        POINT.c.side,
        COMMIT.c.sha.label("commit"),
        COMMIT.c.place,
        POINT.c.us,
        POINT.c.error,
        POINT.c.processes,
        POINT.c.rounds,
        POINT.c.finding,
    )
    .join(RECORD, RECORD.c.id == POINT.c.record_id)
    .outerjoin(COMMIT, COMMIT.c.id == POINT.c.commit_id)
)
COMPARISONS = (
    sa.select(
        COMPARISON.c.series_id,
        RECORD.c.name.label("record"),
        RECORD.c.made,
        BASE.c.sha.label("base"),
        HEAD.c.sha.label("head"),
        HEAD.c.place,
        COMPARISON.c.effect,
        COMPARISON.c.error,
        COMPARISON.c.spread_pct,
        COMPARISON.c.noise_pct,
        COMPARISON.c.processes,
        COMPARISON.c.status,
        COMPARISON.c.low_pct,
        COMPARISON.c.high_pct,
        COMPARISON.c.finding,
    )
    .join(RECORD, RECORD.c.id == COMPARISON.c.record_id)
    .join(BASE, BASE.c.id == COMPARISON.c.base_id)
    .outerjoin(HEAD, HEAD.c.id == COMPARISON.c.head_id)
)


@dataclass(frozen=True)
class Wanted:
    """Which series, and since when; None asks for all. `gpu` is any part of a kind's name, such as "h200"."""

    card: str | None = None
    case: str | None = None
    gpu: str | None = None
    since: str | None = None
    """As `entry.moment` writes it."""


@dataclass(frozen=True)
class ShownSeries:
    """One case of a card on one kind of GPU in one environment, by the places of its commits, then by time."""

    repository: str
    card: str
    case: str
    gpu: str
    environment: Mapping[str, str]
    points: tuple[Mapping[str, Any], ...]
    comparisons: tuple[Mapping[str, Any], ...]
    reference: str | None = None
    """What the side `reference` is, where a card said so."""


def series(connection: sa.Connection, wanted: Wanted) -> tuple[ShownSeries, ...]:
    """The series that hold anything since then, whole. Raises KernelgateError where nothing has these names."""
    return loaded(connection, chosen(connection, wanted), wanted.since)


def loaded(
    connection: sa.Connection,
    rows: Iterable[Mapping[str, Any]],
    since: str | None,
    points: sa.Select[Any] | None = POINTS,
) -> tuple[ShownSeries, ...]:
    """The series of these rows that hold anything since then. `points`: which of them are wanted."""
    made = (_shown(connection, row, since, points) for row in rows)
    return tuple(sorted((one for one in made if one.points or one.comparisons), key=_order))


def chosen(connection: sa.Connection, wanted: Wanted) -> list[dict[str, Any]]:
    """The rows of the series that have these names. Raises KernelgateError where there are none."""
    every = [row._asdict() for row in connection.execute(sa.select(SERIES).order_by(SERIES.c.id))]
    found = [row for row in every if _fits(row, wanted)]
    if not found:
        raise KernelgateError(_none(every, wanted))
    return found


def named(row: Mapping[str, Any]) -> ShownSeries:
    """A series by its row, without what was measured."""
    where = {key: row[key] for key in ENVIRONMENT if row[key]}
    return ShownSeries(row["repository"], row["card"], row["case"], row["gpu"], where, (), (), row["reference"])


def _fits(row: Mapping[str, Any], wanted: Wanted) -> bool:
    named = all(asked in (None, row[key]) for key, asked in (("card", wanted.card), ("case", wanted.case)))
    return named and (wanted.gpu is None or wanted.gpu.lower() in row["gpu"].lower())


def _none(every: Sequence[Mapping[str, Any]], wanted: Wanted) -> str:
    if not every:
        return "the history is empty: `kernelgate history add RECORD` puts measurements into it"
    for key, asked in (("card", wanted.card), ("case", wanted.case)):
        kept = [row for row in every if asked in (None, row[key])]
        if not kept:
            return f"the history has no {key} {asked!r}; it has: {_names(row[key] for row in every)}"
        every = kept
    return f"the history has nothing of that on a {wanted.gpu!r}; it has: {_names(row['gpu'] for row in every)}"


def _names(values: Iterator[str], most: int = 8) -> str:
    names = sorted({value or "(no name)" for value in values})
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _shown(
    connection: sa.Connection, row: Mapping[str, Any], since: str | None, points: sa.Select[Any] | None
) -> ShownSeries:
    measured = () if points is None else _rows(connection, points.where(POINT.c.series_id == row["id"]), since)
    compared = _rows(connection, COMPARISONS.where(COMPARISON.c.series_id == row["id"]), since)
    both = (tuple(sorted(rows, key=_place)) for rows in (measured, compared))
    return replace(named(row), points=next(both), comparisons=next(both))


def _rows(connection: sa.Connection, asked: sa.Select[Any], since: str | None) -> Iterator[Mapping[str, Any]]:
    if since is not None:
        asked = asked.where(RECORD.c.made >= since)
    for row in connection.execute(asked):
        yield {key: value for key, value in row._asdict().items() if key != "series_id"}


def _place(row: Mapping[str, Any]) -> tuple[bool, int, str, str]:
    """What is on the default branch first, in its order: dates are no topology."""
    return row["place"] is None, row["place"] or 0, row["made"] or "", row["record"]


def _order(one: ShownSeries) -> tuple[str, str, str, str]:
    return one.card, one.case, one.gpu, min((row["made"] or "" for row in (*one.points, *one.comparisons)), default="")


# ---- as JSON ---------------------------------------------------------------------------------------------------------


def answer(found: Iterable[ShownSeries]) -> ShownHistory:
    """What `history show --json` prints."""
    return ShownHistory(
        series=tuple(
            SeriesShown(
                repository=one.repository,
                card=one.card,
                case=one.case,
                gpu=one.gpu,
                environment=dict(one.environment),
                reference=one.reference,
                points=tuple(ShownPoint.model_validate(point_data(row)) for row in one.points),
                comparisons=tuple(ShownComparison.model_validate(comparison_data(row)) for row in one.comparisons),
            )
            for one in found
        )
    )


def point_data(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its standard error in percent."""
    return {key: value for key, value in row.items() if key != "error"} | {"error_pct": pct(row["error"])}


def comparison_data(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its effect in percent of time, positive where the head is slower."""
    kept = {key: value for key, value in row.items() if key not in ("effect", "error", "low_pct", "high_pct")}
    interval = None if row["low_pct"] is None else [row["low_pct"], row["high_pct"]]
    return kept | {"change_pct": pct(row["effect"]), "error_pct": pct(row["error"]), "interval_pct": interval}


def pct(log: float | None) -> float | None:
    """A log change in percent; None where there is none, and where it is beyond every number."""
    if log is None or log > 100:
        return None
    return 100 * math.expm1(log)


# ---- everything ------------------------------------------------------------------------------------------------------

_NAMES = tuple(SERIES.c[key] for key in ("repository", "card", "case", "gpu", *ENVIRONMENT))
EXPORTED: Mapping[str, sa.Select[Any]] = {
    "points": POINTS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == POINT.c.series_id),
    "comparisons": COMPARISONS.add_columns(*_NAMES).join(SERIES, SERIES.c.id == COMPARISON.c.series_id),
    "events": sa.select(*(column for column in EVENT.c if column.name != "id")),
    "costs": sa.select(RECORD.c.name.label("record"), RECORD.c.made, COST.c.phase, COST.c.gpu_seconds, COST.c.retried)
    .join(RECORD, RECORD.c.id == COST.c.record_id)
    .order_by(RECORD.c.name, COST.c.number),
    "sessions": sa.select(SESSION).order_by(SESSION.c.repository, SESSION.c.name),
}
"""What an export holds, by its name; rows of points and comparisons name their series."""


def exported(connection: sa.Connection, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one part of an export, as flat data."""
    flat = {"points": point_data, "comparisons": _flat_comparison}.get(name, dict)
    for row in connection.execution_options(yield_per=AT_ONCE).execute(EXPORTED[name]):
        yield flat({key: value for key, value in row._asdict().items() if key != "series_id"})


def _flat_comparison(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in row.items() if key not in ("effect", "error")}
    return kept | {"change_pct": pct(row["effect"]), "error_pct": pct(row["error"])}
