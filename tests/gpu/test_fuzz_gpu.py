"""The fuzzer on a GPU: the kernel passes the whole list, and an error that ends a CUDA context stays with its case."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import fuzz_trials
from tests import faulty

pytestmark = pytest.mark.gpu

SEED = 2


def drawn(causal: bool) -> list[str]:
    """Small configurations that this seed draws with a mask, or without."""
    trials = fuzz_trials.trials(SEED, faulty.card(), "cuda")
    return [trial.id for trial in trials if trial.axes["causal"] == causal and 1 < int(trial.axes["S"]) < 300]


def test_the_kernel_passes_the_whole_list(kernel_library: Library, machine: record.Environment) -> None:
    own = [trial.id for trial in fuzz_trials.trials(SEED, faulty.card(), "cuda")]
    done = fuzz.run(kernel_library, faulty.card(), SEED, machine, own)
    assert [result.message for result in done.results if not result.passed] == []
    assert len(done.results) == 39
    assert {result.axes["dtype"] for result in done.results} == {"fp16", "bf16"}


@pytest.mark.parametrize("fault", ["writes_nan", "skips_last_row", "writes_before_output", "reads_past_input"])
def test_faults_are_found_on_a_gpu_too(tmp_path: Path, machine: record.Environment, fault: str) -> None:
    done = fuzz.run(
        faulty.build(tmp_path / "library", f"gpu_{fault}", fault), faulty.card(), SEED, machine, drawn(False)[:1]
    )
    assert done.status == "failed"


def test_an_error_that_ends_a_context_fails_its_case_alone(tmp_path: Path, machine: record.Environment) -> None:
    library = faulty.build(tmp_path / "library", "gpu_asserts", "asserts_if_causal")
    full, other = drawn(False)[:2]
    done = fuzz.run(library, faulty.card(), SEED, machine, [full, drawn(True)[0], other])
    assert [result.passed for result in done.results] == [True, False, True]
    assert (done.results[1].message or "").startswith("the kernel raised an error: ")
