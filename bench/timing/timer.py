"""The clock: how long the device takes for a run of calls, in microseconds.

On a GPU, CUDA events around calls that wait behind a kernel holding the GPU until all of them are queued, so that the
GPU never waits for the host. On a CPU, `perf_counter_ns`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Protocol

import torch

Call = Callable[[], object]

STEP_SHARE = 1e-3
"""A sample is made so long that one step of the clock is less than this share of it."""
SHORTEST_US = 300.0
"""And at least so long, since on a GPU the two events around it add about 3 µs, which hide a part of any difference."""
MAX_REPEATS = 256
QUEUE_LENGTH = 600
"""Operations queued behind one hold. The driver blocks the host at about a thousand, and a call may be several."""


@dataclass(frozen=True)
class Interval:
    """Calls that are timed together, and what follows them untimed."""

    calls: tuple[Call, ...]
    after: Call | None = None

    @property
    def queued(self) -> int:
        """Entries in the device's queue, the two events included."""
        return len(self.calls) + 2 + (self.after is not None)


class Timer(Protocol):
    host_bound: int
    """How many groups of intervals were measured although the device may have waited for the host."""

    def run(self, call: Call) -> None:
        """Runs a call to its end, untimed. The first call of a kernel also loads it, which can take seconds."""

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> list[float]:
        """The device time of each interval, all its calls together.

        Runs them in order, and again where the host was too slow. `meanwhile` is called at least once, while the device
        is busy where the host need not be.
        """

    def capture(self, calls: Sequence[Call]) -> Call | None:
        """A call that replays the calls as one graph; None where there is none."""

    def pause(self, length: int) -> Call:
        """A call that keeps the device busy for a moment that grows with `length`."""


class CpuTimer:
    """Wall-clock time of calls that return when they are done."""

    host_bound = 0

    def run(self, call: Call) -> None:
        call()

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> list[float]:
        times = []
        for interval in intervals:
            start = time.perf_counter_ns()
            for call in interval.calls:
                call()
            times.append((time.perf_counter_ns() - start) / 1e3)
            if interval.after:
                interval.after()
        if meanwhile:
            meanwhile()
        return times

    def capture(self, calls: Sequence[Call]) -> None:  # noqa: ARG002 - a CPU has no graphs
        return None

    def pause(self, length: int) -> Call:
        return lambda: sum(range(length))


class CudaTimer:
    """Times on the current stream of the current device."""

    CYCLES_PER_US = 2000
    """Of the clock that `_spin` counts; at a lower clock the hold only lasts longer."""
    ATTEMPTS = 3
    MIN_HOLD_US = 1_000.0
    MAX_HOLD_US = 100_000.0
    """A host that needs longer to queue a group is stalled or blocked, and no hold would be long enough."""

    def __init__(self) -> None:
        self._hold_us = self.MIN_HOLD_US
        self._queue_length = QUEUE_LENGTH
        self.host_bound = 0

    def run(self, call: Call) -> None:
        call()
        torch.cuda.synchronize()

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> list[float]:
        times: list[float] = []
        while len(times) < len(intervals):
            group = next(groups(intervals[len(times) :], self._queue_length))
            times += self._group(group, meanwhile)
        return times

    def capture(self, calls: Sequence[Call]) -> Call | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                for call in calls:
                    call()
        except RuntimeError:  # a kernel that synchronises, or picks its own stream, cannot be captured
            torch.cuda.synchronize()
            return None
        replay: Call = graph.replay
        return replay

    def pause(self, length: int) -> Call:
        return lambda: _spin(100 * length)

    def _group(self, intervals: Sequence[Interval], meanwhile: Call | None) -> list[float]:
        """Queues the group behind a hold; again behind a longer one where the hold ended before all was queued.

        Where no hold is long enough, the queue is too short: nothing is returned, and groups are shorter from now on.
        """
        for _ in range(self.ATTEMPTS):
            times, held = self._attempt(intervals, meanwhile)
            if held:
                return times
        if len(intervals) > 1:
            self._queue_length = sum(interval.queued for interval in intervals) // 2
            return []
        self.host_bound += 1
        return times

    def _attempt(self, intervals: Sequence[Interval], meanwhile: Call | None) -> tuple[list[float], bool]:
        edges = [(_event(), _event()) for _ in intervals]
        released = _event()
        begun = time.perf_counter()
        _spin(int(self._hold_us * self.CYCLES_PER_US))
        released.record()
        for interval, (start, end) in zip(intervals, edges, strict=True):
            start.record()
            for call in interval.calls:
                call()
            end.record()
            if interval.after:
                interval.after()
        held = not released.query()  # type: ignore[no-untyped-call]
        queued_us = (time.perf_counter() - begun) * 1e6
        wanted = 2 * queued_us if held else max(2 * self._hold_us, 2 * queued_us)
        self._hold_us = min(self.MAX_HOLD_US, max(self.MIN_HOLD_US, wanted))
        if meanwhile:
            meanwhile()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in edges], held


def timer(device: str) -> CudaTimer | CpuTimer:
    return CudaTimer() if device == "cuda" else CpuTimer()


def groups(intervals: Sequence[Interval], length: int) -> Iterator[list[Interval]]:
    """The intervals in order, cut so that a group queues at most `length` operations (but holds one at least)."""
    group: list[Interval] = []
    queued = 0
    for interval in intervals:
        if group and queued + interval.queued > length:
            yield group
            group, queued = [], 0
        group.append(interval)
        queued += interval.queued
    if group:
        yield group


def clock_step(timer: Timer) -> float:
    """The smallest difference that two readings of the clock were seen to have, in microseconds."""
    return smallest_step(timer.measure([Interval((timer.pause(length),)) for length in range(300)]))


def smallest_step(times_us: Sequence[float]) -> float:
    """The smallest nonzero difference among times and zero; below a nanosecond it is the float's rounding."""
    ticks = sorted({0, *(round(time_us * 1e3) for time_us in times_us)})
    return min((later - earlier for earlier, later in pairwise(ticks)), default=1) / 1e3


def inner_repeats(step_us: float, call_us: float) -> int:
    """How many calls make an interval of SHORTEST_US of which one step of the clock is less than STEP_SHARE.

    A power of two, so that processes agree on it although they estimate `call_us` anew.
    """
    needed = max(step_us / STEP_SHARE, SHORTEST_US) / call_us
    return min(MAX_REPEATS, 2 ** (math.floor(math.log2(needed)) + 1)) if needed >= 1 else 1


def warm_up(timer: Timer, calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """Calls each in turn, as long as a sample, until the device has worked for `seconds`.

    Returns the medians of one call in the last go, in microseconds. Gives up after ten times as long on a host that is
    too slow to keep the device busy.
    """
    times = timer.measure([Interval((call,)) for call in calls.values()] * 3)
    call_us = medians(times, calls, 1)
    repeats = inner_repeats(0.0, min(call_us.values()))
    round_us = repeats * sum(call_us.values())
    worked_us = 0.0
    begun = time.monotonic()
    while worked_us < seconds * 1e6 and time.monotonic() - begun < 10 * seconds:
        rounds = max(1, min(50, math.ceil((seconds * 1e6 - worked_us) / round_us)))
        times = timer.measure([Interval((call,) * repeats) for call in calls.values()] * rounds)
        call_us = medians(times, calls, repeats)
        worked_us += sum(times)
    return call_us


def medians(times: Sequence[float], names: Collection[str], repeats: int) -> dict[str, float]:
    """Of one call of each name, where the times go round them; never zero."""
    return {name: max(median(times[index :: len(names)]) / repeats, 1e-3) for index, name in enumerate(names)}


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _spin(cycles: int) -> None:
    """Keeps the GPU busy, on the current stream."""
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
