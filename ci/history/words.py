"""The history in a terminal: one line for each series, or for each commit of the one series that was asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelgate.ci.document import formatting, terminal
from kernelgate.ci.document.model import Code, Column, Line, Table
from kernelgate.ci.history.shown import ENVIRONMENT, ShownSeries, pct

ROWS = 30
"""Of one series; the earlier ones are in --json."""
SPARKS = "▁▂▃▄▅▆▇█"
DRAWN = 20
"""Points of a sparkline."""
FLAT = 0.01
"""A sparkline's whole height is at least 1% of the time, so that noise draws no mountains."""


def text(found: Sequence[ShownSeries]) -> str:
    """Heads alone: what base and reference took is in --json. On the default branch where that is known of any."""
    heads = [(one, points, off) for one, (points, off) in zip(found, map(_heads, found), strict=True) if points]
    if not heads:
        return "nothing was measured since then\n"
    if len({(one.repository, one.card, one.case, one.gpu) for one, _, _ in heads}) == 1:
        parts = [_named(heads[0][0], case=True), *(_series(one, points) for one, points, _ in heads)]
    else:
        groups: dict[str, list[tuple[ShownSeries, Sequence[Mapping[str, Any]]]]] = {}
        for one, points, _ in heads:
            groups.setdefault(f"{_named(one)}\n{_environment(one)}", []).append((one, points))
        parts = [f"{title}\n{terminal.table(_overview(rows))}" for title, rows in groups.items()]
    left_out = sum(off for _, _, off in heads)
    if left_out:
        counted = formatting.counted(left_out, "measurement")
        parts.append(f"Left out: {counted} of commits that are not on the default branch; --json\nhas them.")
    return "\n\n".join(parts) + "\n"


def sparkline(times: Iterable[float]) -> str:
    """The last of these times, the longest highest."""
    drawn = list(times)[-DRAWN:]
    low = min(drawn)
    height = max(max(drawn) - low, FLAT * low)
    return "".join(SPARKS[min(len(SPARKS) - 1, int((one - low) / height * len(SPARKS)))] for one in drawn)


def _heads(one: ShownSeries) -> tuple[list[Mapping[str, Any]], int]:
    """The head's points in order, and how many are left out since their commits are on no default branch."""
    points = [row for row in one.points if row["side"] == "head"]
    placed = [row for row in points if row["place"] is not None]
    return (placed, len(points) - len(placed)) if placed else (points, 0)


def _overview(rows: Sequence[tuple[ShownSeries, Sequence[Mapping[str, Any]]]]) -> Table:
    columns = (
        Column("case"),
        Column("times", True),
        Column("last", True),
        Column("since first", True),
        Column("last 20"),
    )
    return Table(columns, tuple(_row(one, points) for one, points in rows))


def _row(one: ShownSeries, points: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    times = [row["us"] for row in points]
    moved = formatting.percent(100 * (times[-1] / times[0] - 1), sign=True) if len(times) > 1 else formatting.MISSING
    return ((Code(one.case),), (str(len(times)),), formatting.durations(times[-1]), (moved,), (sparkline(times),))


def _named(one: ShownSeries, case: bool = False) -> str:
    names = [one.card, one.case] if case else [one.card]
    on = f"on {one.gpu or 'an unknown device'}"
    return " ".join(filter(None, ("/".join(filter(None, names)), f"of {one.repository}" if one.repository else "", on)))


def _environment(one: ShownSeries) -> str:
    known = (f"{key.replace('_', ' ')} {one.environment[key]}" for key in ENVIRONMENT if key in one.environment)
    return textwrap.fill(", ".join(known) or "environment unknown", terminal.WIDTH)


def _series(one: ShownSeries, points: Sequence[Mapping[str, Any]]) -> str:
    changes = {row["record"]: row for row in one.comparisons if row["status"] is not None}
    columns = (
        Column("measured"),
        Column("commit"),
        Column("time", True),
        Column("±", True),
        Column("against its base", True),
    )
    shown = points[-ROWS:]
    table = Table(columns, tuple(_point(row, changes.get(row["record"])) for row in shown))
    parts = [_environment(one), terminal.table(table)]
    if len(points) > ROWS:
        parts.insert(1, f"({len(points) - ROWS} earlier ones: --json)")
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
