"""Which cases a comment names, of those that block. What becomes of it: tests/attacks/test_accept.py."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Case, CaseKey
from kernelgate.ci.document.model import Report
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.command import Command, NotDoneError, chosen
from kernelgate.ci.judge.gate import Decision, GpuEvidence, Regression
from kernelgate.ci.report.gpu import GpuReport
from tests.runs import run_record

NORM, GELU, SUM = CaseKey("norm", "m1"), CaseKey("gelu", "m1"), CaseKey("sum", "m2")


def posting(*slower: CaseKey) -> Posting:
    record = run_record(()).model_copy(update={"cases": tuple(Case(card=k.card, id=k.id) for k in (NORM, GELU, SUM))})
    regressions = tuple(Regression("l4", key) for key in slower)
    decision = Decision("failure", regressions=regressions)
    return Posting(Report(("Slower",), ()), decision, (GpuReport(GpuEvidence("l4"), record),))


def cases(words: str, *slower: CaseKey) -> list[CaseKey]:
    return chosen(Command("accept", tuple(words.split()), "so"), posting(*slower))


def test_an_id_of_several_cards_is_the_one_that_blocks() -> None:
    assert cases("m1", NORM, SUM) == [NORM]
    assert cases("gelu/m1", NORM, GELU) == [GELU]


def test_an_id_of_several_cards_that_block_is_asked_for() -> None:
    with pytest.raises(NotDoneError, match=r"^m1 is a case of several cards; write gelu/m1 or norm/m1$"):
        cases("m1", NORM, GELU)


def test_all_is_everything_that_blocks_and_all_cases_together() -> None:
    together = CaseKey("norm", "")
    assert cases("all", NORM, together) == [NORM, together]
