"""A paired comparison on a GPU from end to end. Nothing here asserts how long anything takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import environment
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from tests import faulty

pytestmark = pytest.mark.gpu

CASE = "s512_b16_h8_d64_fp16"


@pytest.fixture(scope="module")
def machine() -> record.Environment:
    return environment.describe()


def run(base: Library, head: Library, machine: record.Environment, path: Path, id_: str = CASE) -> record.RunRecord:
    card = faulty.card()
    (chosen,) = cards.select(cards.Cards(card.file.parent, (card,)), "cuda", None, [id_])
    part = CardPlan(card, Sides(base, head), (chosen.case,))
    plan = PairedPlan(parts=(part,), environment=machine, seed=5, processes=1, rounds=60)
    return paired.run(plan, record.RunRecord(), path / "run.json")


def test_a_process_has_samples_graphs_outputs_and_telemetry(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    done = run(faulty.build(tmp_path / "base", "gpu_base"), kernel_library, machine, tmp_path)
    assert record.read(tmp_path / "run.json") == done
    (process,) = done.processes
    assert process.role == "paired"
    (timing,) = process.timings
    assert {side: len(samples) for side, samples in timing.samples_us.items()} == {
        "base": 60,
        "head": 60,
        "reference": 60,
    }
    assert set(timing.graph_us) == {"base", "head", "reference"}
    assert timing.calls == dict.fromkeys(("base", "head"), record.Calls(compared=3, failed=0))
    assert timing.telemetry is not None
    assert timing.telemetry.sm_mhz
    assert timing.telemetry.temperature_c
    assert done.environment.device.uuid
    assert not [note for note in done.notes if "host fell behind" in note.text]


@pytest.mark.parametrize("fault", ["stops_working", "remembers", "skips_last_row"])
def test_a_kernel_that_does_not_do_its_work_when_timed_is_caught(
    kernel_library: Library, machine: record.Environment, tmp_path: Path, fault: str
) -> None:
    done = run(kernel_library, faulty.build(tmp_path / "head", f"gpu_{fault}", fault), machine, tmp_path)
    calls = done.processes[0].timings[0].calls
    assert calls["base"].failed == 0
    assert calls["head"].failed > 0


def test_a_kernel_that_cannot_be_captured_is_timed_without_a_graph(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    done = run(kernel_library, faulty.build(tmp_path / "head", "gpu_sync", "synchronises"), machine, tmp_path)
    (timing,) = done.processes[0].timings
    assert set(timing.graph_us) == {"base", "reference"}
    assert len(timing.samples_us["head"]) == 60


def test_a_context_that_dies_is_one_sentence(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    head = faulty.build(tmp_path / "head", "gpu_asserts", "asserts_if_causal")
    with pytest.raises(paired.ProcessError, match="while calling head for the first time on"):
        run(kernel_library, head, machine, tmp_path, "s512_b2_h8_d64_fp16_causal")
