"""What compute-sanitizer found: what of it blocks, and what keeps a verdict open."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from kernelgate.bench.record import Card, Check, CheckFinding, Expected, RunRecord
from kernelgate.ci.judge import correctness, gate
from kernelgate.ci.judge.gate import BlockCode, Decision, Label
from kernelgate.ci.policy.policy import Gates, Policy
from tests.ci.judge.told import missing
from tests.ci.report_examples import EXAMPLES

RACE = CheckFinding(text="Race reported at a write", kernel="k<1>", file="csrc/k.cu", line=12, tool="racecheck")
KNOWN = RACE.model_copy(update={"on_base": True})
POLICY = Policy()


def check(*findings: CheckFinding, **facts: Any) -> Check:
    status = "failed" if findings else "passed"
    return Check(**{"kind": "sanitizer", "status": status, "asked": 2, "run": 2, "findings": findings, **facts})


def checked(*checks: Check, example: str = "equivalent") -> RunRecord:
    made = EXAMPLES[example]().record
    return made.model_copy(update={"checks": (*made.checks, *checks)})


def decided(made: RunRecord, policy: Policy = POLICY, example: str = "equivalent") -> Decision:
    return gate.decide([gate.evidence("l4", made, EXAMPLES[example]().verdict, policy)])


def test_a_finding_of_the_head_blocks_and_names_its_kernel() -> None:
    found = decided(checked(check(RACE)))
    assert (found.conclusion, found.label) == ("failure", None), "what races has no speed worth a label"
    assert [(one.code, one.gpu, one.subject) for one in found.blockers] == [(BlockCode.SANITIZER, "l4", "k<1>")]


def test_it_comes_before_a_regression_and_after_a_wrong_output() -> None:
    slow = decided(checked(check(RACE), example="slower"), example="slower")
    assert [one.code for one in slow.blockers] == [BlockCode.SANITIZER, BlockCode.SLOWER]
    wrong = decided(checked(check(RACE), example="wrong_result"), example="wrong_result")
    assert [one.code for one in wrong.blockers] == [BlockCode.WRONG_OUTPUT, BlockCode.SANITIZER]


@pytest.mark.parametrize(("findings", "said"), [((KNOWN,), "fail"), ((RACE,), "warn"), ((RACE,), "ignore")])
def test_what_the_base_has_too_and_what_the_policy_lets_pass_blocks_nothing(
    findings: tuple[CheckFinding, ...], said: Literal["fail", "warn", "ignore"]
) -> None:
    found = decided(checked(check(*findings)), Policy(gates=Gates(sanitizer=said)))
    assert (found.conclusion, found.label) == ("success", Label.UNCHANGED)


@pytest.mark.parametrize("facts", [{"status": "failed"}, {"status": "failed", "failed": 3, "findings": (KNOWN, KNOWN)}])
def test_what_the_record_does_not_list_is_not_taken_for_the_bases(facts: dict[str, Any]) -> None:
    found = decided(checked(check(**facts)))
    assert [one.code for one in found.blockers] == [BlockCode.SANITIZER]
    (unlisted,) = correctness.new_sanitizer_findings(checked(check(**facts)))
    assert unlisted.text == "1 finding that the record does not list"


CARDS = (Card(name="rmsnorm"), Card(name="swiglu"))
SKIPPED = {"status": "skipped", "run": None, "asked": None, "reason": "No tool."}


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ((), ["the sanitizer check did not run"]),
        ((check(card="rmsnorm"),), ["the sanitizer check did not run for swiglu"]),
        ((check(card="rmsnorm"), check(card="swiglu")), []),
        (
            (check(card="rmsnorm"), check(card="swiglu", run=1, reason="Racecheck hung.")),
            ["the sanitizer check ran only 1 of 2 for swiglu: racecheck hung"],
        ),
        (tuple(check(card=card.name, **SKIPPED) for card in CARDS), ["the sanitizer check did not run: no tool"]),
        (
            (check(card="rmsnorm", **SKIPPED),),
            ["the sanitizer check did not run for swiglu", "the sanitizer check did not run for rmsnorm: no tool"],
        ),
        (
            (check(KNOWN, card="rmsnorm", run=1), check(card="swiglu")),
            ["the sanitizer check ran only 1 of 2 for rmsnorm"],
        ),
        (
            (check(card="rmsnorm", asked=None, run=None), check(card="swiglu")),
            ["the sanitizer check did not run for rmsnorm"],
        ),
    ],
)
def test_a_check_that_did_not_come_to_its_end_is_open_for_its_card(checks: tuple[Check, ...], said: list[str]) -> None:
    assert missing(RunRecord(checks=checks, expected=Expected(cards=CARDS, checks=("sanitizer",)))) == said
