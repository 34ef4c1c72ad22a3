"""The times of one case: how they are distributed, and how they went on with the device's state under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kernelgate.bench.record import Telemetry, TimedCase, TimedProcess
from kernelgate.ci.document import formatting
from kernelgate.ci.document.drawing import (
    AXIS,
    END,
    MIDDLE,
    WIDTH,
    Scale,
    axis_below,
    dot,
    figure,
    joined,
    levels,
    path,
    rect,
    sides,
    text,
)

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
UNITS = {"s": 1e6, "ms": 1e3, "µs": 1.0, "ns": 1e-3}
"""Each in microseconds."""

Samples = NDArray[np.float64]


@dataclass(frozen=True)
class TimeAxis:
    unit: str
    us: float
    """One unit, in microseconds."""
    scale: Scale
    beyond: str
    """In words, which samples lie beyond it."""


def _samples(timed: TimedCase) -> dict[str, Samples]:
    """Each side's times of all processes, in microseconds."""
    every = {side: [one.samples_us[side] for one in timed.processes if one.samples_us.get(side)] for side in SIDES}
    return {side: np.concatenate([np.asarray(one, float) for one in each]) for side, each in every.items() if each}


def _time_axis(samples: Mapping[str, Samples], start: float, end: float) -> TimeAxis:
    """An axis that a few far samples do not decide."""
    every = np.concatenate(list(samples.values()))
    median = float(np.median(every))
    unit = next((unit for unit, us in UNITS.items() if median >= us), "ns")
    low, high = (float(value) for value in np.quantile(every, (BEYOND, 1 - BEYOND)))
    room = (high - low) * FAR + 1e-9 * high
    first, last = max(float(every.min()), high - room), min(float(every.max()), low + room)
    out = int(np.sum((every < first) | (every > last)))
    words = f"; {formatting.counted(out, 'sample')} of {len(every):,} beyond" if out else ""
    us = UNITS[unit]
    return TimeAxis(unit, us, Scale.over([first / us, last / us], start, end, 0.03), words)


def distribution(timed: TimedCase) -> Markup | None:
    """The empirical distribution function of both sides: two speeds are two steps, a shift is a shift."""
    samples = _samples(timed)
    if not samples:
        return None
    axis, bottom = _time_axis(samples, LEFT, RIGHT), TOP + FRAME
    across, up = axis.scale, Scale(0.0, 1.0, bottom, TOP)
    described, curves, medians = [], Markup(""), {}
    for side, values in samples.items():
        low, middle, high = (float(one) for one in np.quantile(values, (0.05, 0.5, 0.95)))
        least, half, most = formatting.durations(low, middle, high)
        described.append(f"{side}: half within {half}, 90% from {least} to {most}")
        points = [(across.at(x), up.at(y)) for x, y in _steps(values / axis.us)]
        curves += path(points, f"curve {side}")
        medians[side] = (across.at(float(np.median(values)) / axis.us), up.at(0.5))
    return figure(
        "How the times are distributed",
        f"Share of the samples that took at most so long. {'; '.join(described)}.",
        bottom + AXIS,
        levels([(up.at(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0)], LEFT, RIGHT),
        axis_below([(across.at(value), f"{value:,.6g}") for value in across.ticks(5)], TOP, bottom,
                   f"time of one call, {axis.unit}"),
        curves,
        sides(medians, LEFT, RIGHT),
        note=f"share of the samples that took at most so long{axis.beyond}",
    )  # fmt: skip


def _steps(values: Samples) -> list[tuple[float, float]]:
    """The distribution function: each sample of a few, else its quantiles."""
    if len(values) < QUANTILES:
        ordered = np.sort(values)
        return [
            (float(value), share / len(ordered))
            for index, value in enumerate(ordered)
            for share in (index, index + 1)
        ]  # fmt: skip
    shares = np.linspace(0, 1, QUANTILES + 1)
    return [(float(x), float(y)) for x, y in zip(np.quantile(values, shares), shares, strict=True)]


# In the order of the run ----------------------------------------------------------------------------------------------


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
    samples = _samples(timed)
    if not samples:
        return None
    processes = [one for one in timed.processes if any(one.samples_us.get(side) for side in SIDES)]
    few = len(processes) <= 12
    gap = 6.0 if few else 1.0
    width = (RIGHT - LEFT - gap * (len(processes) - 1)) / len(processes)
    starts = [LEFT + index * (width + gap) for index in range(len(processes))]
    spans = [Span(one, start, start + width) for one, start in zip(processes, starts, strict=True)]
    axis = _time_axis(samples, TOP + FRAME, TOP)
    bins = max(2, BINS // len(spans))
    drawn = joined(
        _series(side, np.asarray(span.one.samples_us[side]) / axis.us, span, axis.scale, bins)
        for span in spans
        for side in SIDES
        if span.one.samples_us.get(side)
    )
    strips, height = _strips(spans, TOP + FRAME + 8)
    numbers = joined(
        text((span.start + span.end) / 2, height + 12, str(index), "tick", MIDDLE)
        for index, span in enumerate(spans, 1)
        if few or index % 5 == 0
    )
    return figure(
        "In the order of the run",
        " ".join(f"Process {index}: {_state(span)}." for index, span in enumerate(spans, 1)),
        height + AXIS,
        text(LEFT, TOP - 4, axis.unit),
        levels([(axis.scale.at(value), f"{value:,.6g}") for value in axis.scale.ticks(4)], LEFT, RIGHT),
        drawn,
        strips,
        numbers,
        text(WIDTH, height + 26, "process", "title", END),
        note=f"medians of a few rounds; 80% lie in the band{axis.beyond}",
    )


def _series(side: str, values: Samples, span: Span, across: Scale, bins: int) -> Markup:
    parts = np.array_split(values, min(bins, len(values)))
    step = (span.end - span.start) / len(parts)
    xs = [span.start + step * (index + 0.5) for index in range(len(parts))]
    quantiles = np.array([np.quantile(part, (0.1, 0.5, 0.9)) for part in parts])
    low, middle, high = ([across.at(float(value)) for value in column] for column in quantiles.T)
    if len(parts) == 1:
        return dot(xs[0], middle[0], side, 2.5)
    around = [*zip(xs, low, strict=True), *zip(reversed(xs), reversed(high), strict=True)]
    return path(around, f"range {side}", closed=True) + path(list(zip(xs, middle, strict=True)), f"curve {side}")


def _strips(spans: Sequence[Span], top: float) -> tuple[Markup, float]:
    """Clock, temperature and power, as far as they are known, and who throttled: drawn, and where they end."""
    drawn = Markup("")
    for name, unit, values in (
        ("clock", "MHz", [_clocks(span) for span in spans]),
        ("temp.", "°C", [_known(span.telemetry.temperature_c) for span in spans]),
        ("power", "W", [_known(span.telemetry.power_w) for span in spans]),
    ):
        if any(values):
            drawn += _strip(name, unit, values, spans, top)
            top += STRIP + 4
    throttled = [span for span in spans if span.telemetry.throttle_reasons]
    if throttled:
        drawn += text(LEFT - 6, top + 9, "limit", "name", END)
        drawn += joined(rect((span.start, top + 2), span.end - span.start, 7, "throttled") for span in throttled)
        top += 16
    return drawn, top


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _clocks(span: Span) -> list[float]:
    """The clock of each few rounds where samples have one; else its median over the process."""
    read = [clocks for side in SIDES if (clocks := span.one.timing.sm_mhz.get(side))]
    if not read:
        return _known(span.telemetry.sm_mhz)
    together = np.mean(np.asarray([one[: min(map(len, read))] for one in read], float), axis=0)
    return [float(np.median(part)) for part in np.array_split(together, min(12, len(together)))]


def _strip(name: str, unit: str, values: Sequence[Sequence[float]], spans: Sequence[Span], top: float) -> Markup:
    every = [value for one in values for value in one]
    low, high = min(every), max(every)
    # A tenth of the value at least, so that what hardly moves looks as if it hardly moved.
    around = max(high - low, 0.1 * abs(high), 1e-9)
    scale = Scale((low + high - around) / 2, (low + high + around) / 2, top + STRIP - 3, top + 14)
    drawn = rect((LEFT, top), RIGHT - LEFT, STRIP, "ground") + text(LEFT - 6, top + STRIP / 2 + 4, name, "name", END)
    for span, one in zip(spans, values, strict=True):
        step = (span.end - span.start) / max(len(one), 1)
        points = [
            (span.start + step * (index + side), scale.at(value)) for index, value in enumerate(one) for side in (0, 1)
        ]
        drawn += path(points, "state") if points else Markup("")
    shown = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return drawn + text(RIGHT - 3, top + 10, f"{shown} {unit}", "value", END)


def _state(span: Span) -> str:
    """Its times and the device's state, in words."""
    state = span.telemetry
    medians = [
        f"{side} {formatting.durations(float(np.median(values)))[0]}"
        for side in SIDES
        if (values := span.one.samples_us.get(side))
    ]
    facts = [
        ", ".join(medians),
        f"{state.sm_mhz:,.0f} MHz" if state.sm_mhz is not None else "",
        f"{state.temperature_c:.0f} °C" if state.temperature_c is not None else "",
        f"{state.power_w:.0f} W" if state.power_w is not None else "",
        f"limited by {', '.join(state.throttle_reasons)}" if state.throttle_reasons else "",
    ]
    return "; ".join(filter(None, facts))
