"""Timing on a GPU: that the calls run, in order, behind the hold. Nothing here asserts how long anything takes."""

from __future__ import annotations

import pytest
import torch

from bench import timer
from bench.timer import CudaTimer, Interval

pytestmark = pytest.mark.gpu


def test_intervals_run_in_order_and_what_follows_is_queued_behind() -> None:
    clock = CudaTimer()
    value = torch.zeros(1, device="cuda")
    copies = [torch.empty(1, device="cuda") for _ in range(3)]
    add = Interval((lambda: value.add_(1), lambda: value.mul_(2)))
    intervals = [Interval(add.calls, after=lambda copy=copy: copy.copy_(value)) for copy in copies]
    clock.measure([Interval((lambda: value.zero_(),))])
    times = clock.measure(intervals)
    assert len(times) == 3
    assert all(time_us > 0 for time_us in times)
    assert float(copies[0]) in (2, 14, 62), "run again as a whole where the hold was too short"


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
    assert (CudaTimer().graph([lambda: value.add_(1)] * 10) or 0) > 0
    assert float(value) == 10 * (1 + CudaTimer.GRAPH_REPLAYS)


def test_calls_that_cannot_be_captured_have_no_graph_and_do_no_harm() -> None:
    clock = CudaTimer()
    value = torch.zeros(1, device="cuda")
    assert clock.graph([torch.cuda.synchronize]) is None
    assert (clock.graph([lambda: value.add_(1)]) or 0) > 0
