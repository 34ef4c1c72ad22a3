"""What the profiler saw of one case: where both sides stand on the roofline, and which waits grew."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.bench.explain import metrics
from kernelgate.ci.explain import roofline
from kernelgate.ci.explain.roofline import Roofline
from kernelgate.ci.report.page.drawing import AXIS, END, WIDTH, Point, axis_below, figure, line, path, rect, sides, text
from kernelgate.ci.report.page.scale import Decades
from kernelgate.ci.report.why import Both

LEFT, RIGHT = 44.0, WIDTH - 10
TOP, BOTTOM = 16.0, 166.0
MAX_BARS = 6
BAR_LEFT, BAR_RIGHT = 150.0, 282.0
BAR_ROW = 22.0
TERA = 1e12
MOST_REACHED = 105.0
"""Percent; clocks of profile and roof differ by a little."""
SHORT_ARROW = 12.0
"""Below it the two dots touch, and an arrow would hide them."""
SMALL_WAIT = 0.005
"""Cycles per instruction; less is not shown as a difference."""


def drawings(found: Both) -> list[Markup]:
    """The roofline and the waits, as far as the profile has them."""
    return [drawn for drawn in (_roofline(found), _waits(found)) if drawn is not None]


# ---- the roofline ----------------------------------------------------------------------------------------------------


def _roofline(found: Both) -> Markup | None:
    head = roofline.place(found.head)
    placed = {"base": roofline.place(found.base) if found.base else None, "head": head}
    spots = {side: spot for side, one in placed.items() if one is not None and (spot := _spot(one)) is not None}
    peak, bandwidth = head.peak_flops, head.peak_bytes_per_second
    if "head" not in spots or not peak or not bandwidth:
        return None
    ridge = peak / bandwidth
    across = Decades.over([ridge, *(x for x, _ in spots.values())], LEFT, RIGHT)
    up = Decades.over([peak, *(y for _, y in spots.values())], BOTTOM, TOP)
    places = {side: (across.at(x), up.at(y)) for side, (x, y) in spots.items()}
    # Where the slope enters the frame, by the left edge or by the bottom.
    low = max(10.0**across.low, 10.0**up.low / bandwidth)
    corners = [(low, low * bandwidth), (ridge, peak), (10.0**across.high, peak)]
    levels = Markup("").join(
        line((LEFT, up.at(value)), (RIGHT, up.at(value)), "grid")
        + text(LEFT - 6, up.at(value) + 4, f"{value / TERA:g}", "name", END)
        for value in up.ticks()
    )
    reached = {side: 100 * y / min(peak, x * bandwidth) for side, (x, y) in spots.items()}
    told = ", ".join(
        f"{side} at {x:.3g} FLOP per byte and {y / TERA:.3g} TFLOP/s, {reached[side]:.0f}% of the roof"
        for side, (x, y) in spots.items()
    )
    return figure(
        "Roofline",
        f"{told}. The roof is {peak / TERA:.4g} TFLOP/s and {bandwidth / TERA:.3g} TB/s.",
        BOTTOM + AXIS,
        text(LEFT, TOP - 5, "TFLOP/s"),
        levels,
        axis_below(
            [(across.at(value), f"{value:g}") for value in across.ticks()],
            TOP,
            BOTTOM,
            "FLOP for each byte of DRAM traffic",
        ),
        path([(across.at(x), up.at(y)) for x, y in corners], "roof"),
        _arrow(places),
        sides(places, LEFT, RIGHT),
        note=_of_the_roof(list(reached.values())),
    )


def _of_the_roof(reached: Sequence[float]) -> str:
    """Nothing where more was reached than the roof allows: then it is not this device's."""
    if max(reached) > MOST_REACHED:
        return ""
    return " → ".join(f"{share:.0f}%" for share in reached) + " of what the device could reach"


def _spot(one: Roofline) -> Point | None:
    """Intensity and rate; None where either is unknown or zero, which a logarithmic axis has no place for."""
    if not one.arithmetic_intensity or not one.achieved_flops:
        return None
    return one.arithmetic_intensity, one.achieved_flops


def _arrow(places: dict[str, Point]) -> Markup:
    """From base to head, short of both dots."""
    if len(places) < 2 or math.dist(*places.values()) < SHORT_ARROW:
        return Markup("")
    (x0, y0), (x1, y1) = places["base"], places["head"]
    long = math.dist((x0, y0), (x1, y1))
    dx, dy = (x1 - x0) / long, (y1 - y0) / long
    tip = (x1 - 5 * dx, y1 - 5 * dy)
    wings = [(tip[0] - 5 * dx + turn * 3 * dy, tip[1] - 5 * dy - turn * 3 * dx) for turn in (1, -1)]
    return line((x0 + 5 * dx, y0 + 5 * dy), tip, "arrow") + path([wings[0], tip, wings[1]], "arrow")


# ---- the waits -------------------------------------------------------------------------------------------------------


def _waits(found: Both) -> Markup | None:
    """The change of each wait, in cycles per instruction; where there is no base, the waits themselves."""
    head = {key: value for key, value in found.head.figures.items() if _is_wait(key)}
    base = {key: value for key, value in found.base.figures.items() if _is_wait(key)} if found.base else {}
    change = {key: head.get(key, 0.0) - base.get(key, 0.0) for key in {**head, **base}}
    shown = sorted((key for key in change if abs(change[key]) >= SMALL_WAIT), key=lambda key: (-abs(change[key]), key))
    if not shown:
        return None
    shown = shown[:MAX_BARS]
    largest = max(abs(change[key]) for key in shown)
    middle = (BAR_LEFT + BAR_RIGHT) / 2 if any(change[key] < 0 for key in shown) else BAR_LEFT
    scale = (BAR_RIGHT - middle) / largest
    bottom = BAR_ROW * len(shown) + 8
    rows = Markup("").join(
        _bar(key, change[key] * scale, middle, 4 + BAR_ROW * row, _sides(key, base, head, bool(found.base)))
        for row, key in enumerate(shown)
    )
    words = "; ".join(f"{metrics.label(key)} {_sides(key, base, head, bool(found.base))}" for key in shown)
    return figure(
        "Waits: head against base" if found.base else "Waits",
        f"Cycles that a warp waits for each instruction: {words}.",
        bottom,
        rows,
        line((middle, 2), (middle, bottom - 4), "zero"),
        note="cycles for each instruction; to the right is longer",
    )


def _is_wait(key: str) -> bool:
    return metrics.is_stall(key) and key not in ("stall_selected", "stall_not_selected")


def _bar(key: str, width: float, middle: float, y: float, sides: str) -> Markup:
    label = metrics.label(key).partition(" (")[0]
    kind = "grew" if width > 0 else "shrank"
    end = middle + width
    return (
        text(6, y + 13, label)
        + rect((min(middle, end), y + 2), abs(width), BAR_ROW - 8, kind)
        + text(WIDTH - 2, y + 13, sides, "value", END)
    )


def _sides(key: str, base: dict[str, float], head: dict[str, float], both: bool) -> str:
    after = f"{head.get(key, 0.0):.2f}"
    return f"{base.get(key, 0.0):.2f} → {after}" if both else after
