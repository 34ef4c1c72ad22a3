"""How samples are cut into batches, and what one batch asks of a verifier and of a measured process."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.timing import batches
from kernelgate.bench.timing.batches import AROUND_SAMPLE, MAX_SAMPLES
from kernelgate.bench.timing.protocol import Batch, CheckCalls
from tests.bench.timing.simulated import SimulatedProcess

HOW = Batch(what="timing", samples=())


# ----------------------------------------------------------------------------------------------------------------------
# Cutting
# ----------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), max_size=600), st.integers(1, 60), st.integers(1, 200))
def test_batches_keep_the_order_and_fit(calls: list[int], slots: int, queue: int) -> None:
    cut = list(batches.batches(calls, slots, queue))
    assert [number for first, end in cut for number in range(first, end)] == list(range(len(calls)))

    def fits(first: int, end: int) -> bool:
        part = calls[first:end]
        room = sum(part) <= slots and sum(count + AROUND_SAMPLE for count in part) <= queue
        return room and len(part) <= MAX_SAMPLES

    assert all(fits(first, end) or end == first + 1 for first, end in cut), "one that is too long is alone"
    assert not any(fits(first, end + 1) for (first, end), _ in pairwise(cut)), "as many as fit"


# ----------------------------------------------------------------------------------------------------------------------
# One batch
# ----------------------------------------------------------------------------------------------------------------------


def test_each_sample_gets_the_windows_and_slots_that_were_planned_for_it() -> None:
    simulated = SimulatedProcess({"base": 100.0, "head": 50.0})
    times = batches.batch(simulated.team, simulated.samples(), simulated.measured, ["head", "base", "head"], 2, HOW)
    (asked,) = simulated.batches
    assert [(one.side, one.windows, one.slots) for one in asked.samples] == [
        ("head", (0, 1), (0, 1)),
        ("base", (2, 3), (2, 3)),
        ("head", (4, 5), (4, 5)),
    ]
    assert [(time.side, time.us) for time in times] == [("head", 100.0), ("base", 200.0), ("head", 100.0)]
    (looked,) = simulated.looked
    sides = ("head", "head", "base", "base", "head", "head")
    assert looked == CheckCalls(sides=sides, busy_us=looked.busy_us, samples=3)
    assert looked.busy_us > 0, "by this process's own clock, whatever the other one says"


def test_a_batch_that_the_host_could_not_queue_in_time_is_made_again_on_other_inputs() -> None:
    simulated = SimulatedProcess({"base": 100.0, "head": 50.0}, held=[False, True])
    case = simulated.samples()
    times = batches.batch(simulated.team, case, simulated.measured, ["base", "head"], 1, HOW)
    assert len(simulated.batches) == len(simulated.looked) == 2, "and looked at each time"
    assert simulated.batches[0].samples[0].windows != simulated.batches[1].samples[0].windows
    assert len(times) == 2
    assert case.busy_us == 300.0
    assert case.queue_length == batches.QUEUE_LENGTH
    assert not case.notes


@pytest.mark.parametrize(("sides", "notes"), [(["base"], {"host_bound"}), (["base", "head"], set())])
def test_a_host_that_is_always_too_slow_gets_shorter_batches(sides: list[str], notes: set[str]) -> None:
    """It is said once a batch cannot be made shorter."""
    simulated = SimulatedProcess({"base": 100.0, "head": 50.0}, held=[False] * 9)
    case = simulated.samples()
    assert len(batches.batch(simulated.team, case, simulated.measured, sides, 1, HOW)) == len(sides)
    assert len(simulated.batches) == batches.ATTEMPTS
    assert case.queue_length == batches.QUEUE_LENGTH // 2
    assert set(case.notes) == notes


def test_where_no_graph_can_be_captured_no_output_is_looked_at() -> None:
    """No call was made: what the outputs hold says nothing of the kernel."""
    simulated = SimulatedProcess({"base": 100.0, "head": 50.0}, no_graphs=("head",))
    how = Batch(what="replaying graphs of", samples=(), graph=True)
    case = simulated.samples()
    assert batches.batch(simulated.team, case, simulated.measured, ["head"], 4, how) == []
    assert simulated.looked == []
    assert len(batches.batch(simulated.team, case, simulated.measured, ["base"], 4, how)) == 1
    assert len(simulated.looked) == 1


# ----------------------------------------------------------------------------------------------------------------------
# Two clocks
# ----------------------------------------------------------------------------------------------------------------------


def batch_extra(rng: random.Random, delayed: float) -> list[float]:
    """What the leader's clock counts beside the device's: of eight batches, this share waits for a stranger."""
    return [rng.gauss(110, 10) + (rng.uniform(300, 2500) if rng.random() < delayed else 0) for _ in range(8)]


@pytest.mark.parametrize("delayed", [0.0, 0.1, 0.3, 0.5, 0.7, 1.0])
def test_another_process_on_the_device_does_not_make_a_clock_wrong(delayed: float) -> None:
    rng = random.Random(f"{delayed}")
    wrong = sum(
        batches.disagreeing({"base": batch_extra(rng, delayed), "head": batch_extra(rng, delayed)}, 150.0) is not None
        for _ in range(2000)
    )
    assert wrong <= 3


@pytest.mark.parametrize(("delayed", "found"), [(0.0, 200), (0.1, 130)])
def test_a_clock_that_is_wrong_by_more_than_strangers_explain_is_found(delayed: float, found: int) -> None:
    rng = random.Random(5)
    said = [
        batches.disagreeing(
            {"base": batch_extra(rng, delayed), "head": [us + 1500 for us in batch_extra(rng, delayed)]}, 150.0
        )
        for _ in range(200)
    ]
    assert sum(one is not None and one[:2] == ("base", "head") for one in said) >= found
