"""Which lines of a patch a remark stands beside."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.model import Report
from kernelgate.ci.github.annotations import changed_lines, line_notes
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision
from kernelgate.ci.judge.verdict import Outcome, RecordVerdict
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.report_examples import case, faster, slower

PATCH = """@@ -10,6 +10,7 @@ __global__ void k() {
 a
-b
+c
+d
 e
@@ -40,3 +41,2 @@
 x
-y
 z"""


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        ("", []),
        ("@@ -0,0 +1,3 @@\n+a\n+b\n+c", [(1, 3)]),
        ("@@ -1,3 +0,0 @@\n-a\n-b\n-c", []),
        ("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file", [(1, 1)]),
        (PATCH, [(11, 12), (42, 42)]),
        ("@@ -5,4 +5,6 @@\n a\n+b\n c\n+d\n e\n f", [(6, 6), (8, 8)]),
        ("no hunk at all", []),
    ],
)
def test_changed_lines_of_a_patch(patch: str, lines: list[tuple[int, int]]) -> None:
    assert changed_lines(patch) == lines


def notes(*changes: float, blocked_by: BlockCode | None = None) -> list[tuple[str, str]]:
    """Level and text of what stands beside the patch, where cases changed by so many percent."""
    cases = tuple(
        (faster if change < 0 else slower)(case(64 * number, 8, 50.0, change), change)
        for number, change in enumerate(changes, 1)
    )
    verdict = RecordVerdict("run.json", Outcome.REGRESSED, "", cases)
    blockers = (Blocker(blocked_by),) if blocked_by else ()
    posting = Posting(
        Report(headline=("News",), summary=()),
        Decision("failure" if blockers else "success", blockers=blockers),
        (GpuReport("l4", RunRecord(), verdict),),
    )
    found = line_notes(posting, [("csrc/k.cu", "@@ -1 +1 @@\n-a\n+b")], ["csrc/"])
    return [(note.level, note.message) for note in found]


def test_the_regression_comes_first_and_is_never_cut() -> None:
    ((level, text),) = notes(-20.0, -21.0, -22.0, -23.0, -24.0, 9.0, blocked_by=BlockCode.SLOWER)
    assert level == "failure"
    assert text.startswith("s384_b8_h8_d64_fp16: 9.0% slower, ")
    assert text.endswith(" And 1 more.")


@pytest.mark.parametrize("blocked_by", [None, BlockCode.DESCRIPTION])
def test_a_faster_kernel_is_no_failure_whatever_else_blocks(blocked_by: BlockCode | None) -> None:
    assert [level for level, _ in notes(-20.0, blocked_by=blocked_by)] == ["notice"]


@pytest.mark.parametrize(("blocked_by", "level"), [(BlockCode.WRONG_OUTPUT, "failure"), (None, "notice")])
def test_a_wrong_result_by_the_heads_own_card_is_no_failure(blocked_by: BlockCode | None, level: str) -> None:
    made = CARD_EXAMPLES["one_card_wrong"]()
    blockers = (Blocker(blocked_by),) if blocked_by else ()
    decision = Decision("failure" if blockers else "neutral", blockers=blockers)
    posting = Posting(Report(("News",), ()), decision, (GpuReport("l4", made.record, made.verdict),))
    found = line_notes(posting, [("csrc/k.cu", "@@ -1 +1 @@\n-a\n+b")], ["csrc/"])
    assert [note.level for note in found] == [level]
