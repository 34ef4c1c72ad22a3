from __future__ import annotations

import re
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
    assert all(re.fullmatch(r"compile: 1/2, \d+ s of about \d+ s, the slow one", line) for line in between)
    assert last.startswith("compile: 2/2, ")
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_steps_that_are_not_alike_say_where_they_end(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0.01)
    with progress.track("compile", 2, alike=False, limit_s=600) as advance:
        time.sleep(0.05)
        advance("kernel.so")
        advance("")
    lines = capfd.readouterr().err.splitlines()
    assert "compile: 0/2, 0 s of at most 600 s" in lines
    assert "compile: 2/2, 0 s" in lines


def test_a_log_is_not_flooded(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.track("fuzz", 100) as advance:
        for number in range(100):
            advance(f"case {number}")
    first, *between, last = capfd.readouterr().err.splitlines()
    assert (first, last) == ("fuzz: 100 steps", "fuzz: 100/100, 0 s, case 99")
    assert len(between) <= 1


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("::set-output name=a::b", ": :set-output name=a::b"),
        ("  ::add-path::/x", "  : :add-path::/x"),
        ("harmless\r::add-mask::x", "harmless\r: :add-mask::x"),
        ("harmless\n ::debug::x", "harmless\n : :debug::x"),
        ("csrc/a.cpp: ##[add-path]/x", "csrc/a.cpp: ## [add-path]/x"),
        ("'std::vector' was not declared", "'std::vector' was not declared"),
    ],
    ids=["first", "after spaces", "after a return", "in a later line", "of the old form", "no command"],
)
def test_what_is_printed_is_no_command_to_a_workflow(text: str, printed: str) -> None:
    assert progress.inert(text, {"GITHUB_ACTIONS": "true"}) == printed
    assert progress.inert(text, {}) == text
