"""A ladder of sizes: the time of a call over its size, and how many times as fast as the reference that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.explain.ladder import Ladder, Rung
from kernelgate.ci.report.page.drawing import AXIS, END, WIDTH, Point, axis_below, dot, figure, line, path, text
from kernelgate.ci.report.page.scale import Logarithmic, Scale

LEFT, RIGHT = 52.0, WIDTH - 14
TOP, FRAME = 26.0, 150.0
BOTTOM = TOP + FRAME
LEVELS = 5
APART = 34.0
"""Between two numbers of the axis of sizes."""
MAX_DOTS = 24
"""Of a curve; more would hide it."""
MAX_NAME = 20
"""Characters of the reference's name beside its line."""

Sized = Callable[[Rung], float | None]
"""The height of a curve at one size, in drawing units; None where that was not measured."""


def drawings(found: Ladder, reference: str, title: str) -> tuple[Markup, Markup]:
    """Time over size, both axes logarithmic, and times as fast as the reference over size; `title`: of the ladder."""
    return _times(found, reference, title), _speedups(found, reference, title)


def _times(found: Ladder, reference: str, title: str) -> Markup:
    every = [us for rung in found.rungs for us in (rung.base_us, rung.head_us, rung.reference_us) if us is not None]
    up = Logarithmic.over(every, BOTTOM, TOP)
    curves: dict[str, Sized] = {
        "reference": lambda rung: up.at(rung.reference_us),
        "base": lambda rung: None if rung.base_us is None else up.at(rung.base_us),
        "head": lambda rung: up.at(rung.head_us),
    }
    levels = [(up.at(us), _short(us)) for us in up.ticks(LEVELS)]
    said = "; ".join(f"{found.axis}={rung.size}: {_spoken(rung, reference)}" for rung in found.rungs)
    content = (_levels(levels), _across(found), _drawn(found, curves), _key(found, reference))
    return figure(
        f"{title}: time of one call", f"Time of one call by {found.axis}. {said}.", BOTTOM + AXIS, *content,
        note="both axes logarithmic",
    )  # fmt: skip


def _speedups(found: Ladder, reference: str, title: str) -> Markup:
    ratios = [rung.reference_us / us for rung in found.rungs for us in (rung.base_us, rung.head_us) if us is not None]
    up = Scale(0.0, 1.08 * max(1.0, *ratios), BOTTOM, TOP)
    curves: dict[str, Sized] = {
        "reference": lambda rung: up.at(1.0),  # noqa: ARG005 (as fast as itself)
        "base": lambda rung: None if rung.base_us is None else up.at(rung.reference_us / rung.base_us),
        "head": lambda rung: up.at(rung.speedup),
    }
    levels = [(up.at(value), f"{value:g}×") for value in up.ticks(LEVELS)]
    said = "; ".join(f"{found.axis}={rung.size}: {rung.speedup:.2f}×" for rung in found.rungs)
    content = (_levels(levels), _across(found), _drawn(found, curves), _key(found, reference))
    return figure(
        f"{title}: × {visible(reference, MAX_NAME)}",
        f"How many times as fast as {reference} the head is, by {found.axis}. {said}.", BOTTOM + AXIS, *content,
        note="its time over the kernel's: higher is faster",
    )  # fmt: skip


def _spoken(rung: Rung, reference: str) -> str:
    times = formatting.durations(rung.base_us, rung.head_us, rung.reference_us)
    named = zip(("base", "head", reference), times, strict=True)
    return ", ".join(f"{name} {time}" for name, time in named if time != formatting.MISSING)


def _short(us: float) -> str:
    """A round time in its own unit, such as "20 µs"."""
    number, _, unit = formatting.durations(us)[0].partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


def _sizes(found: Ladder) -> Logarithmic:
    return Logarithmic.over([rung.size for rung in found.rungs], LEFT, RIGHT)


def _levels(levels: Sequence[tuple[float, str]]) -> Markup:
    return Markup("").join(
        line((LEFT, y), (RIGHT, y), "grid") + text(LEFT - 6, y + 4, words, "name", END) for y, words in levels
    )


def _across(found: Ladder) -> Markup:
    """The sizes themselves are what the axis names, as far as there is room."""
    axis, ticks, last = _sizes(found), [], -math.inf
    for rung in found.rungs:
        x = axis.at(rung.size)
        if x - last >= APART:
            ticks.append((x, f"{rung.size:,}"))
            last = x
    return axis_below(ticks, TOP, BOTTOM, f"{visible(found.axis, MAX_NAME)}, size of the case")


def _drawn(found: Ladder, curves: dict[str, Sized]) -> Markup:
    """Base is dashed with open squares, head whole with dots, the reference dotted and bare."""
    axis, drawn = _sizes(found), Markup("")
    for side, height in curves.items():
        points: list[Point] = [(axis.at(rung.size), y) for rung in found.rungs if (y := height(rung)) is not None]
        if points:
            drawn += path(points, f"curve {side}")
        if side != "reference" and len(points) <= MAX_DOTS:
            drawn += Markup("").join(dot(x, y, side, 2.8) for x, y in points)
    return drawn


def _key(found: Ladder, reference: str) -> Markup:
    """Above the frame: the curves lie too near each other to be named where they are."""
    drawn, x = Markup(""), LEFT
    for side in ("base", "head") if any(rung.base_us is not None for rung in found.rungs) else ("head",):
        drawn += path([(x, 10.0), (x + 20, 10.0)], f"curve {side}") + dot(x + 10, 10.0, side, 2.8)
        drawn += text(x + 25, 14, side, f"side {side}")
        x += 66.0
    return drawn + path([(x, 10.0), (x + 20, 10.0)], "curve reference") + text(x + 25, 14, visible(reference, MAX_NAME))
