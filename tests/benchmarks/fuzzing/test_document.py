"""The tables of docs/fuzzing.md are those of the kept results, and a run goes on where another ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fuzzing import __main__ as program
from benchmarks.fuzzing.bug import ROOT


def test_the_page_holds_the_tables_of_the_kept_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "fuzzing.md"
    page.write_text(program.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(program, "DOCUMENT", page)
    kept = [str(ROOT / "benchmarks" / "results" / f"fuzzing_{name}.json") for name in ("cpu", "h200")]
    CliRunner().invoke(program.main, ["table", *kept], catch_exceptions=False)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")
