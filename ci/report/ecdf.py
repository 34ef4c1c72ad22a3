"""The distribution of a case's times, base and head: what to look at where no interval can be believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from kernelgate.bench.record import TimedCase, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Distribution, Stair, Tick
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.report.gpu import GpuReport, JudgedCase

WIDTH, HEIGHT = 360.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 340.0, 18.0, 130.0
MAX_STEPS = 200
"""Points of a curve: more than a screen shows."""
CUT = 0.005
"""Of the slowest times, as many are beyond the frame: a single hiccup would squeeze everything else."""
MAX_TICKS = 5


def distributions(gpu: GpuReport, label: str = "") -> Iterator[Distribution]:
    """Of each timed case whose interval nobody should believe. `label`: of the GPU, where there are several."""
    if gpu.record is None:
        return
    timed = {case.key: case for case in timed_cases(gpu.record)}
    for one in gpu.cases:
        if one.case.disqualifying and one.case.key in timed and (made := _drawn(one, timed[one.case.key], label)):
            yield made


def _drawn(one: JudgedCase, timed: TimedCase, label: str) -> Distribution | None:
    times = {side: _times(timed, side) for side in ("base", "head")}
    if not all(len(values) for values in times.values()):
        return None
    every = np.concatenate(list(times.values()))
    low, high = float(every.min()), float(np.quantile(every, 1 - CUT))
    if not high > low:
        return None

    def x(value: float) -> float:
        return round(LEFT + (min(value, high) - low) / (high - low) * (RIGHT - LEFT), 1)

    ticks = tuple(Tick(x(value), formatting.durations(value)[0]) for value in np.linspace(low, high, MAX_TICKS))
    steps = tuple(_step(side, values, x) for side, values in times.items())
    medians = " and ".join(
        f"{side} {formatting.durations(float(np.median(values)))[0]}" for side, values in times.items()
    )
    return Distribution(
        case=(Code(label), ": ", one.name) if label else (one.name,),
        sentence=one.case.sentence[:1].upper() + one.case.sentence[1:],
        description=f"Share of times at or below each time. Half of the times are at or below: {medians}.",
        width=WIDTH,
        height=HEIGHT,
        top=TOP,
        bottom=BOTTOM,
        ticks=ticks,
        sides=steps,
    )


def _times(timed: TimedCase, side: str) -> Array:
    held = [samples for process in timed.processes for name, samples in process.samples_us.items() if name == side]
    found = np.sort(np.concatenate(held)) if held else np.array([])
    return np.asarray(found[np.isfinite(found)])


def _step(side: str, values: Array, x: Callable[[float], float]) -> Stair:
    """A stair: at each time the share of all times that are at or below it. The side's name stands beside it."""
    shares = np.linspace(0, 1, min(len(values), MAX_STEPS) + 1)[1:]
    at = [float(values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]) for share in shares]
    heights = [round(BOTTOM - share * (BOTTOM - TOP), 1) for share in shares]
    path = f"M{x(at[0])} {BOTTOM}" + "".join(f"H{x(time)}V{height}" for time, height in zip(at, heights, strict=True))
    middle = len(at) // (3 if side == "base" else 2)
    return Stair(side, path + f"H{RIGHT}", x(at[middle]), heights[middle])
