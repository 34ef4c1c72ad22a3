"""The drawings of one case's times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kernelgate.bench.record import TimedCase, TimedProcess
from kernelgate.ci.document import drawing, formatting
from kernelgate.ci.document.drawing import AXIS, END, MIDDLE, WIDTH, Scale
from kernelgate.ci.judge.case import CaseVerdict, ProcessChange
from kernelgate.ci.policy.policy import Gates

# The processes of one case --------------------------------------------------------------------------------------------

NAMES = 66.0
"""Room to the left of a frame for the names of its rows."""
RIGHT = WIDTH - 8
PROCESSES_TOP, PROCESS_ROW = 16.0, 16.0


def processes(case: CaseVerdict, gates: Gates) -> Markup | None:
    """What each process found on an axis of their own, and all together; None where no process has an estimate."""
    each = case.per_process
    if not each:
        return None
    together = []
    if case.change_pct is not None and case.interval_pct is not None and case.believed:
        together = [ProcessChange(case.change_pct, *case.interval_pct)]
    rows = [*each, *together]
    # All changes, and the intervals as far as they leave room for those.
    core = [*(row.change_pct for row in rows), *(bound for row in together for bound in (row.low_pct, row.high_pct))]
    room = (max(core) - min(core)) or abs(core[0]) or 1.0
    low, high = min(row.low_pct for row in rows), max(row.high_pct for row in rows)
    axis = Scale.over([*core, max(low, min(core) - room), min(high, max(core) + room)], NAMES, RIGHT)
    bottom = PROCESSES_TOP + PROCESS_ROW * len(rows) + 6
    labels = [*(f"process {index + 1}" for index in range(len(each))), "together"]
    drawn = [
        _whisker(labels[index], row, PROCESSES_TOP + 3 + PROCESS_ROW * (index + 0.5), axis)
        for index, row in enumerate(rows)
    ]
    percents = ", ".join(formatting.percent(process.change_pct, 2, sign=True) for process in each)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    return drawing.figure(
        "Each process",
        f"Change of each process: {percents}. {f'Together {change} {interval}. ' if together else ''}"
        f"Within ±{formatting.threshold(gates.margin_pct)} counts as the same; "
        f"above +{formatting.threshold(gates.regression_pct)} blocks.",
        bottom + AXIS,
        _ground(gates, axis, bottom),
        *drawn,
        note="change of time, on an axis of its own",
    )


def _ground(gates: Gates, axis: Scale, bottom: float) -> Markup:
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    drawn = [drawing.rect((left, PROCESSES_TOP), right - left, bottom - PROCESSES_TOP, "band")]
    for edge in (-gates.margin_pct, gates.margin_pct):
        if axis.holds(edge):
            drawn.append(drawing.line((axis.at(edge), PROCESSES_TOP), (axis.at(edge), bottom), "edge"))
    ticks = axis.ticks(5)
    apart = ticks[1] - ticks[0] if len(ticks) > 1 else 0.0  # nothing where all changes are one to the last digit
    digits = max(0, -math.floor(math.log10(apart) + 1e-9)) if apart > 0 else 2
    for value in ticks:
        x, label = axis.at(value), formatting.percent(value, digits, sign=True)
        drawn.append(drawing.line((x, PROCESSES_TOP), (x, bottom), "zero" if abs(value) < 1e-9 else "grid"))
        drawn.append(drawing.text(x, bottom + 15, label, "tick", MIDDLE))
    gate = gates.regression_pct
    if axis.holds(gate):
        x, words = axis.at(gate), f"blocks above +{formatting.threshold(gate)}"
        drawn.append(drawing.line((x, PROCESSES_TOP), (x, bottom), "gate"))
        drawn.append(drawing.text(min(max(x, 110.0), RIGHT - 50), PROCESSES_TOP - 5, words, "limit gate", MIDDLE))
    return drawing.joined([*drawn, drawing.text(WIDTH, bottom + 28, "head against base, + is slower", "title", END)])


def _whisker(label: str, process: ProcessChange, y: float, axis: Scale) -> Markup:
    """An arrow stands where the interval ends beyond the axis."""
    low, high = process.low_pct, process.high_pct
    x, whole = axis.at(process.change_pct), " all" if label == "together" else ""
    drawn = drawing.text(NAMES - 6, y + 4, label, f"name{whole}", END)
    drawn += drawing.line((axis.at(low), y), (axis.at(high), y), f"whisker{whole}")
    for end, inward in [(axis.start, 4.0)] * (low < axis.low) + [(axis.end, -4.0)] * (high > axis.high):
        drawn += drawing.path([(end + inward, y - 3), (end, y), (end + inward, y + 3)], "cut")
    if whole:
        return drawn + drawing.path([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], "all", closed=True)
    return drawn + drawing.tag("circle", cx=x, cy=y, r=2.8, class_="process")


# The times of one case ------------------------------------------------------------------------------------------------

SIDES = ("base", "head")
LEFT = 44.0
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
READINGS = (("clock", "MHz", "sm_mhz"), ("temp.", "°C", "temperature_c"), ("power", "W", "power_w"))
"""Of the device in each process: what a strip is called, its unit, and the telemetry's field."""
UNITS = {"s": 1e6, "ms": 1e3, "µs": 1.0, "ns": 1e-3}
"""Each in microseconds."""

Samples = NDArray[np.float64]


def _samples(timed: TimedCase) -> dict[str, Samples]:
    """Each side's times of all processes, in microseconds."""
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
    described, curves, medians = [], Markup(""), {}
    for side, values in samples.items():
        low, middle, high = (float(one) for one in np.quantile(values, (0.05, 0.5, 0.95)))
        least, half, most = formatting.durations(low, middle, high)
        described.append(f"{side}: half within {half}, 90% from {least} to {most}")
        curves += drawing.path([(across.at(x), up.at(y)) for x, y in _steps(values)], f"curve {side}")
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


def _steps(values: Samples) -> Iterable[tuple[float, float]]:
    """The distribution function: each sample of a few, else its quantiles."""
    if len(values) < QUANTILES:
        ordered, shares = np.repeat(np.sort(values), 2), np.arange(1, 2 * len(values) + 1) // 2 / len(values)
    else:
        shares = np.linspace(0, 1, QUANTILES + 1)
        ordered = np.quantile(values, shares)
    return zip(ordered.tolist(), shares.tolist(), strict=True)


# In the order of the run ----------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A process on the axis of the run."""

    one: TimedProcess
    start: float
    end: float


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
    up, unit, beyond = _time_axis(samples, TOP + FRAME, TOP)
    bins = max(2, BINS // len(spans))
    drawn = drawing.joined(
        _series(side, span, up, bins) for span in spans for side in SIDES if span.one.samples_us.get(side)
    )
    strips, height = _strips(spans, TOP + FRAME + 8)
    numbers = drawing.joined(
        drawing.text((span.start + span.end) / 2, height + 12, str(index), "tick", MIDDLE)
        for index, span in enumerate(spans, 1)
        if few or index % 5 == 0
    )
    return drawing.figure(
        "In the order of the run",
        f"Median times by process: {'; '.join(map(_medians, spans))}. Clocks and temperatures are in a table below.",
        height + AXIS,
        drawing.text(LEFT, TOP - 4, unit),
        drawing.levels(_numbers(up, 4, unit), LEFT, RIGHT),
        drawn,
        strips,
        numbers,
        drawing.text(WIDTH, height + 26, "process", "title", END),
        note=f"medians of a few rounds; 80% lie in the band{beyond}",
    )


def _series(side: str, span: Span, across: Scale, bins: int) -> Markup:
    values = np.asarray(span.one.samples_us[side])
    parts = np.array_split(values, min(bins, len(values)))
    step = (span.end - span.start) / len(parts)
    xs = [span.start + step * (index + 0.5) for index in range(len(parts))]
    quantiles = np.array([np.quantile(part, (0.1, 0.5, 0.9)) for part in parts])
    low, middle, high = ([across.at(float(value)) for value in column] for column in quantiles.T)
    if len(parts) == 1:
        return drawing.dot(xs[0], middle[0], side, 2.5)
    around = [*zip(xs, low, strict=True), *zip(reversed(xs), reversed(high), strict=True)]
    return drawing.path(around, f"range {side}", closed=True) + drawing.path(
        list(zip(xs, middle, strict=True)), f"curve {side}"
    )


def _strips(spans: Sequence[Span], top: float) -> tuple[Markup, float]:
    """Clock, temperature and power, as far as they are known, and who throttled: drawn, and where they end."""
    drawn = Markup("")
    for name, unit, key in READINGS:
        values = [_read(span, key) for span in spans]
        if any(values):
            drawn += _strip(name, unit, values, spans, top)
            top += STRIP + 4
    throttled = [span for span in spans if span.one.telemetry and span.one.telemetry.throttle_reasons]
    if throttled:
        drawn += drawing.text(LEFT - 6, top + 9, "limit", "name", END)
        drawn += drawing.joined(
            drawing.rect((span.start, top + 2), span.end - span.start, 7, "throttled") for span in throttled
        )
        top += 16
    return drawn, top


def _read(span: Span, key: str) -> list[float]:
    """The clock of each few rounds where samples have one; else what the telemetry has of the process."""
    clocks = [read for side in SIDES if (read := span.one.timing.sm_mhz.get(side))] if key == "sm_mhz" else []
    if not clocks:
        value: float | None = getattr(span.one.telemetry, key, None)
        return [] if value is None else [value]
    together = np.mean(np.asarray([one[: min(map(len, clocks))] for one in clocks], float), axis=0)
    return [float(np.median(part)) for part in np.array_split(together, min(12, len(together)))]


def _strip(name: str, unit: str, values: Sequence[Sequence[float]], spans: Sequence[Span], top: float) -> Markup:
    every = [value for one in values for value in one]
    low, high = min(every), max(every)
    # A tenth of the value at least, so that what hardly moves looks as if it hardly moved.
    around = max(high - low, 0.1 * abs(high), 1e-9)
    scale = Scale((low + high - around) / 2, (low + high + around) / 2, top + STRIP - 3, top + 14)
    drawn = drawing.rect((LEFT, top), RIGHT - LEFT, STRIP, "ground") + drawing.text(
        LEFT - 6, top + STRIP / 2 + 4, name, "name", END
    )
    for span, one in zip(spans, values, strict=True):
        step = (span.end - span.start) / max(len(one), 1)
        points = [
            (span.start + step * (index + side), scale.at(value)) for index, value in enumerate(one) for side in (0, 1)
        ]
        drawn += drawing.path(points, "state") if points else Markup("")
    shown = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return drawn + drawing.text(RIGHT - 3, top + 10, f"{shown} {unit}", "value", END)


def _medians(span: Span) -> str:
    """ "base 321.4 µs, head 337.2 µs"."""
    known = ((side, values) for side in SIDES if (values := span.one.samples_us.get(side)))
    return ", ".join(f"{side} {formatting.durations(float(np.median(one)))[0]}" for side, one in known)
