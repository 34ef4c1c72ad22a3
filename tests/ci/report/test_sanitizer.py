"""What the comment says of compute-sanitizer's findings."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgate.bench.record import Check, CheckFinding, RunRecord
from kernelgate.ci.document.render import comment, plain_line
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import correctness
from kernelgate.ci.report.build import reported
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.report_examples import EXAMPLES

RACE = CheckFinding(
    text="Race reported at a write", kernel="k<1>", file="csrc/k.cu", line=12, tool="racecheck", times=3, on_base=False
)


def check(*findings: CheckFinding, **facts: Any) -> Check:
    status = "failed" if findings else "passed"
    whole = {"kind": "sanitizer", "status": status, "asked": 4, "run": 4, "findings": findings}
    return Check(**{**whole, "tools": ("memcheck", "racecheck"), "cases": ("a", "b"), **facts})


def said(made: Check, gates: Gates | None = None) -> list[str]:
    return [plain_line(line) for line in correctness.sanitizer(RunRecord(checks=(made,)), gates or Gates())]


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        (check(), ["✅ compute-sanitizer: memcheck and racecheck found nothing in 2 cases"]),
        (
            check(unreached=("x", "y", "z", "u", "v"), reason="The time was over."),
            [
                "✅ compute-sanitizer: memcheck and racecheck found nothing in 2 cases; no case was seen to launch "
                "5 kernels, which the run record names; the time was over"
            ],
        ),
        (
            check(RACE),
            ["🛑 compute-sanitizer: racecheck: race reported at a write in k<1> at csrc/k.cu:12 (3 times)"],
        ),
        (
            check(CheckFinding(text="Race (cuda_fp16.hpp:6, which is not a file of this commit)", on_base=True)),
            ["⚠ compute-sanitizer: race (cuda_fp16.hpp:6, which is not a file of this commit); the base has it, too"],
        ),
        (
            check(run=1, reason="Racecheck hung."),
            ["❔ compute-sanitizer: only 1 of 4 runs came to their end: racecheck hung"],
        ),
        (check(status="skipped", run=None, reason="No GPU."), ["❔ compute-sanitizer: not run: no GPU"]),
        (check(status="failed"), ["🛑 compute-sanitizer: 1 finding that the record does not list"]),
    ],
)
def test_a_line_for_each_finding_or_one_for_none(made: Check, lines: list[str]) -> None:
    assert said(made) == lines


def test_what_the_policy_lets_pass_is_said_all_the_same() -> None:
    (line,) = said(check(RACE), Gates(sanitizer="warn"))
    assert line.startswith("⚠ compute-sanitizer: racecheck: ")


def test_of_many_findings_the_authors_come_first_and_the_rest_is_counted() -> None:
    many = tuple(RACE.model_copy(update={"line": n, "on_base": n != 9}) for n in range(1, 10))
    lines = said(check(*many))
    assert len(lines) == 1 + correctness.MAX_FINDINGS
    assert "csrc/k.cu:9" in lines[0]
    assert lines[-1] == "⚠ compute-sanitizer: 4 other findings, in the run record"


def test_of_several_cards_each_line_names_its_own() -> None:
    made = CARD_EXAMPLES["improved_beside_unchanged"]().record
    checks = (*made.checks, check(RACE, card="swiglu"), check(card="rmsnorm"))
    lines = [plain_line(line) for line in correctness.sanitizer(made.model_copy(update={"checks": checks}), Gates())]
    assert [line.split(" compute")[0] for line in lines] == ["🛑 SwiGLU:", "✅ RMSNorm:"]


def test_the_first_line_says_what_blocks_and_under_the_table_stands_where() -> None:
    made = EXAMPLES["equivalent"]().record
    text = comment(reported(made.model_copy(update={"checks": (*made.checks, check(RACE))}), Policy()).report)
    assert text.splitlines()[0].startswith(
        "### ⛔ Blocked by what compute-sanitizer found in `k<1>`, not by speed (no change: "
    )
    assert "`csrc/k.cu:12`" in text
    assert "✅ compute-sanitizer" not in text
