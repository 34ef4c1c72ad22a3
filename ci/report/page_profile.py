"""What the profiler saw of one case: its time budget, the roofline, the waits, and the lines that took samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.bench.explain import metrics
from kernelgate.bench.record import MAX_HOT_LINES, HotLine, HotSpots
from kernelgate.ci.document import drawing, formatting, render
from kernelgate.ci.document.drawing import AXIS, WIDTH, Point, Scale
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code
from kernelgate.ci.explain import analyze
from kernelgate.ci.report.why import Both

LEFT, RIGHT = 44.0, WIDTH - 10
TOP, BOTTOM = 16.0, 166.0
TERA = 1e12
MOST_REACHED = 105.0
"""Percent; clocks of profile and roof differ by a little."""


def roofline(profiled: Both) -> Markup | None:
    """Each side's intensity and rate; None where the head's are unknown or zero, which no logarithmic axis has."""
    head = analyze.roofline_of(profiled.head)
    placed = {"base": analyze.roofline_of(profiled.base), "head": head} if profiled.base else {"head": head}
    spots = {
        side: (one.arithmetic_intensity, one.achieved_flops)
        for side, one in placed.items()
        if one.arithmetic_intensity and one.achieved_flops
    }
    peak, bandwidth = head.peak_flops, head.peak_bytes_per_second
    if "head" not in spots or not peak or not bandwidth:
        return None
    ridge = peak / bandwidth
    across = _decades([ridge, *(x for x, _ in spots.values())], LEFT, RIGHT)
    up = _decades([peak, *(y for _, y in spots.values())], BOTTOM, TOP)

    def place(x: float, y: float) -> Point:
        return across.at(math.log10(x)), up.at(math.log10(y))

    places = {side: place(*spot) for side, spot in spots.items()}
    # Where the slope enters the frame, by the left edge or by the bottom.
    low = max(10.0**across.low, 10.0**up.low / bandwidth)
    corners = [(low, low * bandwidth), (ridge, peak), (10.0**across.high, peak)]
    reached = {side: 100 * y / min(peak, x * bandwidth) for side, (x, y) in spots.items()}
    told = ", ".join(
        f"{side} at {x:.3g} FLOP per byte and {y / TERA:.3g} TFLOP/s, {reached[side]:.0f}% of the roof"
        for side, (x, y) in spots.items()
    )
    # Where more was reached than the roof allows, it is not this device's.
    shares = " → ".join(f"{share:.0f}%" for share in reached.values())
    possible = max(reached.values()) <= MOST_REACHED
    return drawing.figure(
        "Roofline",
        f"{told}. The roof is {peak / TERA:.4g} TFLOP/s and {bandwidth / TERA:.3g} TB/s.",
        BOTTOM + AXIS,
        drawing.text(LEFT, TOP - 5, "TFLOP/s"),
        drawing.levels([(up.at(one), f"{10.0**one / TERA:g}") for one in _powers(up)], LEFT, RIGHT),
        drawing.axis_below([(across.at(one), f"{10.0**one:g}") for one in _powers(across)], TOP, BOTTOM,
                   "FLOP for each byte of DRAM traffic"),
        drawing.path([place(*corner) for corner in corners], "roof"),
        drawing.sides(places, LEFT, RIGHT),
        note=f"{shares} of what the device could reach" if possible else "",
    )  # fmt: skip


def _decades(values: Sequence[float], start: float, end: float) -> Scale:
    """Of logarithms, over whole powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(low, max(high, low + 1), start, end)


def _powers(logs: Scale) -> range:
    return range(round(logs.low), round(logs.high) + 1)


# Samples by source line and instruction -------------------------------------------------------------------------------

# How many samples a launch gives depends on how long it ran, so shares of them are compared. A line is the same on
# both sides where file and text are the same, whatever its number: what stands above it may have grown. No line is
# called the cause: a share grows also where others shrink, and warps wait at one line for what another one asked for.
# Where the padding of a tile in shared memory was removed, on an H200, the line that gained most read the thread's
# index: its queue was full of another line's bank conflicts.

MAX_ROWS = 12
"""Lines that are shown: those that moved most, and of the rest the hottest."""
MAX_INSTRUCTIONS = 8
SMALL_PCT = 0.5
"""Of the samples; what has less on both sides is not shown."""
SURE_ERRORS = 3.0
"""Standard errors of a difference of shares; less may be chance."""


@dataclass(frozen=True)
class SampleShare:
    """Of one side's samples, in percent; None where the record lists as many lines as it may hold, and not this one."""

    pct: float | None
    stall: str | None = None
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class MovedLine:
    """One line on both sides; several where a file has the same text more than once."""

    file: str
    text: str | None
    base: SampleShare
    head: SampleShare
    error_pct: float
    """Standard error of the difference of both shares, in points."""

    @property
    def gain_pct(self) -> float:
        """By how many points of the samples the line gained; negative where it lost, 0 where that is not known."""
        return 0.0 if self.base.pct is None or self.head.pct is None else self.head.pct - self.base.pct

    @property
    def is_sure(self) -> bool:
        return abs(self.gain_pct) > SURE_ERRORS * self.error_pct

    @property
    def most_pct(self) -> float:
        return max(self.base.pct or 0.0, self.head.pct or 0.0)


def moved_lines(base: HotSpots, head: HotSpots) -> tuple[MovedLine, ...]:
    """Every line that either side lists: what gained most first, what lost most last."""
    # By a file, and a line's text; its number where it has no text, as in compilers' headers: the same on both sides.
    sides: dict[tuple[str, str | int], tuple[list[HotLine], list[HotLine]]] = defaultdict(lambda: ([], []))
    for side, spots in ((1, head), (0, base)):
        for one in spots.lines:
            sides[one.file, one.line if one.text is None else one.text.strip()][side].append(one)
    found = []
    for before, after in sides.values():
        first, old, new = (*after, *before)[0], _share_of(before, base, len(after)), _share_of(after, head, len(before))
        error_pct = math.hypot(_error(old, base.samples), _error(new, head.samples))
        found.append(MovedLine(first.file, first.text, old, new, error_pct))
    return tuple(sorted(found, key=lambda one: (-one.gain_pct, -(one.head.pct or 0.0), one.file, one.head.lines)))


def _share_of(lines: Sequence[HotLine], spots: HotSpots, most: int) -> SampleShare:
    """`most`: how many lines of this text the other side lists, of which this one may have left some out."""
    if len(lines) < most and len(spots.lines) >= MAX_HOT_LINES:
        return SampleShare(None)
    taken = 100 * sum(one.samples for one in lines) / spots.samples
    return SampleShare(taken, lines[0].stall if lines else None, tuple(sorted(one.line for one in lines)))


def _error(share: SampleShare, samples: int) -> float:
    """Of a share, by the binomial distribution, in points; as if one sample more were there, so that none is sure."""
    part = ((share.pct or 0.0) / 100 * samples + 1) / (samples + 2)
    return 100 * math.sqrt(part * (1 - part) / (samples + 2))


def samples(sides_: Mapping[str, HotSpots | None], command: str) -> Markup:
    """What both sides' samples show; of the head alone where the base has none; else the command that takes them."""
    known = {side: spots for side in ("base", "head") if (spots := sides_.get(side)) is not None}
    base, head = known.get("base"), known.get("head")
    every = moved_lines(base or head, head) if head else ()
    moved = [one for one in every if one.most_pct >= SMALL_PCT]
    most = sorted(moved, key=lambda one: (-abs(one.gain_pct), -one.most_pct))[:MAX_ROWS]
    shown = render.html("kernelgate.ci.report").get_template("samples.html.jinja")
    return Markup(  # noqa: S704 (escaped by the template)
        shown.render(
            lines=[one for one in moved if one in most],
            both=base is not None,
            counts=", ".join(f"{side} {spots.samples:,}" for side, spots in known.items()),
            instructions={side: spots.instructions[:MAX_INSTRUCTIONS] for side, spots in known.items()},
            samples={side: spots.samples for side, spots in known.items()},
            missing=[side for side, spots in sides_.items() if spots is None],
            command=(Code(command, most=len(command)),),
            code=Code,
            share=_share,
            whole=SampleShare,
            change=_change,
            lines_of=_lines_of,
        )
    )


def _lines_of(one: MovedLine, both: bool) -> str:
    """ "12", or "12 → 14" where it is another one on the base."""
    before, after = (", ".join(map(str, numbers)) for numbers in (one.base.lines, one.head.lines))
    return f"{before} → {after}" if both and before and after and before != after else after or before


def _change(one: MovedLine) -> str:
    if one.base.pct is None or one.head.pct is None:
        return formatting.MISSING
    if not one.is_sure:
        return "about the same"
    return f"{'gained' if one.gain_pct > 0 else 'lost'} {abs(one.gain_pct):.1f} points"


def _share(share: SampleShare, side: str) -> tuple[Markup, str, str]:
    """As a bar, in words, and with what most samples waited for, in the words of the profile where it knows them."""
    shown = formatting.MISSING if share.pct is None else formatting.percent(share.pct, 1)
    filled = drawing.tag("rect", width=share.pct or 0.0, height=8.0, class_=side)
    bar = drawing.tag(
        "svg", filled, class_="share", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true"
    )
    stall = share.stall or ""
    known = metrics.STALLS.get(stall)
    words = known.label if known else stall.replace("_", " ")
    return bar, shown, visible(words.partition(" (")[0], 40)
