"""The processes of one case on an axis of their own: what each found, and all together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.judge.case import CaseVerdict, ProcessChange
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.page.drawing import AXIS, END, MIDDLE, WIDTH, diamond, figure, line, path, rect, tag, text
from kernelgate.ci.report.page.scale import Scale

LEFT, RIGHT = 66.0, WIDTH - 8
TOP, ROW = 16.0, 16.0


def drawing(case: CaseVerdict, gates: Gates) -> Markup | None:
    """None where no process has an estimate."""
    found = [one for one in case.per_process if math.isfinite(one.change_pct)]
    if not found:
        return None
    overall = _overall(case)
    rows = [*found, *((overall,) if overall else ())]
    axis = _axis(rows, overall)
    bottom = TOP + ROW * len(rows) + 6
    middles = [TOP + 3 + ROW * (row + 0.5) for row in range(len(rows))]
    drawn = [
        _whisker(f"process {index}", one, y, axis)
        for index, (one, y) in enumerate(zip(found, middles, strict=False), 1)
    ]
    if overall:
        drawn.append(_whisker("together", overall, middles[-1], axis))
    return figure(
        "Each process",
        _description(found, case, gates),
        bottom + AXIS,
        _ground(gates, axis, bottom),
        *drawn,
        note="change of time, on an axis of its own",
    )


def _axis(rows: Sequence[ProcessChange], overall: ProcessChange | None) -> Scale:
    """All changes, and the intervals as far as they leave room for those."""
    core = [*(one.change_pct for one in rows), *(_ends(overall) if overall else ())]
    room = (max(core) - min(core)) or abs(core[0]) or 1.0
    ends = [min(max(bound, min(core) - room), max(core) + room) for one in rows for bound in _ends(one)]
    return Scale.over([*core, *ends], LEFT, RIGHT)


def _overall(case: CaseVerdict) -> ProcessChange | None:
    """None where there is none, or none to be believed."""
    if case.change_pct is None or case.interval_pct is None or not case.believed:
        return None
    return ProcessChange(case.change_pct, *case.interval_pct)


def _ends(one: ProcessChange) -> tuple[float, float]:
    low, high = (bound if math.isfinite(bound) else one.change_pct for bound in (one.low_pct, one.high_pct))
    return low, high


def _ground(gates: Gates, axis: Scale, bottom: float) -> Markup:
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    band = rect((left, TOP), right - left, bottom - TOP, "band")
    for edge in (-gates.margin_pct, gates.margin_pct):
        if axis.holds(edge):
            band += line((axis.at(edge), TOP), (axis.at(edge), bottom), "edge")
    ticks = axis.ticks(5)
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)) if len(ticks) > 1 else 2
    numbers = [
        line((axis.at(value), TOP), (axis.at(value), bottom), "zero" if abs(value) < 1e-9 else "grid")
        + text(axis.at(value), bottom + 15, formatting.percent(value, digits, sign=True), "tick", MIDDLE)
        for value in ticks
    ]
    gate = gates.regression_pct
    blocks = Markup("")
    if axis.holds(gate):
        x = axis.at(gate)
        blocks = line((x, TOP), (x, bottom), "gate") + text(
            min(max(x, 110.0), RIGHT - 50), TOP - 5, f"blocks above +{formatting.threshold(gate)}", "limit gate", MIDDLE
        )
    title = text(WIDTH, bottom + 28, "head against base, + is slower", "title", END)
    return Markup("").join([band, *numbers, blocks, title])


def _whisker(label: str, one: ProcessChange, y: float, axis: Scale) -> Markup:
    low, high = _ends(one)
    whole = label == "together"
    mark = (
        diamond(axis.at(one.change_pct), y)
        if whole
        else tag("circle", cx=axis.at(one.change_pct), cy=y, r=2.8, class_="process")
    )
    return (
        text(LEFT - 6, y + 4, label, "name all" if whole else "name", END)
        + line((axis.at(low), y), (axis.at(high), y), "whisker all" if whole else "whisker")
        + _goes_on(low, high, y, axis)
        + mark
    )


def _goes_on(low: float, high: float, y: float, axis: Scale) -> Markup:
    """An arrow where an interval ends beyond the axis."""
    ends = [(axis.start, 4.0)] * (low < axis.low) + [(axis.end, -4.0)] * (high > axis.high)
    return Markup("").join(path([(x + inward, y - 3), (x, y), (x + inward, y + 3)], "cut") for x, inward in ends)


def _description(found: Sequence[ProcessChange], case: CaseVerdict, gates: Gates) -> str:
    each = ", ".join(formatting.percent(one.change_pct, 2, sign=True) for one in found)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    together = f"Together {change} {interval}. " if _overall(case) else ""
    return (
        f"Change of each process: {each}. {together}"
        f"Within ±{formatting.threshold(gates.margin_pct)} counts as the same; "
        f"above +{formatting.threshold(gates.regression_pct)} blocks."
    )
