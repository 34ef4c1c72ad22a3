"""The history in a terminal: one line for each series, or for each commit of the one series that was asked for.

Of each case the newest environments are shown, and of these the last measurements. The index is asked for just that:
reading a history of years for its end takes seconds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Column, Line, Table
from kernelgate.ci.history import series
from kernelgate.ci.history.database import COMMIT, COMPARISON, POINT, RECORD
from kernelgate.ci.history.facts import HistoryComparison, HistoryPoint, MeasuredSeries, pct
from kernelgate.ci.history.series import COMPARISONS, ENVIRONMENT, POINTS, Wanted

ENVIRONMENTS = 3
"""Of a case; the earlier ones are in --json."""
ROWS = 30
"""Of one series."""
SPARKS = "▁▂▃▄▅▆▇█"
DRAWN = 20
"""Points of a sparkline."""
FLAT = 0.01
"""A sparkline's whole height is at least 1% of the time, so that noise draws no mountains."""


@dataclass(frozen=True)
class RecentSeries:
    """The last heads of a series, on the default branch where any of them is known to be there."""

    series: MeasuredSeries
    """Its last points in order, and the comparisons that they have with their own bases."""
    count: int
    """Of all such heads."""
    first_us: float
    """What the first of them took; of a single case, of those points."""
    left_out: int
    """Heads that are not on the default branch."""


def text(connection: sa.Connection, wanted: Wanted) -> str:
    """The newest series of what was asked for. Raises KernelgateError where nothing has these names."""
    chosen = sorted(series.chosen(connection, wanted), key=_case)
    cases = [list(alike) for _, alike in groupby(chosen, key=_case)]
    single = len(cases) == 1
    found: list[RecentSeries] = []
    earlier = 0
    for rows in cases:
        since = [row for row in rows if wanted.since is None or row["newest"] >= wanted.since]
        ordered = sorted(since, key=lambda row: (row["newest"], row["id"]))
        made = (_recent(connection, row, wanted.since, single) for row in ordered[-ENVIRONMENTS:])
        found += [one for one in made if one is not None]
        earlier += len(ordered[:-ENVIRONMENTS])
    if not found:
        return "nothing was measured since then\n"
    if single:
        parts = [_named(found[0].series, case=True), *map(_commits, found)]
    else:
        groups: dict[str, list[RecentSeries]] = {}
        for one in found:
            groups.setdefault(f"{_named(one.series)}\n{_environment(one.series)}", []).append(one)
        parts = [f"{title}\n{render.in_columns(_overview(rows))}" for title, rows in groups.items()]
    if left_out := sum(one.left_out for one in found):
        counted = formatting.counted(left_out, "measurement")
        parts.append(f"Left out: {counted} of commits that are not on the default branch; --json\nhas them.")
    if earlier:
        of = "" if single else " of cases"
        parts.append(f"Left out: {formatting.counted(earlier, 'earlier environment')}{of}; --json has them.")
    return "\n\n".join(parts) + "\n"


def _case(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["card"], row["case"], row["gpu"], row["repository"]


def _recent(
    connection: sa.Connection, row: Mapping[str, Any], since: str | None, compared: bool
) -> RecentSeries | None:
    mine = POINTS.where(POINT.c.series_id == row["id"], POINT.c.side == "head")
    mine = mine if since is None else mine.where(RECORD.c.made >= since)
    counts = mine.with_only_columns(sa.func.count(), sa.func.count(COMMIT.c.place), maintain_column_froms=True)
    every, placed = connection.execute(counts).one()
    if not every:
        return None
    mine = mine.where(COMMIT.c.place.is_not(None)) if placed else mine
    order = (*([COMMIT.c.place] if placed else []), RECORD.c.made, RECORD.c.name)
    newest = mine.order_by(*(column.desc().nulls_last() for column in order)).limit(ROWS)
    oldest = mine.order_by(*(column.asc().nulls_first() for column in order)).limit(1)
    points = tuple(HistoryPoint(**one._asdict()) for one in connection.execute(newest))[::-1]
    count = placed or every
    first = points[0].us if compared or count == len(points) else connection.execute(oldest).one().us
    comparisons: tuple[HistoryComparison, ...] = ()
    if compared:
        own = COMPARISON.c.series_id == row["id"], RECORD.c.name.in_([one.record for one in points])
        asked = COMPARISONS.where(*own, COMPARISON.c.status.is_not(None))
        comparisons = tuple(HistoryComparison(**one._asdict()) for one in connection.execute(asked))
    plain = replace(series.named(row), points=points, comparisons=comparisons)
    return RecentSeries(plain, count, first, every - count)


def sparkline(times: Iterable[float]) -> str:
    """The last of these times, the longest highest."""
    drawn = list(times)[-DRAWN:]
    low = min(drawn)
    height = max(max(drawn) - low, FLAT * low)
    return "".join(SPARKS[min(len(SPARKS) - 1, int((one - low) / height * len(SPARKS)))] for one in drawn)


def _overview(found: Sequence[RecentSeries]) -> Table:
    rows: list[tuple[Line, ...]] = []
    for one in found:
        times = [point.us for point in one.series.points]
        moved = formatting.percent(100 * (times[-1] / one.first_us - 1), sign=True)
        since_first = moved if one.count > 1 else formatting.MISSING
        last = formatting.durations(times[-1])
        rows.append(((Code(one.series.case),), (str(one.count),), last, (since_first,), (sparkline(times),)))
    columns = (Column("case"), Column("times", True), Column("last", True), Column("since first", True))
    return Table((*columns, Column("last 20")), tuple(rows))


def _named(one: MeasuredSeries, case: bool = False) -> str:
    on = f"on {one.gpu or 'an unknown device'}"
    of = f"of {one.repository}" if one.repository else ""
    return " ".join(filter(None, (one.written if case else one.card, of, on)))


def _environment(one: MeasuredSeries) -> str:
    known = (f"{key.replace('_', ' ')} {one.environment[key]}" for key in ENVIRONMENT if key in one.environment)
    return textwrap.fill(", ".join(known) or "environment unknown", render.WIDTH)


def _commits(one: RecentSeries) -> str:
    """Heads alone: what base and reference took is in --json."""
    points, changes = one.series.points, {row.record: row for row in one.series.comparisons}
    columns = (Column("measured"), Column("commit"), Column("time", True), Column("±", True))
    rows = tuple(_row(point, changes.get(point.record)) for point in points)
    parts = [_environment(one.series), render.in_columns(Table((*columns, Column("against its base", True)), rows))]
    if one.count > len(points):
        parts.insert(1, f"({one.count - len(points)} earlier ones: --json)")
    return "\n".join(parts)


def _row(point: HistoryPoint, change: HistoryComparison | None) -> tuple[Line, ...]:
    error, effect = pct(point.error), pct(change.effect) if change else None
    against = formatting.percent(effect, 2, sign=True) if effect is not None else formatting.MISSING
    return (
        ((point.made or "?")[:10],),
        (formatting.commit(point.commit, formatting.MISSING),),
        formatting.durations(point.us),
        (formatting.MISSING if error is None else formatting.percent(error, 2),),
        ("not to be trusted" if point.finding else against,),
    )
