"""What spoils a measurement: each threshold of the policy, exactly at it and on either side. Copies: what was pasted is
refused, what a coarse clock repeats is not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.record import Case, Device, Telemetry, TimedProcess, Work, timed_cases
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import validity
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Policy
from tests.ci.records import Samples, noise, paired_record
from tests.runs import process


def reading(**telemetry: Any) -> TimedProcess:
    return process({"head": [1.0]}, telemetry=Telemetry(**telemetry))


def slowed(share: float | None, reason: str = "sw_power_cap", **clocks: float | None) -> TimedProcess:
    shares = {} if share is None else {reason: share}
    return reading(throttle_reasons=(reason,), throttle_shares=shares, **clocks)


def codes(found: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in found]


def one(found: Iterable[Finding], code: str) -> Finding | None:
    kept = [finding for finding in found if finding.code == code]
    assert len(kept) <= 1, kept
    return kept[0] if kept else None


@pytest.mark.parametrize(("bias", "change", "fatal"), [(0.99, 0.0, 0), (1.01, 0.0, 1), (1.2, -2.4, 0), (1.2, 2.3, 1)])
def test_what_moves_the_estimate_is_fatal_beyond_the_margin_and_half_of_the_change(
    bias: float, change: float, fatal: int
) -> None:
    """In hundredths of log time, with a margin of just one."""
    gates = Gates(margin_pct=as_percent(0.01))
    moved = validity.Moved(bias / 100, (Finding("other", "", False), Finding("moved", "", False)))
    assert [finding.disqualifies for finding in moved.against(change / 100, gates)] == [False, bool(fatal)]
    assert validity.Moved(1.0).against(0.0, gates) == ()


@pytest.mark.parametrize(("share", "much"), [(0.49, False), (0.5, True), (None, True)])
def test_a_process_slowed_for_half_of_it_is_throttled(share: float | None, much: bool) -> None:
    found = slowed(share)
    assert validity.throttled(found) == (("sw_power_cap",) if much else ())
    moment = "" if much else " for a moment or by a step of the clock"
    for are, told in ((validity.LEFT_OUT, ", which are left out"), (validity.SHARED, ", base and head alike")):
        (said,) = validity.of_telemetry([found, reading()], True, are)
        assert said.message == f"the GPU was throttled (sw_power_cap){moment} in 1 of 2 processes{told if much else ''}"


@pytest.mark.parametrize(
    ("clock", "most", "left_out"),
    [(1000.0, 1020.0, False), (1000.0, 1020.1, True), (None, 1020.0, True), (1000.0, None, True)],
)
def test_a_clock_within_a_step_of_its_maximum_is_not_throttled(
    clock: float | None, most: float | None, left_out: bool
) -> None:
    assert bool(validity.throttled(slowed(1.0, sm_mhz=clock, max_sm_mhz=most))) == left_out


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("clock", "changed"), [(1020.0, False), (1020.1, True)])
def test_clocks_too_far_apart_are_not_one_clock(clock: float, changed: bool, interleaved: bool) -> None:
    readings = [reading(sm_mhz=mhz) for mhz in (1010.0, 1000.0, clock)] + [reading()]
    found = one(validity.of_telemetry(readings, interleaved), "clock_change")
    assert (found is not None) == changed
    if found:
        assert found.disqualifies == (not interleaved)
        assert "between 1000 and 1020 MHz" in found.message
        assert ("were not timed in the same rounds" in found.message) == (not interleaved)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("clock", "apart"), [(1020.0, []), (1020.1, [True])])
def test_the_median_clocks_of_baseline_and_head_must_agree(clock: float, apart: list[bool], swapped: bool) -> None:
    sides = [[1000.0, 1000.0, 1900.0], [clock, clock, 500.0]]
    base, head = ([reading(sm_mhz=mhz) for mhz in side] for side in (reversed(sides) if swapped else sides))
    assert [finding.disqualifies for finding in validity.clocks_apart(base, head)] == apart
    unknown = [reading(), process({"head": [1.0]})]
    assert [*validity.clocks_apart(base, unknown), *validity.clocks_apart(unknown, head)] == []


def of_samples(
    sides: dict[str, Sequence[Array]], code: str, paired: bool = False, coarse: bool = False
) -> list[Finding]:
    return [finding for finding in validity.of_samples(sides, paired, coarse) if finding.code == code]


def drifting(percent: float, rounds: int = 300) -> Array:
    """A last third that lies so much above the first."""
    noise = np.resize([0.9999, 1.0, 1.0001], rounds // 3)
    return 100 * np.concatenate([noise, noise, noise * (1 + percent / 100)])


@pytest.mark.parametrize(
    ("faster_pct", "apart_us", "shown"),
    [(33, None, True), (33, 2.0, True), (5, None, True), (5, 4.0, False), (33, 30.0, False)],
)
def test_calls_that_wait_are_faster_by_no_less_than_their_clocks_are_apart(
    faster_pct: float, apart_us: float | None, shown: bool
) -> None:
    """Of 100 µs. A clock that counts 30 µs less than there are has shown nothing by counting a third less."""
    plain = paired_record(*noise(np.random.default_rng(1), -faster_pct / 100))
    apart = {"clocks_apart_us": apart_us}
    waiting = [
        one.model_copy(update={"timings": tuple(timing.model_copy(update=apart) for timing in one.timings)})
        for one in plain.processes
    ]
    [comparison] = judge(plain.model_copy(update={"processes": tuple(waiting)}), Policy()).cases
    assert (comparison.status.outcome in ("faster", "improved")) is shown
    assert ("clocks_apart" in codes(comparison.findings)) is (apart_us is not None)


@pytest.mark.parametrize("percent", [0.99, 1.01, -1.01])
def test_a_side_that_drifts_with_the_other_is_named_and_against_it_widens_the_change(percent: float) -> None:
    """In one of two processes it is named; in most, the same way, the change is wider by half of it."""
    steady, moving = drifting(0), drifting(percent)
    both = validity.drift_of_sides([steady, moving], [steady, moving])
    alone = validity.drift_of_sides([steady, steady], [steady, moving])
    trend = validity.drift_of_sides([steady] * 3, [steady, moving, moving])
    unlike = validity.drift_of_sides([steady] * 3, [steady, moving, drifting(-percent)])
    named = abs(percent) > 1
    assert [len(found.findings) for found in (both, alone, trend, unlike)] == ([2, 1, 1, 1] if named else [0] * 4)
    assert (both.bias, alone.bias, unlike.bias) == (0.0, 0.0, 0.0)
    assert trend.bias == pytest.approx(abs(math.log1p(percent / 100)) / 2 if named else 0.0, rel=1e-3)
    if named:
        size = f"{percent:+.1f}%".replace("-", "−")
        assert both.findings[0].message == f"the base drifted by {size} within process 2, base and head together"
        assert alone.findings[0].message == f"head moved by {size} against base within process 2"
    found = of_samples({"base": [steady] * 2, "head": [moving, moving]}, "drift")
    assert [one.disqualifies for one in found] == ([True] if named else []), "where sides share no rounds"


L4 = Device(name="NVIDIA L4")


def floor(time_us: float, work: Work | None, device: Device = L4, dtype: str = "fp16") -> list[str]:
    case, sides = Case(id="one", axes={"dtype": dtype}, work=work), {"head": [np.array([time_us])]}
    return [finding.message for finding in validity.implausible(sides, (), case, device) if finding.disqualifies]


ARITHMETIC = Work(flops=1.21e10)
"""100 µs of the L4's dense float16."""
MEMORY = Work(flops=1.0, bytes=6e7)
"""200 µs of its memory, and more than its cache holds."""


@pytest.mark.parametrize(
    ("work", "floor_us", "limit"), [(ARITHMETIC, 100.0, "arithmetic"), (MEMORY, 200.0, "memory bandwidth")]
)
def test_a_time_below_what_the_device_allows_is_not_believed(work: Work, floor_us: float, limit: str) -> None:
    assert floor(0.951 * floor_us, work) == []
    (said,) = floor(0.949 * floor_us, work)
    assert f"the {limit} of the L4 allows no less than {floor_us:g} µs" in said


SEEDS = st.integers(0, 2**32 - 1)


def copied(base: Sequence[Any], head: Sequence[Any]) -> str | None:
    return validity.duplicated(timed_cases(paired_record(base, head)))


def stepped(sides: tuple[Samples, Samples], step: float) -> tuple[Samples, Samples]:
    base, head = ([np.round(samples / step) * step for samples in side] for side in sides)
    return base, head


def test_a_process_pasted_twice_is_refused_by_name() -> None:
    base, head = noise(np.random.default_rng(1), processes=3)
    verdict = judge(paired_record([*base, base[1]], [*head, head[1]]), Policy())
    said = "processes 2 and 4 hold the same times, all 100, of the base of one: copied, not measured"
    assert (verdict.refused, verdict.cases) == (said, ())


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.integers(16, 60), st.integers(0, 40), st.integers(0, 40))
def test_a_stretch_is_found_wherever_it_stands(seed: int, length: int, here: int, there: int) -> None:
    base, head = stepped(noise(np.random.default_rng(seed), processes=2), 0.032)
    base[1][there : there + length] = base[0][here : here + length]
    said = copied(base, head)
    assert f"hold the same {length} times of the base" in said or length > 90


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.0005, 0.001, 0.003, 0.01, 0.05]), st.sampled_from([0.002, 0.032, 0.5, 1.0, 10.0]))
def test_honest_processes_are_not_accused_however_coarse_the_clock(seed: int, spread: float, step: float) -> None:
    assert copied(*stepped(noise(np.random.default_rng(seed), processes=4, spread=spread), step)) is None


@pytest.mark.parametrize(("varies", "computed"), [(1e-5, True), (1.3e-5, False)])
def test_a_head_that_is_the_base_times_a_factor_was_not_timed(varies: float, computed: bool) -> None:
    """Nine tenths of its rounds: a few rounds apart hide nothing. On a clock of few ticks it may be by chance."""
    base, _ = noise(np.random.default_rng(8), processes=2)
    head = [1.25 * samples * (1 + varies * np.linspace(-1, 1, 100)) for samples in base]
    head[0][:4] *= 1.01
    said = "in process 1, the head's times of one are 1.25 times the base's: not measured" if computed else None
    assert copied(base, head) == said
    ticks = [np.resize(np.arange(100.0, 100.0 + different), 100) for different in (11, 12)]
    assert [copied([each], [2 * each]) is not None for each in ticks] == [False, True]


@pytest.mark.parametrize(("stray", "fatal"), [(14, False), (15, True)])
@pytest.mark.parametrize("inverted", [False, True])
def test_processes_that_keep_to_one_mode_are_only_named(stray: int, fatal: bool, inverted: bool) -> None:
    low, high = (120.0, 100.0) if inverted else (100.0, 120.0)
    processes = [np.repeat([low, high], [100 - stray, stray]), np.full(100, high), np.full(100, low)]
    (found,) = validity.modes_of_side("head", processes)
    assert found.disqualifies == fatal
    said = "jumps between 100 and 120 µs" if fatal else "sits at 100 or 120 µs from process to process"
    assert found.message == f"the head {said}"


def test_modes_that_both_sides_share_move_nothing() -> None:
    base = np.tile([100.0, 103.1], 50)
    found = validity.modes_of_sides([base] * 3, [base * 1.02] * 3)
    assert found.bias == 0
    assert [(one.code, one.disqualifies) for one in found.findings] == [("bimodal", False)] * 2
    assert found.findings[1].message.endswith("as often as the other side")


@pytest.mark.parametrize("swapped", [False, True])
def test_modes_of_one_side_alone_are_named_with_what_they_make(swapped: bool) -> None:
    jumping, steady = [np.tile([100.0, 110.0], 50)] * 3, [np.full(100, 100.0)] * 3
    found = validity.modes_of_sides(*((steady, jumping) if swapped else (jumping, steady)))
    assert found.bias > 0.4 * math.log(1.1)
    (said,) = found.findings
    who, more = ("head", "more") if swapped else ("base", "less")
    often = f"the head is 50% of the rounds {more} in the slow mode"
    assert said.message.startswith(f"the {who} jumps between 100 and 110 µs, and {often}: up to")
    assert said.message.endswith("% of change")
    assert [finding.disqualifies for finding in found.against(0.0, Policy().gates)] == [True]
