"""How far each fuzzed output lay from the oracle, as a share of what its tolerance allows."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.bench.record import Check, FuzzResult
from kernelgate.ci.document import formatting
from kernelgate.ci.report.page.drawing import AXIS, END, MIDDLE, WIDTH, figure, line, path, tag, text
from kernelgate.ci.report.page.scale import Scale

LEFT, RIGHT = 66.0, WIDTH - 22
TOP, ROW = 18.0, 26.0
LIMIT = 1.0
MOST = 1.5
"""Larger errors stand at the end of the axis."""
MAX_ROWS = 8
LANES = 5
"""Heights at which the dots of a row stand, so that they hide each other less."""


def drawing(check: Check, title: str) -> Markup | None:
    """The errors of one card's fuzz list, a row for each dtype; None where nothing was compared."""
    rows = _rows(check.results)
    if not rows:
        return None
    worst = max((_ratio(one) for one in check.results), default=0.0)
    axis = Scale(0.0, max(LIMIT * 1.05, min(worst, MOST)), LEFT, RIGHT)
    bottom = TOP + ROW * len(rows)
    limit = axis.at(LIMIT)
    drawn = Markup("").join(_row(name, found, axis, TOP + ROW * index) for index, (name, found) in enumerate(rows))
    ticks = Markup("").join(
        line((axis.at(value), TOP), (axis.at(value), bottom), "grid")
        + text(axis.at(value), bottom + 15, f"{value:.0%}", "tick", MIDDLE)
        for value in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    failed = sum(not one.passed for one in check.results)
    words = f"{formatting.counted(len(check.results), 'configuration')}, {failed} failed"
    far = any(not one.passed and (one.error_ratio is None or one.error_ratio > MOST) for one in check.results)
    beyond = f"; at the right edge: over {MOST:.0%}, or no number at all" if far else ""
    return figure(
        title,
        f"{words}. The largest error that is a number is {worst:.0%} of its limit.",
        bottom + AXIS,
        ticks,
        line((limit, TOP - 4), (limit, bottom), "gate"),
        text(limit, TOP - 7, "limit", "limit gate", MIDDLE),
        drawn,
        text(WIDTH, bottom + 28, "error, as a share of what is allowed", "title", END),
        note=f"{words}{beyond}",
    )


def _rows(results: Sequence[FuzzResult]) -> list[tuple[str, list[FuzzResult]]]:
    found: dict[str, list[FuzzResult]] = {}
    for one in results:
        named = str(one.axes.get("dtype", ""))
        found.setdefault(formatting.label({"dtype": named}) or "all", []).append(one)
    if len(found) > MAX_ROWS:
        return [("all", list(results))]
    return sorted(found.items())


def _ratio(one: FuzzResult) -> float:
    return one.error_ratio if one.error_ratio is not None else 0.0


def _row(name: str, found: Sequence[FuzzResult], axis: Scale, top: float) -> Markup:
    middle = top + ROW / 2
    drawn = text(LEFT - 6, middle + 4, name, "name", END) + line((LEFT, middle), (RIGHT, middle), "grid")
    for index, one in enumerate(sorted(found, key=_ratio)):
        y = middle + 3 * (index % LANES - LANES // 2)
        x = axis.at(_ratio(one))
        if one.passed and one.error_ratio is not None:
            drawn += tag("circle", cx=x, cy=y, r=2.2, class_="passed")
        elif not one.passed:
            x = axis.at(MOST if one.error_ratio is None else _ratio(one))
            drawn += path([(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)], "failed") + path(
                [(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)], "failed"
            )
    return drawn
