"""All cases on one axis of percent: a lane for each, the margin and the gates in every one, and all in one picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import JudgedCase
from kernelgate.ci.report.page.drawing import tag
from kernelgate.ci.report.page.scale import Scale

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


def limits(gates: Gates, axis: Scale) -> list[tuple[float, str, str]]:
    """The lines that mean something: where, which kind, and its words."""
    found = [
        (-gates.margin_pct, "edge", ""),
        (0.0, "zero", ""),
        (gates.margin_pct, "edge", ""),
        (gates.regression_pct, "gate", f"blocks above +{formatting.threshold(gates.regression_pct)}"),
        (-gates.improvement_pct, "gain", f"improved below −{formatting.threshold(gates.improvement_pct)}"),
    ]
    return [(axis.at(value), kind, words) for value, kind, words in found if axis.holds(value)]


def definitions(gates: Gates, axis: Scale) -> Markup:
    """What every lane refers to: its ground with margin and gates, and the markers."""
    ground = [
        tag("rect", x=_share(axis.at(-gates.margin_pct)), width=_share(_margin(gates, axis)), height="100%",
            class_="band"),
        *(_upright(x, kind) for x, kind, _ in limits(gates, axis)),
    ]  # fmt: skip
    markers = [tag("path", id=f"mark-{tone}", d=d) for tone, d in MARKERS.items()]
    ends = [
        tag("path", id="beyond-low", d="M6-5L0 0L6 5", class_="beyond"),
        tag("path", id="beyond-high", d="M-6-5L0 0L-6 5", class_="beyond"),
    ]
    inside = tag("defs", tag("g", *ground, id="ground"), *markers, *ends)
    return tag("svg", inside, class_="definitions", width="0", height="0", aria_hidden="true")


def axis_above(gates: Gates, axis: Scale) -> Markup:
    """The numbers over the lanes."""
    ticks = axis.ticks(MAX_TICKS)
    drawn = [
        tag("text", Markup.escape(_percent(value)), x=_share(axis.at(value)), y="26", class_="tick") for value in ticks
    ]
    words = [
        tag("text", Markup.escape(words), x=_share(x), y="11", class_=f"limit {kind}", text_anchor=_anchor(x))
        for x, kind, words in limits(gates, axis)
        if words
    ]
    # Two words meet where the axis is short: the one that blocks stays.
    return tag("svg", *words[:1], *drawn, class_="axis", height="32", aria_hidden="true")


def lane(one: JudgedCase, axis: Scale) -> Markup:
    """One case: its interval and its change, by the shape of what it means."""
    return tag("svg", tag("use", href="#ground"), _estimate(one, axis, "50%"), aria_hidden="true")


def picture(cases: Sequence[JudgedCase], axis: Scale) -> Markup:
    """Every case as one line, all of them on one screen: the shape of many changes at a glance."""
    step = PICTURE_HEIGHT / len(cases)
    rows = [_row(one, axis, step * (index + 0.5)) for index, one in enumerate(cases)]
    changes = [one.case.change_pct for one in cases if one.case.change_pct is not None]
    least, most = (formatting.percent(end(changes, default=0.0), sign=True) for end in (min, max))
    described = (
        f"The changes of {len(cases)} cases on one axis, in the order of the list below: from {least} to {most}."
    )
    band = tag("use", href="#ground")
    return tag("svg", band, *rows, class_="picture", height=PICTURE_HEIGHT, role="img", aria_label=described)


def _row(one: JudgedCase, axis: Scale, y: float) -> Markup:
    tone, case = sentences.mark(one.status).tone, one.case
    if case.change_pct is None or case.disqualifying:
        return Markup("")
    low, high = case.interval_pct or (case.change_pct, case.change_pct)
    x = axis.at(case.change_pct)
    whole = tag("line", x1=_share(axis.at(low)), x2=_share(axis.at(high)), y1=y, y2=y, class_=f"whole {tone}")
    return whole + tag("rect", x=_share(x - 0.25), y=y - 1, width="0.5%", height="2", class_=f"point {tone}")


def _estimate(one: JudgedCase, axis: Scale, y: str) -> Markup:
    case, tone = one.case, sentences.mark(one.status).tone
    if case.disqualifying:
        # No interval where none is to be believed: what the processes say, each for itself.
        found = [one.change_pct for one in case.per_process if _known(one.change_pct) is not None]
        return Markup("").join(tag("circle", cx=_share(axis.at(at)), cy=y, r="2.5", class_="process") for at in found)
    if case.change_pct is None or _known(case.change_pct) is None:
        return Markup("")
    drawn = Markup("")
    if case.interval_pct is not None:
        low, high = (_share(axis.at(bound)) for bound in case.interval_pct)
        drawn += tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"whole {tone}")
        drawn += Markup("").join(
            tag("use", href=f"#beyond-{side}", x=_share(axis.at(bound)), y=y, class_=tone)
            for side, bound in zip(("low", "high"), case.interval_pct, strict=True)
            if not axis.holds(bound)
        )
    if axis.holds(case.change_pct):
        return drawn + tag("use", href=f"#mark-{tone}", x=_share(axis.at(case.change_pct)), y=y, class_=tone)
    side = "low" if case.change_pct < axis.low else "high"
    return drawn + tag("use", href=f"#beyond-{side}", x=_share(axis.at(case.change_pct)), y=y, class_=tone)


def _margin(gates: Gates, axis: Scale) -> float:
    return axis.at(gates.margin_pct) - axis.at(-gates.margin_pct)


def _upright(x: float, kind: str) -> Markup:
    return tag("line", x1=_share(x), x2=_share(x), y1="0", y2="100%", class_=kind)


def _share(value: float) -> str:
    return f"{value:.2f}%"


def _anchor(x: float) -> str:
    return "start" if x < 30 else "end" if x > 70 else "middle"


def _percent(value: float) -> str:
    return f"{value:+,g}".replace("-", "−") + "%" if abs(value) > 1e-12 else "0%"
