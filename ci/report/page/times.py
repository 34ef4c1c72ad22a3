"""The times of one case: how they are distributed, and how they went on with the device's state under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kernelgate.bench.record import Telemetry, TimedCase, TimedProcess
from kernelgate.ci.document import formatting
from kernelgate.ci.report.page.drawing import (
    AXIS,
    END,
    MIDDLE,
    WIDTH,
    axis_below,
    dot,
    figure,
    line,
    path,
    rect,
    sides,
    text,
)
from kernelgate.ci.report.page.scale import Scale

SIDES = ("base", "head")
LEFT, RIGHT = 44.0, WIDTH - 8
TOP = 14.0
FRAME = 120.0
"""Height of a frame."""
QUANTILES = 60
BEYOND = 0.005
"""The share of the samples at either end that may lie beyond the axis."""
FAR = 1.25
"""Where the last sample is more than so many times as far out as those within, they are left beyond it."""
BINS = 75
"""Of all processes together: more would not be seen apart."""
STRIP = 26.0

Samples = NDArray[np.float64]


def samples(timed: TimedCase) -> dict[str, Samples]:
    """Each side's times of all processes, in microseconds."""
    every = {side: [one.samples_us[side] for one in timed.processes if one.samples_us.get(side)] for side in SIDES}
    return {side: np.concatenate([np.asarray(one, float) for one in found]) for side, found in every.items() if found}


def distribution(timed: TimedCase) -> Markup | None:
    """The empirical distribution function of both sides: two speeds are two steps, a shift is a shift."""
    found = samples(timed)
    if not found:
        return None
    unit, axis, beyond = _time_axis(found, LEFT, RIGHT)
    bottom = TOP + FRAME
    up = Scale(0.0, 1.0, bottom, TOP)
    levels = Markup("").join(
        line((LEFT, up.at(share)), (RIGHT, up.at(share)), "grid")
        + text(LEFT - 6, up.at(share) + 4, f"{share:.0%}", "name", END)
        for share in (0.0, 0.5, 1.0)
    )
    ticks = [(axis.at(value), _tick(value)) for value in axis.ticks(5)]
    curves = Markup("").join(_curve(side, values / unit.us, axis, up) for side, values in found.items())
    medians = {side: float(np.median(values)) for side, values in found.items()}
    described = "; ".join(f"{side}: {_five(values)}" for side, values in found.items())
    return figure(
        "How the times are distributed",
        f"Share of the samples that took at most so long. {described}.",
        bottom + AXIS,
        levels,
        axis_below(ticks, TOP, bottom, f"time of one call, {unit.name}"),
        curves,
        sides({side: (axis.at(median / unit.us), up.at(0.5)) for side, median in medians.items()}, LEFT, RIGHT),
        note=f"share of the samples that took at most so long{beyond}",
    )


@dataclass(frozen=True)
class Unit:
    name: str
    us: float
    """One of it, in microseconds."""


def _unit(us: float) -> Unit:
    known = (Unit("ns", 1e-3), Unit("µs", 1.0), Unit("ms", 1e3), Unit("s", 1e6))
    return next((one for one in reversed(known) if us >= one.us), known[0])


def _time_axis(found: Mapping[str, Samples], start: float, end: float) -> tuple[Unit, Scale, str]:
    """The unit, an axis that a few far samples do not decide, and the words on those."""
    every = np.concatenate(list(found.values()))
    unit = _unit(float(np.median(every)))
    low, high = (float(value) for value in np.quantile(every, (BEYOND, 1 - BEYOND)))
    room = (high - low) * FAR + 1e-9 * high
    first, last = max(float(every.min()), high - room), min(float(every.max()), low + room)
    out = int(np.sum((every < first) | (every > last)))
    words = f"; {formatting.counted(out, 'sample')} of {len(every):,} beyond" if out else ""
    return unit, Scale.over([first / unit.us, last / unit.us], start, end, 0.03), words


def _curve(side: str, values: Samples, axis: Scale, up: Scale) -> Markup:
    if len(values) < QUANTILES:
        ordered = np.sort(values)
        steps = [
            (float(at), index / len(ordered))
            for index, value in enumerate(ordered)
            for at, index in ((value, index), (value, index + 1))
        ]
        return path([(axis.at(x), up.at(y)) for x, y in steps], f"curve {side}")
    shares = np.linspace(0, 1, QUANTILES + 1)
    points = zip(np.quantile(values, shares), shares, strict=True)
    return path([(axis.at(float(x)), up.at(float(y))) for x, y in points], f"curve {side}")


def _five(values: Samples) -> str:
    low, middle, high = formatting.durations(*(float(one) for one in np.quantile(values, (0.05, 0.5, 0.95))))
    return f"half within {middle}, 90% from {low} to {high}"


def _tick(value: float) -> str:
    return f"{value:,.6g}"


# ---- in the order of the run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """A process on the axis of the run."""

    one: TimedProcess
    start: float
    end: float

    @property
    def telemetry(self) -> Telemetry:
        return self.one.telemetry or Telemetry()


def in_order(timed: TimedCase) -> Markup | None:
    """The times as they came, process by process; clock, temperature and power of each under them."""
    found = samples(timed)
    if not found:
        return None
    spans = _spans([one for one in timed.processes if any(one.samples_us.get(side) for side in SIDES)])
    unit, across, beyond = _time_axis(found, TOP + FRAME, TOP)
    bins = max(2, BINS // len(spans))
    levels = Markup("").join(
        line((LEFT, across.at(value)), (RIGHT, across.at(value)), "grid")
        + text(LEFT - 6, across.at(value) + 4, _tick(value), "name", END)
        for value in across.ticks(4)
    )
    drawn = Markup("").join(
        _series(side, np.asarray(span.one.samples_us[side]) / unit.us, span, across, bins)
        for span in spans
        for side in SIDES
        if span.one.samples_us.get(side)
    )
    strips, height = _strips(spans, TOP + FRAME + 8)
    numbers = Markup("").join(
        text((span.start + span.end) / 2, height + 12, str(index), "tick", MIDDLE)
        for index, span in enumerate(spans, 1)
        if len(spans) <= 12 or index % 5 == 0
    )
    return figure(
        "In the order of the run",
        _described(spans),
        height + AXIS,
        text(LEFT, TOP - 4, unit.name),
        levels,
        drawn,
        strips,
        numbers,
        text(WIDTH, height + 26, "process", "title", END),
        note=f"medians of a few rounds; 80% lie in the band{beyond}",
    )


def _spans(processes: Sequence[TimedProcess]) -> list[Span]:
    gap = 6.0 if len(processes) <= 12 else 1.0
    width = (RIGHT - LEFT - gap * (len(processes) - 1)) / len(processes)
    return [
        Span(one, LEFT + index * (width + gap), LEFT + index * (width + gap) + width)
        for index, one in enumerate(processes)
    ]


def _series(side: str, values: Samples, span: Span, across: Scale, bins: int) -> Markup:
    parts = np.array_split(values, min(bins, len(values)))
    step = (span.end - span.start) / len(parts)
    xs = [span.start + step * (index + 0.5) for index in range(len(parts))]
    found = np.array([np.quantile(part, (0.1, 0.5, 0.9)) for part in parts])
    low, middle, high = ([across.at(float(value)) for value in column] for column in found.T)
    if len(parts) == 1:
        return dot(xs[0], middle[0], side, 2.5)
    around = [*zip(xs, low, strict=True), *zip(reversed(xs), reversed(high), strict=True)]
    return path(around, f"range {side}", closed=True) + path(list(zip(xs, middle, strict=True)), f"curve {side}")


def _strips(spans: Sequence[Span], top: float) -> tuple[Markup, float]:
    """Clock, temperature and power, as far as they are known, and who throttled: drawn, and where they end."""
    drawn = Markup("")
    for name, unit, values in (
        ("clock", "MHz", [_clocks(span) for span in spans]),
        ("temp.", "°C", [_one(span.telemetry.temperature_c) for span in spans]),
        ("power", "W", [_one(span.telemetry.power_w) for span in spans]),
    ):
        if any(len(one) for one in values):
            drawn += _strip(name, unit, values, spans, top)
            top += STRIP + 4
    throttled = [span for span in spans if span.telemetry.throttle_reasons]
    if throttled:
        drawn += text(LEFT - 6, top + 9, "limit", "name", END)
        for span in throttled:
            drawn += rect((span.start, top + 2), span.end - span.start, 7, "throttled")
        top += 16
    return drawn, top


def _one(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _clocks(span: Span) -> list[float]:
    """The clock of each few rounds where samples have one; else its median over the process."""
    read = [clocks for side in SIDES if (clocks := span.one.timing.sm_mhz.get(side))]
    if not read:
        return _one(span.telemetry.sm_mhz)
    together = np.mean(np.asarray([one[: min(map(len, read))] for one in read], float), axis=0)
    return [float(np.median(part)) for part in np.array_split(together, min(12, len(together)))]


def _strip(name: str, unit: str, values: Sequence[Sequence[float]], spans: Sequence[Span], top: float) -> Markup:
    every = [value for one in values for value in one]
    low, high = min(every), max(every)
    # A tenth of the value at least, so that what hardly moves looks as if it hardly moved.
    around = max(high - low, 0.1 * abs(high), 1e-9)
    scale = Scale((low + high - around) / 2, (low + high + around) / 2, top + STRIP - 3, top + 14)
    drawn = Markup("")
    for span, one in zip(spans, values, strict=True):
        if not one:
            continue
        step = (span.end - span.start) / len(one)
        points = [
            (span.start + step * (index + side), scale.at(value)) for index, value in enumerate(one) for side in (0, 1)
        ]
        drawn += path(points, "state")
    shown = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return (
        rect((LEFT, top), RIGHT - LEFT, STRIP, "ground")
        + text(LEFT - 6, top + STRIP / 2 + 4, name, "name", END)
        + drawn
        + text(RIGHT - 3, top + 10, f"{shown} {unit}", "value", END)
    )


def _described(spans: Sequence[Span]) -> str:
    said = []
    for index, span in enumerate(spans, 1):
        told = span.telemetry
        times = ", ".join(
            f"{side} {formatting.durations(float(np.median(values)))[0]}"
            for side in SIDES
            if (values := span.one.samples_us.get(side))
        )
        state = [f"{told.sm_mhz:,.0f} MHz" if told.sm_mhz is not None else "",
                 f"{told.temperature_c:.0f} °C" if told.temperature_c is not None else "",
                 f"{told.power_w:.0f} W" if told.power_w is not None else "",
                 f"limited by {', '.join(told.throttle_reasons)}" if told.throttle_reasons else ""]  # fmt: skip
        said.append(f"Process {index}: {'; '.join(filter(None, [times, *state]))}.")
    return " ".join(said)
