"""Wrong outputs of timed calls: whose they are, how many, and in which process. And what compute-sanitizer found: what
of it blocks, and what keeps a verdict open."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from kernelgate.bench.record import (
    Calls,
    Card,
    Check,
    CheckFinding,
    Expected,
    OutputErrors,
    RunRecord,
    Side,
    TimedProcess,
)
from kernelgate.bench.record.subjects import Axes
from kernelgate.ci.judge import correctness, gate
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.correctness import shared
from kernelgate.ci.judge.gate import BlockCode, Decision, Label
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Policy
from tests import runs
from tests.ci.judge.told import missing
from tests.ci.records import case, noise
from tests.ci.report_examples import EXAMPLES
from tests.runs import process, run_record

POLICY = Policy()


def timed(side: str = "head", compared: int | None = 200, failed: int = 0, role: str = "paired") -> TimedProcess:
    calls = {side: Calls(compared=compared, failed=failed)}
    errors = {side: OutputErrors(maximum=0.25)} if failed else {}
    return process({"head": [1.0]}, role, calls=calls, errors=errors)  # type: ignore[arg-type]


def timed_record(*processes: TimedProcess) -> RunRecord:
    return run_record((runs.case("x", processes),))


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        ([timed()], None),
        ([timed(), timed(failed=12)], "12 of 200 compared calls of process 2 (largest error 0.25)"),
        ([timed(compared=None, failed=2)], "2 calls of process 1 (largest error 0.25)"),
        (
            [timed(), timed(compared=8, failed=3, role="witness")],
            "3 of 8 compared calls of the process that holds the head alone (largest error 0.25)",
        ),
        ([timed(role="witness"), timed(failed=1)], "1 of 200 compared calls of process 1 (largest error 0.25)"),
        ([timed(role="canary", failed=1)], None),
        ([timed("base", failed=1)], None),
    ],
)
def test_a_wrong_output_of_the_head_is_counted_where_it_was_first_seen(
    processes: list[TimedProcess], said: str | None
) -> None:
    found = list(correctness.wrong_outputs(timed_record(*processes)).values())
    assert [finding.message for finding in found] == ([f"the head's timed output is wrong in {said}"] if said else [])
    assert correctness.is_wrong(timed_record(*processes)) == bool(said)


def crash(side: Side) -> TimedProcess:
    """As it is recorded of a side that crashes without the other."""
    return process({}, "witness", calls={side: Calls(failed=1, crashed="the process was killed by SIGSEGV")})


def test_a_head_that_crashes_while_it_is_timed_is_wrong() -> None:
    made = run_record((case(*noise(np.random.default_rng(4)), id_="good"), runs.case("bad", [crash("head")])))
    made = made.model_copy(update={"expected": Expected(cases=made.cases, processes=2)})
    assert correctness.is_wrong(made)
    said = "wrong result: bad: the head crashes while it is timed: the process was killed by SIGSEGV"
    assert judge(made, POLICY).refused == f"{said}; speed was not judged"
    assert undecided(made, POLICY) == frozenset()
    assert not any("not timed" in one for one in missing(made)), "it is said already"


def test_a_base_that_crashes_while_it_is_timed_leaves_only_its_case_open() -> None:
    made = run_record((case(*noise(np.random.default_rng(5)), id_="good"), runs.case("bad", [crash("base")])))
    bad, good = sorted(judge(made, POLICY).cases, key=lambda one: one.id)
    assert (bad.status, good.status) == (Status.UNDECIDED, Status.UNCHANGED)
    said = "the base crashes while it is timed, so nothing can be compared with it: the process was killed by SIGSEGV"
    assert bad.sentence == f"cannot tell: {said}"
    only = judge(run_record((runs.case("bad", [crash("base")]),)), POLICY)
    assert only.refused is None
    assert said in only.reason
    [doubt_] = gate.doubts_of("", made, judge(made, POLICY), POLICY.gates)
    assert (doubt_.code, doubt_.cause) == ("base_wrong", "machine"), "the head is not to blame"


RACE = CheckFinding(text="Race reported at a write", kernel="k<1>", file="csrc/k.cu", line=12, tool="racecheck")
KNOWN = RACE.model_copy(update={"on_base": True})


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
        ((check(card="rmsnorm"), check(card="swiglu")), []),
        (
            (check(card="rmsnorm"), check(card="swiglu", run=1, reason="Racecheck hung.")),
            ["the sanitizer check ran only 1 of 2 for swiglu: racecheck hung"],
        ),
        (
            (check(card="rmsnorm", **SKIPPED),),
            ["the sanitizer check did not run for swiglu", "the sanitizer check did not run for rmsnorm: no tool"],
        ),
    ],
)
def test_a_check_that_did_not_come_to_its_end_is_open_for_its_card(checks: tuple[Check, ...], said: list[str]) -> None:
    assert missing(RunRecord(checks=checks, expected=Expected(cards=CARDS, checks=("sanitizer",)))) == said


N = range(1, 130)


def split(fails: list[int]) -> tuple[list[Axes], list[Axes]]:
    return [{"N": n} for n in fails], [{"N": n} for n in N if n not in fails]


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ([n for n in N if n % 2], "odd N"),
        ([n for n in N if n % 8], "N not divisible by 8"),
        ([n for n in N if n % 64 == 0], "N divisible by 64"),
        ([n for n in N if n > 100], "N of 101 or more"),
        ([n for n in N if n % 3 == 0], None),
        ([17], None),
        ([*N], None),
    ],
)
def test_a_size_is_told_by_the_plainest_rule(fails: list[int], words: str | None) -> None:
    assert shared(*split(fails)) == words


def test_that_what_has_no_elements_passes_shows_nothing() -> None:
    """Else a kernel that is wrong everywhere would be wrong "with N not divisible by 4096"."""
    failing: list[Axes] = [{"N": n, "causal": False} for n in (1, 2, 63, 512)]
    assert shared(failing, [{"N": 0, "causal": False}]) is None
    assert shared(failing, [{"N": 0, "causal": False}, {"N": 4096, "causal": False}]) == "N not divisible by 1024"


def test_two_values_are_told_where_no_single_one_is_the_failing_cases_own() -> None:
    """As of a kernel that stores bf16 through fp16, and overflows there."""
    failing: list[Axes] = [{"N": n, "dtype": "bf16", "distribution": "large"} for n in (3, 8)]
    passing: list[Axes] = [{**axes, other: value} for axes in failing for other, value in OTHERS]
    assert shared(failing, passing) == "bf16 and distribution=large"
    assert shared(failing, [*passing, {"N": 5, "dtype": "bf16", "distribution": "large"}]) is None


OTHERS = (("dtype", "fp16"), ("distribution", "normal"))
