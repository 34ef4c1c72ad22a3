"""A detector is a command, watched until it says what it found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.fuzzing import detectors
from benchmarks.fuzzing.bug import Bug, Planted
from benchmarks.fuzzing.library import CONTROLS


def made(bug: Bug, folder: Path) -> Planted:
    """Its repository, which is empty."""
    one = Planted(bug, "cpu", folder)
    one.tree.mkdir(parents=True)
    return one


@pytest.mark.parametrize(
    ("script", "caught", "message"),
    [
        (
            "print('fuzz: 38 steps\\nFAILED edge_s1 (seed 1): wrong')\ntime.sleep(60)",
            True,
            "FAILED edge_s1 (seed 1): wrong",
        ),
        ("print('the library cannot be loaded')\nsys.exit(3)", None, "exited with 3: the library cannot be loaded"),
        ("time.sleep(0.4)\nprint('fuzz: 38 steps')\ntime.sleep(60)", None, "not done after 0.3 s"),
    ],
    ids=["fails", "cannot run", "does not end"],
)
def test_a_command_is_watched_until_it_says_what_it_found(
    script: str, caught: bool | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first failure ends it; its time begins where it has the device."""
    monkeypatch.setattr(detectors, "KERNELGATE", (sys.executable, "-u", "-c", f"import sys, time\n{script}"))
    monkeypatch.setattr(detectors, "LIMIT_S", 0.3 if "not done" in message else 60.0)
    found = detectors.fuzz(made(CONTROLS[0], tmp_path))
    assert (found.caught, found.message) == (caught, message)
