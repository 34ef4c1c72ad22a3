"""`kernelgate report`: files in, comment and page out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands.cli import run
from kernelgate.ci.document.render import MARKER
from tests.ci.report_examples import EXAMPLES


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    record.write(EXAMPLES["profile_and_resources"]().record, path)
    return path


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("profile_and_resources", "### ❌ 4.90% slower on the L4: blocks merge\n"),
        ("wrong_result", "### 🛑 Wrong result in 3 of 38 fuzz cases: blocks merge\n"),
    ],
)
def test_the_comment_is_printed_as_markdown(
    name: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record.write(EXAMPLES[name]().record, tmp_path / "run.json")
    assert run(["report", str(tmp_path / "run.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(first)
    assert printed.endswith(f"\n{MARKER}\n")


def test_files_are_written_and_nothing_is_printed(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = slower.parent / "new" / "comment.md"
    html = slower.parent / "new" / "page.html"
    assert run(["report", str(slower), "-o", str(out), "--html", str(html)]) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text(encoding="utf-8").startswith("### ❌ ")
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_baseline_is_named_by_its_file(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = slower.parent / "l4.json"
    record.write(EXAMPLES["profile_and_resources"]().record, baseline)
    assert run(["report", str(slower), "--baseline", str(baseline)]) == 0
    printed = capsys.readouterr().out
    assert "<details><summary>Stored baseline: shows nothing: a change below" in printed
    assert "- `l4.json`, " in printed


def test_the_preset_decides_what_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, policy = tmp_path / "run.json", tmp_path / "policy.toml"
    record.write(EXAMPLES["certain_below_gate"]().record, path)
    policy.write_text("[presets.strict.gates]\nregression_pct = 1.0\n", encoding="utf-8")
    assert run(["report", str(path), "--policy", str(policy)]) == 0
    assert capsys.readouterr().out.startswith("### ⚠️ 2.00% slower in 1 of 2 cases on the L4: does not block\n")
    assert run(["report", str(path), "--policy", str(policy), "--preset", "strict"]) == 0
    assert capsys.readouterr().out.startswith("### ❌ ")


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), ("{", "is not a kernelgate.run/2 record"), ('{"surprise": 1}', "surprise")],
)
def test_a_broken_record_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert run(["report", str(path)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert "Traceback" not in printed.err


def test_a_file_that_cannot_be_written_is_named(slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = slower / "comment.md"
    assert run(["report", str(slower), "-o", str(blocked)]) == 74
    assert f"{blocked} cannot be written: " in capsys.readouterr().err
