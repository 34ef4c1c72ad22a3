"""A detector is a command, watched until it says what it found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing import detectors
from benchmarks.fuzzing.bug import Bug, Planted
from benchmarks.fuzzing.detectors import DetectorResult
from benchmarks.fuzzing.library import BUGS, CONTROLS

Watch = Callable[[str], DetectorResult]


def made(bug: Bug, folder: Path) -> Planted:
    """Its repository, which is empty."""
    one = Planted(bug, "cpu", folder)
    one.tree.mkdir(parents=True)
    return one


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """What comes of `kernelgate fuzz` where it is this script."""

    def run(script: str) -> DetectorResult:
        monkeypatch.setattr(detectors, "KERNELGATE", (sys.executable, "-u", "-c", f"import sys, time\n{script}"))
        monkeypatch.setattr(detectors, "LIMIT_S", 0.3)
        return detectors.fuzz(made(CONTROLS[0], tmp_path))

    return run


def test_the_first_failure_ends_the_command(watch: Watch) -> None:
    found = watch("print('fuzz: 38 steps')\nprint('FAILED edge_s1 (seed 1): wrong')\ntime.sleep(60)")
    assert (found.caught, found.message) == (True, "FAILED edge_s1 (seed 1): wrong")


def test_a_command_that_cannot_run_decides_nothing(watch: Watch) -> None:
    found = watch("print('the library cannot be loaded')\nsys.exit(3)")
    assert (found.caught, found.message) == (None, "exited with 3: the library cannot be loaded")


def test_one_that_does_not_end_decides_nothing(watch: Watch) -> None:
    """Its time begins where it has the device."""
    found = watch("time.sleep(0.4)\nprint('fuzz: 38 steps')\ntime.sleep(60)")
    assert (found.caught, found.message) == (None, "not done after 0.3 s")
    assert found.seconds >= 0.3


@pytest.mark.parametrize(
    ("says", "caught"),
    [("⚠ less accurate: mean error 0.27 → 0.51 ulp", True), ("✅ accuracy: as before (mean error 0.27)", False)],
)
def test_less_accuracy_than_the_kernel_as_it_is_has_is_found(
    says: str, caught: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = next(one for one in BUGS if one.name == "rounded-twice" and "cpu" in one.devices)
    one = made(bug, tmp_path)
    right = Planted(planting.control(bug.kernel, bug.path), "cpu", tmp_path / "unmodified")
    monkeypatch.setattr(planting, "unmodified", lambda _: right)
    script = f"import sys; assert {str(right.library)!r} in sys.argv; print({says!r})"
    monkeypatch.setattr(detectors, "KERNELGATE", (sys.executable, "-u", "-c", script))
    found = detectors.accuracy(one)
    assert found.caught is caught, found.message
