"""The tables of docs/fuzzing.md, from what came of a few bugs, and a run that goes on where another ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fuzzing import __main__ as program
from benchmarks.fuzzing import document, results, survivors
from benchmarks.fuzzing.bug import Bug
from benchmarks.fuzzing.detectors import DetectorName, DetectorResult
from benchmarks.fuzzing.measure import Asked
from benchmarks.fuzzing.results import BugResult, BugResults, LatentResult


def result(bug: str, *looks: tuple[DetectorName, bool | None]) -> BugResult:
    seen = tuple(DetectorResult(detector=name, caught=caught, seconds=2.0, message="hm") for name, caught in looks)
    return BugResult(bug=bug, device="cuda", looks=seen)


MEASURED = BugResults(
    machine="a GPU",
    results=(
        result("attention/wgmma/unmodified", ("fuzz", False), ("memcheck", False)),
        result("attention/wgmma/causal-border", ("fuzz", True)),
        result("attention/mma_sync/syncwarp-missing", ("fuzz", False), ("racecheck", True)),
        result("attention/wgmma/scale-zero", ("fuzz", False)),
        result("attention/wgmma/tiles-65535", ("fuzz", None)),
        result("attention/wgmma/store-past-end", ("fuzz", False)),
        result("attention/wgmma/store-not-awaited", ("fuzz", False), ("racecheck", False)),
        result("attention/wgmma/taken-from-the-library-since", ("fuzz", False)),
    ),
)


def test_shares_count_what_changes_a_result_by_who_caught_it_first() -> None:
    text = document.tables([MEASURED])
    assert (
        "| kernel | on | bugs | fuzz | timed | memcheck | racecheck | accuracy | undecided | survive | caught |" in text
    )
    assert "| attention | GPU | 4 | 1 | 0 | 0 | 1 | 0 | 1 | 1 | 50% |" in text


def test_survivors_have_their_reason_and_the_undecided_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survivors, "SURVIVORS", {("attention/wgmma/scale-zero", "cuda"): "no card asks for it"})
    text = document.tables([MEASURED])
    part = text[text.index("**Survivors**") : text.index("**Kernels as they are**")]
    assert "no card asks for it" in part
    assert "undecided: fuzz hm" in part
    assert "causal-border" not in part


def test_equivalent_changes_and_kernels_as_they_are_stand_apart() -> None:
    text = document.tables([MEASURED])
    assert "| attention, wgmma | GPU | passes fuzz, memcheck | 4.0 |" in text
    assert "TMA never writes what lies past the tensor's seq | passes fuzz |" in text


def test_latent_bugs_stand_apart_with_what_their_calls_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = LatentResult(bug="attention/wgmma/store-not-awaited", calls=76000, differing=1)
    monkeypatch.setattr(results, "read_latent", lambda: {seen.bug: seen})
    text = document.tables([MEASURED])
    assert "arrive | 1 of 76,000 | passes fuzz, racecheck |" in text
    assert "store-not-awaited" not in text[: text.index("**Latent bugs**")] + text[text.index("**All bugs:**") :]


def test_a_later_file_takes_the_place_of_an_earlier_one() -> None:
    again = BugResults(machine="a GPU", results=(result("attention/wgmma/scale-zero", ("fuzz", True)),))
    assert "| attention | GPU | 4 | 2 |" in document.tables([MEASURED, again])


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n"
    assert document.insert(text, "new") == f"before\n{document.BEGIN}\nnew\n{document.END}\nafter\n"
    assert document.insert(program.DOCUMENT.read_text(encoding="utf-8"), "new").count("new\n<!--") == 1


def test_a_run_goes_on_where_another_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json"
    results.write(BugResults(machine="a CPU", results=(result("swiglu/triton/truncated", ("fuzz", False)),)), file)
    tried: list[str] = []

    def measure(bugs: Sequence[Bug], _: Asked) -> Iterator[BugResult]:
        for bug in bugs:
            tried.append(bug.name)
            yield result(bug.id, ("fuzz", True))

    monkeypatch.setattr(program, "measure", measure)
    words = ["--device", "cuda", "--bug", "truncated", "--bug", "rounded-twice", "--kernel", "swiglu", "-o", str(file)]
    assert CliRunner().invoke(program.main, words).exit_code == 0
    assert tried == ["rounded-twice"]
    assert {one.bug: one.caught_by for one in results.read(file).results} == {
        "swiglu/triton/truncated": None,
        "swiglu/triton/rounded-twice": "fuzz",
    }
