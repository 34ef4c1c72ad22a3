"""A kernel far below its reference: said first, and blocking where the policy has it so."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from kernelgate.ci.document import render
from kernelgate.ci.judge import gate, reference
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.gate import BlockCode
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.report_examples import EXAMPLES

MADE = EXAMPLES["equivalent"]()


def slow(ratio: float, cases: int = 1) -> RecordVerdict:
    """The first cases with a reference that is `ratio` times as slow as the head."""
    listed = [
        replace(case, reference_us=ratio * (case.head_us or 1.0)) if at < cases else case
        for at, case in enumerate(MADE.verdict.cases)
    ]
    return replace(MADE.verdict, cases=tuple(listed))


def comment(verdict: RecordVerdict, action: Literal["fail", "warn", "ignore"] = "warn") -> tuple[str, gate.Decision]:
    policy = Policy(gates=Gates(below_reference_min=action))
    decision = gate.decide([gate.evidence("l4", MADE.record, verdict, policy)])
    return render.comment(build([GpuReport("l4", MADE.record, verdict)], decision, policy)), decision


@pytest.mark.parametrize(("ratio", "found"), [(0.4999, True), (0.5, False)])
def test_a_case_counts_below_half_of_the_reference(ratio: float, found: bool) -> None:
    assert bool(reference.far_below(slow(ratio), Gates())) is found


@pytest.mark.parametrize(("code", "known"), [("head_alone", True), ("throttled", False)])
def test_a_head_without_a_base_has_a_reference_too(code: str, known: bool) -> None:
    found = Finding(code, "whatever was found", True)
    cases = tuple(replace(case, findings=(found,)) for case in slow(0.31).cases)
    assert bool(reference.far_below(replace(MADE.verdict, cases=cases), Gates())) is known


def test_the_comment_says_it_under_its_first_lines_and_does_not_block() -> None:
    text, decision = comment(slow(0.31))
    assert not decision.blocks
    said = "\n⚠️ 0.31× of PyTorch in S=448 B=8 H=8 fp16\n"
    assert said in text
    assert text.index(said) < text.index("**Now:** `kernelgate profile` says what takes the time; see [how to read it]")


def test_a_team_may_have_it_block_or_say_nothing() -> None:
    text, decision = comment(slow(0.31), "fail")
    assert [one.code for one in decision.blockers] == [BlockCode.BELOW_REFERENCE]
    assert text.startswith("### ⛔ Blocks: less than the reference's least speed in ")
    text, decision = comment(slow(0.31), "ignore")
    assert not decision.blocks
    assert "× of PyTorch in" not in text
