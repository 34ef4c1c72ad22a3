"""Timing on a GPU: that the calls run, in order, behind the hold. Nothing here asserts how long anything takes."""

from __future__ import annotations

import pytest
import torch

from kernelgate.bench.timing import timer
from kernelgate.bench.timing.timer import CudaTimer, Interval

pytestmark = pytest.mark.gpu


def test_intervals_run_in_order_and_what_follows_is_queued_behind() -> None:
    value = torch.zeros(1, device="cuda")
    copies = [torch.empty(1, device="cuda") for _ in range(3)]
    intervals = [
        Interval(
            (lambda number=number: value.fill_(number), lambda: value.mul_(2)),
            after=lambda copy=copy: copy.copy_(value),
        )
        for number, copy in enumerate(copies)
    ]
    read: list[bool] = []
    times = CudaTimer().measure(intervals, lambda: read.append(True))
    assert len(times) == 3
    assert all(time_us > 0 for time_us in times)
    assert [float(copy) for copy in copies] == [0, 2, 4]
    assert read


def test_the_gpu_does_not_wait_for_the_host() -> None:
    clock = CudaTimer()
    x = torch.zeros(1 << 20, device="cuda")
    clock.measure([Interval((lambda: x.add_(1),))] * 2000)
    assert clock.host_bound == 0


def test_the_clock_has_a_step() -> None:
    step_us = timer.clock_step(CudaTimer())
    assert 0 < step_us < 10


def test_a_graph_replays_the_calls() -> None:
    value = torch.zeros(1, device="cuda")
    clock = CudaTimer()
    replay = clock.capture([lambda: value.add_(1)] * 10)
    assert replay is not None
    assert float(value) == 0, "capturing runs nothing"
    (time_us,) = clock.measure([Interval((replay,))])
    assert time_us > 0
    assert float(value) > 0
    assert float(value) % 10 == 0


def test_calls_that_cannot_be_captured_have_no_graph_and_do_no_harm() -> None:
    clock = CudaTimer()
    value = torch.zeros(1, device="cuda")
    assert clock.capture([torch.cuda.synchronize]) is None
    assert clock.capture([lambda: value.add_(1)]) is not None
