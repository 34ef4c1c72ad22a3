"""The fuzz list in short, and what the comment says of compute-sanitizer's findings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelgate.bench.record import BaseTrial, Calls, Check, CheckFinding, FaultKind, FuzzResult, RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.document.render import comment, plain_line
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import correctness
from kernelgate.ci.report.build import reported
from tests import runs
from tests.ci.records import case, noise, with_calls
from tests.ci.report_examples import EXAMPLES
from tests.runs import changed


def result(number: int, share: float | None, passed: bool = True) -> FuzzResult:
    axes: dict[str, bool | float | str] = {"S": float(number), "distribution": "peaked"}
    return FuzzResult(id=f"fuzz_{number}", seed=1, axes=axes, passed=passed, error_ratio=share)


def check(*results: FuzzResult, card: str = "") -> Check:
    status = "passed" if all(one.passed for one in results) else "failed"
    return Check(kind="fuzz", card=card, status=status, results=results)


def said(*results: FuzzResult) -> str:
    made = check(*results)
    return render.plain_line(correctness.in_words(RunRecord(checks=(made,)), made))


def test_one_failure_of_many_is_not_a_hundred_percent() -> None:
    """Neither of the cases nor of the tolerance; what crashed has no error."""
    many = [result(number, 0.5) for number in range(1998)]
    text = said(*many, result(1998, 1.0004, passed=False), result(1999, None, passed=False))
    assert text.startswith("pass rate 99.9%; errors as shares of the tolerance (of 1999 that have one): median 50%")
    assert "worst 101% in S=1998" in text
    assert "worst 4,000× in S=1 " in said(result(1, 4000.0, passed=False))


def test_what_was_not_measured_is_not_called_small() -> None:
    assert said(result(1, None)) == "pass rate 100%; errors not measured"
    assert said(result(1, 0.0)).endswith("worst 0%")


def beside(count: int, kind: FaultKind, base: BaseTrial | None, **facts: Any) -> RunRecord:
    """So many cases with odd N fail so, of twice as many."""
    failing = (
        FuzzResult(id=f"n{n}", seed=1, axes={"N": n}, passed=False, kind=kind, base=base, error_ratio=9.0, **facts)
        for n in range(1, 2 * count, 2)
    )
    results = (*failing, *(FuzzResult(id=f"n{n}", seed=1, axes={"N": n}, passed=True) for n in range(0, 2 * count, 2)))
    status = "failed" if any(one.fails for one in results) else "passed"
    example = EXAMPLES["equivalent"]().record
    return example.model_copy(update={"checks": (Check(kind="fuzz", status=status, results=results),)})


@pytest.mark.parametrize(
    ("kind", "base", "facts", "says"),
    [
        ("wrong", BaseTrial(), {}, ["Blocks: wrong result in 3 of 6 fuzz cases, all with odd N",
                                    "Smallest: N=1: error. The base is right there."]),
        ("wrong", BaseTrial(kind="wrong", error_ratio=2.0), {}, ["The base fails there, too, but in another way"]),
        ("wrong", BaseTrial(kind="refused", message="an error: x"), {}, ["The base refuses it: an error: x."]),
        ("wrong", BaseTrial(kind="wrong", error_ratio=9.0), {"timed": True},
         ["Blocks: wrong result", "The base fails in the same way, but a timed shape must be right."]),
        ("crashed", None, {}, ["Blocks: crashes in 3 of 6 fuzz cases, all with odd N"]),
    ],
)  # fmt: skip
def test_a_failure_says_what_is_wrong_what_it_shares_and_what_the_base_does(
    kind: FaultKind, base: BaseTrial | None, facts: dict[str, Any], says: list[str]
) -> None:
    text = comment(reported(beside(3, kind, base, message="Error.", **facts), Policy()).report)
    assert all(words in text for words in says), text


@pytest.mark.parametrize(("alike", "others"), [(2, 8), (1, 9)])
def test_where_both_are_often_beyond_the_tolerance_the_card_is_asked_about(alike: int, others: int) -> None:
    """Of mamba's 620cd98 with a card whose tolerance was too strict: 61 of 118 failed in base and head alike."""
    fails = {"passed": False, "kind": "wrong", "message": "Error.", "base": BaseTrial(kind="wrong", error_ratio=1.4)}
    wrong = FuzzResult(id="timed", seed=1, axes={"N": 9}, timed=True, error_ratio=1.4, **fails)
    excused = [FuzzResult(id=f"a{n}", seed=1, axes={"N": n}, error_ratio=1.4, **fails) for n in range(alike)]
    passed = [FuzzResult(id=f"b{n}", seed=1, axes={"N": n}, passed=True) for n in range(others - 1)]
    made = Check(kind="fuzz", status="failed", results=(wrong, *excused, *passed))
    record = EXAMPLES["equivalent"]().record.model_copy(update={"checks": (made,)})
    text = comment(reported(record, Policy()).report)
    hint = f"Base and head are both beyond the tolerance in {alike} more, by 1.4 times at the median: do the card's"
    assert (hint in text) == (alike > 1), text


def test_cases_that_the_base_fails_too_have_not_passed_beside_wrong_timed_calls() -> None:
    excused = beside(3, "wrong", BaseTrial(kind="wrong", error_ratio=9.0))
    record = EXAMPLES["wrong_timed_output"]().record.model_copy(update={"checks": excused.checks})
    assert [plain_line(one) for one in correctness.beside_wrong(record)] == ["➖ 3 of 6 fuzz cases passed"]


RACE = CheckFinding(
    text="Race reported at a write", kernel="k<1>", file="csrc/k.cu", line=12, tool="racecheck", times=3, on_base=False
)


def sanitized(*findings: CheckFinding, **facts: Any) -> Check:
    status = "failed" if findings else "passed"
    whole = {"kind": "sanitizer", "status": status, "asked": 4, "run": 4, "findings": findings}
    return Check(**{**whole, "tools": ("memcheck", "racecheck"), "cases": ("a", "b"), **facts})


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (sanitized(reason="The time was over."),
         "✅ compute-sanitizer: memcheck and racecheck found nothing in 2 cases; the time was over"),
        (sanitized(RACE),
         "🛑 compute-sanitizer: racecheck: race reported at a write in k<1> at csrc/k.cu:12 (3 times)"),
        (sanitized(run=1, reason="Racecheck hung."),
         "❔ compute-sanitizer: only 1 of 4 runs came to their end: racecheck hung"),
    ],
)  # fmt: skip
def test_a_line_for_each_finding_or_one_for_none(made: Check, line: str) -> None:
    assert [plain_line(one) for one in correctness.sanitizer(RunRecord(checks=(made,)), Gates())] == [line]


CRASHED = Calls(failed=1, crashed="the process was killed by SIGSEGV; crashes often")
HUNG = Calls(failed=1, crashed="the process did not answer for 30 s and was killed; it crashes often", hung=True)


def test_a_head_that_crashes_while_it_is_timed_is_named_so() -> None:
    made = runs.run_record([with_calls(case(*noise(np.random.default_rng(1))), head=CRASHED)])
    assert plain_line(reported(made, Policy()).report.headline).startswith("🛑 Blocks: crashes in timed calls of ")


def test_where_both_sides_are_wrong_the_change_is_not_what_to_look_at() -> None:
    bad = Calls(compared=200, failed=1)
    made = runs.run_record([with_calls(case(*noise(np.random.default_rng(1))), base=bad, head=bad)])
    assert "the base is wrong, too, so look at the card's" in plain_line(reported(made, Policy()).report.now)


def test_a_base_that_is_wrong_is_said_where_a_reader_looks_first() -> None:
    rng = np.random.default_rng(1)
    spoilt, alone = case(*noise(rng), id_="one"), runs.process({}, "witness", calls={"base": HUNG})
    spoilt = runs.case("one", [*(changed(one, calls={"base": HUNG}) for one in spoilt.processes), alone])
    report = reported(runs.run_record((spoilt, case(*noise(rng), id_="right"))), Policy()).report
    now = plain_line(report.now)
    assert "the base hangs there" in plain_line(report.headline)
    assert "he base" in plain_line(report.summary), "and how"
    assert "the base hangs, your change is not: if it is the repair, merge it" in now
    assert "pr --base COMMIT compares it with a commit that is right" in now
    assert "again" not in now, "measured again, it is the same"
