"""The CPU half of `make benchmark-fuzz`: every planted bug that changes a result on a CPU is caught.

What survives is named in benchmarks/fuzzing/survivors.py with the reason.
"""

from __future__ import annotations

import pytest

from benchmarks.fuzzing import library, survivors
from benchmarks.fuzzing.bug import Bug
from benchmarks.fuzzing.detectors import DetectorResult
from benchmarks.fuzzing.measure import Asked, measure

pytestmark = pytest.mark.nightly

ON_CPU = library.select("cpu")


def look(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> DetectorResult:
    """What `kernelgate fuzz` says of it."""
    (result,) = measure([bug], Asked("cpu", tmp_path_factory.mktemp("bug")))
    assert result.built, result.message
    (only,) = result.looks
    assert only.caught is not None, only.message
    return only


@pytest.mark.parametrize("bug", [bug for bug in ON_CPU if bug.equivalent], ids=lambda bug: bug.id)
def test_what_changes_no_result_is_not_called_wrong(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kernels as they are, too."""
    found = look(bug, tmp_path_factory)
    assert not found.caught, found.message


@pytest.mark.parametrize("bug", [bug for bug in ON_CPU if not bug.equivalent], ids=lambda bug: bug.id)
def test_a_bug_is_caught(bug: Bug, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One that is caught although it is named as a survivor: take it off the list."""
    assert look(bug, tmp_path_factory).caught == ((bug.id, "cpu") not in survivors.SURVIVORS)
