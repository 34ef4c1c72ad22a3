"""The clock: how long the device takes for a run of calls, in microseconds.

On a GPU, CUDA events around calls that wait behind a kernel holding the GPU until the host is far enough ahead, so that
the GPU never waits for it. On a CPU, `perf_counter_ns`. Clocks and torch's functions are bound when this module is
imported, before any kernel is loaded: a package that puts others in their place changes nothing here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch

from kernelgate.bench.core.errors import first_line
from kernelgate.bench.timing.hold import IN_A_ROW, LateBatch, waits_for_device

Call = Callable[[], object]

_perf_counter_ns = time.perf_counter_ns
_synchronize = torch.cuda.synchronize
_Event = torch.cuda.Event
_record = torch.cuda.Event.record
_query = torch.cuda.Event.query
_elapsed_time = torch.cuda.Event.elapsed_time
_sleep = torch.cuda._sleep


def now_ns() -> int:
    return _perf_counter_ns()


@dataclass(frozen=True)
class Interval:
    calls: tuple[Call, ...]
    before: Call | None = None
    after: Call | None = None


@dataclass(frozen=True)
class TimedIntervals:
    times_us: tuple[float, ...]
    started_ns: tuple[int, ...]
    """On a CPU, by `perf_counter_ns`."""
    held: bool
    """Whether each interval was queued before the device began it: else it may have waited for the host."""
    waits: bool = False
    """Whether a call waits for the device itself: then no hold is long enough."""


class CpuTimer:
    """Wall-clock time of calls that return when they are done."""

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> TimedIntervals:
        """Runs the intervals in order. `meanwhile` is called once, on a GPU while that is busy."""
        times, starts = [], []
        for interval in intervals:
            if interval.before:
                interval.before()
            start = _perf_counter_ns()
            for call in interval.calls:
                call()
            times.append((_perf_counter_ns() - start) / 1e3)
            starts.append(start)
            if interval.after:
                interval.after()
        if meanwhile:
            meanwhile()
        return TimedIntervals(tuple(times), tuple(starts), held=True)

    def capture(self, calls: Sequence[Call]) -> Call | None:  # noqa: ARG002 - a CPU has no graphs
        """A call that replays the calls as one graph; None where there is none."""
        return None

    def pause(self, length: int) -> Call:
        """A call that keeps the device busy for a moment that grows with `length`."""
        return lambda: sum(range(length))


class CudaTimer:
    """Times on the current stream of the current device."""

    CYCLES_PER_US = 2000
    """Of the clock that `_spin` counts; at a lower clock the hold only lasts longer."""
    MIN_HOLD_US = 500.0
    MAX_HOLD_US = 100_000.0
    """A host that needs longer to queue a batch is stalled or blocked, and no hold would be long enough."""
    SPARE = 2.0
    """Times the head start that the host needed in the last batch, the next one gets."""

    def __init__(self) -> None:
        self._hold_us = 10 * self.MIN_HOLD_US
        self._late: list[LateBatch] = []
        """The last ones in a row."""
        self._waits = False

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> TimedIntervals:
        """The device is held until the host is far enough ahead to queue each interval before the device begins it."""
        edges = [(_event(), _event()) for _ in intervals]
        queued_us: list[float] = []
        held = True
        begun = _perf_counter_ns()
        _spin(int(self._hold_us * self.CYCLES_PER_US))
        for interval, (start, end) in zip(intervals, edges, strict=True):
            if interval.before:
                interval.before()
            _record(start)
            for call in interval.calls:
                call()
            _record(end)
            held = held and not _query(start)  # type: ignore[no-untyped-call]
            queued_us.append((_perf_counter_ns() - begun) / 1e3)
            if interval.after:
                interval.after()
        if meanwhile:
            meanwhile()
        _synchronize()
        times = tuple(_elapsed_time(start, end) * 1e3 for start, end in edges)
        longest_us = max((later - one for one, later in pairwise((0.0, *queued_us))), default=0.0)
        self._late = [] if held else [*self._late, LateBatch(self._hold_us, longest_us)][-IN_A_ROW:]
        self._waits = not held and (self._waits or waits_for_device(self._late))
        least = self.MIN_HOLD_US if held else 2 * self._hold_us  # of a device whose clock is faster than CYCLES_PER_US
        self._hold_us = min(self.MAX_HOLD_US, max(least, self.SPARE * head_start(queued_us, times)))
        if self._waits:
            self._hold_us = self.MIN_HOLD_US
        return TimedIntervals(times, (), held, self._waits)

    def capture(self, calls: Sequence[Call]) -> Call | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                for call in calls:
                    call()
        except RuntimeError:  # a kernel that synchronises, or picks its own stream, cannot be captured
            _synchronize()
            return None
        replay: Call = graph.replay
        return replay

    def pause(self, length: int) -> Call:
        return lambda: _spin(100 * length)


def waits(call: Call) -> str | None:
    """What torch says of a call that waits for the GPU, as `.item()` and `torch.tensor(…, device="cuda")` do."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # torch calls it a prototype, which misses some
            torch.cuda.set_sync_debug_mode("error")
        call()
    except Exception as error:
        return first_line(error)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return None


def head_start(queued_us: Sequence[float], times_us: Sequence[float]) -> float:
    """How much earlier than the device the host must begin, for each interval to be queued before the device begins it.

    `queued_us`: when each was queued; `times_us`: how long the device needs for each.
    """
    done = accumulate(times_us, initial=0.0)
    return max((queued - before for queued, before in zip(queued_us, done, strict=False)), default=0.0)


Timer = CudaTimer | CpuTimer


def timer(device: str) -> Timer:
    return CudaTimer() if device == "cuda" else CpuTimer()


def clock_step(timer: Timer) -> float:
    """The smallest difference that two readings of the clock were seen to have, in microseconds."""
    return smallest_step(timer.measure([Interval((timer.pause(length),)) for length in range(200)]).times_us)


def smallest_step(times_us: Sequence[float]) -> float:
    """The smallest nonzero difference among times and zero; below a nanosecond it is the float's rounding."""
    ticks = sorted({0, *(round(time_us * 1e3) for time_us in times_us)})
    return min((later - earlier for earlier, later in pairwise(ticks)), default=1) / 1e3


def _event() -> torch.cuda.Event:
    return _Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _spin(cycles: int) -> None:
    _sleep(cycles)  # type: ignore[no-untyped-call]
