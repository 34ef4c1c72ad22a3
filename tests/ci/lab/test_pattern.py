"""The files of docs/patterns: each reads, names checks that exist, and says what the table and the sessions say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder, log, patterns
from kernelgate.ci.lab.signals import SIGNALS, Seen

ROOT = Path(__file__).parents[3]
FILES = ROOT / patterns.FOLDER
PATTERNS = patterns.read_all(FILES)


def test_the_twelve_the_seven_and_the_one_are_there_and_each_has_a_check_of_its_own() -> None:
    loop = [one.numbers.loop for one in PATTERNS if one.numbers.loop]
    expert = [one.numbers.expert for one in PATTERNS if one.numbers.expert]
    assert (sorted(loop), sorted(expert)) == (list(range(1, 13)), list(range(1, 8)))
    assert len(PATTERNS) == 18
    named = {signal for one in PATTERNS for signal in one.signals}
    assert named == set(SIGNALS)
    assert all(one.signals for one in PATTERNS)


def index_table() -> str:
    """The name of each pattern, and the numbers that the founding documents give it."""
    rows = [
        "| pattern | list of twelve | expert's list | other numbering | said to save |",
        "| --- | --: | --: | --: | --: |",
    ]
    rows += [
        f"| [{one.name}]({one.name}.md) | {one.numbers.loop or '–'} | {one.numbers.expert or '–'} | "
        f"{one.numbers.readme or '–'} | {patterns.saved(one.recorded)} |"
        for one in sorted(PATTERNS, key=lambda one: (one.numbers.loop or 99, one.numbers.expert or 99, one.name))
    ]
    return "\n".join(rows) + "\n"


def test_the_page_says_what_the_files_and_the_checks_do() -> None:
    text = (FILES / patterns.INDEX).read_text(encoding="utf-8")
    assert index_table() in text
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(SIGNALS)


def test_their_commands_are_commands() -> None:
    for one in PATTERNS:
        tool, verb, *given = one.command.split()
        command = cli.cli.get_command(click.Context(cli.cli), verb)
        assert tool == "kernelgate"
        assert command is not None, one.command
        command.make_context(verb, given)


def test_a_file_that_is_no_pattern_and_a_signal_that_does_not_exist_are_named(tmp_path: Path) -> None:
    for text, said in (("# none\n", "begins with front matter"), ("---\nname: other\n---\n", "title: Field required")):
        (tmp_path / "mine.md").write_text(text, encoding="utf-8")
        with pytest.raises(patterns.PatternError, match=rf"mine\.md.*{said}"):
            patterns.read_all(tmp_path)
    with pytest.raises(KernelgateError, match="no signal is called 'telepathy'"):
        patterns.applying([PATTERNS[0].model_copy(update={"signals": ("telepathy",)})], Seen())


def test_the_verb_says_why_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / folder.FOLDER / "mine"
    place.mkdir(parents=True)
    (place / log.FILE).write_text(log.line(log.Opened(name="mine", objective="faster")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert cli.run(["patterns"]) == 0
    assert "not looked at yet" in capsys.readouterr().out
    assert cli.run(["patterns", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    [found] = shown["patterns"]
    assert (found["pattern"]["name"], found["pattern"]["command"]) == ("environment-validated", "kernelgate doctor")
    assert shown["looked_at"] == ["session mine"]

    (tmp_path / "doctor.json").write_text(json.dumps({"fit": True, "checks": []}), encoding="utf-8")
    assert cli.run(["patterns", "--session", "none", "--doctor", "doctor.json"]) == 64
    assert "there is no session 'none' in .ci/sessions/; there are: mine" in capsys.readouterr().err
    assert cli.run(["patterns", "--session", "../x"]) == 64
