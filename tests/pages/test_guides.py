"""The guides to sessions: each command is taken as it stands; what they tell is what the log and the policy say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from kernelgate.ci.explain import next_step
from kernelgate.ci.lab import folder, state, watching
from kernelgate.ci.lab.log import GateAttempt, Opened, TriedChange, tries
from kernelgate.ci.policy import policy
from tests import docs_code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SESSION = folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed")
"""Of docs/loop.md."""
GUIDES = [DOCS / f"{name}.md" for name in ("loop", "questions")]
LOOP = (DOCS / "loop.md").read_text(encoding="utf-8")


def commands(page: Path) -> list[str]:
    shown = [one.line for one in docs_code.commands(page)]
    listed = [line for block in docs_code.blocks(page, "sh") for line in block.splitlines()]
    return [line for line in (*shown, *listed) if line.startswith("kernelgate ")]


COMMANDS = sorted({(page.name, line) for page in GUIDES for line in commands(page)})


def test_each_command_is_one_that_the_command_line_takes() -> None:
    """Parsed whole, with the part of a command that has some; and every file that it reads is there."""
    for page, command in COMMANDS:
        docs_code.parsed(command)
        for word in shlex.split(command):
            assert not word.startswith("tests/") or (ROOT / word).exists(), f"{page}: {word}"
    told = "".join(page.read_text(encoding="utf-8") for page in GUIDES)
    for verb, part in re.findall(r"`kernelgate\s([a-z]+)(?: ([a-z]+))?", told):
        found = docs_code.top_level()[verb]
        assert not (part and isinstance(found, click.Group)) or part in found.commands, f"{verb} {part}"


def test_the_loop_tells_what_the_log_says() -> None:
    opened = SESSION.opened
    facts = [opened.objective, opened.hypothesis or "", f"--target {opened.target:g}", *opened.cases]
    for event in SESSION.events:
        if isinstance(event, GateAttempt) and event.gate == "performance":
            facts.append(f"{event.gate}: passed: {event.said}")
        if isinstance(event, TriedChange):
            facts += [event.what, event.why, f"--action {event.action}", f"try {event.number}: {event.said}"]
            facts += [event.cause] if event.cause else []
    assert [fact for fact in facts if fact not in LOOP] == []


SIX = ("attention-small-batch", "int8-few-rows", "int8-wide", "rmsnorm-long-rows", "rmsnorm-short-rows", "swiglu-small")


def test_the_six_sessions_went_as_the_loop_says() -> None:
    rules = policy.load(ROOT / policy.POLICY_FILE)
    sessions = [folder.read(ROOT / folder.FOLDER / name) for name in SIX]
    shown = [state.summary(one.events, rules, one.events[-1].at or "").figures for one in sessions]
    tried = [one for session in sessions for one in tries(session.events)]
    faster = [one.gain[0] for one in tried if one.gain and one.gain[1][0] > 0.5]
    seconds = [one.gpu_seconds for one in shown]
    assert {one.tries for one in shown} == {2}
    assert len({session.opened.card for session in sessions}) == 4
    assert [one.said for one in tried if one.failed == "correctness" and "has nan" in one.said]
    assert sum(one.gain_kept_pct > 1 for one in shown) == 1
    told = " ".join(LOOP.split())
    assert f"took {min(seconds):.0f} to {max(seconds):.0f} s of the GPU each" in told
    assert len(faster) == 5
    assert f"Five of the {len(tried)} tries were certainly faster, by {min(faster):.1f} to {max(faster):.1f}%" in told


def test_its_times_are_those_of_the_sessions() -> None:
    for gate in state.gate_states((Opened(name="", objective=""),)):
        assert f"| {gate.name} | {gate.limit_minutes:g} | {gate.passes} |" in LOOP
    for said in (
        f"{state.CHANGE_MINUTES:g} more are for changes and {state.AGAIN_MINUTES:g} for measuring again, "
        f"{state.OPTIMISE_MINUTES:g} in all",
        f"after {state.WITHOUT_GATE_MINUTES:g} minutes without a passed gate",
        f"recommends to keep a change from {next_step.KEEP_FROM:g} times as fast as before",
        f"every {watching.REPORT_S:g} seconds; one that is silent for {watching.SESSION_SILENT_S:g} seconds is ended",
    ):
        assert said in " ".join(LOOP.split())


def test_the_newcomers_half_hour_adds_up() -> None:
    assert sum(map(int, re.findall(r"^### .*: (\d+) minutes$", LOOP, re.MULTILINE))) == 30
    assert "kBlockK = 64;" in (ROOT / "csrc/attention/cpu/block.h").read_text(encoding="utf-8")
