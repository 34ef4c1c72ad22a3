"""Times calls on a GPU: replays of CUDA graphs of many calls each, all sides in rounds of random order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from kernelgate.bench.timing.timer import Call, CudaTimer, Interval

SAMPLE_US = 600.0
"""A graph holds so many calls that it lasts about as long, and 16 at most."""
WARM_UP_ROUNDS = 20


def calls_each(estimate_us: float) -> int:
    """How many calls of about `estimate_us` a graph holds."""
    return max(2, min(16, round(SAMPLE_US / estimate_us)))


def samples_us(
    sides: Mapping[str, Sequence[Call]], count: int, rounds: int, timer: CudaTimer
) -> dict[str, list[float]]:
    """The time of one call in each round. A side gives a call for each set of inputs, and they take turns."""
    graphs: dict[str, Call] = {}
    for name, calls in sides.items():
        for call in calls:
            timer.run(call)
        graph = timer.capture([calls[number % len(calls)] for number in range(count)])
        if graph is None:
            raise SystemExit(f"{name} cannot be captured in a graph")
        graphs[name] = graph
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for number in range(WARM_UP_ROUNDS + rounds):
        for name in random.sample(list(graphs), len(graphs)):
            (taken,) = timer.measure([Interval((graphs[name],))]).times_us
            if number >= WARM_UP_ROUNDS:
                samples[name].append(round(taken / count, 4))
    return samples
