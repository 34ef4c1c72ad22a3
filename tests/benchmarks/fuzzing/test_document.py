"""The tables of docs/fuzzing.md are those of the kept results, and a run goes on where another ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fuzzing import __main__ as program
from benchmarks.fuzzing.bug import ROOT, Bug
from benchmarks.fuzzing.detectors import BugResult, BugResults, DetectorName, DetectorResult


def result(bug: str, *looks: tuple[DetectorName, bool | None]) -> BugResult:
    seen = tuple(DetectorResult(detector=name, caught=caught, seconds=2.0, message="hm") for name, caught in looks)
    return BugResult(bug=bug, device="cuda", looks=seen)


def test_the_page_holds_the_tables_of_the_kept_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "fuzzing.md"
    page.write_text(program.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(program, "DOCUMENT", page)
    kept = [str(ROOT / "benchmarks" / "results" / f"fuzzing_{name}.json") for name in ("cpu", "h200")]
    CliRunner().invoke(program.main, ["table", *kept], catch_exceptions=False)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")


def test_a_run_goes_on_where_another_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json"
    earlier = BugResults(machine="a CPU", results=(result("swiglu/triton/truncated", ("fuzz", False)),))
    file.write_text(earlier.model_dump_json(), encoding="utf-8")
    tried: list[str] = []

    def measure(bugs: Sequence[Bug], *_: object) -> Iterator[BugResult]:
        for bug in bugs:
            tried.append(bug.name)
            yield result(bug.id, ("fuzz", True))

    monkeypatch.setattr(program, "measure", measure)
    named = [word for name in ("truncated", "rounded-twice") for word in ("--bug", f"swiglu/triton/{name}")]
    words = ["--device", "cuda", *named, "-o", str(file)]
    assert CliRunner().invoke(program.main, words).exit_code == 0
    assert tried == ["rounded-twice"]
    assert {one.bug: one.caught_by for one in BugResults.model_validate_json(file.read_bytes()).results} == {
        "swiglu/triton/truncated": None,
        "swiglu/triton/rounded-twice": "fuzz",
    }
