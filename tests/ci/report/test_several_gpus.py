"""Several GPUs in one comment: everything that one GPU has, each line with its GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.record import Profile, RunRecord, Side
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import Fault, GpuEvidence
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import Outcome, RecordVerdict
from kernelgate.ci.report import tables
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import Failure, GpuReport, of_record
from tests.ci.report.test_build import expect
from tests.ci.report_examples import EXAMPLES, NINE, judge, record, same

DATA = Path(__file__).parents[2] / "data"
POLICY = Policy()
TARGET = "s512_b32_h8_d64_fp16"

Part = tuple[GpuEvidence, GpuReport]


def gpu(label: str, name: str) -> Part:
    example = EXAMPLES[name]()
    return of(label, example.record, example.verdict)


def of(label: str, measured: RunRecord, verdict: RecordVerdict) -> Part:
    return gate.evidence(label, measured, verdict, POLICY.static), of_record(label, measured, verdict)


def lost(label: str) -> Part:
    failure = Failure(Fault.RUNNER, "the GPU is gone")
    return GpuEvidence(label, fault=failure.fault), GpuReport(label, failure=failure)


def together(*gpus: Part) -> Report:
    return build([report for _, report in gpus], gate.decide([evidence for evidence, _ in gpus]), POLICY)


def profiled(label: str) -> Part:
    """A slower GPU with both profiles."""

    def read(side: Side, name: str) -> Profile:
        kernel = ncu_reader.launches(str(DATA / "nsight" / f"{name}.ncu-repz"))[0]
        return Profile(case=TARGET, side=side, metrics=dict(kernel.figures))

    example = EXAMPLES["slower"]()
    profiles = (read("base", "attention_before"), read("head", "attention_occupancy"))
    return of(label, example.record.model_copy(update={"profile": profiles}), example.verdict)


def test_the_comment_is_the_golden_one() -> None:
    text = render.comment(together(gpu("l4", "equivalent"), profiled("h100")))
    expect(DATA / "two_gpus" / "comment.md", text)


def test_the_worst_gpu_opens_and_each_has_its_column() -> None:
    text = render.comment(together(gpu("l4", "equivalent"), gpu("h100", "slower")))
    assert text.startswith("### ❌ `h100`: Slower: S=512 B=32 H=8 fp16 by 4.9%")
    assert "\n`l4` no change: 9 of 9 cases unchanged; `h100` slower: 1 of 9 cases regressed, 8 unchanged. " in text
    assert "This change blocks the merge. `a1b2c3d` against `9f8e7d6`, 5 processes × 100 rounds.\n" in text
    assert "| case | l4 | h100 |\n| --- | --: | --: |\n| **S=512 B=32 H=8 fp16** | ✅ 0.0% " in text
    assert "❌ **+4.9%** [+4.8, +5.0], 321.4 µs → 337.1 µs |" in text
    assert "<details><summary>l4: Statistics</summary>" in text
    assert "<details><summary>h100: Statistics</summary>" in text
    assert "✅ `l4`: correct: 38 of 38 fuzz cases" in text


def test_why_names_gpu_and_case() -> None:
    said = together(gpu("l4", "equivalent"), profiled("h100"))
    lines = ["".join(getattr(piece, "text", piece) for piece in line) for line in said.why]
    assert lines[0].startswith("Why, by the profile of S=512 B=32 H=8 fp16 on h100: ")


def test_plots_and_pictures_name_their_gpu() -> None:
    said = together(gpu("l4", "equivalent"), profiled("h100"))
    assert len(said.plots) == 18
    assert {plot.case[0].text for plot in said.plots} == {"l4", "h100"}  # type: ignore[union-attr]
    assert [picture.case[0].text for picture in said.pictures] == ["h100"]  # type: ignore[union-attr]
    assert "<code>h100</code>: S=512 B=32 H=8 fp16" in render.page(said)


def test_the_worst_case_of_any_gpu_is_the_first_row() -> None:
    text = render.comment(together(gpu("l4", "equivalent"), gpu("h100", "slower")))
    rows = [line for line in text.splitlines() if line.startswith(("| S=", "| **S="))]
    assert "❌" in rows[0]
    assert not any("❌" in row for row in rows[1:9])


def test_a_gpu_that_measured_nothing_has_a_column_too() -> None:
    text = render.comment(together(gpu("l4", "equivalent"), lost("h100")))
    assert text.startswith("### 🛠️ `h100`: Not your fault: ")
    assert "`l4` no change: 9 of 9 cases unchanged; `h100` not measured. Nothing is blocked." in text
    row = next(line for line in text.splitlines() if line.startswith("| S=512 B=32"))
    assert row.endswith("| not measured |")


def test_gpus_that_measured_nothing_have_no_table() -> None:
    assert together(lost("l4"), lost("h100")).cases is None


def test_a_wrong_result_on_one_gpu_says_so_first_and_keeps_the_others() -> None:
    text = render.comment(together(gpu("l4", "equivalent"), gpu("h100", "wrong_result")))
    assert text.startswith("### 🛑 `h100`: Wrong result: 3 of 38 fuzz cases fail; speed was not judged")
    assert "`h100` wrong result. This change blocks the merge." in text
    assert "`h100`: Repeat: `kernelgate fuzz --seed 1271" in text
    assert "| case | l4 | h100 |" in text


def test_gpus_may_have_measured_different_cases() -> None:
    few, many = record(NINE[:1]), record(NINE[1:3])
    verdicts = (
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in NINE[:1])),
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in NINE[1:3])),
    )
    said = together(of("l4", few, verdicts[0]), of("h100", many, verdicts[1]))
    assert said.cases is not None
    assert len(said.cases.rows) == 3
    assert all(("not measured",) in row for row in said.cases.rows)


def test_many_quiet_cases_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_UNCHANGED_BESIDE_NEWS", 3)
    said = together(gpu("l4", "equivalent"), gpu("h100", "slower"))
    assert said.cases is not None
    assert said.folded is not None
    assert (len(said.cases.rows), said.folded_title) == (1, "8 cases unchanged on every GPU")
    assert render.page(said).count("<table") >= 2
