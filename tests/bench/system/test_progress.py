from __future__ import annotations

import threading
import time

import pytest

from kernelgate.bench.system import progress


def test_a_log_hears_something_although_no_step_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0.05)
    with progress.track("compile", 2) as advance:
        advance("the slow one")
        time.sleep(0.5)
        advance("")
    first, *between, last = capfd.readouterr().err.splitlines()
    assert first == "compile: 2 steps"
    assert between
    assert set(between) <= {"compile: 1/2, 0 s, the slow one", "compile: 1/2, 1 s, the slow one"}
    assert last.startswith("compile: 2/2, ")
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_one_step_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.track("profile", 1) as advance:
        advance("")
    assert capfd.readouterr().err.splitlines()[0] == "profile: 1 step"


def test_a_log_is_not_flooded(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.track("fuzz", 100) as advance:
        for number in range(100):
            advance(f"case {number}")
    first, *between, last = capfd.readouterr().err.splitlines()
    assert (first, last) == ("fuzz: 100 steps", "fuzz: 100/100, 0 s, case 99")
    assert len(between) <= 1
