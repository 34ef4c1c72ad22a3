"""`kernelgate report`: files in, comment and page out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands.cli import run
from kernelgate.ci.document.render import MARKER
from tests.ci.report_examples import EXAMPLES


def test_the_comment_is_printed_or_written_with_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower, baseline, out, html = (
        tmp_path / name for name in ("run.json", "l4.json", "new/comment.md", "new/page.html")
    )
    for path in (slower, baseline):
        record.write(EXAMPLES["profile_and_resources"]().record, path)
    assert run(["report", str(slower), "--baseline", str(baseline)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("### ❌ Blocks: 4.90% slower on the L4\n")
    assert printed.endswith(f"\n{MARKER}\n")
    assert "<details><summary>Stored baseline: shows nothing: a change below" in printed
    assert "- `l4.json`, " in printed
    assert run(["report", str(slower), "-o", str(out), "--html", str(html)]) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text(encoding="utf-8").startswith("### ❌ ")
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_preset_decides_what_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, policy = tmp_path / "run.json", tmp_path / "policy.toml"
    record.write(EXAMPLES["certain_below_gate"]().record, path)
    policy.write_text("[presets.strict.gates]\nregression_pct = 1.0\n", encoding="utf-8")
    assert run(["report", str(path), "--policy", str(policy)]) == 0
    assert capsys.readouterr().out.startswith(
        "### ⚠️ Does not block: 1 of 2 cases 2.00% slower on the L4, 1 unchanged\n"
    )
    assert run(["report", str(path), "--policy", str(policy), "--preset", "strict"]) == 0
    assert capsys.readouterr().out.startswith("### ❌ ")
