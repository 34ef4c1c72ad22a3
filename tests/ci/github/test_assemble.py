"""A record is held against what the plan asked for, whatever the record itself says of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Expected, Profile, RunRecord, Side, timed_cases
from kernelgate.ci.document.render import comment
from kernelgate.ci.github.assemble import Posting, Trusted, assemble, blame
from kernelgate.ci.github.fetch import Job, RunInfo, SeenPull
from kernelgate.ci.judge.completeness import MEANT
from kernelgate.ci.judge.gate import BlockCode, Fault, Label
from kernelgate.ci.policy.policy import Policy
from tests.ci.card_examples import CARD_EXAMPLES, NORM, SWIGLU
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.runs import run_record

POLICY = Policy()
WHOLE = EXAMPLES["equivalent"]().record
PLAN = Expected(label="l4", target="8.9", cases=WHOLE.cases, checks=("fuzz",), processes=2)


def posting(
    tmp_path: Path,
    made: RunRecord,
    plan: Mapping[str, Expected],
    event: str = "pull_request",
    pull: SeenPull | None = None,
) -> Posting:
    run = record.Run(repository="o/r", head_sha=HEAD_SHA, base_sha=BASE_SHA, run_id=1, run_attempt=1, event=event)
    info = RunInfo(run=run, run_url="https://github.com/o/r/actions/runs/1", conclusion="success", pull=pull)
    record.write(made, tmp_path / "l4.run.json")
    return assemble(tmp_path, info, POLICY, trusted=Trusted(plan))


def without_first_case(made: RunRecord) -> RunRecord:
    kept = run_record(timed_cases(made)[1:])
    return made.model_copy(update={"cases": kept.cases, "processes": kept.processes})


def short(made: RunRecord) -> RunRecord:
    """The first case in one process alone."""
    first, *others = timed_cases(made)
    kept = run_record([replace(first, processes=first.processes[:1]), *others])
    return made.model_copy(update={"processes": kept.processes})


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
    assert (found.decision.conclusion, found.decision.label) == ("action_required", None)
    assert named in comment(found.report)


def test_a_regression_blocks_although_a_case_is_missing(tmp_path: Path) -> None:
    slow = EXAMPLES["slower"]().record
    found = posting(tmp_path, slow, {"l4": PLAN.model_copy(update={"cases": (*slow.cases, record.Case(id="more"))})})
    assert (found.decision.conclusion, found.decision.label) == ("failure", Label.REGRESSED)


def test_the_plans_own_hash_is_believed_and_not_the_records(tmp_path: Path) -> None:
    lies = Expected(cases=WHOLE.cases, hash="a")
    run = WHOLE.run.model_copy(update={"plan_hash": "a"})
    made = WHOLE.model_copy(update={"run": run, "expected": lies})
    assert "must be measured again" in comment(posting(tmp_path, made, {"l4": PLAN}).report)
    stated = PLAN.model_copy(update={"hash": "a"})
    assert posting(tmp_path, made, {"l4": stated}).decision.conclusion == "success"


@pytest.mark.parametrize(
    ("job", "conclusion", "step", "fault"),
    [
        ("j", "failure", "build head", Fault.BUILD),
        ("performance / build / base", "failure", "build base", Fault.RUNNER),
        ("j", "failure", "Fuzz the head", Fault.OUTPUT),
        ("j", "failure", "doctor", Fault.RUNNER),
        ("j", "failure", "bench", Fault.DISPUTED),
        ("j", "failure", None, Fault.RUNNER),
        ("j", "timed_out", "fuzz", Fault.DISPUTED),
    ],
)
def test_the_step_tells_whose_fault_it_is(job: str, conclusion: str, step: str | None, fault: Fault) -> None:
    assert blame(Job(name=job, conclusion=conclusion, step=step))[0] is fault


def carded(name: str) -> RunRecord:
    return CARD_EXAMPLES[name]().record


NORM_PLAN = Expected(
    label="l4", target="8.9", cards=(NORM,), cases=(record.Case(card="rmsnorm", id="m512"),), checks=("fuzz",)
)


def test_one_library_of_one_card_passes_for_no_other(tmp_path: Path) -> None:
    more = NORM_PLAN.model_copy(update={"cases": (*NORM_PLAN.cases, record.Case(card="swiglu", id="m64"))})
    found = posting(tmp_path, carded("one_library"), {"l4": more})
    assert found.decision.conclusion == "action_required"
    gone = f"nothing was measured of the card swiglu, which the head may have deleted or renamed: {MEANT}"
    assert found.title.startswith(f"❔ Held: incomplete, since {gone}; so far no change: base and head")


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("plan", [Expected(), Expected(cards=(SWIGLU,), cases=(record.Case(card="swiglu", id="m64"),))])
def test_a_card_that_the_default_branch_does_not_have_decides_nothing_whatever_it_says(
    tmp_path: Path, plan: Expected, listed: bool
) -> None:
    """It neither passes nor blocks, also where the record calls it the default branch's, or does not list it."""
    for name in ("timed_against_itself", "card_changed", "one_library"):
        made = carded(name)
        made = made if listed else made.model_copy(update={"cards": ()})
        found = posting(tmp_path, made, {"l4": plan.model_copy(update={"label": "l4"})})
        # What was planned and is not there holds it; the head's own card never does.
        conclusion = "action_required" if plan.cases else "neutral"
        assert (found.decision.conclusion, found.decision.label, found.decision.blockers) == (conclusion, None, ())


def test_a_claim_that_a_new_card_contradicts_does_not_block(tmp_path: Path) -> None:
    made = carded("card_changed")
    cards = tuple(card.model_copy(update={"source": "head"}) for card in made.cards)
    body = "## Claimed effect\n10% faster"
    pull = SeenPull(body=body, by_bot=True, labels=(), names=("csrc/rmsnorm.cu",), patches=())
    for source, blocks in ((made.cards, True), (cards, False)):
        found = posting(tmp_path, made.model_copy(update={"cards": source}), {}, pull=pull)
        codes = {blocker.code for blocker in found.decision.blockers}
        assert codes == ({BlockCode.SLOWER, BlockCode.CONTRADICTED_CLAIM} if blocks else set())
        assert "is contradicted" in comment(found.report)


def test_a_command_may_add_cases_and_passes_nothing_that_it_leaves_out(tmp_path: Path) -> None:
    more = posting(tmp_path, WHOLE, {"l4": PLAN.model_copy(update={"cases": WHOLE.cases[1:]})}, "issue_comment")
    assert more.decision.conclusion == "success"
    fewer = posting(tmp_path, without_first_case(WHOLE), {"l4": PLAN}, "issue_comment")
    assert fewer.decision.conclusion == "action_required"


# The description beside the measurement -------------------------------------------------------------------------------

KNOWN = "## Intent and hypothesis\nFewer registers.\n## Testing done\nmake pr on an L4\n"
"""What no measurement can know."""
SUPPLIED = ("## Profiler evidence", "## Correctness", "## Statistical results")
BOTH: tuple[Side, ...] = ("base", "head")


def one_case(*profiled: Side, **changes: Any) -> RunRecord:
    """An unchanged case, profiled on these sides."""
    [timed, *_] = timed_cases(WHOLE)
    kept = run_record([timed])
    metrics = {"launch__registers_per_thread": 128}
    profile = tuple(Profile(card=timed.case.card, case=timed.id, side=side, metrics=metrics) for side in profiled)
    return WHOLE.model_copy(update={"cases": kept.cases, "processes": kept.processes, "profile": profile} | changes)


def described(tmp_path: Path, made: RunRecord | None, body: str, **template: str) -> tuple[str, str]:
    """What the check concludes of this record beside this description, and the comment."""
    if made is not None:
        record.write(made, tmp_path / "l4.run.json")
    run = record.Run(head_sha=HEAD_SHA, base_sha=BASE_SHA, pull_request=1, event="pull_request")
    pull = SeenPull(body=body, by_bot=False, labels=(), names=("csrc/k.cuh",), patches=())
    info = RunInfo(run=run, run_url="https://github.com/o/r/actions/runs/1", conclusion="success", pull=pull)
    found = assemble(tmp_path, info, Policy.model_validate({"template": template}))
    return found.decision.conclusion, comment(found.report)


def test_a_complete_measurement_fills_what_its_author_need_not_know(tmp_path: Path) -> None:
    conclusion, said = described(tmp_path, one_case(*BOTH), KNOWN)
    line = "in the description, filled by the measurement: evidence, correctness, benchmark"
    assert (conclusion, said.count(line)) == ("success", 1)


CUT = WHOLE.run.model_copy(update={"ended": "failed"})


@pytest.mark.parametrize(
    ("made", "body", "still", "unblock"),
    [
        (one_case(*BOTH), KNOWN.partition("## Testing")[0], (), "add `## Testing done` to "),
        (None, "Faster.", (), "add `## Intent and hypothesis` and `## Testing done` to "),
        (one_case("base"), KNOWN, SUPPLIED[:1], "add `## Profiler evidence` to "),
        (one_case(*BOTH, checks=()), KNOWN, SUPPLIED[1:2], "add `## Correctness` to "),
        (one_case(*BOTH, run=CUT), KNOWN, SUPPLIED, "add `## Profiler evidence`"),
        (EXAMPLES["wrong_result"]().record, KNOWN, (), ""),
    ],
    ids=["no testing", "neither, and no runner", "head not profiled", "not fuzzed", "cut short", "wrong"],
)
def test_what_neither_author_nor_measurement_supplies_blocks(
    tmp_path: Path, made: RunRecord | None, body: str, still: tuple[str, ...], unblock: str
) -> None:
    conclusion, said = described(tmp_path, made, body)
    lacking = tuple(part for part in SUPPLIED if f"this blocks: in the description `{part}`" in said)
    assert (conclusion, lacking) == ("failure", still)
    assert f"**To unblock:** {unblock}" in said if unblock else "the description" not in said


LOST = "Profiler evidence, Correctness, Statistical results: nothing was measured, which is not its author's fault; "


@pytest.mark.parametrize(
    ("made", "conclusion", "lacks"),
    [
        (None, "action_required", f"{LOST}measured again, it is filled in"),
        (one_case(), "success", "Profiler evidence: no profile was made; ncu on the runner fills it in"),
    ],
    ids=["no record", "no ncu"],
)
def test_what_a_runner_was_to_measure_is_never_blamed_on_the_author(
    tmp_path: Path, made: RunRecord | None, conclusion: str, lacks: str
) -> None:
    found, said = described(tmp_path, made, KNOWN)
    assert (found, f"the description lacks: {lacks}" in said) == (conclusion, True)
    assert "Blocks" not in said
    assert "nothing to do." not in said


def test_a_repository_may_ask_without_blocking(tmp_path: Path) -> None:
    conclusion, said = described(tmp_path, one_case(), "thanks", sections="warn")
    assert conclusion == "success"
    assert "❔ the description lacks: Intent and hypothesis, Testing done" in said


@pytest.mark.parametrize(("rule", "conclusion"), [("block", "failure"), ("warn", "success")])
def test_policy_decides_whether_a_contradicted_claim_blocks(tmp_path: Path, rule: str, conclusion: str) -> None:
    claimed = f"{KNOWN}## Claimed effect\nall cases: 20% faster\n"
    found, said = described(tmp_path, one_case(*BOTH), claimed, claims=rule)
    assert (found, "is contradicted" in said) == (conclusion, True)
