"""The patterns: each reads, names checks that exist and a command that runs, and sessions name them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder, log, patterns
from kernelgate.ci.lab.patterns import SIGNALS

ROOT = Path(__file__).parents[3]
PATTERNS = patterns.read_all(patterns.SHIPPED)


def test_all_eighteen_are_there_and_each_check_belongs_to_one() -> None:
    assert len({one.name for one in PATTERNS}) == 18
    assert sorted(signal for one in PATTERNS for signal in one.signals) == sorted(SIGNALS)
    assert all(one.signals for one in PATTERNS)


def test_their_commands_are_commands() -> None:
    for one in PATTERNS:
        tool, verb, *given = one.command.split()
        command = cli.cli.get_command(click.Context(cli.cli), verb)
        assert tool == "kernelgate"
        assert command is not None, one.command
        command.make_context(verb, given)


WHOLE = "## mine\n\n- When: now\n- Do: look\n- Run: `kernelgate doctor`\n- Check: `blind_tries`\n- Evidence: seen\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE.replace("- Run: `kernelgate doctor`\n", ""), r"patterns\.md: pattern mine has no line `- Run: …`"),
        (WHOLE.replace("blind_tries", "telepathy"), "no signal is called 'telepathy'; there are"),
        (f"{WHOLE}- Saved: 1 h\n", r"pattern mine has a line `- Saved: …`; known are When, Do"),
    ],
)
def test_a_section_that_lacks_something_is_named_and_left_out(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "patterns.md"
    file.write_text(f"{text}\n{WHOLE.replace('mine', 'other')}", encoding="utf-8")
    assert [one.name for one in patterns.read_all(file)] == ["other"]
    assert re.search(said, capsys.readouterr().err.replace("\n", " "))
    file.write_text("# none\n", encoding="utf-8")
    with pytest.raises(KernelgateError, match=r"patterns\.md has no pattern: each is a section"):
        patterns.read_all(file)


def test_a_checkouts_own_patterns_take_the_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["patterns", "--all"]) == 0
    assert capsys.readouterr().out.count("  run:  ") == len(PATTERNS)
    (tmp_path / patterns.FILE).parent.mkdir()
    (tmp_path / patterns.FILE).write_text(WHOLE, encoding="utf-8")
    assert cli.run(["patterns", "--all"]) == 0
    assert capsys.readouterr().out == "mine\n  when: now\n  do:   look\n  run:  kernelgate doctor\n"


def test_the_verb_says_why_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / folder.FOLDER / "mine"
    place.mkdir(parents=True)
    (place / log.FILE).write_text(log.line(log.Opened(name="mine", objective="faster")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert cli.run(["patterns"]) == 0
    told = "environment-validated\n  now:  the session's environment was not looked at yet\n"
    assert capsys.readouterr().out.startswith(told)
    assert cli.run(["patterns", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["looked_at"] == ["session mine"]

    (tmp_path / "doctor.json").write_text(json.dumps({"fit": True, "checks": []}), encoding="utf-8")
    assert cli.run(["patterns", "--session", "none", "--doctor", "doctor.json"]) == 64
    assert "there is no session 'none' in .ci/sessions/; there are: mine" in capsys.readouterr().err
    assert cli.run(["patterns", "--session", "../x"]) == 64
