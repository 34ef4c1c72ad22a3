"""The arithmetic of timing, with clocks that are told what to show. Nothing here asserts how long anything takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

import pytest

from kernelgate.bench.timing import timer
from kernelgate.bench.timing.timer import Call, Interval


class Scripted:
    """A clock on which each call takes the time that it returns."""

    host_bound = 0

    def __init__(self) -> None:
        self.measured: list[int] = []

    def measure(self, intervals: Sequence[Interval], meanwhile: Call | None = None) -> list[float]:
        self.measured.append(len(intervals))
        if meanwhile:
            meanwhile()
        return [float(sum(call() for call in interval.calls)) for interval in intervals]  # type: ignore[misc]

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


@pytest.mark.parametrize(
    ("step_us", "call_us"), [(1.024, 321.0), (1.024, 20.0), (0.032, 46.0), (0.032, 3.0), (0.001, 5e3), (1.0, 1000.0)]
)
def test_a_step_is_under_a_thousandth_of_a_sample(step_us: float, call_us: float) -> None:
    repeats = timer.inner_repeats(step_us, call_us)
    sample_us = call_us * repeats
    assert step_us < 1e-3 * sample_us
    assert sample_us >= timer.SHORTEST_US
    assert repeats == 1 or sample_us <= 2 * max(1e3 * step_us, timer.SHORTEST_US), "no longer than it need be"


def test_repeats_are_bounded() -> None:
    assert timer.inner_repeats(1e6, 1e-3) == timer.MAX_REPEATS


def test_groups_keep_the_order_and_fit_the_queue() -> None:
    intervals = [Interval((int,) * size, after=int if size % 2 else None) for size in (3, 5, 1, 50, 2, 2)]
    cut = list(timer.groups(intervals, length=15))
    assert [interval for group in cut for interval in group] == intervals
    queued = [sum(len(part.calls) + 2 + (part.after is not None) for part in group) for group in cut]
    assert all(operations <= 15 or len(group) == 1 for operations, group in zip(queued, cut, strict=True))
    assert list(timer.groups([], length=15)) == []


def test_warming_up_lasts_until_the_device_has_worked_enough() -> None:
    clock = Scripted()
    calls = Counter[str]()

    def call(name: str, time_us: float) -> Call:
        return lambda: (calls.update([name]), time_us)[1]

    medians = timer.warm_up(clock, {"base": call("base", 100.0), "head": call("head", 300.0)}, seconds=0.5)
    assert medians == {"base": 100.0, "head": 300.0}
    assert 0.5e6 <= 100 * calls["base"] + 300 * calls["head"] <= 0.6e6
    assert calls["base"] == calls["head"]


def test_warming_up_ends_where_the_host_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Scripted()
    monkeypatch.setattr(timer.time, "monotonic", count().__next__)
    timer.warm_up(clock, {"base": lambda: 0.25}, seconds=1)
    assert len(clock.measured) == 10


def test_a_kernel_that_takes_no_time_has_one_all_the_same() -> None:
    assert timer.warm_up(Scripted(), {"base": lambda: 0.0, "head": lambda: 5.0}, 1e-4)["base"] > 0


def test_the_cpu_clock_runs_calls_in_order_and_what_follows_untimed() -> None:
    ran: list[str] = []
    first = Interval((lambda: ran.append("a"), lambda: ran.append("b")), after=lambda: ran.append("copy"))
    times = timer.CpuTimer().measure([first, Interval((lambda: ran.append("c"),))], lambda: ran.append("reading"))
    assert ran == ["a", "b", "copy", "c", "reading"]
    assert all(time_us > 0 for time_us in times)
    assert timer.CpuTimer().capture([lambda: None]) is None
