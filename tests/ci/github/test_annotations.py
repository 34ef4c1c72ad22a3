"""Which lines of a patch a remark stands beside."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Check, CheckFinding, RunRecord
from kernelgate.ci.document.model import Report
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.check_run import Annotation
from kernelgate.ci.github.publish import line_notes
from kernelgate.ci.judge.case import Outcome, RecordVerdict
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision, GpuEvidence
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.report_examples import case, faster


def notes(
    record: RunRecord, verdict: RecordVerdict | None, blocked_by: BlockCode | None, path: str = "csrc/k.cu"
) -> list[Annotation]:
    blockers = (Blocker(blocked_by, "l4", "k"),) if blocked_by else ()
    decision = Decision("failure" if blockers else "neutral", blockers=blockers)
    posting = Posting(Report(("News",), ()), decision, (GpuReport(GpuEvidence("l4"), record, verdict),))
    return list(line_notes(posting, [(path, "@@ -1 +1 @@\n-a\n+b")], ["csrc/"]))


@pytest.mark.parametrize(
    ("wrong", "blocked_by", "level"),
    [
        (False, None, "notice"),
        (True, None, "notice"),
        (True, BlockCode.WRONG_OUTPUT, "failure"),
    ],
)
def test_what_is_faster_or_wrong_by_the_heads_own_card_fails_not(
    wrong: bool, blocked_by: BlockCode | None, level: str
) -> None:
    made = CARD_EXAMPLES["one_card_wrong"]()
    case_ = faster(case(64, 8, 50.0, -20.0), -20.0)
    verdict = made.verdict if wrong else RecordVerdict("run.json", Outcome.IMPROVED, "", (case_,))
    assert [one.annotation_level for one in notes(made.record if wrong else RunRecord(), verdict, blocked_by)] == [
        level
    ]


RACE = CheckFinding(text="Race reported at a write", kernel="k", file="csrc/k.cu", line=12, tool="racecheck")


def found_at(*findings: CheckFinding, blocks: bool = True) -> list[Annotation]:
    """The annotations of these findings, where the patch touches another file alone."""
    checks = (Check(kind="sanitizer", status="failed", asked=1, run=1, findings=findings),)
    return notes(RunRecord(checks=checks), None, BlockCode.SANITIZER if blocks else None, path="csrc/other.cu")


def test_a_finding_stands_at_its_own_line() -> None:
    said = "racecheck: race reported at a write in k at csrc/k.cu:12"
    assert found_at(RACE) == [Annotation("csrc/k.cu", 12, 12, "failure", "compute-sanitizer", said)]


@pytest.mark.parametrize(("known", "blocks"), [(True, True), (False, False)])
def test_what_does_not_block_is_a_warning(known: bool | None, blocks: bool) -> None:
    found = found_at(RACE.model_copy(update={"on_base": known}), blocks=blocks)
    assert [one.annotation_level for one in found] == ["warning"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (None, 12),
        ("csrc/k.cu", 0),
        ("csrc/k.cu", 10**12),
        ("/etc/passwd", 1),
        ("csrc/../.github/workflows/check.yml", 1),
        ("csrc/k.cu\n::error::x", 1),
        ("csrc/" + "x" * 300, 1),
    ],
)
def test_a_finding_elsewhere_than_in_a_kernels_source_has_no_place(file: str | None, line: int | None) -> None:
    assert found_at(RACE.model_copy(update={"file": file, "line": line})) == []
