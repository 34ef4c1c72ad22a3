"""Where a record has several kernels, whatever is said of a case names its kernel; of the only one nothing is added."""

from __future__ import annotations

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.github import claims
from kernelgate.ci.judge import completeness, gate
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.gate import BlockCode
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import now
from kernelgate.ci.report.gpu import of_record
from kernelgate.ci.report.links import Links
from tests.ci.card_examples import NORM, SWIGLU, cards_record, timed
from tests.ci.report_examples import BASE_SHA, HEAD_SHA, judge, same, slower

SHARED = "m4096_n4096_fp16"
"""An id that both kernels have, so that it says nothing alone."""
GITHUB = Links("https://github.com/o/r", "https://github.com/o/r/pull/1", None, "https://github.com/o/r/actions/runs/1")


def two(head_us: float = 400.0) -> RunRecord:
    return cards_record((timed(SWIGLU, 4096, 400.0, head_us), timed(NORM, 4096, 400.0, 400.0)), NORM, SWIGLU)


def one() -> RunRecord:
    return cards_record((timed(NORM, 4096, 400.0, 400.0),), NORM)


def missing(made: RunRecord, planned: RunRecord) -> list[str]:
    expected = record.Expected(label="l4", cases=planned.cases, cards=planned.cards, processes=9)
    return [
        render.plain_line(line)
        for line in completeness.against_plan(made.model_copy(update={"expected": expected}), "l4").missing
    ]


def test_a_case_that_was_timed_too_seldom_is_named_with_its_kernel() -> None:
    assert f"rmsnorm/{SHARED}" in " ".join(missing(two(), two()))
    assert f"swiglu/{SHARED}" in " ".join(missing(two(), two()))


def test_a_kernel_of_the_plan_that_the_record_lacks_is_named() -> None:
    assert any(f"swiglu/{SHARED} was not timed" in line for line in missing(one(), two()))


def test_of_the_only_kernel_the_case_is_enough() -> None:
    said = missing(one(), one())
    assert any(line.startswith(SHARED) for line in said)
    assert not any("rmsnorm/" in line for line in said)


def test_what_blocks_names_the_kernel_and_its_command_means_that_one() -> None:
    """The other kernel's case has the same id, is slower still, and was accepted."""
    cases = timed(SWIGLU, 4096, 400.0, 480.0), timed(NORM, 4096, 400.0, 440.0)
    made = cards_record(cases, NORM, SWIGLU)
    found = judge(Outcome.REGRESSED, slower(cases[0], 20.0), slower(cases[1], 10.0))
    taken = gate.Acceptance(cases[0].key, "ada", "needed", HEAD_SHA, BASE_SHA)
    decided = gate.decide([gate.evidence("l4", made, found, Policy())], accepted=[taken])
    assert [(one.code, one.subject) for one in decided.blockers] == [(BlockCode.SLOWER, f"rmsnorm/{SHARED}")]
    said = render.plain_line(now.step([of_record("l4", made, found)], decided, GITHUB))
    assert f"/kernelgate accept rmsnorm/{SHARED} " in said


def test_a_claim_names_the_kernel_that_contradicts_it() -> None:
    made = cards_record((worse := timed(SWIGLU, 4096, 400.0, 440.0), timed(NORM, 4096, 400.0, 400.0)), NORM, SWIGLU)
    found = judge(Outcome.REGRESSED, slower(worse, 10.0), same(timed(NORM, 4096, 400.0, 400.0), 0.0))
    written, _ = claims.read_claims("- M=4096: 10% faster")
    [assessed] = claims.assess(written, made, found, Gates())
    assert f"swiglu/{SHARED} " in render.plain_line(assessed.line)


def test_more_memory_than_allowed_names_the_kernel() -> None:
    made, memory = two(), {"memory_bytes": {"base": 1 << 20, "head": 9 << 20, "reference": 1 << 20}}
    processes = tuple(
        process.model_copy(update={"timings": tuple(one.model_copy(update=memory) for one in process.timings)})
        for process in made.processes
    )
    policy = Policy(gates=Gates(above_memory_max="fail"))
    evidence = gate.evidence("l4", made.model_copy(update={"processes": processes}), None, policy)
    [blocker] = evidence.blockers
    assert blocker.subject in (f"swiglu/{SHARED}", f"rmsnorm/{SHARED}")
