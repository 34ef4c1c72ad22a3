"""Timing on a GPU: that the calls run, in order, behind the hold. Nothing here asserts how long anything takes."""

from __future__ import annotations

import pytest
import torch

from kernelgate.bench.timing.case_timing import AROUND_SAMPLE, QUEUE_LENGTH
from kernelgate.bench.timing.timer import CudaTimer, Interval, waits

pytestmark = pytest.mark.gpu


def test_intervals_run_in_order_and_what_is_around_them_is_queued_with_them() -> None:
    value = torch.zeros(1, device="cuda")
    before, after = ([torch.empty(1, device="cuda") for _ in range(3)] for _ in range(2))
    intervals = [
        Interval(
            (lambda number=number: value.fill_(number), lambda: value.mul_(2)),
            before=lambda copy=before[number]: copy.copy_(value),
            after=lambda copy=after[number]: copy.copy_(value),
        )
        for number in range(3)
    ]
    read: list[bool] = []
    measured = CudaTimer().measure(intervals, lambda: read.append(True))
    assert len(measured.times_us) == 3
    assert all(time_us > 0 for time_us in measured.times_us)
    assert [float(copy) for copy in before] == [0, 0, 2]
    assert [float(copy) for copy in after] == [0, 2, 4]
    assert read == [True]


def test_the_gpu_does_not_wait_for_the_host() -> None:
    clock = CudaTimer()
    x = torch.zeros(1 << 20, device="cuda")
    intervals = [Interval((lambda: x.add_(1),))] * (QUEUE_LENGTH // (1 + AROUND_SAMPLE))
    held = [clock.measure(intervals).held for _ in range(5)]
    assert held[-1], "the hold grows until the host can queue a batch behind it"


def test_a_host_that_is_too_slow_is_told() -> None:
    clock = CudaTimer()
    assert not clock.measure([Interval((torch.cuda.synchronize,))]).held


def test_a_call_that_waits_for_the_gpu_is_known_by_what_torch_says() -> None:
    x = torch.ones(4, device="cuda")
    assert waits(lambda: x @ x) is None
    for call in (lambda: x.sum().item(), lambda: torch.tensor([1.0, 2.0], device="cuda")):
        assert "synchroniz" in (waits(call) or "")
    assert x.sum().item() == 4, "afterwards, anybody may wait"
