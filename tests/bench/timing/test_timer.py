"""The arithmetic of timing, with clocks that are told what to show. Nothing here asserts how long anything takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelgate.bench.timing import timer
from kernelgate.bench.timing.timer import Call, Interval, TimedIntervals


class Scripted:
    """A clock on which each call takes the time that it returns."""

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> TimedIntervals:
        if meanwhile:
            meanwhile()
        times = tuple(float(sum(call() for call in interval.calls)) for interval in intervals)  # type: ignore[misc]
        return TimedIntervals(times, (), held=True)

    def run(self, call: Call) -> None:
        call()

    def capture(self, calls: Sequence[Call]) -> Call | None:
        return lambda: [call() for call in calls]

    def pause(self, length: int) -> Call:
        return lambda: 3.0 + 0.5 * (length % 7)


def test_the_step_is_the_smallest_difference_seen() -> None:
    assert timer.smallest_step([4.096, 5.12, 7.168, 5.12]) == pytest.approx(1.024)
    assert timer.clock_step(Scripted()) == pytest.approx(0.5)


def test_one_reading_alone_is_a_step_above_zero() -> None:
    assert timer.smallest_step([2.0, 2.0, 2.0]) == pytest.approx(2.0)
    assert timer.smallest_step([0.0]) > 0


def test_rounding_of_floats_is_no_step() -> None:
    assert timer.smallest_step([1.0, 1.0 + 1e-7, 1.5]) == pytest.approx(0.5)


def test_the_cpu_clock_runs_calls_in_order_and_what_is_around_them_untimed() -> None:
    ran: list[str] = []

    def does(what: str) -> Call:
        return lambda: ran.append(what)

    first = Interval((does("a"), does("b")), before=does("probe"), after=does("copy"))
    measured = timer.CpuTimer().measure([first, Interval((does("c"),))], does("reading"))
    assert ran == ["probe", "a", "b", "copy", "c", "reading"]
    assert all(time_us > 0 for time_us in measured.times_us)
    assert measured.held
    assert timer.CpuTimer().capture([lambda: None]) is None


def test_the_cpu_clock_says_when_intervals_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer, "_perf_counter_ns", iter([5_000, 8_000, 20_000, 20_500]).__next__)
    measured = timer.CpuTimer().measure([Interval(()), Interval(())])
    assert measured == TimedIntervals((3.0, 0.5), (5_000, 20_000), held=True)


def test_a_clock_that_is_replaced_later_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a package that is loaded after this module."""
    monkeypatch.setattr(timer.time, "perf_counter_ns", lambda: 0)
    (time_us,) = timer.CpuTimer().measure([Interval((lambda: sum(range(1000)),))]).times_us
    assert time_us > 0
