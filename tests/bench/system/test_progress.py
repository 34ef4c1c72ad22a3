from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from kernelgate.bench.system import progress


class StoppedClock:
    """Time goes on where a test moves it, and is heard of in the next line."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.heard = threading.Semaphore(0)
        said = progress.say

        def say(message: str) -> None:
            said(message)
            self.heard.release()

        patch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.now))
        patch.setattr(progress, "say", say)

    def until_the_next_line(self, now: float) -> None:
        while self.heard.acquire(blocking=False):
            pass
        self.now = now
        self.heard.acquire()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    return StoppedClock(monkeypatch)


def test_a_log_hears_something_although_no_step_ends(
    clock: StoppedClock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_INTERVAL_S", 0.01)
    with progress.track("compile", 2, limit_s=600) as advance:
        advance("kernel.so")
        clock.until_the_next_line(7.0)
        advance("")
    said = "compile: 1/2, 7 s of at most 600 s, kernel.so"
    assert capfd.readouterr().err.splitlines() == ["compile: 2 steps", said, "compile: 2/2, 7 s"]
    assert "progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("clock")
def test_a_log_is_not_flooded(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.track("fuzz", 100) as advance:
        for number in range(100):
            advance(f"case {number}")
    assert capfd.readouterr().err.splitlines() == ["fuzz: 100 steps", "fuzz: 100/100, 0 s, case 99"]


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
