"""The guides: each command is taken as it stands; what they tell is what the log, the policy and the code say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from kernelgate import Kernel
from kernelgate.bench.kernel.cards import TOLERANCES
from kernelgate.ci.lab import folder, state
from kernelgate.ci.lab.log import GateAttempt, Opened, TriedChange
from tests import docs_code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SESSION = folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed")
"""Of docs/loop.md."""
GUIDES = [DOCS / f"{name}.md" for name in ("loop", "questions")]
LOOP, CARDS = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("loop", "cards"))
COMMANDS = sorted(
    {(page.name, line) for page in GUIDES for line in docs_code.commands(page) if line.startswith("kernelgate ")}
)


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


def test_its_times_are_those_of_the_sessions() -> None:
    parts = re.findall(r"^### .*: (\d+) minutes$", LOOP, re.MULTILINE)
    assert sum(map(int, parts)) == 30, "the first 30 minutes"
    for gate in state.gate_states((Opened(name="", objective=""),)):
        assert f"- {gate.name} ({gate.limit_minutes:g}): {gate.passes}\n" in LOOP


def test_every_member_is_in_the_table_and_no_other() -> None:
    section = CARDS.split("\n## Members\n")[1].split("\n### ")[0]
    told = set(re.findall(r"^\|`(\w+)", section, re.MULTILINE))
    members = {*Kernel.__annotations__, *(name for name in vars(Kernel) if not name.startswith("_"))}
    assert told == members


def test_the_tolerances_are_those_of_the_code() -> None:
    rows = re.findall(r"^\|(\w+)\|([\d.e-]+)\|([\d.e-]+)\|$", CARDS, re.MULTILINE)
    assert {dtype: (float(atol), float(rtol)) for dtype, atol, rtol in rows} == {
        dtype: (one.atol, one.rtol) for dtype, one in TOLERANCES.items() if one.atol
    }
