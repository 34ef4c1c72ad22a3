"""Real comparisons, and what they would be had one side been slower, or been measured otherwise.

Of slower and faster ones the gallery asks how much, how sure and whether it blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge.case import Direction, Outcome, RecordVerdict, Status
from kernelgate.ci.judge.completeness import Completeness, against_plan
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy import policy
from tests.ci.records import remembered

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
RULES = policy.load(ROOT / ".ci" / "kernelgate.toml")


@cache
def kept(name: str) -> RunRecord:
    return record.read(DATA / f"{name}.json")


@cache
def alone(name: str) -> RecordVerdict:
    """Without a history."""
    return judge(kept(name), RULES)


def judged(done: RunRecord) -> RecordVerdict:
    """As a project sees it whose cases were compared before: the records stop where that is enough."""
    return judge(done, RULES, history=remembered(done))


def changed(
    done: RunRecord, roles: tuple[record.Role, ...], change: Callable[[str, int, record.Timing], float]
) -> RunRecord:
    """The record as it would be, had each sample of a side in these roles taken so many times as long."""

    def one(timing: record.Timing) -> record.Timing:
        samples = {
            side: tuple(time_us * change(side, at, timing) for at, time_us in enumerate(times))
            for side, times in timing.samples_us.items()
        }
        return timing.model_copy(update={"samples_us": samples})

    processes = (
        each.model_copy(update={"timings": tuple(map(one, each.timings))}) if each.role in roles else each
        for each in done.processes
    )
    return done.model_copy(update={"processes": tuple(processes)})


def faster(done: RunRecord, roles: tuple[record.Role, ...], factor: float) -> RunRecord:
    """Had the head taken so much of its time in processes of these roles."""
    return changed(done, roles, lambda side, *_: factor if side == "head" else 1.0)


NO_RESULTS = (("the fuzz check did not run",),)
"""Of a record that was made when a check did not have to hold each configuration's result; nothing else is missing."""


SUITE, EVERY = "timing/pull_request_suite", "timing/all_cases"
each_suite = pytest.mark.parametrize("name", [SUITE, pytest.param(EVERY, marks=pytest.mark.slow)])
"""The second, of 27 cases, takes most of the time; its like with a loss in each is judged every time."""


@pytest.mark.parametrize("name", ["comparisons/identical", "cards/swiglu_same"])
def test_the_same_code_is_equivalent_and_nobody_is_accused(name: str) -> None:
    """Attention in CUDA, SwiGLU in Triton: the head differs by a comment."""
    assert_nothing_changed(judged(kept(name)))
    assert len({build.library_sha256 for build in kept(name).builds}) == 2, "two libraries, or nothing is shown"


@each_suite
def test_of_many_cases_of_the_same_code_none_is_accused(name: str) -> None:
    """Without a history the other cases say how quiet the machine is."""
    for verdict in (judged(kept(name)), alone(name)):
        assert_nothing_changed(verdict)
    assert against_plan(kept(name), "") == Completeness(NO_RESULTS if name == SUITE else ())


def assert_nothing_changed(verdict: RecordVerdict) -> None:
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.EQUIVALENT, 2)
    assert {(case.verdict, case.direction) for case in verdict.cases} == {(Outcome.EQUIVALENT, Direction.NONE)}


@each_suite
def test_a_planted_slow_down_is_seen_in_every_case_whatever_the_power_limit(name: str) -> None:
    """Or the case would have been timed again: the record ended where it was decided that nothing had changed."""
    slowed = faster(kept(name), ("paired", "witness"), 1.03 if name == SUITE else 1.01)
    verdict = judged(slowed)
    again = {key.id for key in undecided(slowed, RULES, remembered(slowed))}
    assert {case.id for case in verdict.cases if case.direction is not Direction.SLOWER} <= again
    assert {case.direction for case in verdict.cases} <= {Direction.SLOWER, Direction.NONE}
    assert Outcome.EQUIVALENT not in {case.verdict for case in verdict.cases}
    assert not [case.id for case in verdict.cases if case.disqualifying]


def test_a_small_loss_in_every_case_is_certain_without_a_history_and_blocks_together() -> None:
    verdict = alone("timing/all_cases_slower")
    assert {(case.verdict, case.processes) for case in verdict.cases} == {(Outcome.SLOWER, 4)}
    (together,) = verdict.means
    assert (together.status, exit_code(verdict)) == (Status.REGRESSED, 1)
    assert together.sentence == "1.37% slower over 27 cases [1.34, 1.40], past the 1% that blocks"


def test_a_comparison_that_the_witness_contradicts_proves_nothing() -> None:
    """What a patched clock or a slowed base makes of it: faster together, and as fast alone."""
    verdict = judged(faster(kept(SUITE), ("paired",), 0.95))
    assert verdict.verdict is Outcome.INCONCLUSIVE
    assert {case.verdict for case in verdict.cases} == {Outcome.INCONCLUSIVE}
    for case in verdict.cases:
        assert any(one.code == "witness_contradicts" and "timed alone" in one.message for one in case.findings)


def test_a_slow_down_that_is_hidden_together_is_not_believed() -> None:
    verdict = judged(faster(kept(SUITE), ("witness",), 1 / 0.9))
    assert {verdict.verdict, *(case.verdict for case in verdict.cases)} == {Outcome.INCONCLUSIVE}
