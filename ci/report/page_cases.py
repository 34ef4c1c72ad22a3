"""The changes of all cases on one axis of percent, a lane for each, and of one case the changes of its processes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.document.drawing import (
    AXIS,
    END,
    MIDDLE,
    WIDTH,
    Scale,
    diamond,
    figure,
    joined,
    line,
    path,
    rect,
    tag,
    text,
)
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, ProcessChange
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import JudgedCase

MAX_TICKS = 5
FAR = 4.0
"""A change so many times the usual one would leave the others no room: its lane ends in an arrow."""
MANY = 40
"""More cases than this have a picture of them all, which fits on a screen."""
PICTURE_HEIGHT = 520.0
EDGES = 2.0, 98.0
"""Percent of a lane's width: marks at either end stay inside."""
MARKERS = {
    "bad": "M0-5.5L5.5 4.5H-5.5z",
    "warn": "M0-5.5L5.5 4.5H-5.5z",
    "good": "M0 5.5L5.5-4.5H-5.5z",
    "same": "M-3.5-3.5h7v7h-7z",
    "unknown": "M0-5L5 0L0 5L-5 0z",
}
"""By tone: slower points upwards, faster downwards, the same is a square, what is not known a diamond."""
LEFT, RIGHT = 66.0, WIDTH - 8
TOP, ROW = 16.0, 16.0


def scale(cases: Sequence[CaseVerdict], gates: Gates) -> Scale:
    """The axis that all cases share: zero, the margin and the gate, and every change that is not far from the rest."""
    changes = [change for case in cases if (change := _known(case.change_pct)) is not None]
    bounds = [bound for case in cases for bound in case.interval_pct or () if math.isfinite(bound)]
    usual = statistics.median(map(abs, changes)) if changes else 0.0
    most = min(max(FAR * usual, 2 * gates.regression_pct), formatting.LARGEST)
    shown = [min(max(value, -most), most) for value in (*changes, *bounds)]
    return Scale.over([*shown, -gates.margin_pct, gates.regression_pct], *EDGES)


def _known(change: float | None) -> float | None:
    return change if change is not None and math.isfinite(change) else None


def _share(value: float) -> str:
    return f"{value:.2f}%"


def _limits(gates: Gates, axis: Scale) -> list[tuple[float, str, str]]:
    """The lines that mean something: where, which kind, and its words."""
    limits = [
        (-gates.margin_pct, "edge", ""),
        (0.0, "zero", ""),
        (gates.margin_pct, "edge", ""),
        (gates.regression_pct, "gate", f"blocks above +{formatting.threshold(gates.regression_pct)}"),
        (-gates.improvement_pct, "gain", f"improved below −{formatting.threshold(gates.improvement_pct)}"),
    ]
    return [(axis.at(value), kind, words) for value, kind, words in limits if axis.holds(value)]


def definitions(gates: Gates, axis: Scale) -> Markup:
    """What every lane refers to: its ground with margin and gates, and the markers."""
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    ground = [
        tag("rect", x=_share(left), width=_share(right - left), height="100%", class_="band"),
        *(
            tag("line", x1=_share(x), x2=_share(x), y1="0", y2="100%", class_=kind)
            for x, kind, _ in _limits(gates, axis)
        ),
    ]
    markers = [tag("path", id=f"mark-{tone}", d=d) for tone, d in MARKERS.items()]
    ends = [
        tag("path", id="beyond-low", d="M6-5L0 0L6 5", class_="beyond"),
        tag("path", id="beyond-high", d="M-6-5L0 0L-6 5", class_="beyond"),
    ]
    inside = tag("defs", tag("g", *ground, id="ground"), *markers, *ends)
    return tag("svg", inside, class_="definitions", width="0", height="0", aria_hidden="true")


def axis_above(gates: Gates, axis: Scale) -> Markup:
    """The numbers over the lanes, and the words of one limit: two meet where the axis is short; the one that blocks
    stays."""
    ticks = [
        tag("text", Markup.escape(f"{value:+,g}".replace("-", "−") + "%" if abs(value) > 1e-12 else "0%"),
            x=_share(axis.at(value)), y="26", class_="tick")
        for value in axis.ticks(MAX_TICKS)
    ]  # fmt: skip
    named = [
        tag("text", Markup.escape(words), x=_share(x), y="11", class_=f"limit {kind}",
            text_anchor="start" if x < 30 else "end" if x > 70 else "middle")
        for x, kind, words in _limits(gates, axis)
        if words
    ]  # fmt: skip
    return tag("svg", *named[:1], *ticks, class_="axis", height="32", aria_hidden="true")


def lane(one: JudgedCase, axis: Scale) -> Markup:
    """One case: its interval and its change, by the shape of what it means."""
    return tag("svg", tag("use", href="#ground"), _estimate(one, axis), aria_hidden="true")


def _estimate(one: JudgedCase, axis: Scale) -> Markup:
    case, tone = one.case, sentences.mark(one.status).tone
    if case.disqualifying:
        # No interval where none is to be believed: what the processes say, each for itself.
        changes = [process.change_pct for process in case.per_process if _known(process.change_pct) is not None]
        return joined(tag("circle", cx=_share(axis.at(at)), cy="50%", r="2.5", class_="process") for at in changes)
    if case.change_pct is None or _known(case.change_pct) is None:
        return Markup("")
    drawn, x = Markup(""), _share(axis.at(case.change_pct))
    if case.interval_pct is not None:
        low, high = (_share(axis.at(bound)) for bound in case.interval_pct)
        drawn += tag("line", x1=low, x2=high, y1="50%", y2="50%", class_=f"whole {tone}")
        drawn += joined(
            tag("use", href=f"#beyond-{side}", x=_share(axis.at(bound)), y="50%", class_=tone)
            for side, bound in zip(("low", "high"), case.interval_pct, strict=True)
            if not axis.holds(bound)
        )
    beyond = "beyond-low" if case.change_pct < axis.low else "beyond-high"
    mark = f"mark-{tone}" if axis.holds(case.change_pct) else beyond
    return drawn + tag("use", href=f"#{mark}", x=x, y="50%", class_=tone)


def picture(cases: Sequence[JudgedCase], axis: Scale) -> Markup:
    """Every case as one line, all of them on one screen: the shape of many changes at a glance."""
    drawn, step = [], PICTURE_HEIGHT / len(cases)
    for index, one in enumerate(cases):
        case, tone, y = one.case, sentences.mark(one.status).tone, step * (index + 0.5)
        if case.change_pct is None or case.disqualifying:
            continue
        x = axis.at(case.change_pct)
        low, high = (_share(axis.at(bound)) for bound in case.interval_pct or (case.change_pct, case.change_pct))
        drawn.append(tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"whole {tone}"))
        drawn.append(tag("rect", x=_share(x - 0.25), y=y - 1, width="0.5%", height="2", class_=f"point {tone}"))
    changes = [one.case.change_pct for one in cases if one.case.change_pct is not None]
    least, most = (formatting.percent(end(changes, default=0.0), sign=True) for end in (min, max))
    told = f"The changes of {len(cases)} cases on one axis, in the order of the list below: from {least} to {most}."
    band = tag("use", href="#ground")
    return tag("svg", band, *drawn, class_="picture", height=PICTURE_HEIGHT, role="img", aria_label=told)


# The processes of one case --------------------------------------------------------------------------------------------


def processes(case: CaseVerdict, gates: Gates) -> Markup | None:
    """What each process found on an axis of their own, and all together; None where no process has an estimate."""
    each = [process for process in case.per_process if math.isfinite(process.change_pct)]
    if not each:
        return None
    together = None
    if case.change_pct is not None and case.interval_pct is not None and case.believed:
        together = ProcessChange(case.change_pct, *case.interval_pct)
    rows = [*each, *((together,) if together else ())]
    # All changes, and the intervals as far as they leave room for those.
    core = [*(row.change_pct for row in rows), *(_ends(together) if together else ())]
    room = (max(core) - min(core)) or abs(core[0]) or 1.0
    ends = [min(max(bound, min(core) - room), max(core) + room) for row in rows for bound in _ends(row)]
    axis = Scale.over([*core, *ends], LEFT, RIGHT)
    bottom = TOP + ROW * len(rows) + 6
    drawn = [
        _whisker(f"process {index}" if index <= len(each) else "together", row, TOP + 3 + ROW * (index - 0.5), axis)
        for index, row in enumerate(rows, 1)
    ]
    percents = ", ".join(formatting.percent(process.change_pct, 2, sign=True) for process in each)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    return figure(
        "Each process",
        f"Change of each process: {percents}. {f'Together {change} {interval}. ' if together else ''}"
        f"Within ±{formatting.threshold(gates.margin_pct)} counts as the same; "
        f"above +{formatting.threshold(gates.regression_pct)} blocks.",
        bottom + AXIS,
        _ground(gates, axis, bottom),
        *drawn,
        note="change of time, on an axis of its own",
    )


def _ends(process: ProcessChange) -> tuple[float, float]:
    low, high = (bound if math.isfinite(bound) else process.change_pct for bound in (process.low_pct, process.high_pct))
    return low, high


def _ground(gates: Gates, axis: Scale, bottom: float) -> Markup:
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    drawn = [rect((left, TOP), right - left, bottom - TOP, "band")]
    for edge in (-gates.margin_pct, gates.margin_pct):
        if axis.holds(edge):
            drawn.append(line((axis.at(edge), TOP), (axis.at(edge), bottom), "edge"))
    ticks = axis.ticks(5)
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)) if len(ticks) > 1 else 2
    for value in ticks:
        x, label = axis.at(value), formatting.percent(value, digits, sign=True)
        drawn.append(line((x, TOP), (x, bottom), "zero" if abs(value) < 1e-9 else "grid"))
        drawn.append(text(x, bottom + 15, label, "tick", MIDDLE))
    gate = gates.regression_pct
    if axis.holds(gate):
        x, words = axis.at(gate), f"blocks above +{formatting.threshold(gate)}"
        drawn.append(line((x, TOP), (x, bottom), "gate"))
        drawn.append(text(min(max(x, 110.0), RIGHT - 50), TOP - 5, words, "limit gate", MIDDLE))
    return joined([*drawn, text(WIDTH, bottom + 28, "head against base, + is slower", "title", END)])


def _whisker(label: str, process: ProcessChange, y: float, axis: Scale) -> Markup:
    """An arrow stands where the interval ends beyond the axis."""
    low, high = _ends(process)
    x, whole = axis.at(process.change_pct), " all" if label == "together" else ""
    beyond = [(axis.start, 4.0)] * (low < axis.low) + [(axis.end, -4.0)] * (high > axis.high)
    return joined(
        [
            text(LEFT - 6, y + 4, label, f"name{whole}", END),
            line((axis.at(low), y), (axis.at(high), y), f"whisker{whole}"),
            *(path([(end + inward, y - 3), (end, y), (end + inward, y + 3)], "cut") for end, inward in beyond),
            diamond(x, y) if whole else tag("circle", cx=x, cy=y, r=2.8, class_="process"),
        ]
    )
