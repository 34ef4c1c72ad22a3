"""The CPU half of `make benchmark-fuzz`: every planted bug that changes a result on a CPU is caught.

By fuzzing or, where the result is within the tolerance, by its accuracy.

What survives is named in benchmarks/fuzzing/library.py with the reason.
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import ROOT, Bug
from benchmarks.fuzzing.detectors import BugResult, BugResults, measure

pytestmark = pytest.mark.guards("bench/", "csrc/", "benchmarks/fuzzing/")
RECORDED = BugResults.model_validate_json((ROOT / "benchmarks/results/fuzzing_cpu.json").read_bytes())
NIGHTLY_S = 5.0
"""What took longer when it was recorded is looked for each night alone: CI has 45 minutes for all tests."""


def on_cpu(*, equivalent: bool) -> list[ParameterSet]:
    bugs = [bug for bug in library.select("cpu") if bool(bug.equivalent) is equivalent]
    return [pytest.param(bug, id=bug.id, marks=mark(bug)) for bug in bugs]


def mark(bug: Bug) -> pytest.MarkDecorator:
    found = RECORDED.of(bug.id, "cpu")
    return pytest.mark.nightly if found and found.seconds > NIGHTLY_S else pytest.mark.slow


def look(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> BugResult:
    """What `kernelgate fuzz` and, where it finds nothing, `kernelgate accuracy` say of it."""
    (result,) = measure([bug], "cpu", tmp_path_factory.mktemp("bug"), ("fuzz", "accuracy"))
    assert result.built, result.message
    assert not result.undecided, result.looks
    return result


@pytest.mark.parametrize("bug", on_cpu(equivalent=True))
def test_what_changes_no_result_is_not_called_wrong(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kernels as they are, too."""
    found = look(bug, tmp_path_factory)
    assert found.caught_by is None, found.looks


@pytest.mark.parametrize("bug", on_cpu(equivalent=False))
def test_a_bug_is_caught(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One that is caught although it is named as a survivor: take it off the list."""
    caught = look(bug, tmp_path_factory).caught_by is not None
    assert caught == ((bug.id, "cpu") not in library.SURVIVORS)
