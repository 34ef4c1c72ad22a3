"""One case in one process as its leader sees it, on a device that takes as long as it is told."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kernelgate.bench import record
from kernelgate.bench.timing import batches, case_timing
from kernelgate.bench.timing.batches import CaseSamples
from kernelgate.bench.timing.case_timing import MAX_REPEATS, SHORTEST_US
from tests.bench.timing.simulated import SimulatedProcess

THREE: dict[record.Side, float] = {"base": 100.0, "head": 300.0, "reference": 200.0}


# ----------------------------------------------------------------------------------------------------------------------
# How long a sample is
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step_us", "call_us"), [(1.024, 321.0), (1.024, 20.0), (0.032, 46.0), (0.032, 3.0), (0.001, 5e3), (1.0, 1000.0)]
)
def test_a_step_is_under_a_thousandth_of_a_sample(step_us: float, call_us: float) -> None:
    repeats = case_timing.inner_repeats(step_us, call_us)
    sample_us = call_us * repeats
    assert step_us < 1e-3 * sample_us
    assert sample_us >= SHORTEST_US
    assert repeats == 1 or sample_us <= 2 * max(1e3 * step_us, SHORTEST_US), "no longer than it need be"


@pytest.mark.parametrize(("slots", "repeats"), [(512, 64), (33, 32), (31, 16), (1, 1)])
def test_a_sample_has_no_more_calls_than_there_are_outputs(slots: int, repeats: int) -> None:
    simulated = SimulatedProcess({"base": 5.0, "head": 7.0}, slots=slots)
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, 0.01, pause_when_capped=False)
    case_timing.time_rounds(simulated.team, case, 3, lambda: None)
    assert case.inner_repeats == repeats
    assert all(sum(len(sample.slots) for sample in asked.samples) <= slots for asked in simulated.batches)


# ----------------------------------------------------------------------------------------------------------------------
# Warming up
# ----------------------------------------------------------------------------------------------------------------------


def test_warming_up_lasts_until_the_device_has_worked_enough() -> None:
    simulated = SimulatedProcess(THREE)
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, 0.5, pause_when_capped=False)
    calls = simulated.calls("warming up")
    assert set(calls) == set(THREE)
    assert len(set(calls.values())) == 1, "each side as often"
    assert 0.5e6 <= sum(calls[side] * THREE[side] for side in THREE) <= 0.6e6
    assert case.inner_repeats == 4, "of the fastest side"
    assert case.samples_us == {}
    assert case.readings == [], "they are of no sample"


def test_each_side_is_called_alone_before_both_are() -> None:
    """So that a call which dies is that side's."""
    simulated = SimulatedProcess(THREE)
    case_timing.warm_up(simulated.team, simulated.samples(), 0.001, pause_when_capped=False)
    alone = [{sample.side for sample in asked.samples} for asked in simulated.batches[:3]]
    assert alone == [{"base"}, {"head"}, {"reference"}]


def test_a_kernel_that_takes_no_time_ends_warming_up_all_the_same() -> None:
    simulated = SimulatedProcess({"base": 0.0, "head": 5.0})
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, 1e-4, pause_when_capped=False)
    assert case.inner_repeats == MAX_REPEATS


# ----------------------------------------------------------------------------------------------------------------------
# Pauses
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needed_us", "allowed", "pause_us"),
    [(0.0, True, 0.0), (50.0, True, 100.0), (150.0, True, 200.0), (1e9, True, 400.0), (150.0, False, 0.0)],
    ids=["no limit", "a little", "more", "never enough", "not allowed"],
)
def test_at_the_power_limit_samples_follow_pauses(needed_us: float, allowed: bool, pause_us: float) -> None:
    simulated = SimulatedProcess(THREE, capped_below_us=needed_us)
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, 0.01, pause_when_capped=allowed)
    assert case.pause_us == pause_us, "a sample is 4 calls of 100 µs"
    tried = sorted({asked.pause_us for asked in simulated.batches})
    assert tried == [pause for pause in (0.0, 100.0, 200.0, 400.0) if pause <= pause_us]
    simulated.batches.clear()
    case_timing.time_rounds(simulated.team, case, 4, lambda: None)
    assert {asked.pause_us for asked in simulated.batches} == {pause_us}
    done = case_timing.finished(simulated.team, case, "card")
    timing, notes = done.timing, done.notes
    assert timing.pause_us == (pause_us or None)
    said = f"here: the GPU ran at its power limit, so each sample follows a pause of {pause_us:.0f} µs"
    assert [(note.code, note.text) for note in notes] == ([("paused", said)] if pause_us else [])


# ----------------------------------------------------------------------------------------------------------------------
# Rounds
# ----------------------------------------------------------------------------------------------------------------------


def timed(simulated: SimulatedProcess, rounds: int) -> CaseSamples:
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, 0.01, pause_when_capped=False)
    case_timing.time_rounds(simulated.team, case, rounds, lambda: None)
    return case


def test_rounds_hold_both_sides_in_random_order() -> None:
    case = timed(SimulatedProcess(THREE), 60)
    assert case.samples_us["base"] == [100.0] * 60
    assert case.samples_us["head"] == [300.0] * 60
    assert case.samples_us["reference"] == [200.0] * (60 // case_timing.REFERENCE_EVERY)
    pairs = list(zip(case.positions["base"], case.positions["head"], strict=True))
    assert all(base != head for base, head in pairs)
    assert 10 < sum(base < head for base, head in pairs) < 50


def test_what_ran_before_each_sample_is_kept() -> None:
    """None at the start of a batch: the device did other work."""
    simulated = SimulatedProcess({"base": 100.0, "head": 300.0}, slots=40)
    case = timed(simulated, 60)
    done = [asked for asked in simulated.batches if asked.what == "timing"]
    assert len(done) > 5
    expected: dict[str, list[str | None]] = {"base": [], "head": []}
    for asked in done:
        expected[asked.samples[0].side].append(None)
        for before, sample in pairwise(asked.samples):
            expected[sample.side].append(before.side)
    assert case.previous == expected


def test_processes_of_one_side_take_turns() -> None:
    base, head = SimulatedProcess({"base": 100.0}), SimulatedProcess({"head": 300.0, "reference": 10.0})
    both = batches.Team(base, (base.measured, head.measured))
    case = base.samples()
    case.reference = True
    case.inner_repeats = 1
    turns = 0

    def turned() -> None:
        nonlocal turns
        turns += 1
        assert len(case.samples_us["base"]) == len(case.samples_us["head"])

    case_timing.time_rounds(both, case, 2 * case_timing.ROUNDS_PER_TURN + 5, turned)
    assert turns == 3
    assert len(case.samples_us["base"]) == len(case.samples_us["head"]) == 2 * case_timing.ROUNDS_PER_TURN + 5
    assert {sample.side for asked in base.batches for sample in asked.samples} == {"base"}
    assert {sample.side for asked in head.batches for sample in asked.samples} == {"head", "reference"}


# ----------------------------------------------------------------------------------------------------------------------
# Graphs
# ----------------------------------------------------------------------------------------------------------------------


def test_graphs_give_the_time_of_one_call() -> None:
    simulated = SimulatedProcess(THREE, no_graphs=("head",))
    case = timed(simulated, 5)
    case_timing.replay_graphs(simulated.team, case)
    assert case.graph_us == {"base": 50.0, "reference": 100.0}
    assert simulated.calls("replaying graphs of")["base"] == 20 * case_timing.GRAPH_ROUNDS


def test_a_kernel_that_overwrites_its_inputs_has_no_graph() -> None:
    simulated = SimulatedProcess(THREE)
    case = timed(simulated, 5)
    case.prepared = case.prepared.model_copy(update={"outputs": {}})
    case_timing.replay_graphs(simulated.team, case)
    assert case.graph_us == {}


# ----------------------------------------------------------------------------------------------------------------------
# Two clocks
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("around_us", "wrong"),
    [
        ({"base": 3.0, "head": 3.0}, False),
        ({"base": 2.0, "head": 6.0}, False),
        ({"base": 3.0, "head": 43.0}, True),
        ({"base": 43.0, "head": 3.0}, True),
        ({"base": 43.0, "head": 43.0}, False),
        ({"base": 3.0, "head": -37.0}, True),
        (None, False),
    ],
    ids=["right", "noise", "head is 10% off", "base is 10% off", "both are", "head is slowed", "no probes"],
)
def test_a_clock_that_is_wrong_for_one_side_is_found(around_us: dict[record.Side, float] | None, wrong: bool) -> None:
    """Samples of 400 µs; what a process says of head, or of base, is 40 µs less than the device's own clock."""
    found = case_timing.contradiction(timed(SimulatedProcess({"base": 100.0, "head": 100.0}, around_us=around_us), 20))
    assert (found is not None) is wrong
    if found:
        assert found.startswith("here: by the device's own clock a sample takes ")
        assert found.endswith("than by the clock of the process that made the calls: that clock is wrong")
        assert all(f"{us:.1f} µs more of {side}" in found for side, us in (around_us or {}).items())


# ----------------------------------------------------------------------------------------------------------------------
# The end
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probed", [True, False])
def test_a_timing_holds_each_sample(probed: bool) -> None:
    simulated = SimulatedProcess(THREE, around_us=3.0 if probed else None, sm_mhz=1980.0 if probed else None)
    case = timed(simulated, 8)
    done = case_timing.finished(simulated.team, case, "card")
    timing, notes, seconds = done.timing, done.notes, done.verifying_s
    assert (timing.card, timing.case, notes, seconds) == ("card", "here", (), 0.25)
    assert list(timing.samples_us) == ["base", "head", "reference"]
    for held in (timing.positions, timing.previous, timing.started_us):
        assert {side: len(values) for side, values in held.items()} == {
            side: len(samples) for side, samples in timing.samples_us.items()
        }
    assert set(timing.sm_mhz) == (set(THREE) if probed else set())
    assert timing.inner_repeats == 4


def test_a_clock_that_is_known_of_some_samples_alone_is_left_out() -> None:
    case = timed(SimulatedProcess(THREE, around_us=3.0, sm_mhz=1980.0), 8)
    case.sm_mhz["head"].pop()
    timing = case_timing.finished(SimulatedProcess(THREE).team, case, "card").timing
    assert set(timing.sm_mhz) == {"base", "reference"}
