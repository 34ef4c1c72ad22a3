"""What the ratio depends on: what ran before, the clock, the clock by side. On records made up as by a capped GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.verdict import power
from benchmarks.verdict.power import Gpu
from kernelgate.bench.record import TimedProcess, timed_cases
from kernelgate.ci.judge import dependence
from kernelgate.ci.judge.dependence import Dependence
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy

STEADY = Gpu(wander=0.0)


def drawn(seed: int, gpu: Gpu, processes: int = 3) -> Sequence[TimedProcess]:
    (case,) = timed_cases(power.record(np.random.default_rng(seed), gpu, processes))
    return case.processes


def said(found: Dependence) -> list[str]:
    return [finding.message for moved in found.moved for finding in moved.findings]


def test_the_process_in_which_it_shows_is_left_out_and_the_sentence_says_what_it_is() -> None:
    found = dependence.judged(drawn(2, replace(STEADY, carry_over=0.02, poisoned=(2,))), 2)
    assert found.left_out == {1}
    (message,) = said(found)
    assert message.startswith("process 2 is left out: there, after the ")
    assert message.endswith(" than after itself")


def test_a_small_one_is_kept_and_widens_the_interval() -> None:
    gpu = replace(STEADY, carry_over=0.003)
    found = dependence.judged(drawn(3, gpu, 5), 2)
    assert found.left_out == frozenset()
    (message,) = said(found)
    assert "than after itself, which can make 0." in message
    assert 0.0045 < sum(moved.bias for moved in found.moved) < 0.008
    (case,) = judge(power.record(np.random.default_rng(3), gpu, 5), Policy()).cases
    assert case.interval_pct[0] < 0.3 < case.interval_pct[1], "the change of each after itself"
    assert not case.disqualifying


def test_a_change_that_depends_on_the_clock_says_where_it_is_what() -> None:
    """Head over base: the head gains less from a faster clock, 0.2 of its logarithm."""
    processes = drawn(5, Gpu(head_bound=0.8, wander=0.03), 5)
    found = dependence.on_clock(processes)
    (finding,) = found.findings
    assert finding.message in said(dependence.judged(processes, 2))
    places = r"−([\d.]+)% at (\d+) MHz, −([\d.]+)% at (\d+) MHz, which"
    told = re.match(rf"the change depends on the SM clock: {places}", finding.message)
    at_low, low, at_high, high = map(float, told.groups())
    assert 1190 < low < high < 2010
    half = np.log(high / low) / 2
    slope = np.log((1 - at_high / 100) / (1 - at_low / 100)) / (2 * half)
    assert slope == pytest.approx(0.2, abs=0.07)
    assert slope * half < found.bias < 1.5 * slope * half


def test_a_clock_that_is_lower_for_the_head_is_part_of_the_change() -> None:
    found = dependence.judged(drawn(6, Gpu(droop=0.02)), 2)
    assert sum(moved.bias for moved in found.moved) < 1e-3
    (message,) = said(found)
    assert re.match(r"the SM clock is (1\.9|2\.0|2\.1)% lower during the head's samples", message)
    assert message.endswith("in the same rounds, which is part of the change")


@pytest.mark.slow
@pytest.mark.parametrize("clocks", [True, False])
def test_on_a_capped_gpu_over_many_records(clocks: bool) -> None:
    """To reach: alarms in at most 0.2%, +1% seen in at least 95%."""
    same = power.counted(Gpu(clocks=clocks), 1000)
    assert same.slower + same.faster <= 4
    assert same.refused + same.dependent <= 2
    assert power.counted(Gpu(clocks=clocks, change=0.01), 300).slower >= 285
