"""The planted bugs fit the sources as they are, and the tables of docs/fuzzing.md are those of the kept results."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fuzzing import __main__ as program
from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import ROOT, SOURCES, Bug, planted


@pytest.mark.parametrize("bug", library.BUGS, ids=lambda bug: bug.id)
def test_a_bug_can_be_planted_in_the_sources_as_they_are(bug: Bug) -> None:
    """A source that has changed: give the bug's edit its new words, or take the bug out where it can be no more."""
    tree, _ = SOURCES[bug.kernel]
    changed = planted(bug, tree)
    assert changed
    assert all(text != path.read_text(encoding="utf-8") for path, text in changed.items())


def test_the_page_holds_the_tables_of_the_kept_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "fuzzing.md"
    page.write_text(program.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(program, "DOCUMENT", page)
    kept = [str(ROOT / "benchmarks" / "results" / f"fuzzing_{name}.json") for name in ("cpu", "h200")]
    CliRunner().invoke(program.main, ["table", *kept], catch_exceptions=False)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")
