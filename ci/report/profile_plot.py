"""Where things stand in the profiler's pictures: the roofline and the stall bars, in units of an SVG view box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kernelgate.bench.explain import metrics
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Bar, Code, Line, Point, ProfilePicture, RooflinePicture, StallPicture, Tick
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.roofline import Roofline
from kernelgate.ci.report.why import Both, both_sides

WIDTH = 360.0
LEFT, RIGHT = 44.0, 340.0
TOP, BOTTOM = 12.0, 150.0
BAR_LEFT, BAR_RIGHT = 196.0, 320.0
BAR_ROW = 26.0
MAX_BARS = 5
TERA = 1e12


def pictures(record: RunRecord, label: str = "") -> tuple[ProfilePicture, ...]:
    """One for each profiled case that has something to draw. `label`: of the GPU, where there are several."""
    names = formatting.names(record.cases, record.cards)
    found = both_sides(record)
    ids = formatting.ids((one.key for one in found), record.cards)
    where: Line = (Code(label), ": ") if label else ()
    drawn = (ProfilePicture((*where, names.get(one.key, ids[one.key])), _roofline(one), _stalls(one)) for one in found)
    return tuple(one for one in drawn if one.roofline or one.stalls)


def _roofline(found: Both) -> RooflinePicture | None:
    placed = {"base": found.base.roofline if found.base else None, "head": found.head.roofline}
    spots = {side: spot for side, one in placed.items() if one is not None and (spot := _spot(one)) is not None}
    peak, bandwidth = found.head.roofline.peak_flops, found.head.roofline.peak_bytes_per_second
    if "head" not in spots or not peak or not bandwidth:
        return None
    ridge = peak / bandwidth
    x0, x1 = _decades([ridge, *(x for x, _ in spots.values())])
    y0, y1 = _decades([peak, *(y for _, y in spots.values())])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x0) / (x1 - x0)
        up = (math.log10(y) - y0) / (y1 - y0)
        return round(LEFT + across * (RIGHT - LEFT), 1), round(BOTTOM - up * (BOTTOM - TOP), 1)

    # Where the slope enters the frame, by the left edge or by the bottom.
    low = max(10.0**x0, 10.0**y0 / bandwidth)
    corners = [(low, low * bandwidth), (ridge, peak), (10.0**x1, peak)]
    path = " ".join(f"{'M' if i == 0 else 'L'}{x} {y}" for i, (x, y) in enumerate(place(*corner) for corner in corners))
    points = tuple(Point(side, *place(*spot), side) for side, spot in spots.items())
    reached = {side: 100 * y / min(peak, x * bandwidth) for side, (x, y) in spots.items()}
    text = ", ".join(
        f"{side} at {x:.3g} FLOP per byte and {y / TERA:.3g} TFLOP/s, {reached[side]:.0f}% of the roof"
        for side, (x, y) in spots.items()
    )
    peaks = f"{peak / TERA:.4g} TFLOP/s and {bandwidth / TERA:.3g} TB/s"
    return RooflinePicture(
        description=f"Roofline: {text}. The roof is {peaks}.",
        roof=path,
        points=points,
        ticks=tuple(Tick(place(10.0**e, 10.0**y0)[0], f"{10.0**e:g}") for e in range(x0, x1 + 1)),
        levels=tuple(Tick(place(10.0**x0, 10.0**e)[1], f"{10.0**e / TERA:g}") for e in range(y0, y1 + 1)),
    )


def _spot(one: Roofline) -> tuple[float, float] | None:
    """Intensity and rate; None where either is unknown or zero, which a logarithmic axis has no place for."""
    if not one.arithmetic_intensity or not one.achieved_flops:
        return None
    return one.arithmetic_intensity, one.achieved_flops


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Whole powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _stalls(found: Both) -> StallPicture | None:
    head = dict(found.head.kernel.figures)
    base = dict(found.base.kernel.figures) if found.base else {}
    waiting = {key: max(head.get(key, 0.0), base.get(key, 0.0)) for key in (*head, *base) if metrics.is_stall(key)}
    reasons = [key for key, value in analyze.top_stalls(waiting, MAX_BARS) if value > 0]
    if not reasons:
        return None
    scale = (BAR_RIGHT - BAR_LEFT) / max(waiting[key] for key in reasons)
    bars = tuple(_bar(key, row, base if found.base else None, head, scale) for row, key in enumerate(reasons))
    text = "; ".join(f"{bar.label}: {_pair(bar)}" for bar in bars)
    return StallPicture(f"Cycles that a warp waits for each instruction. {text}.", BAR_ROW * len(bars) + 4, bars)


def _bar(key: str, row: int, base: Mapping[str, float] | None, head: Mapping[str, float], scale: float) -> Bar:
    before = None if base is None else base.get(key, 0.0)
    after = head.get(key, 0.0)
    return Bar(
        label=metrics.label(key).partition(" (")[0],
        y=BAR_ROW * row + 4,
        base=None if before is None else round(before * scale, 1),
        head=round(after * scale, 1),
        base_label="" if before is None else f"{before:.1f}",
        head_label=f"{after:.1f}",
    )


def _pair(bar: Bar) -> str:
    return f"{bar.base_label} → {bar.head_label}" if bar.base_label else bar.head_label
