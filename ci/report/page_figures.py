"""The drawings of one case, by its times and its profiles; and the source lines that took samples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kernelgate.bench.explain import metrics
from kernelgate.bench.record import MAX_HOT_LINES, HotLine, HotSpots, Side, TimedCase
from kernelgate.ci.document import drawing, formatting, render
from kernelgate.ci.document.drawing import AXIS, END, MIDDLE, WIDTH, Point, Scale
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code
from kernelgate.ci.explain import analyze
from kernelgate.ci.judge.case import CaseVerdict, ProcessChange
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.why import Both

# The processes of one case --------------------------------------------------------------------------------------------

NAMES = 66.0
"""Room to the left of a frame for the names of its rows."""
LEFT, RIGHT, TOP = 44.0, WIDTH - 8, 16.0
ROW = 16.0


def processes(case: CaseVerdict, gates: Gates) -> Markup | None:
    """What each process found on an axis of their own, and all together; None where no process has an estimate."""
    each = case.per_process
    if not each:
        return None
    rows = [(f"process {number}", one) for number, one in enumerate(each, 1)]
    if case.change_pct is not None and case.interval_pct is not None and case.believed:
        rows.append(("together", ProcessChange(case.change_pct, *case.interval_pct)))
    axis = Scale.over([bound for _, row in rows for bound in (row.low_pct, row.high_pct)], NAMES, RIGHT)
    bottom = TOP + ROW * len(rows) + 6
    drawn = [_whisker(label, row, TOP + 3 + ROW * (at + 0.5), axis) for at, (label, row) in enumerate(rows)]
    percents = ", ".join(formatting.percent(process.change_pct, 2, sign=True) for process in each)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    return drawing.figure(
        "Each process",
        f"Change of each process: {percents}. {f'Together {change} {interval}. ' if len(rows) > len(each) else ''}"
        f"Within ±{formatting.threshold(gates.margin_pct)} counts as the same; "
        f"above +{formatting.threshold(gates.regression_pct)} blocks.",
        bottom + AXIS,
        _ground(gates, axis, bottom),
        *drawn,
        note="change of time, on an axis of its own",
    )


def _ground(gates: Gates, axis: Scale, bottom: float) -> Markup:
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    drawn = [drawing.rect((left, TOP), right - left, bottom - TOP, "band")]
    for edge in (-gates.margin_pct, gates.margin_pct):
        if axis.holds(edge):
            drawn.append(drawing.line((axis.at(edge), TOP), (axis.at(edge), bottom), "edge"))
    for value in axis.ticks(5):
        x = axis.at(value)
        drawn.append(drawing.line((x, TOP), (x, bottom), "zero" if abs(value) < 1e-9 else "grid"))
        drawn.append(drawing.text(x, bottom + 15, drawing.signed_tick(value), "tick", MIDDLE))
    gate = gates.regression_pct
    if axis.holds(gate):
        x, words = axis.at(gate), f"blocks above +{formatting.threshold(gate)}"
        drawn.append(drawing.line((x, TOP), (x, bottom), "gate"))
        drawn.append(drawing.text(min(max(x, 110.0), RIGHT - 50), TOP - 5, words, "limit gate", MIDDLE))
    return drawing.joined([*drawn, drawing.text(WIDTH, bottom + 28, "head against base, + is slower", "title", END)])


def _whisker(label: str, process: ProcessChange, y: float, axis: Scale) -> Markup:
    x, whole = axis.at(process.change_pct), " all" if label == "together" else ""
    drawn = drawing.text(NAMES - 6, y + 4, label, f"name{whole}", END)
    drawn += drawing.line((axis.at(process.low_pct), y), (axis.at(process.high_pct), y), f"whisker{whole}")
    if whole:
        return drawn + drawing.path([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], "all", closed=True)
    return drawn + drawing.tag("circle", cx=x, cy=y, r=2.8, class_="process")


# The times of one case ------------------------------------------------------------------------------------------------

SIDES: tuple[Side, ...] = ("base", "head")
FRAME = 120.0
QUANTILES = 60
BEYOND = 0.005
"""The share of the samples at either end that may lie beyond the axis."""
FAR = 1.25
"""Where the last sample is more than so many times as far out as those within, they are left beyond it."""
BINS = 75
"""Of all processes together: more would not be seen apart."""
UNITS = {"s": 1e6, "ms": 1e3, "µs": 1.0, "ns": 1e-3}

Samples = NDArray[np.float64]


def _samples(timed: TimedCase) -> dict[str, Samples]:
    every = {side: [one.samples_us[side] for one in timed.processes if one.samples_us.get(side)] for side in SIDES}
    return {side: np.concatenate([np.asarray(one, float) for one in each]) for side, each in every.items() if each}


def _time_axis(samples: Mapping[str, Samples], start: float, end: float) -> tuple[Scale, str, str]:
    """An axis in microseconds that a few far samples do not decide, the unit of its numbers, and what lies beyond."""
    every = np.concatenate(list(samples.values()))
    unit = next((unit for unit, us in UNITS.items() if np.median(every) >= us), "ns")
    low, high = (float(value) for value in np.quantile(every, (BEYOND, 1 - BEYOND)))
    room = (high - low) * FAR + 1e-9 * high
    first, last = max(float(every.min()), high - room), min(float(every.max()), low + room)
    out = int(np.sum((every < first) | (every > last)))
    words = f"; {formatting.counted(out, 'sample')} of {len(every):,} beyond" if out else ""
    return Scale.over([first, last], start, end, 0.03), unit, words


def distribution(timed: TimedCase) -> Markup | None:
    """The empirical distribution function of both sides: two speeds are two steps, a shift is a shift."""
    samples = _samples(timed)
    if not samples:
        return None
    across, unit, beyond = _time_axis(samples, LEFT, RIGHT)
    bottom = TOP + FRAME
    up = Scale(0.0, 1.0, bottom, TOP)
    described, curves, medians, shares = [], Markup(""), {}, np.linspace(0, 1, QUANTILES + 1)
    for side, values in samples.items():
        low, middle, high = (float(one) for one in np.quantile(values, (0.05, 0.5, 0.95)))
        least, half, most = formatting.durations(low, middle, high)
        described.append(f"{side}: half within {half}, 90% from {least} to {most}")
        steps = zip(np.quantile(values, shares).tolist(), shares.tolist(), strict=True)
        curves += drawing.path([(across.at(x), up.at(y)) for x, y in steps], f"curve {side}")
        medians[side] = (across.at(middle), up.at(0.5))
    return drawing.figure(
        "How the times are distributed",
        f"Share of the samples that took at most so long. {'; '.join(described)}.",
        bottom + AXIS,
        drawing.levels([(up.at(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0)], LEFT, RIGHT),
        drawing.axis_below(_numbers(across, 5, unit), TOP, bottom, f"time of one call, {unit}"),
        curves,
        drawing.sides(medians, LEFT, RIGHT),
        note=f"share of the samples that took at most so long{beyond}",
    )


def _numbers(times: Scale, most: int, unit: str) -> list[tuple[float, str]]:
    return [(times.at(us), f"{us / UNITS[unit]:,.6g}") for us in times.ticks(most)]


def in_order(timed: TimedCase) -> Markup | None:
    samples = _samples(timed)
    if not samples:
        return None
    processes = [one for one in timed.processes if any(one.samples_us.get(side) for side in SIDES)]
    few = len(processes) <= 12
    gap = 6.0 if few else 1.0
    width = (RIGHT - LEFT - gap * (len(processes) - 1)) / len(processes)
    up, unit, beyond = _time_axis(samples, TOP + FRAME, TOP)
    bins, height = max(2, BINS // len(processes)), TOP + FRAME + 8
    drawn, medians = Markup(""), []
    for index, one in enumerate(processes):
        start, known = LEFT + index * (width + gap), [side for side in SIDES if one.samples_us.get(side)]
        halves = formatting.durations(*(float(np.median(one.samples_us[side])) for side in known))
        medians.append(", ".join(map(" ".join, zip(known, halves, strict=True))))
        drawn += drawing.joined(_series(side, one.samples_us[side], start, width, up, bins) for side in known)
        if few or (index + 1) % 5 == 0:
            drawn += drawing.text(start + width / 2, height + 12, str(index + 1), "tick", MIDDLE)
    return drawing.figure(
        "In the order of the run",
        f"Median times by process: {'; '.join(medians)}. Clocks and temperatures are in a table below.",
        height + AXIS,
        drawing.text(LEFT, TOP - 4, unit),
        drawing.levels(_numbers(up, 4, unit), LEFT, RIGHT),
        drawn,
        drawing.text(WIDTH, height + 26, "process", "title", END),
        note=f"medians of a few rounds; 80% lie in the band{beyond}",
    )


def _series(side: str, values: Sequence[float], start: float, width: float, up: Scale, bins: int) -> Markup:
    parts = np.array_split(np.asarray(values), min(bins, len(values)))
    xs = [start + width * (index + 0.5) / len(parts) for index in range(len(parts))]
    quantiles = np.array([np.quantile(part, (0.1, 0.5, 0.9)) for part in parts])
    low, middle, high = ([up.at(float(value)) for value in column] for column in quantiles.T)
    if len(parts) == 1:
        return drawing.dot(xs[0], middle[0], side, 2.5)
    around = [*zip(xs, low, strict=True), *zip(reversed(xs), reversed(high), strict=True)]
    line = drawing.path(list(zip(xs, middle, strict=True)), f"curve {side}")
    return drawing.path(around, f"range {side}", closed=True) + line


# The roofline -----------------------------------------------------------------------------------------------------

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
    bottom = TOP + FRAME
    across = _decades([ridge, *(x for x, _ in spots.values())], LEFT, RIGHT)
    up = _decades([peak, *(y for _, y in spots.values())], bottom, TOP)

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
        bottom + AXIS,
        drawing.text(LEFT, TOP - 5, "TFLOP/s"),
        drawing.levels([(up.at(one), f"{10.0**one / TERA:g}") for one in _powers(up)], LEFT, RIGHT),
        drawing.axis_below([(across.at(one), f"{10.0**one:g}") for one in _powers(across)], TOP, bottom,
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
