"""The arithmetic of timing, with clocks that are told what to show. Nothing here asserts how long anything takes."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from kernelgate.bench.timing import timer
from kernelgate.bench.timing.timer import Call, Interval, TimedIntervals


def test_the_step_is_the_smallest_difference_seen() -> None:
    assert timer.smallest_step([4.096, 5.12, 7.168, 5.12]) == pytest.approx(1.024)
    assert timer.smallest_step([2.0, 2.0, 2.0]) == pytest.approx(2.0), "above zero"
    assert timer.smallest_step([0.0]) > 0
    assert timer.smallest_step([1.0, 1.0 + 1e-7, 1.5]) == pytest.approx(0.5), "rounding of floats is none"


def test_the_cpu_clock_runs_calls_in_order_and_what_is_around_them_untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def does(what: str) -> Call:
        return lambda: ran.append(what)

    first = Interval((does("a"), does("b")), before=does("probe"), after=does("copy"))
    monkeypatch.setattr(timer, "_perf_counter_ns", iter([5_000, 8_000, 20_000, 20_500]).__next__)
    measured = timer.CpuTimer().measure([first, Interval((does("c"),))], does("reading"))
    assert ran == ["probe", "a", "b", "copy", "c", "reading"]
    assert measured == TimedIntervals((3.0, 0.5), (5_000, 20_000), held=True)
    assert timer.CpuTimer().capture([lambda: None]) is None


def test_a_clock_that_is_replaced_later_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a package that is loaded after this module."""
    monkeypatch.setattr(timer.time, "perf_counter_ns", lambda: 0)
    (time_us,) = timer.CpuTimer().measure([Interval((lambda: sum(range(1000)),))]).times_us
    assert time_us > 0


@dataclass
class SimulatedGpu:
    """A host that takes a while to queue an operation, and a device that does one after the other."""

    host_us: float = 0.0
    device_us: float = 0.0
    speed: float = 1.0
    """Of its clock, beside the one that the hold is counted in."""
    longest_us: float = 0.0
    """Of the holds since this was last set to 0."""

    def call(self, queuing_us: float, running_us: float) -> Call:
        def made() -> None:
            self.host_us += queuing_us
            self.device_us = max(self.device_us, self.host_us) + running_us

        return made

    def spin(self, cycles: int) -> None:
        self.longest_us = max(self.longest_us, cycles / timer.CudaTimer.CYCLES_PER_US)
        self.call(0.0, cycles / timer.CudaTimer.CYCLES_PER_US / self.speed)()

    def record(self, event: SimpleNamespace) -> None:
        event.at_us = max(self.device_us, self.host_us)

    def synchronize(self) -> None:
        self.host_us = max(self.host_us, self.device_us)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimulatedGpu:
    made = SimulatedGpu()
    monkeypatch.setattr(timer, "_event", SimpleNamespace)
    monkeypatch.setattr(timer, "_spin", made.spin)
    monkeypatch.setattr(timer, "_record", made.record)
    monkeypatch.setattr(timer, "_query", lambda event: event.at_us <= made.host_us)
    monkeypatch.setattr(timer, "_synchronize", made.synchronize)
    monkeypatch.setattr(timer, "_elapsed_time", lambda start, end: (end.at_us - start.at_us) / 1e3)
    monkeypatch.setattr(timer, "_perf_counter_ns", lambda: round(made.host_us * 1e3))
    return made


@pytest.mark.parametrize(
    ("speed", "calls", "holds", "held"),
    [
        # Each takes 900 µs to queue and 200 µs to run: after the third, the host is 2700 - 400 µs behind.
        (1.0, [(900, 200)] * 3, [5_000, 2 * 2_300, 2 * 2_300], [True] * 3),
        (1.0, [(1, 10)], [5_000, 500, 500], [True] * 3),
        (1.0, [(90_000, 10)], [5_000, 100_000, 100_000], [False, True, True]),
        (5.0, [(2_000, 10)] * 2, [5_000, 10_000, 20_000, 2 * 3_990], [False, False, True, False]),
        (1.0, [(6_000, 9_000), (10, 10)], [5_000, 2 * 6_000], [False, True]),
    ],
    ids=["twice the head start", "fast host", "stalled host", "fast clock: doubled", "one was too late"],
)
def test_the_device_is_held_until_the_host_is_far_enough_ahead(
    gpu: SimulatedGpu, speed: float, calls: list[tuple[float, float]], holds: list[float], held: list[bool]
) -> None:
    gpu.speed = speed
    clock, intervals = timer.CudaTimer(), [Interval((gpu.call(*one),)) for one in calls]
    for expected in zip(holds, held, strict=True):
        gpu.longest_us = 0.0
        was_held = clock.measure(intervals).held
        assert (gpu.longest_us, was_held) == expected


def test_what_is_timed_is_the_calls_alone(gpu: SimulatedGpu) -> None:
    interval = Interval((gpu.call(9, 200), gpu.call(9, 300)), before=gpu.call(5, 70), after=gpu.call(5, 80))
    assert timer.CudaTimer().measure([interval] * 2).times_us == pytest.approx((500, 500))


def test_no_hold_is_long_enough_for_a_call_that_waits_for_the_device(gpu: SimulatedGpu) -> None:
    """As one that asks for a value by `.item()`: each batch would take twice the longest hold."""
    running = gpu.call(5, 2_000)

    def waits() -> None:
        gpu.synchronize()
        running()

    clock, intervals = timer.CudaTimer(), [Interval((waits,)), Interval((running,))]
    said, held_us = [], []
    for _ in range(10):
        gpu.longest_us = 0.0
        said.append(clock.measure(intervals).waits)
        held_us.append(gpu.longest_us)
    assert said == [False] * 3 + [True] * 7
    assert (max(held_us) < 50_000, held_us[4:]) == (True, [500.0] * 6)
    assert clock.measure([Interval((running,))]) == timer.TimedIntervals((2_000,), (), held=True), "the other side's"
    slow = [Interval((gpu.call(60_000, 10),)), Interval((gpu.call(60_000, 10),))]
    assert not any(clock.measure(slow).waits for _ in range(10)), "however slow a host is"
