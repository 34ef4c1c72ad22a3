"""One case in one process as its leader sees it, on a device that takes as long as it is told."""

from __future__ import annotations

import random
from itertools import pairwise
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench import record
from kernelgate.bench.system.worker import Message
from kernelgate.bench.timing import case_timing, protocol
from kernelgate.bench.timing.case_timing import AROUND_SAMPLE, MAX_REPEATS, MAX_SAMPLES, CaseSamples, ProcessError, Team
from kernelgate.bench.timing.protocol import Batch, BatchDone
from tests.bench.timing.simulated import SimulatedProcess

THREE: dict[record.Side, float] = {"base": 100.0, "head": 300.0, "reference": 200.0}
TWO: dict[record.Side, float] = {"base": 100.0, "head": 50.0}
HOW = Batch(what="timing")


def warmed(simulated: SimulatedProcess, seconds: float = 0.01, pause: bool = False) -> CaseSamples:
    case = simulated.samples()
    case_timing.warm_up(simulated.team, case, seconds, pause_when_capped=pause)
    return case


BOTH: list[tuple[record.Side, int]] = [("base", 1), ("head", 1)]


def timed(simulated: SimulatedProcess, rounds: int) -> CaseSamples:
    case = warmed(simulated)
    case_timing.time_rounds(simulated.team, case, rounds, lambda: None)
    return case


class Excusing(SimulatedProcess):
    def _answer(self, asked: Message) -> Message:
        if isinstance(asked, protocol.Finish):
            codes = (case_timing.REFERENCE_FAILS, "compiled_while_measuring")
            return protocol.CaseDone(autotuned={}, notes=tuple(record.Note(code=code, text="so") for code in codes))
        return super()._answer(asked)


def test_a_measured_process_cannot_say_that_the_card_has_no_reference() -> None:
    """It would be excused from the limit that the reference's time sets."""
    simulated = Excusing(TWO)
    notes = case_timing.finished(simulated.team, timed(simulated, 40), "card", "cpu").notes
    assert [note.code for note in notes] == ["compiled_while_measuring"]


@pytest.mark.parametrize(("call_us", "rounds"), [(100.0, 100), (10_000.0, 100), (15_000.0, 60), (40_000.0, 40)])
def test_slow_calls_are_timed_in_fewer_rounds(call_us: float, rounds: int) -> None:
    case = warmed(SimulatedProcess({"base": call_us, "head": call_us, "reference": 9e6}))
    assert case_timing.rounds_in_time(case, 100) == rounds
    assert case_timing.rounds_in_time(case, 10) == 10, "as many as are asked for, where those are fewer"
    case.wall_s = 1.0
    assert case_timing.rounds_in_time(case, 100) == 40, "by the host's time, where that is more"


@given(st.lists(st.integers(1, 40), max_size=600), st.integers(1, 60), st.integers(1, 200))
def test_batches_keep_the_order_and_fit(calls: list[int], slots: int, queue: int) -> None:
    cut = list(case_timing.batches(calls, slots, queue))
    assert [number for first, end in cut for number in range(first, end)] == list(range(len(calls)))

    def fits(first: int, end: int) -> bool:
        part = calls[first:end]
        room = sum(part) <= slots and sum(count + AROUND_SAMPLE for count in part) <= queue
        return room and 0 < len(part) <= MAX_SAMPLES

    assert all(fits(first, end) or end == first + 1 for first, end in cut), "one that is too long is alone"
    assert not any(fits(first, end + 1) for (first, end), _ in pairwise(cut)), "as many as fit"
    assert list(case_timing.batches([1] * 600, 10_000, 10_000)) == [(0, 256), (256, 512), (512, 600)]


@pytest.mark.parametrize(("sides", "notes"), [(["base"], {"host_bound"}), (["base", "head"], set())])
def test_a_host_that_is_always_too_slow_gets_shorter_batches(sides: list[str], notes: set[str]) -> None:
    """It is said once a batch cannot be made shorter."""
    simulated = SimulatedProcess(TWO, held=[False] * 9)
    case = simulated.samples()
    assert len(case_timing.batch(simulated.team, case, simulated, [(side, 1) for side in sides], HOW)) == len(sides)
    assert len(simulated.batches) == len(simulated.looked) == case_timing.ATTEMPTS == 3, "and looked at each time"
    assert simulated.batches[0].samples[0].windows != simulated.batches[1].samples[0].windows, "on other inputs"
    assert len(case.readings) == 1, "only the last one's are kept"
    assert not {one.busy_us for one in simulated.looked} & {100.0, 150.0}, "by this process's clock, not the device's"
    assert case.queue_length == case_timing.QUEUE_LENGTH // 2 == 300
    assert set(case.notes) == notes


def test_calls_that_wait_for_the_device_are_timed_once_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedProcess(TWO)
    for waits, attempts in ((True, 1), (False, case_timing.ATTEMPTS)):
        answer = BatchDone(times_us=(1.0, 2.0), held=False, waits=waits)
        case, made = simulated.samples(), Mock(return_value=answer)
        monkeypatch.setattr(simulated, "_made", made)
        assert len(case_timing.batch(simulated.team, case, simulated, BOTH, HOW)) == 2
        assert made.call_count == attempts
        assert set(case.notes) == ({"host_waits"} if waits else set())


def test_a_call_hangs_that_takes_twenty_times_as_long_and_twenty_seconds_more_than_it_did_at_least() -> None:
    case = SimulatedProcess(TWO).samples()
    case.first_calls_s, case.fastest_s = 300.0, {"base": 2.0}
    assert case.patience_s([("base", 3)]) == 20 + 20 * 3 * 2
    assert case.patience_s([("base", 3), ("head", 1)]) == 300, "the head's first calls may compile"


def test_times_that_no_such_process_gives_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = SimulatedProcess(TWO)
    for said, answer in (
        ("a batch with times of other samples", BatchDone(times_us=(1.0,))),
        ("a batch with times of other samples", BatchDone(times_us=(1.0, 2.0), started_us=(0.0,))),
        ("a CPU waited for the host", BatchDone(times_us=(1.0, 2.0), started_us=(0.0, 1.0), held=False)),
    ):
        monkeypatch.setattr(simulated, "_made", lambda _, answer=answer: answer)
        with pytest.raises(ProcessError, match=said):
            case_timing.batch(simulated.team, simulated.samples(), simulated, BOTH, HOW)


@pytest.mark.parametrize(
    ("step_us", "call_us", "repeats"),
    [
        (1.024, 321.0, 4),
        (0.032, 46.0, 8),
        (0.0, 300.0, 2),
        (0.0, 300.1, 1),
        (0.0, 1e-3, MAX_REPEATS),
    ],
)
def test_a_sample_takes_300_us_and_a_thousand_steps_of_the_clock(step_us: float, call_us: float, repeats: int) -> None:
    assert case_timing.inner_repeats(step_us, call_us) == repeats


@pytest.mark.parametrize(("slots", "repeats"), [(512, 64), (33, 32), (31, 16), (1, 1)])
def test_a_sample_has_no_more_calls_than_there_are_outputs(slots: int, repeats: int) -> None:
    simulated = SimulatedProcess({"base": 5.0, "head": 7.0}, slots=slots)
    assert timed(simulated, 3).inner_repeats == repeats
    assert all(sum(len(sample.slots) for sample in asked.samples) <= slots for asked in simulated.batches)


def test_warming_up_lasts_until_the_device_has_worked_enough() -> None:
    simulated = SimulatedProcess(THREE)
    case = warmed(simulated, 0.5)
    alone = [[sample.side for sample in asked.samples] for asked in simulated.batches[:3]]
    assert alone == [["base"] * 2, ["head"] * 2, ["reference"] * 2], "a call which dies is that side's"
    calls = simulated.calls("warming up")
    assert calls["base"] == calls["head"], "both as often"
    assert 0.5e6 <= sum(calls[side] * THREE[side] for side in THREE) <= 0.51e6
    assert case.inner_repeats == 4, "of the fastest side"
    assert (case.samples, case.readings) == ([], []), "they are of no sample"
    assert warmed(SimulatedProcess({"base": 0.0, "head": 5.0}), 1e-4).inner_repeats == MAX_REPEATS, "it ends"


@pytest.mark.parametrize(
    ("needed_us", "allowed", "pause_us"),
    [(0.0, True, 0.0), (50.0, True, 100.0), (150.0, True, 200.0), (1e9, True, 400.0), (150.0, False, 0.0)],
    ids=["no limit", "a little", "more", "never enough", "not allowed"],
)
def test_at_the_power_limit_samples_follow_pauses(needed_us: float, allowed: bool, pause_us: float) -> None:
    simulated = SimulatedProcess(THREE, capped_below_us=needed_us)
    case = warmed(simulated, pause=allowed)
    assert case.pause_us == pause_us, "a sample is 4 calls of 100 µs"
    tried = sorted({asked.pause_us for asked in simulated.batches})
    assert tried == [pause for pause in (0.0, 100.0, 200.0, 400.0) if pause <= pause_us]
    simulated.batches.clear()
    case_timing.time_rounds(simulated.team, case, 4, lambda: None)
    assert {asked.pause_us for asked in simulated.batches} == {pause_us}
    done = case_timing.finished(simulated.team, case, "card", "cpu")
    assert done.timing.pause_us == (pause_us or None)
    said = f"here: the GPU ran at its power limit, so each sample follows a pause of {pause_us:.0f} µs"
    assert [(note.code, note.text) for note in done.notes] == ([("paused", said)] if pause_us else [])


def test_rounds_hold_both_sides_in_random_order() -> None:
    simulated = SimulatedProcess(THREE)
    case = timed(simulated, 60)
    times = case.calls_us
    assert times == {"base": (100.0,) * 60, "head": (300.0,) * 60, "reference": (200.0,) * 15}
    order = [sample.side for asked in simulated.batches if asked.what == "timing" for sample in asked.samples]
    in_turn = iter(order)
    rounds = [[next(in_turn) for _ in range(2 + (number % 4 == 0))] for number in range(60)]
    assert all(sorted(one) == sorted(THREE)[: len(one)] for one in rounds), "the reference in every fourth"
    positions = {side: tuple(one.index(side) for one in rounds if side in one) for side in THREE}
    assert case.by_side(lambda one: one.position) == positions
    assert 10 < sum(one.index("base") < one.index("head") for one in rounds) < 50


def test_what_ran_before_each_sample_is_kept() -> None:
    """None at the start of a batch: the device did other work."""
    simulated = SimulatedProcess({"base": 100.0, "head": 300.0}, slots=40)
    case = timed(simulated, 60)
    done = [asked for asked in simulated.batches if asked.what == "timing"]
    assert len(done) > 5
    expected = [before for asked in done for before in (None, *(sample.side for sample in asked.samples[:-1]))]
    assert [one.previous for one in case.samples] == expected


def test_processes_of_one_side_take_turns() -> None:
    base, head = SimulatedProcess({"base": 100.0}), SimulatedProcess({"head": 300.0, "reference": 10.0})
    case = base.samples()
    case.reference = True
    turns: list[dict[record.Side, int]] = []

    def turned() -> None:
        turns.append({side: len(values) for side, values in case.by_side(lambda one: one.us).items()})

    case_timing.time_rounds(Team(base, (base, head)), case, 45, turned)
    assert [(made["base"], made["head"]) for made in turns] == [(20, 20), (40, 40), (45, 45)]
    assert {sample.side for asked in base.batches for sample in asked.samples} == {"base"}
    assert {sample.side for asked in head.batches for sample in asked.samples} == {"head", "reference"}


def test_graphs_give_the_time_of_one_call() -> None:
    simulated = SimulatedProcess(THREE, no_graphs=("head",))
    case = timed(simulated, 5)
    looked = len(simulated.looked)
    case_timing.replay_graphs(simulated.team, case)
    assert case.graph_us == {"base": 50.0, "reference": 100.0}
    assert simulated.calls("replaying graphs of") == {"base": 20 * 3, "reference": 20 * 3, "head": 20}
    assert len(simulated.looked) - looked == 6, "where none can be captured, outputs say nothing of the kernel"
    overwritten = protocol.NamedInput(name="x", items=(), slotted=True)
    case.graph_us, case.prepared = {}, case.prepared.model_copy(update={"inputs": (overwritten,)})
    case_timing.replay_graphs(simulated.team, case)
    assert case.graph_us == {}, "a kernel that overwrites its inputs has none"


def test_a_slow_reference_is_called_as_often_as_its_own_samples_need() -> None:
    """It may launch dozens of kernels: as many calls as a fast kernel has in a sample would not fit into the queue."""
    simulated = SimulatedProcess({"base": 8.0, "head": 8.0, "reference": 120.0})
    case = timed(simulated, 20)
    assert (case.inner_repeats, case.reference_repeats) == (64, 4)
    assert simulated.calls("timing") == {"base": 20 * 64, "head": 20 * 64, "reference": 5 * 4}
    assert case.call_us == {"base": 8.0, "head": 8.0, "reference": 120.0}


@pytest.mark.parametrize("apart", [True, False])
def test_a_reference_beside_one_side_alone_is_called_after_both(apart: bool) -> None:
    """Else that side alone finds other caches and another heap: equal kernels differed by 12% on a CPU."""
    base = SimulatedProcess({"base": 100.0})
    head = SimulatedProcess({"head": 100.0, "reference": 200.0})
    team, case = Team(head, (base, head)), head.samples()
    case.apart = apart
    case_timing.warm_up(team, case, 0.01, pause_when_capped=False)
    case_timing.time_rounds(team, case, 40, lambda: None)
    sides = [sample.side for asked in head.batches for sample in asked.samples]
    assert ("head" not in sides[sides.index("reference") :]) is apart
    assert {side: len(times) for side, times in case.calls_us.items()} == {"base": 40, "head": 40, "reference": 10}
    assert case.call_us["reference"] == 200.0


@pytest.mark.parametrize(
    ("around_us", "wrong"),
    [
        ({"base": 2.0, "head": 10.9}, False),  # 5 µs and 1% of a sample of 400 are allowed
        ({"base": 2.0, "head": 11.1}, True),
        ({"base": 43.0, "head": 3.0}, True),
        ({"base": 43.0, "head": 43.0}, False),
        (None, False),
        ({"base": 2.0, "head": 2.0, "reference": 80.0}, False),
    ],
    ids=["noise", "head is a little off", "base is 10% off", "both are", "no probes", "the reference waits"],
)
def test_a_clock_that_is_wrong_for_one_side_is_found(around_us: dict[record.Side, float] | None, wrong: bool) -> None:
    """Samples of 400 µs, by a clock that counts less than the device's own."""
    call_us: dict[record.Side, float] = dict.fromkeys(around_us or ("base", "head"), 100.0)
    simulated = SimulatedProcess(call_us, around_us=around_us)
    case = timed(simulated, 20)
    found = case_timing.finished(simulated.team, case, "card", "cpu").contradiction
    assert (found is not None) is wrong
    if found:
        assert found.startswith("here: by the device's own clock a sample takes ")
        assert all(f"{us:.1f} µs more of {side}" in found for side, us in (around_us or {}).items())
    case.note("host_waits", "calls wait for the GPU")
    done = case_timing.finished(simulated.team, case, "card", "cpu")
    assert done.contradiction is None, "what the host does meanwhile is in one of the clocks"
    assert bool(done.timing.clocks_apart_us) is wrong
    if wrong:
        least, most = sorted(us for side, us in (around_us or {}).items())
        assert done.timing.clocks_apart_us == pytest.approx((most - least) / case.inner_repeats)


def batch_extra(rng: random.Random, delayed: float) -> list[float]:
    """What the leader's clock counts beside the device's: of eight batches, this share waits for a stranger."""
    return [rng.gauss(110, 10) + (rng.uniform(300, 2500) if rng.random() < delayed else 0) for _ in range(8)]


@pytest.mark.parametrize(("delayed", "found"), [(0.0, 200), (0.1, 130), (0.3, 0), (1.0, 0)])
def test_another_process_on_the_device_makes_no_clock_wrong_and_hides_few_that_are(delayed: float, found: int) -> None:
    rng = random.Random(5)

    def apart(more_us: float) -> bool:
        head = [us + more_us for us in batch_extra(rng, delayed)]
        said = case_timing.disagreeing({"base": batch_extra(rng, delayed), "head": head}, 150.0)
        return said is not None and (more_us == 0 or [side for side, _ in said] == ["base", "head"])

    assert sum(apart(0.0) for _ in range(2000)) <= 3
    assert sum(apart(1500.0) for _ in range(200)) >= found


def test_a_timing_holds_each_sample() -> None:
    simulated = SimulatedProcess(THREE, around_us=3.0, sm_mhz=1980.0)
    case = timed(simulated, 8)
    done = case_timing.finished(simulated.team, case, "card", "cpu")
    timing = done.timing
    assert (timing.card, timing.case, done.notes, done.verifying_s) == ("card", "here", (), 0.25)
    assert done.calling_s == case.busy_us / 1e6
    assert timing.samples_us == {"base": (100.0,) * 8, "head": (300.0,) * 8, "reference": (200.0,) * 2}
    for held in (timing.positions, timing.previous, timing.started_us):
        assert {side: len(values) for side, values in held.items()} == {"base": 8, "head": 8, "reference": 2}
    assert timing.sm_mhz == {"base": (1980.0,) * 8, "head": (1980.0,) * 8, "reference": (1980.0,) * 2}
    assert (timing.inner_repeats, timing.clock_step_us) == (4, 0.0)
    next(one for one in case.samples if one.side == "head").sm_mhz = None
    timing = case_timing.finished(simulated.team, case, "card", "cpu").timing
    assert set(timing.sm_mhz) == {"base", "reference"}, "known of some samples alone"


def test_warming_up_ends_where_the_host_takes_longer_than_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def batches(host_s: float) -> int:
        simulated, now = SimulatedProcess({"base": 1.0, "head": 1.0}), iter(range(10**6))
        monkeypatch.setattr(case_timing.time, "perf_counter", lambda: next(now) * host_s)
        warmed(simulated, seconds=0.5)
        return len(simulated.batches)

    assert batches(host_s=0.5) < 10 < batches(host_s=1e-9)
