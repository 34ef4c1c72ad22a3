from __future__ import annotations

import re
import threading

import pytest

from kernelgate.bench.system import progress
from tests.processes import wait_for


def test_a_log_hears_something_although_no_step_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0.01)
    with progress.track("compile", 2, limit_s=600) as advance:
        advance("kernel.so")
        wait_for(lambda: " s of at most 600 s, kernel.so\n" in capfd.readouterr().err.partition("compile: 1/2, ")[2])
        advance("")
    assert capfd.readouterr().err.splitlines()[-1].startswith("compile: 2/2, ")
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_a_log_is_not_flooded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 600.0)
    with progress.track("fuzz", 100) as advance:
        for number in range(100):
            advance(f"case {number}")
    begun, ended = capfd.readouterr().err.splitlines()
    assert begun == "fuzz: 100 steps"
    assert re.fullmatch(r"fuzz: 100/100, \d+ s, case 99", ended)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("::set-output name=a::b", ": :set-output name=a::b"),
        ("  ::add-path::/x", "  : :add-path::/x"),
        ("harmless\n ::debug::x", "harmless\n : :debug::x"),
        ("csrc/a.cpp: ##[add-path]/x", "csrc/a.cpp: ## [add-path]/x"),
        ("'std::vector' was not declared", "'std::vector' was not declared"),
    ],
    ids=["first", "after spaces", "in a later line", "of the old form", "no command"],
)
def test_what_is_printed_is_no_command_to_a_workflow(text: str, printed: str) -> None:
    assert progress.inert(text, {"GITHUB_ACTIONS": "true"}) == printed
    assert progress.inert(text, {}) == text


@pytest.mark.parametrize("variables", [{}, {"GITHUB_ACTIONS": "true"}])
def test_what_acts_on_a_terminal_or_turns_a_line_round_is_replaced(variables: dict[str, str]) -> None:
    name = "\x1b[2J\u202eevil\udc80\r::add-mask::x\tis\nhere"
    assert progress.inert(name, variables) == "\ufffd[2J\ufffdevil\ufffd\ufffd::add-mask::x\tis\nhere"
