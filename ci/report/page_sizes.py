"""Drawings of a whole record: time and speed-up over a ladder of sizes, and the errors of the fuzz list."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from kernelgate.bench.record import Check, FuzzResult
from kernelgate.ci.document import formatting
from kernelgate.ci.document.drawing import (
    AXIS,
    END,
    MIDDLE,
    WIDTH,
    Logarithmic,
    Point,
    Scale,
    axis_below,
    dot,
    figure,
    joined,
    levels,
    line,
    path,
    tag,
    text,
)
from kernelgate.ci.document.escape import visible
from kernelgate.ci.explain.next_step import Ladder, SizedCase

# A ladder of sizes ----------------------------------------------------------------------------------------------------

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

Sized = Callable[[SizedCase], float | None]
"""The height of a curve at one size, in drawing units; None where that was not measured."""


def ladder(found: Ladder, reference: str, title: str) -> tuple[Markup, Markup]:
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
    said = []
    for rung in found.rungs:
        times = formatting.durations(rung.base_us, rung.head_us, rung.reference_us)
        named = zip(("base", "head", reference), times, strict=True)
        spoken = ", ".join(f"{name} {time}" for name, time in named if time != formatting.MISSING)
        said.append(f"{found.axis}={rung.size}: {spoken}")
    ticks = []
    for us in up.ticks(LEVELS):
        number, _, unit = formatting.durations(us)[0].partition(" ")
        ticks.append((up.at(us), f"{float(number.replace(',', '')):g} {unit}"))
    described = f"Time of one call by {found.axis}. {'; '.join(said)}."
    content = _content(found, reference, curves, ticks)
    return figure(f"{title}: time of one call", described, BOTTOM + AXIS, *content, note="both axes logarithmic")


def _speedups(found: Ladder, reference: str, title: str) -> Markup:
    ratios = [rung.reference_us / us for rung in found.rungs for us in (rung.base_us, rung.head_us) if us is not None]
    up = Scale(0.0, 1.08 * max(1.0, *ratios), BOTTOM, TOP)
    curves: dict[str, Sized] = {
        "reference": lambda rung: up.at(1.0),  # noqa: ARG005 (as fast as itself)
        "base": lambda rung: None if rung.base_us is None else up.at(rung.reference_us / rung.base_us),
        "head": lambda rung: up.at(rung.speedup),
    }
    said = "; ".join(f"{found.axis}={rung.size}: {rung.speedup:.2f}×" for rung in found.rungs)
    return figure(
        f"{title}: × {visible(reference, MAX_NAME)}",
        f"How many times as fast as {reference} the head is, by {found.axis}. {said}.",
        BOTTOM + AXIS,
        *_content(found, reference, curves, [(up.at(value), f"{value:g}×") for value in up.ticks(LEVELS)]),
        note="its time over the kernel's: higher is faster",
    )


def _content(
    found: Ladder, reference: str, curves: dict[str, Sized], ticks: Iterable[tuple[float, str]]
) -> Sequence[Markup]:
    """Base is dashed with open squares, head whole with dots, the reference dotted and bare."""
    axis = Logarithmic.over([rung.size for rung in found.rungs], LEFT, RIGHT)
    # The sizes themselves are what the axis names, as far as there is room.
    sizes, last = [], -math.inf
    for rung in found.rungs:
        if (x := axis.at(rung.size)) - last >= APART:
            sizes.append((x, f"{rung.size:,}"))
            last = x
    drawn = Markup("")
    for side, height in curves.items():
        points: list[Point] = [(axis.at(rung.size), y) for rung in found.rungs if (y := height(rung)) is not None]
        if points:
            drawn += path(points, f"curve {side}")
        if side != "reference" and len(points) <= MAX_DOTS:
            drawn += joined(dot(x, y, side, 2.8) for x, y in points)
    # Above the frame: the curves lie too near each other to be named where they are.
    key, x = Markup(""), LEFT
    for side in ("base", "head") if any(rung.base_us is not None for rung in found.rungs) else ("head",):
        key += path([(x, 10.0), (x + 20, 10.0)], f"curve {side}") + dot(x + 10, 10.0, side, 2.8)
        key += text(x + 25, 14, side, f"side {side}")
        x += 66.0
    key += path([(x, 10.0), (x + 20, 10.0)], "curve reference") + text(x + 25, 14, visible(reference, MAX_NAME))
    across = axis_below(sizes, TOP, BOTTOM, f"{visible(found.axis, MAX_NAME)}, size of the case")
    return levels(ticks, LEFT, RIGHT), across, drawn, key


# Errors of the fuzz list ----------------------------------------------------------------------------------------------

ERRORS_LEFT, ERRORS_RIGHT = 66.0, WIDTH - 22
ERRORS_TOP, ROW = 18.0, 26.0
LIMIT = 1.0
MOST = 1.5
"""Larger errors stand at the end of the axis."""
MAX_ROWS = 8
LANES = 5
"""Heights at which the dots of a row stand, so that they hide each other less."""


def errors(check: Check, title: str) -> Markup | None:
    """How far each output of one card's fuzz list lay from the oracle, as a share of what its tolerance allows, a row
    for each dtype; None where nothing was compared."""
    if not check.results:
        return None
    rows: dict[str, list[FuzzResult]] = {}
    for one in check.results:
        rows.setdefault(formatting.label({"dtype": str(one.axes.get("dtype", ""))}) or "all", []).append(one)
    if len(rows) > MAX_ROWS:
        rows = {"all": list(check.results)}
    worst = max(_ratio(one) for one in check.results)
    axis = Scale(0.0, max(LIMIT * 1.05, min(worst, MOST)), ERRORS_LEFT, ERRORS_RIGHT)
    bottom, limit = ERRORS_TOP + ROW * len(rows), axis.at(LIMIT)
    drawn = [_row(name, rows[name], axis, ERRORS_TOP + ROW * index) for index, name in enumerate(sorted(rows))]
    ticks = [(axis.at(value), f"{value:.0%}") for value in (0.0, 0.25, 0.5, 0.75, 1.0)]
    failed = [one for one in check.results if not one.passed]
    words = f"{formatting.counted(len(check.results), 'configuration')}, {len(failed)} failed"
    far = any(one.error_ratio is None or one.error_ratio > MOST for one in failed)
    return figure(
        title,
        f"{words}. The largest error that is a number is {worst:.0%} of its limit.",
        bottom + AXIS,
        axis_below(ticks, ERRORS_TOP, bottom, "error, as a share of what is allowed"),
        line((limit, ERRORS_TOP - 4), (limit, bottom), "gate"),
        text(limit, ERRORS_TOP - 7, "limit", "limit gate", MIDDLE),
        *drawn,
        note=f"{words}{f'; at the right edge: over {MOST:.0%}, or no number at all' if far else ''}",
    )


def _ratio(one: FuzzResult) -> float:
    return one.error_ratio if one.error_ratio is not None else 0.0


def _row(name: str, results: Sequence[FuzzResult], axis: Scale, top: float) -> Markup:
    middle = top + ROW / 2
    drawn = text(ERRORS_LEFT - 6, middle + 4, name, "name", END)
    drawn += line((ERRORS_LEFT, middle), (ERRORS_RIGHT, middle), "grid")
    for index, one in enumerate(sorted(results, key=_ratio)):
        y = middle + 3 * (index % LANES - LANES // 2)
        if one.passed and one.error_ratio is not None:
            drawn += tag("circle", cx=axis.at(one.error_ratio), cy=y, r=2.2, class_="passed")
        elif not one.passed:
            x = axis.at(MOST if one.error_ratio is None else one.error_ratio)
            drawn += path([(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)], "failed")
            drawn += path([(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)], "failed")
    return drawn
