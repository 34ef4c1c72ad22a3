"""A detector is a command, watched until it says what it found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.fuzzing import detectors
from benchmarks.fuzzing.detectors import DetectorResult
from benchmarks.fuzzing.library import CONTROLS
from benchmarks.fuzzing.planting import Planted

Watch = Callable[[str], DetectorResult]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """What comes of `kernelgate fuzz` where it is this script."""

    def run(script: str) -> DetectorResult:
        monkeypatch.setattr(detectors, "KERNELGATE", (sys.executable, "-u", "-c", f"import sys, time\n{script}"))
        return detectors.fuzz(Planted(CONTROLS[0], "cpu", tmp_path), 1, limit_s=0.3)

    return run


def test_the_first_failure_ends_the_command(watch: Watch) -> None:
    begun = time.monotonic()
    found = watch("print('fuzz: 38 steps')\nprint('FAILED edge_s1 (seed 1): wrong')\ntime.sleep(60)")
    assert (found.caught, found.message) == (True, "FAILED edge_s1 (seed 1): wrong")
    assert time.monotonic() - begun < 50


def test_a_command_that_ends_well_has_found_nothing(watch: Watch) -> None:
    assert watch("print('fuzz attention: 38 of 38 configurations passed')").caught is False


def test_a_command_that_cannot_run_decides_nothing(watch: Watch) -> None:
    found = watch("print('the library cannot be loaded')\nsys.exit(3)")
    assert (found.caught, found.message) == (None, "exited with 3: the library cannot be loaded")


def test_one_that_does_not_end_decides_nothing(watch: Watch) -> None:
    """Its time begins where it has the device."""
    found = watch("time.sleep(0.4)\nprint('fuzz: 38 steps')\ntime.sleep(60)")
    assert (found.caught, found.message) == (None, "not done after 0.3 s")
    assert found.seconds >= 0.3
