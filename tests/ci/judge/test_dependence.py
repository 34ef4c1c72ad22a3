"""What the ratio depends on: what ran before, the clock, the clock by side. On records made up as by a capped GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.verdict import power
from benchmarks.verdict.power import Gpu
from kernelgate.bench.record import TimedProcess, timed_cases
from kernelgate.ci.judge import dependence
from kernelgate.ci.judge.dependence import Dependence
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.runs import changed

STEADY = Gpu(wander=0.0)
SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, gpu: Gpu, processes: int = 3) -> Sequence[TimedProcess]:
    (case,) = timed_cases(power.record(np.random.default_rng(seed), gpu, processes))
    return case.processes


def said(found: Dependence) -> list[str]:
    return [finding.message for moved in found.moved for finding in moved.findings]


def swapped(process: TimedProcess) -> TimedProcess:
    """As if the base were the head."""
    other = {"base": "head", "head": "base", "reference": "reference", None: None}
    timing = process.timing
    named = ("samples_us", "sm_mhz")
    fields = {name: {other[side]: values for side, values in getattr(timing, name).items()} for name in named}
    before = {other[side]: tuple(other[was] for was in values) for side, values in timing.previous.items()}
    return changed(process, **fields, previous=before)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.01, 0.05]))
def test_swapping_the_sides_only_changes_the_sign(seed: int, carry_over: float) -> None:
    (process,) = drawn(seed, replace(STEADY, carry_over=carry_over), 1)
    one, other = dependence.carry_over(process), dependence.carry_over(swapped(process))
    assert other.base.change == pytest.approx(-one.head.change, abs=1e-9)
    assert other.head.change == pytest.approx(-one.base.change, abs=1e-9)
    assert other.moved == pytest.approx(-one.moved, abs=1e-9)
    assert other.both.error == pytest.approx(one.both.error)


def test_where_nothing_is_known_of_single_samples_nothing_is_said() -> None:
    processes = drawn(1, replace(STEADY, carry_over=0.1, clocks=False))
    assert [dependence.carry_over(process) for process in processes] == [None] * 3
    assert said(dependence.judged(processes, 2)) == []
    (process,) = drawn(1, replace(STEADY, carry_over=0.1), 1)
    rounds = len(process.samples_us["base"])
    fixed = changed(process, previous={"base": ("head",) * rounds, "head": ("base",) * rounds})
    assert dependence.carry_over(fixed) is None, "the order never changes"


def test_eight_rounds_of_each_order_are_enough_and_seven_are_not() -> None:
    (process,) = drawn(1, replace(STEADY, carry_over=0.02), 1)
    orders = [("base", "base"), ("head", "base"), ("head", "head")]
    for fewest, known in ((8, True), (7, False)):
        before = [order for order, count in zip(orders, (fewest, 40, 40), strict=True) for _ in range(count)]
        times = {side: values[: len(before)] for side, values in process.samples_us.items() if side != "reference"}
        previous = {side: tuple(order[at] for order in before) for at, side in enumerate(("base", "head"))}
        assert (dependence.carry_over(changed(process, samples_us=times, previous=previous)) is not None) is known


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
