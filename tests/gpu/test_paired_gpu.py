"""A paired comparison on a GPU from end to end. Nothing here asserts how long anything takes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.kernel import cards
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.process import Measuring
from tests import faulty

pytestmark = pytest.mark.gpu

CASE = "s512_b16_h8_d64_fp16"


Compare = Callable[..., record.RunRecord]


@pytest.fixture
def compare(kernel_library: Library, machine: record.Environment, tmp_path: Path) -> Compare:
    """The kernel, and on one side another one with a fault."""

    def compared(side: str, fault: str = "none", id_: str = CASE, witness: bool = False) -> record.RunRecord:
        card = faulty.card()
        (chosen,) = cards.select(cards.Cards(card.file.parent, (card,)), "cuda", None, [id_])
        other = faulty.build(tmp_path / side, f"gpu_{fault}", fault)
        sides = {"base": kernel_library, "head": kernel_library, side: other}
        part = CardPlan(card, Sides(sides["base"], sides["head"]), (chosen.case,))
        plan = PairedPlan((part,), machine, Measuring(5, 60), 1, witness)
        return paired.run(plan, record.RunRecord(), tmp_path / "run.json")

    return compared


def looked_at(calls: record.Calls) -> bool:
    """Whether a quarter of the calls was compared, or an eighth of that where it takes long to compare, each on inputs
    of its own, and none of them wrong."""
    compared = (calls.compared or 0) / (calls.made or 1)
    return 0.02 < compared < 0.35 and (calls.failed, calls.repeated) == (0, 0)


def test_a_process_has_samples_graphs_outputs_and_telemetry_and_a_witness(compare: Compare, tmp_path: Path) -> None:
    done = compare("base", witness=True)
    assert record.read(tmp_path / "run.json") == done
    assert [process.role for process in done.processes] == ["paired", "witness"]
    (timing,) = done.processes[0].timings
    assert [len(timing.samples_us[side]) for side in ("base", "head")] == [60, 60]
    assert 0 < len(timing.samples_us["reference"]) < 60, "in some rounds"
    assert set(timing.graph_us) == {"base", "head", "reference"}
    assert set(timing.calls) == {"base", "head"}
    assert all(map(looked_at, timing.calls.values()))
    assert all(errors.maximum is not None for errors in timing.errors.values())
    written = 16 * 8 * 512 * 64 * 2
    assert timing.memory_bytes["head"] == written, "the kernel takes nothing beside the output that it is handed"
    assert timing.memory_bytes["base"] > written, "this one computes with torch, and copies its result"
    assert timing.telemetry is not None
    assert timing.telemetry.sm_mhz
    assert timing.telemetry.temperature_c
    assert done.environment.device.uuid
    codes = {note.code for note in done.notes}
    assert not codes & {"host_bound", "verified_in_process", "fewer_inputs"}
    assert done.checks == (), "both clocks agree"
    each_sample_has_its_place_start_and_clock(timing)
    each_side_is_timed_alone(done.processes[1])


def each_sample_has_its_place_start_and_clock(timing: record.Timing) -> None:
    lengths = {side: len(samples) for side, samples in timing.samples_us.items()}
    for held in (timing.positions, timing.previous, timing.started_us):
        assert {side: len(values) for side, values in held.items()} == lengths
    assert all(one != other for one, other in zip(timing.positions["base"], timing.positions["head"], strict=True))
    assert {"base", "head", "reference"} <= set(timing.previous["base"]) | set(timing.previous["head"])
    every = sorted(
        (start, start + time_us * (1 if side == "reference" else timing.inner_repeats or 1))
        for side, starts in timing.started_us.items()
        for start, time_us in zip(starts, timing.samples_us[side], strict=True)
    )
    assert every[0][0] >= 0
    assert all(end < start + 5 for (_, end), (start, _) in pairwise(every)), "one after the other, by the same clock"
    highest = timing.telemetry.max_sm_mhz if timing.telemetry else None
    for clocks in timing.sm_mhz.values():
        assert all(100 < clock < 1.05 * (highest or 5_000) for clock in clocks)


def each_side_is_timed_alone(witness: record.Process) -> None:
    (timing,) = witness.timings
    assert set(timing.samples_us) == {"base", "head"}
    assert len(set(map(len, timing.samples_us.values()))) == 1
    for calls in timing.calls.values():
        assert (calls.failed, calls.repeated) == (0, 0)
        assert calls.compared


@pytest.mark.parametrize("fault", ["stops_working", "remembers", "skips_last_row"])
def test_a_kernel_that_does_not_do_its_work_when_timed_is_caught(compare: Compare, fault: str) -> None:
    calls = compare("head", fault).processes[0].timings[0].calls
    assert looked_at(calls["base"])
    assert calls["head"].failed > 0


def test_a_kernel_that_cannot_be_captured_is_timed_without_a_graph(compare: Compare) -> None:
    (timing,) = compare("head", "synchronises").processes[0].timings
    assert set(timing.graph_us) == {"base", "reference"}
    assert len(timing.samples_us["head"]) == 60
    assert looked_at(timing.calls["base"])
    assert timing.calls["head"].failed == 0


def test_a_context_that_dies_is_the_heads_crash_in_one_sentence(compare: Compare) -> None:
    made = compare("head", "asserts_if_causal", "s512_b2_h8_d64_fp16_causal")
    calls = [timing.calls.get("head", record.Calls()) for one in made.processes for timing in one.timings]
    (crash,) = [one for one in calls if one.crashed]
    assert (crash.failed, crash.hung, "\n" in str(crash.crashed)) == (1, False, False)
