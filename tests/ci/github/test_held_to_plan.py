"""A record is held against what the plan asked for, whatever the record itself says of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Expected, RunRecord, timed_cases
from kernelgate.ci.document.render import comment
from kernelgate.ci.github.assemble import ExpectedByLabel, Posting, assemble
from kernelgate.ci.github.run_info import RunInfo
from kernelgate.ci.judge.gate import Label
from kernelgate.ci.judge.policy import Policy
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.runs import run_record

POLICY = Policy()
WHOLE = EXAMPLES["equivalent"]().record
PLAN = Expected(label="l4", target="8.9", cases=WHOLE.cases, checks=("fuzz",), processes=2)


def posting(
    tmp_path: Path, made: RunRecord, plan: ExpectedByLabel, event: str = "pull_request", label: str = "l4"
) -> Posting:
    run = record.Run(repository="o/r", head_sha=HEAD_SHA, base_sha=BASE_SHA, run_id=1, run_attempt=1, event=event)
    info = RunInfo(run=run, run_url="https://github.com/o/r/actions/runs/1", conclusion="success")
    record.write(made, tmp_path / f"{label}.run.json")
    return assemble(tmp_path, info, POLICY, None, expected=plan)


def without_first_case(made: RunRecord) -> RunRecord:
    kept = run_record(timed_cases(made)[1:])
    return made.model_copy(update={"cases": kept.cases, "processes": kept.processes})


def short(made: RunRecord) -> RunRecord:
    """The first case in one process alone."""
    first, *others = timed_cases(made)
    kept = run_record([replace(first, processes=first.processes[:1]), *others])
    return made.model_copy(update={"processes": kept.processes})


def test_a_whole_record_passes(tmp_path: Path) -> None:
    found = posting(tmp_path, WHOLE, {"l4": PLAN})
    assert (found.decision.conclusion, found.decision.label) == ("success", Label.UNCHANGED)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (without_first_case(WHOLE), "was not timed"),
        (short(WHOLE), "in 1 of 2 processes"),
        (WHOLE.model_copy(update={"checks": ()}), "the fuzz check did not run"),
        (WHOLE.model_copy(update={"run": WHOLE.run.model_copy(update={"ended": "failed"})}), "ended early"),
    ],
)
def test_what_is_missing_keeps_the_check_open(tmp_path: Path, made: RunRecord, named: str) -> None:
    lies = Expected(cases=made.cases)
    found = posting(tmp_path, made.model_copy(update={"expected": lies}), {"l4": PLAN})
    assert (found.decision.conclusion, found.decision.label) == ("neutral", None)
    assert named in comment(found.report)


def test_a_regression_blocks_although_a_case_is_missing(tmp_path: Path) -> None:
    slow = EXAMPLES["slower"]().record
    found = posting(tmp_path, slow, {"l4": PLAN.model_copy(update={"cases": (*slow.cases, record.Case(id="more"))})})
    assert (found.decision.conclusion, found.decision.label) == ("failure", Label.REGRESSED)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN.model_copy(update={"target": "9.0"}),
        PLAN.model_copy(update={"cases": WHOLE.cases[1:]}),
    ],
)
def test_a_record_of_something_else_is_not_used(tmp_path: Path, plan: Expected) -> None:
    found = posting(tmp_path, WHOLE, {"l4": plan})
    assert (found.decision.conclusion, found.decision.label) == ("neutral", None)
    assert "Faster" not in comment(found.report)


def test_a_label_that_the_policy_does_not_have_proves_nothing(tmp_path: Path) -> None:
    found = posting(tmp_path, EXAMPLES["faster"]().record, {"l4": PLAN}, label="moon")
    assert (found.decision.conclusion, found.decision.label) == ("neutral", None)


def test_a_gpu_of_the_plan_without_a_record_keeps_the_check_open(tmp_path: Path) -> None:
    found = posting(tmp_path, WHOLE, {"l4": PLAN, "h100": PLAN.model_copy(update={"label": "h100"})})
    assert (found.decision.conclusion, found.decision.label) == ("neutral", None)


def test_a_command_may_add_cases_and_passes_nothing_that_it_leaves_out(tmp_path: Path) -> None:
    more = posting(tmp_path, WHOLE, {"l4": PLAN.model_copy(update={"cases": WHOLE.cases[1:]})}, "issue_comment")
    assert more.decision.conclusion == "success"
    fewer = posting(tmp_path, without_first_case(WHOLE), {"l4": PLAN}, "issue_comment")
    assert fewer.decision.conclusion == "neutral"
