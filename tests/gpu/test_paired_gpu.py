"""A duel on a GPU from end to end. Nothing here asserts how long anything takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.kernel import suite
from kernelgate.bench.system import environment
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.paired import PairedPlan
from tests import faulty

pytestmark = pytest.mark.gpu

CASE = suite.SuiteCase(512, 16, 8, "fp16")


@pytest.fixture(scope="module")
def machine() -> record.Environment:
    return environment.describe()


def run(base: Library, head: Library, machine: record.Environment, path: Path) -> record.RunRecord:
    plan = PairedPlan(base=base, head=head, cases=(CASE,), environment=machine, seed=5, launches=1, rounds=60)
    return paired.run(plan, record.RunRecord(), path / "run.json")


def test_a_launch_has_samples_graphs_outputs_and_telemetry(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    done = run(faulty.build(tmp_path / "base", "gpu_base"), kernel_library, machine, tmp_path)
    assert record.read(tmp_path / "run.json") == done
    (launch,) = done.cases[0].launches
    assert launch.order == "interleaved"
    assert {side: len(samples) for side, samples in launch.samples_us.items()} == {"base": 60, "head": 60, "oracle": 60}
    assert set(launch.graph_us) == {"base", "head", "oracle"}
    assert {side: check.passed for side, check in launch.outputs.items()} == {"base": True, "head": True}
    assert launch.telemetry is not None
    assert launch.telemetry.sm_mhz
    assert launch.telemetry.temperature_c
    assert done.environment.device.uuid
    assert not [note for note in done.notes if "host fell behind" in note]


@pytest.mark.parametrize("fault", ["stops_working", "remembers", "skips_last_row"])
def test_a_kernel_that_does_not_do_its_work_when_timed_is_caught(
    kernel_library: Library, machine: record.Environment, tmp_path: Path, fault: str
) -> None:
    done = run(kernel_library, faulty.build(tmp_path / "head", f"gpu_{fault}", fault), machine, tmp_path)
    outputs = done.cases[0].launches[0].outputs
    assert outputs["base"].passed
    assert not outputs["head"].passed


def test_a_kernel_that_cannot_be_captured_is_timed_without_a_graph(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    done = run(kernel_library, faulty.build(tmp_path / "head", "gpu_sync", "synchronises"), machine, tmp_path)
    (launch,) = done.cases[0].launches
    assert set(launch.graph_us) == {"base", "oracle"}
    assert len(launch.samples_us["head"]) == 60


def test_a_context_that_dies_is_one_sentence(
    kernel_library: Library, machine: record.Environment, tmp_path: Path
) -> None:
    causal = suite.SuiteCase(512, 2, 8, "fp16", causal=True)
    head = faulty.build(tmp_path / "head", "gpu_asserts", "asserts_if_causal")
    plan = PairedPlan(base=kernel_library, head=head, cases=(causal,), environment=machine, seed=5, launches=1)
    with pytest.raises(paired.LaunchError, match="while calling head for the first time on"):
        paired.run(plan, record.RunRecord(), tmp_path / "run.json")
