"""What a terminal shows of the history: of each case the newest environments, and of these the last measurements.

The index is asked for just that: reading a history of years for its end takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from kernelgate.ci.history import shown
from kernelgate.ci.history.shown import COMPARISONS, POINTS, ShownSeries, Wanted
from kernelgate.ci.history.tables import COMMIT, COMPARISON, POINT, RECORD

ENVIRONMENTS = 3
"""Of a case; the earlier ones are in --json."""
ROWS = 30
"""Of one series."""


@dataclass(frozen=True)
class RecentSeries:
    """The last heads of a series, on the default branch where any of them is known to be there."""

    series: ShownSeries
    """Its last points in order, and the comparisons that they have with their own bases."""
    count: int
    """Of all such heads."""
    first_us: float
    """What the first of them took; of a single case, of those points."""
    left_out: int
    """Heads that are not on the default branch."""


@dataclass(frozen=True)
class Recent:
    series: tuple[RecentSeries, ...]
    single: bool
    """One case of a card on one kind of GPU."""
    earlier: int
    """Environments that are left out."""


def of_index(connection: sa.Connection, wanted: Wanted) -> Recent:
    """The newest series of what was asked for. Raises KernelgateError where nothing has these names."""
    chosen = sorted(shown.chosen(connection, wanted), key=_case)
    cases = [list(alike) for _, alike in groupby(chosen, key=_case)]
    found, earlier = [], 0
    for rows in cases:
        since = [row for row in rows if wanted.since is None or row["newest"] >= wanted.since]
        ordered = sorted(since, key=lambda row: (row["newest"], row["id"]))
        made = [_series(connection, row, wanted.since, len(cases) == 1) for row in ordered[-ENVIRONMENTS:]]
        found += [one for one in made if one is not None]
        earlier += len(ordered[:-ENVIRONMENTS])
    return Recent(tuple(found), len(cases) == 1, earlier)


def _case(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["card"], row["case"], row["gpu"], row["repository"]


def _series(
    connection: sa.Connection, row: Mapping[str, Any], since: str | None, compared: bool
) -> RecentSeries | None:
    mine = POINTS.add_columns(POINT.c.record_id).where(POINT.c.series_id == row["id"], POINT.c.side == "head")
    mine = mine if since is None else mine.where(RECORD.c.made >= since)
    counts = mine.with_only_columns(sa.func.count(), sa.func.count(COMMIT.c.place), maintain_column_froms=True)
    every, placed = connection.execute(counts).one()
    if not every:
        return None
    mine = mine.where(COMMIT.c.place.is_not(None)) if placed else mine
    order = (*([COMMIT.c.place] if placed else []), RECORD.c.made, RECORD.c.name)
    newest = mine.order_by(*(column.desc().nulls_last() for column in order)).limit(ROWS)
    oldest = mine.order_by(*(column.asc().nulls_first() for column in order)).limit(1)
    points = [one._asdict() for one in connection.execute(newest)][::-1]
    count = placed or every
    first = points[0]["us"] if compared or count == len(points) else connection.execute(oldest).one().us
    comparisons = tuple(_comparisons(connection, row["id"], points)) if compared else ()
    plain = replace(shown.named(row), points=tuple(points), comparisons=comparisons)
    return RecentSeries(plain, count, first, every - count)


def _comparisons(
    connection: sa.Connection, series: int, points: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    records = [one["record_id"] for one in points]
    mine = COMPARISON.c.series_id == series, COMPARISON.c.record_id.in_(records), COMPARISON.c.status.is_not(None)
    return (one._asdict() for one in connection.execute(COMPARISONS.where(*mine)))
