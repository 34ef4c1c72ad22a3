"""`kernelgate report`: files in, comment and page out."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.ci.document.render import MARKER
from tests.called import EndsWith
from tests.ci.report_examples import EXAMPLES


def test_the_comment_is_printed_or_written_with_the_page(tmp_path: Path, ends_with: EndsWith) -> None:
    slower, baseline, out, html = (
        tmp_path / name for name in ("run.json", "l4.json", "new/comment.md", "new/page.html")
    )
    for path in (slower, baseline):
        record.write(EXAMPLES["profile_and_resources"]().record, path)
    printed = ends_with(0, "report", slower, "--baseline", baseline).out
    assert printed.startswith("### ❌ Blocks: 4.90% slower on the L4\n")
    assert printed.endswith(f"\n{MARKER}\n")
    assert "<details><summary>Stored baseline: shows nothing</summary>" in printed
    assert "- `l4.json`, " in printed
    assert ends_with(0, "report", slower, "-o", out, "--html", html).out == ""
    assert out.read_text(encoding="utf-8").startswith("### ❌ ")
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_preset_decides_what_blocks(tmp_path: Path, ends_with: EndsWith) -> None:
    path, policy = tmp_path / "run.json", tmp_path / "policy.toml"
    record.write(EXAMPLES["certain_below_gate"]().record, path)
    policy.write_text("[presets.strict.gates]\nregression_pct = 1.0\n", encoding="utf-8")
    assert ends_with(0, "report", path, "--policy", policy).out.startswith(
        "### ⚠️ Does not block: 1 of 2 cases 2.00% slower on the L4, 1 unchanged\n"
    )
    assert ends_with(0, "report", path, "--policy", policy, "--preset", "strict").out.startswith("### ❌ ")
