"""What the comment says of cards: of several, of one library on both sides, of heads without a base, of new cards.

Golden files lie under tests/data/card_reports; tests/ci/report/test_build.py says how to write them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kernelgate.bench.record import KernelFacts, Note
from kernelgate.ci.document.render import comment, plain_line
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import reported
from tests.ci.card_examples import CARD_EXAMPLES, NORM, alone, cards_record, head_built, timed
from tests.ci.report.test_build import expect
from tests.ci.report_examples import Example, judge, same

GOLDEN = Path(__file__).parents[2] / "data" / "card_reports"


@pytest.mark.parametrize("name", CARD_EXAMPLES)
def test_the_comment_is_the_golden_one(name: str) -> None:
    expect(GOLDEN / name / "comment.md", comment(CARD_EXAMPLES[name]().report()))


def lines(made: Example) -> list[str]:
    return [plain_line(line) for line in made.report().remarks]


def test_a_card_of_the_plan_that_the_head_judged_is_not_called_new() -> None:
    own = NORM.model_copy(update={"source": "head"})
    case = timed(own, 512, None, 5.0)
    note = Note(code="head_alone", card="rmsnorm", text="Its call now takes eps, which the card does not give.")
    made = Example(
        cards_record((case,), own, builds=head_built(own), notes=(note,)), judge(Outcome.INCONCLUSIVE, alone(case))
    )
    assert lines(made)[1:] == ["➖ RMSNorm was judged by the card of this pull request, so nothing here can block."]


@pytest.mark.parametrize(("source", "blocks"), [("default branch", True), ("head", False)])
def test_spills_of_the_heads_own_card_do_not_block(source: Literal["default branch", "head"], blocks: bool) -> None:
    case = timed(NORM, 512, 5.0, 5.0)
    facts = KernelFacts(target="sm_89", name="_kernel", spill_bytes=64)
    spilling = head_built(NORM)[0].model_copy(update={"kernels": (facts,)})
    card = NORM.model_copy(update={"source": source})
    made = Example(cards_record((case,), card, builds=(spilling,)), judge(Outcome.EQUIVALENT, same(case, 0.0)))
    assert any("Blocks: _kernel for sm_89: 64 bytes" in line for line in lines(made)) == blocks


def test_one_library_is_not_compared_with_a_baseline_in_its_place() -> None:
    made, stored = CARD_EXAMPLES["one_library"]().record, CARD_EXAMPLES["timed_against_itself"]().record
    said = reported(made, Policy(), "run.json", ("l4.json", stored)).report
    assert plain_line(said.headline) == "✅ Does not block: no change: base and head compile to the same library"
