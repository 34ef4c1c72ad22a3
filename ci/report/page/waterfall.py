"""The time budget of one case: step by step from the base's time to the head's, as far as the profiles explain it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.bench.explain import metrics
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.explain import figures
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.report.page.drawing import END, WIDTH, figure, line, rect, text
from kernelgate.ci.report.page.scale import Scale

LEFT, RIGHT = 166.0, WIDTH - 50
ROW = 30.0
TOP = 6.0
LABEL = 26
"""Characters of a label; more would run into the bars."""
SMALL = 0.05
"""Points of percent; less is no step of its own."""


@dataclass(frozen=True)
class Stair:
    """One bar: from where to where, in percent of the base's time."""

    label: str
    detail: str
    start: float
    end: float
    kind: str


def drawing(budget: Budget) -> Markup | None:
    """None where the profiles show another change than was measured, or nothing that explains it."""
    if not budget.is_shown or not budget.contributions:
        return None
    stairs = list(_stairs(budget))
    axis = Scale.over([0.0, *(end for stair in stairs for end in (stair.start, stair.end))], LEFT, RIGHT, 0.03)
    bottom = TOP + ROW * len(stairs) + 4
    zero = line((axis.at(0.0), TOP - 2), (axis.at(0.0), bottom - 2), "zero")
    rows = Markup("").join(_row(stair, axis, TOP + ROW * index) for index, stair in enumerate(stairs))
    told = "; ".join(f"{stair.label} {stair.detail}".strip() + f": {_points(stair)}" for stair in stairs)
    return figure(
        "What the change is made of",
        f"In percent of the base's time. {told}.",
        bottom,
        rows,
        zero,
        note="in percent of the base's time",
    )


def _stairs(budget: Budget) -> Iterator[Stair]:
    at = 0.0
    for one in budget.contributions:
        label = visible(metrics.label(one.metric).partition(" (")[0], LABEL)
        sides = figures.pair(one.metric, one.before, one.after)
        yield Stair(label, sides, at, at + one.share_pct, "grew" if one.share_pct > 0 else "shrank")
        at += one.share_pct
    if abs(budget.unexplained_pct) >= SMALL:
        yield Stair("not explained", "", at, budget.change_pct, "unexplained")
    yield Stair("measured", "", 0.0, budget.change_pct, "whole-change")


def _row(stair: Stair, axis: Scale, top: float) -> Markup:
    low, high = sorted((axis.at(stair.start), axis.at(stair.end)))
    label = "all" if stair.kind == "whole-change" else ""
    return (
        text(2, top + (13 if stair.detail else 18), stair.label, label)
        + (text(2, top + 26, stair.detail) if stair.detail else Markup(""))
        + rect((low, top + 6), max(high - low, 1.0), ROW - 14, stair.kind)
        + text(WIDTH - 2, top + 18, _points(stair), "value", END)
    )


def _points(stair: Stair) -> str:
    return formatting.percent(stair.end - stair.start, 1, sign=True)
