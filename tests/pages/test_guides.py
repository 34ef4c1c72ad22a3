"""The guides to sessions: each command is taken as it stands; what they tell is what the log and the policy say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from kernelgate.bench.explain import metrics
from kernelgate.ci.explain import next_step
from kernelgate.ci.lab import folder, state
from kernelgate.ci.lab.log import GateAttempt, Opened, TriedChange, duration
from kernelgate.ci.policy import policy
from tests import docs_code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SESSION = folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed")
"""Of docs/loop.md."""
NAMES = ("loop", "onboarding", "questions", "nsight")
GUIDES = [DOCS / f"{name}.md" for name in NAMES]


def commands(page: Path) -> list[str]:
    """Those of the page's blocks, and those within its sentences that are whole."""
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
    for verb, part in re.findall(r"`kernelgate ([a-z]+)(?: ([a-z]+))?", told):
        found = docs_code.top_level()[verb]
        assert not (part and isinstance(found, click.Group)) or part in found.commands, f"{verb} {part}"


def test_the_loop_tells_what_the_log_says() -> None:
    told = (DOCS / "loop.md").read_text(encoding="utf-8")
    opened = SESSION.opened
    facts = [opened.objective, opened.hypothesis or "", f"--target {opened.target:g}", *opened.cases]
    for event in SESSION.events:
        if isinstance(event, GateAttempt):
            facts.append(f"{event.gate}: passed: {event.said}")
        if isinstance(event, TriedChange):
            facts += [event.what, event.why, f"--action {event.action}", f"try {event.number}: {event.said}"]
            facts += [event.cause] if event.cause else []
            facts.append(f"fuzz: {event.fuzz_trials} of {event.fuzz_trials} trials")
    assert [fact for fact in facts if fact not in told] == []


def test_the_times_of_the_steps_are_those_of_the_sessions() -> None:
    told = (DOCS / "loop.md").read_text(encoding="utf-8")
    seconds = {event.gate: event.seconds or 0.0 for event in SESSION.events if isinstance(event, GateAttempt)}
    took = {
        "environment": seconds["environment"],
        "measure": seconds["build"] + seconds["correctness"] + seconds["performance"],
        "one change after the other": sum(one.seconds or 0.0 for one in SESSION.events if isinstance(one, TriedChange)),
    }
    spent = 0.0
    for name, minutes in {
        "environment": state.ENVIRONMENT_MINUTES,
        "measure": state.MEASUREMENT_MINUTES,
        "profile": state.PROFILE_MINUTES,
        "one change after the other": state.CHANGE_MINUTES,
        "measure again": state.AGAIN_MINUTES,
        "document": state.DOCUMENT_MINUTES,
    }.items():
        spent += minutes
        measured = duration(took[name] / 60) if name in took else "–"
        assert f"| {name} | {minutes:g} | {spent:g} | {measured} |" in told
    assert spent == state.OPTIMISE_MINUTES
    assert f"(`--template baseline`) takes {state.BASELINE_MINUTES:g} minutes" in told
    for gate in state.gate_states((Opened(name="", objective=""),)):
        assert f"| {gate.name} | {gate.limit_minutes:g} | {gate.passes} | {gate.on_failure} |" in told
    gates = policy.load(ROOT / policy.POLICY_FILE).gates
    for words in (
        f"{state.WITHOUT_GATE_MINUTES:g} minutes without a passed gate end a session",
        f"Below {next_step.PROFILE_BELOW:g} times the reference a profile is made before any change, below "
        f"{gates.reference_min:g} times at once",
        f"a change is kept from {next_step.KEEP_FROM:g} times as fast as before",
    ):
        assert words in told


def test_the_newcomers_half_hour_adds_up() -> None:
    text = (DOCS / "onboarding.md").read_text(encoding="utf-8")
    assert sum(map(int, re.findall(r"^## \d\. .*: (\d+) minutes$", text, re.MULTILINE))) == 30
    assert "kBlockK = 64;" in (ROOT / "csrc/attention/cpu/block.h").read_text(encoding="utf-8")


def test_the_figures_of_nvidias_screens_have_the_names_that_kernelgate_prints() -> None:
    known = {one.label for one in metrics.BY_KEY.values()} | set(metrics.STALLS.values())
    sections = (DOCS / "nsight.md").read_text(encoding="utf-8").split("\n## ")
    figures = {
        name.strip()
        for section in sections
        if section.startswith(("Speed", "Memory", "Warp"))
        for cell in re.findall(r"^\| \d \| [^|]+ \| ([^|]+) \|", section, re.MULTILINE)
        for name in ([cell] if cell in known else cell.split(","))
    }
    assert len(figures) == 20
    assert figures - known == set()
