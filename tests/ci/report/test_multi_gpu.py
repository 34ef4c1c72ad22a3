"""Several GPUs in one comment."""

from __future__ import annotations

import pytest

from kernelgate.ci.document import render
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.judge.verdict import Outcome
from kernelgate.ci.report import multi_gpu
from kernelgate.ci.report.build import Failure, Fault, failure_report, report
from kernelgate.ci.report.multi_gpu import side_by_side
from tests.ci.report_examples import EXAMPLES, NINE, judge, record, same


def gpu(label: str, name: str) -> multi_gpu.Gpu:
    example = EXAMPLES[name]()
    return (label, report(example.record, example.verdict, Gates()), example.verdict, example.record)


def lost(label: str) -> multi_gpu.Gpu:
    return (label, failure_report(Failure(Fault.RUNNER, "the GPU is gone")), None, None)


def test_the_worst_gpu_speaks_first_and_each_has_its_column() -> None:
    text = render.comment(side_by_side([gpu("l4", "equivalent"), gpu("h100", "slower")]))
    assert text.startswith("### ❌ `h100`: Slower: S=512 B=32 H=8 fp16 by 4.9%")
    assert "\n`l4` no change, `h100` slower. `a1b2c3d` against `9f8e7d6`.\n" in text
    assert "| case | l4 | h100 |\n| --- | --: | --: |\n| S=512 B=32 H=8 fp16 | ✅ 0.0% " in text
    assert "<details><summary>l4: Statistics</summary>" in text
    assert "<details><summary>h100: Statistics</summary>" in text
    assert "✅ `l4`: correct: 38 of 38 fuzz cases" in text


def test_the_worst_case_of_any_gpu_is_the_first_row() -> None:
    text = render.comment(side_by_side([gpu("l4", "equivalent"), gpu("h100", "slower")]))
    rows = [line for line in text.splitlines() if line.startswith("| S=")]
    assert "❌" in rows[0]
    assert not any("❌" in row for row in rows[1:9])


def test_a_gpu_that_measured_nothing_has_a_column_too() -> None:
    text = render.comment(side_by_side([gpu("l4", "equivalent"), lost("h100")]))
    assert text.startswith("### 🛠️ `h100`: Not your fault: ")
    row = next(line for line in text.splitlines() if line.startswith("| S=512 B=32"))
    assert row.endswith("| not measured |")


def test_gpus_that_measured_nothing_have_no_table() -> None:
    assert side_by_side([lost("l4"), lost("h100")]).cases is None


def test_gpus_may_have_measured_different_cases() -> None:
    few, many = record(NINE[:1]), record(NINE[1:3])
    verdicts = (
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in few.cases)),
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in many.cases)),
    )
    said = side_by_side(
        [
            ("l4", report(few, verdicts[0], Gates()), verdicts[0], few),
            ("h100", report(many, verdicts[1], Gates()), verdicts[1], many),
        ]
    )
    assert said.cases is not None
    assert len(said.cases.rows) == 3
    assert all(("not measured",) in row for row in said.cases.rows)


def test_many_quiet_cases_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_gpu, "MOST_ROWS", 3)
    said = side_by_side([gpu("l4", "equivalent"), gpu("h100", "slower")])
    assert said.cases is not None
    assert said.folded is not None
    assert (len(said.cases.rows), said.folded_title) == (1, "8 cases unchanged everywhere")
    assert render.page(said).count("<table") >= 2
