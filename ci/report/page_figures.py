"""The drawings of one case's times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from kernelgate.bench.record import Side, TimedCase
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
    axis = Scale.over([bound for row in rows for bound in (row.low_pct, row.high_pct)], NAMES, RIGHT)
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
    for value in axis.ticks(5):
        x = axis.at(value)
        drawn.append(drawing.line((x, PROCESSES_TOP), (x, bottom), "zero" if abs(value) < 1e-9 else "grid"))
        drawn.append(drawing.text(x, bottom + 15, drawing.signed_tick(value), "tick", MIDDLE))
    gate = gates.regression_pct
    if axis.holds(gate):
        x, words = axis.at(gate), f"blocks above +{formatting.threshold(gate)}"
        drawn.append(drawing.line((x, PROCESSES_TOP), (x, bottom), "gate"))
        drawn.append(drawing.text(min(max(x, 110.0), RIGHT - 50), PROCESSES_TOP - 5, words, "limit gate", MIDDLE))
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
LEFT = 44.0
TOP = 14.0
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
