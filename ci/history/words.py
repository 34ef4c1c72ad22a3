"""The history in a terminal: one line for each series, or for each commit of the one series that was asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelgate.ci.document import formatting, terminal
from kernelgate.ci.document.model import Code, Column, Line, Table
from kernelgate.ci.history.recent import Recent, RecentSeries
from kernelgate.ci.history.shown import ENVIRONMENT, ShownSeries, pct

SPARKS = "▁▂▃▄▅▆▇█"
DRAWN = 20
"""Points of a sparkline."""
FLAT = 0.01
"""A sparkline's whole height is at least 1% of the time, so that noise draws no mountains."""


def text(found: Recent) -> str:
    """Heads alone: what base and reference took is in --json. On the default branch where that is known of any."""
    if not found.series:
        return "nothing was measured since then\n"
    if found.single:
        parts = [_named(found.series[0].series, case=True), *map(_series, found.series)]
    else:
        groups: dict[str, list[RecentSeries]] = {}
        for one in found.series:
            groups.setdefault(f"{_named(one.series)}\n{_environment(one.series)}", []).append(one)
        parts = [f"{title}\n{terminal.table(_overview(rows))}" for title, rows in groups.items()]
    left_out = sum(one.left_out for one in found.series)
    if left_out:
        counted = formatting.counted(left_out, "measurement")
        parts.append(f"Left out: {counted} of commits that are not on the default branch; --json\nhas them.")
    if found.earlier:
        of = "" if found.single else " of cases"
        parts.append(f"Left out: {formatting.counted(found.earlier, 'earlier environment')}{of}; --json has them.")
    return "\n\n".join(parts) + "\n"


def sparkline(times: Iterable[float]) -> str:
    """The last of these times, the longest highest."""
    drawn = list(times)[-DRAWN:]
    low = min(drawn)
    height = max(max(drawn) - low, FLAT * low)
    return "".join(SPARKS[min(len(SPARKS) - 1, int((one - low) / height * len(SPARKS)))] for one in drawn)


def _overview(rows: Sequence[RecentSeries]) -> Table:
    columns = (
        Column("case"),
        Column("times", True),
        Column("last", True),
        Column("since first", True),
        Column("last 20"),
    )
    return Table(columns, tuple(map(_row, rows)))


def _row(one: RecentSeries) -> tuple[Line, ...]:
    times = [row["us"] for row in one.series.points]
    moved = formatting.MISSING
    if one.count > 1:
        moved = formatting.percent(100 * (times[-1] / one.first_us - 1), sign=True)
    return (
        (Code(one.series.case),),
        (str(one.count),),
        formatting.durations(times[-1]),
        (moved,),
        (sparkline(times),),
    )


def _named(one: ShownSeries, case: bool = False) -> str:
    names = [one.card, one.case] if case else [one.card]
    on = f"on {one.gpu or 'an unknown device'}"
    return " ".join(filter(None, ("/".join(filter(None, names)), f"of {one.repository}" if one.repository else "", on)))


def _environment(one: ShownSeries) -> str:
    known = (f"{key.replace('_', ' ')} {one.environment[key]}" for key in ENVIRONMENT if key in one.environment)
    return textwrap.fill(", ".join(known) or "environment unknown", terminal.WIDTH)


def _series(one: RecentSeries) -> str:
    points, changes = one.series.points, {row["record"]: row for row in one.series.comparisons}
    columns = (
        Column("measured"),
        Column("commit"),
        Column("time", True),
        Column("±", True),
        Column("against its base", True),
    )
    table = Table(columns, tuple(_point(row, changes.get(row["record"])) for row in points))
    parts = [_environment(one.series), terminal.table(table)]
    if one.count > len(points):
        parts.insert(1, f"({one.count - len(points)} earlier ones: --json)")
    return "\n".join(parts)


def _point(row: Mapping[str, Any], change: Mapping[str, Any] | None) -> tuple[Line, ...]:
    error = pct(row["error"])
    effect = pct(change["effect"]) if change else None
    against = formatting.percent(effect, 2, sign=True) if effect is not None else formatting.MISSING
    said = "not to be trusted" if row["finding"] else against
    return (
        ((row["made"] or "?")[:10],),
        (formatting.commit(row["commit"], formatting.MISSING),),
        formatting.durations(row["us"]),
        (formatting.MISSING if error is None else formatting.percent(error, 2),),
        (said,),
    )
