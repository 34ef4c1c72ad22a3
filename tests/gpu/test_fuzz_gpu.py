"""The fuzzer on a GPU: each way of calling finds the fault that it is for, and a right kernel passes all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import cards, commit, fuzz_trials
from kernelgate.bench.record import FuzzResult
from tests import faulty, miniature

pytestmark = pytest.mark.gpu

SEED = 2
CASE = "s257_b2_h3_d64_fp16_distribution-normal_way-"


def tried(fault: str, folder: Path, machine: record.Environment, trial: str, seed: int = 1) -> FuzzResult:
    library = faulty.build(folder / "library", f"gpu_ways_{fault}", fault)
    (result,) = fuzz.run(library, faulty.card(), seed, machine, [trial]).results
    return result


@pytest.mark.parametrize(
    ("fault", "way", "says"),
    [
        ("on_the_default_stream", "stream", "on a stream of its own: .*; does it launch on the current stream?"),
        ("shares_a_workspace", "two-streams", "with calls on two streams at once: "),
        ("rarely_wrong", "repeat", "call 400 on the same inputs: error 1"),
        ("ignores_strides", "gaps", "where q has gaps between its rows: "),
    ],
)
def test_a_fault_is_found(fault: str, way: str, says: str, tmp_path: Path, machine: record.Environment) -> None:
    result = tried(fault, tmp_path, machine, f"{CASE}{way}")
    assert not result.passed
    assert re.search(says, result.message or ""), result.message


def test_an_offset_of_32_bits_is_found(tmp_path: Path, machine: record.Environment) -> None:
    known = fuzz_trials.risks(1, faulty.card(), "cuda", machine.device.memory_bytes)
    huge = next(trial.id for trial in known if trial.way == "huge")
    result = tried("overflows_beyond_2_gib", tmp_path, machine, huge)
    assert not result.passed
    assert re.search(r"entry \d+ of \d+: error", result.message or ""), result.message


IN_PLACE = """
from kernelgate import Kernel, Package

class Exp(Kernel):
    build = Package("ours")
    cases = [dict(N=4096, dtype="fp32")]
    fuzz = dict(N=range(1, 5000), dtype=("fp32",))
    in_place = ("x",)

    def inputs(self, case, draw):
        return dict(x=draw(case.N))

    def call(self, package, case, x):
        package.exp(x)

    def oracle(self, case, x):
        return x.exp()
"""


def test_a_right_kernel_that_overwrites_its_input_passes_every_way(tmp_path: Path, machine: record.Environment) -> None:
    """A call that loads the kernel overwrites the inputs of the one that is compared."""
    files = {".ci/kernels/exp.py": IN_PLACE, "ours/__init__.py": "def exp(x):\n    x.exp_()\n"}
    repo = miniature.repository(tmp_path / "repo", files)
    [card] = cards.of_checkout(repo).cards
    library = commit.build_tree(repo).built["exp"]
    tried_ways = [f"n4096_fp32_distribution-normal_way-{way}" for way in fuzz_trials.WAYS["cuda"]]
    done = fuzz.run(library, card, 1, machine, tried_ways)
    assert [(result.id, result.message) for result in done.results if not result.passed] == []
    assert any("two-streams" in result.id for result in done.results)


def test_what_cannot_be_captured_is_said_and_no_fault(tmp_path: Path, machine: record.Environment) -> None:
    result = tried("synchronises", tmp_path, machine, f"{CASE}graph")
    assert result.passed
    assert (result.note or "").startswith("cannot be captured into a CUDA graph: ")


def test_the_kernel_passes_everything_that_is_risky(kernel_library: Library, machine: record.Environment) -> None:
    done = fuzz.run(kernel_library, faulty.card(), SEED, machine)
    assert [result.message for result in done.results if not result.passed] == []
    assert done.asked == done.run
    assert not [result.note for result in done.results if "not the same" in (result.note or "")], "it is deterministic"


def drawn(causal: bool) -> list[str]:
    """Small configurations that this seed draws with a mask, or without."""
    trials = fuzz_trials.trials(SEED, faulty.card(), "cuda")
    return [trial.id for trial in trials if trial.axes["causal"] == causal and 1 < int(trial.axes["S"]) < 300]


@pytest.mark.parametrize("fault", ["writes_nan", "skips_last_row", "writes_before_output", "reads_past_input"])
def test_faults_are_found_on_a_gpu_too(tmp_path: Path, machine: record.Environment, fault: str) -> None:
    assert not tried(fault, tmp_path, machine, drawn(False)[0], SEED).passed


def test_an_error_that_ends_a_context_fails_its_case_alone(tmp_path: Path, machine: record.Environment) -> None:
    library = faulty.build(tmp_path / "library", "gpu_asserts", "asserts_if_causal")
    full, other = drawn(False)[:2]
    done = fuzz.run(library, faulty.card(), SEED, machine, [full, drawn(True)[0], other])
    assert [result.passed for result in done.results] == [True, False, True]
    assert (done.results[1].message or "").startswith("the kernel raised an error: ")
