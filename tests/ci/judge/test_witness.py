"""The witness: what it contradicts, what it leaves alone, and what is missing where it was asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kernelgate.bench.record import (
    Check,
    CheckFinding,
    Expected,
    Note,
    RunRecord,
    TimedProcess,
    timed_cases,
)
from kernelgate.ci.judge import stats, witness
from kernelgate.ci.judge.case import Outcome, Status
from kernelgate.ci.judge.stats import Pooled
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import Policy
from tests import runs
from tests.ci.judge.told import only
from tests.ci.records import case, heads, noise
from tests.runs import process, run_record

POLICY = Policy()
TOLERANCE = math.log1p(witness.TOLERANCE_PCT / 100)


def alone(change_pct: float, spread: float = 0.001, samples: int = 12, seed: int = 7) -> TimedProcess:
    rng = np.random.default_rng(seed)
    base, head = (100 * factor * np.exp(rng.normal(0, spread, samples)) for factor in (1.0, 1 + change_pct / 100))
    return process({"base": base, "head": head}, "witness")


def made(compared_pct: float, *witnesses: TimedProcess, role: Any = "paired", processes: int = 4) -> RunRecord:
    rng = np.random.default_rng(5)
    timed = case(*noise(rng, compared_pct / 100, processes, spread=0.001), role=role)
    return run_record((runs.case("one", [*timed.processes, *witnesses]),))


@pytest.mark.parametrize(
    ("compared", "seen", "said"),
    [(-49.8, 0.3, ("49.8% faster than base", "0.3% slower")), (0.0, 30.0, ("as fast as base", "30.0% slower"))],
)
def test_a_contradiction_gives_both_figures_and_forbids_a_verdict(
    compared: float, seen: float, said: tuple[str, str]
) -> None:
    record = made(compared, alone(seen, spread=1e-5))
    verdict = judge(record, POLICY)
    (one,) = verdict.cases
    assert (one.status, one.verdict, verdict.verdict) == (Status.UNDECIDED, Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE)
    assert [finding.code for finding in one.disqualifying] == ["witness_contradicts"]
    assert one.sentence == (
        f"cannot tell: in one process head is {said[0]}; timed alone, each in a process of its own, it is {said[1]}: "
        "something in the process changes what is measured"
    )
    assert exit_code(verdict) == 3
    assert undecided(record, POLICY) == frozenset(), "further processes would say the same"


@pytest.mark.parametrize(
    ("compared", "seen", "status"),
    [
        (7.0, 14.0, Status.REGRESSED),
        (14.0, 7.0, Status.REGRESSED),
        (7.0, 2.0, Status.UNDECIDED),
        (2.0, 14.0, Status.UNDECIDED),
        (-20.0, 14.0, Status.UNDECIDED),
    ],
)
def test_a_head_that_is_slower_either_way_blocks(compared: float, seen: float, status: Status) -> None:
    """tritonbench 7026472: a sum of 6.5 us is 7% slower in turns and 14% slower alone."""
    one = only(made(compared, alone(seen, spread=1e-5)))
    assert one.status is status
    assert [found.code for found in one.findings] == ["witness_contradicts"]
    assert bool(one.disqualifying) == (status is Status.UNDECIDED)


@pytest.mark.parametrize(
    ("compared", "seen", "status"),
    [
        (-10.1, -6.5, Status.FASTER),
        (-30.0, -20.0, Status.IMPROVED),
        (-12.0, -20.0, Status.FASTER),
        (-10.1, -4.0, Status.UNDECIDED),
        (-4.0, -0.5, Status.UNDECIDED),
    ],
)
def test_a_gain_lies_between_what_both_show_if_the_witness_sees_half_of_it(
    compared: float, seen: float, status: Status
) -> None:
    """flashinfer 2043ca2: a norm of 4.2 us is 10.1% faster in turns and 6.5% faster alone."""
    one = only(made(compared, alone(seen, spread=1e-5)))
    assert one.status is status
    assert [found.code for found in one.findings] == ["witness_contradicts"]
    if status is not Status.UNDECIDED:
        assert ("(the witness sees another gain)" in one.sentence) == (status is Status.FASTER)
        assert one.interval_pct[0] <= min(compared, seen) <= max(compared, seen) <= one.interval_pct[1]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([Check(kind="witness", card="norm", status="passed")], None),
        ([Check(kind="witness", card="gemm", status="failed")], None),
        ([Check(kind="witness", card="norm", status="failed")], "the record does not say how"),
        (
            [Check(kind="witness", status="failed", findings=(CheckFinding(text="M64: 9 µs more."),) * 2)],
            "M64: 9 µs more",
        ),
    ],
)
def test_a_failed_check_of_the_clock_spoils_every_case_of_its_card(checks: list[Check], said: str | None) -> None:
    record = of_norm(change=-0.2).model_copy(update={"checks": tuple(checks)})
    one = only(record)
    assert (one.status is Status.IMPROVED) == (said is None)
    if said:
        assert one.sentence == f"cannot tell: the times of the comparison cannot be believed: {said}"


@pytest.mark.parametrize(("error", "held_against"), [(0.08, True), (0.12, False)])
def test_what_the_comparison_itself_does_not_show_needs_no_witness(error: float, held_against: bool) -> None:
    """On a busy CPU a head like its base came out as 19% faster, give or take 30%, and was told to prove it."""
    compared, blind = Pooled(-0.214, error, 10), Pooled(-0.05, 0.1, 6)
    found = witness.unconfirmed(compared, blind, POLICY.gates)
    assert (found is not None) == held_against
    assert (compared.p() < stats.GATES_P) == held_against


@pytest.mark.parametrize(("change", "status"), [(-20.0, Status.UNDECIDED), (20.0, Status.REGRESSED)])
def test_no_gain_is_believed_of_a_process_that_could_reach_what_is_right(change: float, status: Status) -> None:
    """A loss is, and a gain whose outputs were compared elsewhere."""
    record = made(change, alone(change))
    noted = record.model_copy(update={"notes": (Note(code="verified_in_process", text="no peer may map it"),)})
    assert only(noted).status is status
    assert only(record).status is (Status.REGRESSED if change > 0 else Status.IMPROVED)


def of_norm(*witnesses: TimedProcess, alone_: bool = False, change: float = 0.0) -> RunRecord:
    base, head = noise(np.random.default_rng(11), change, processes=4)
    timed = timed_cases(heads(head))[0] if alone_ else case(base, head)
    return run_record((runs.case("m64", [*timed.processes, *witnesses], card="norm"),))


def test_a_gain_whose_witness_the_head_has_ended_is_none() -> None:
    """Such as by an error in that process alone. What is open is measured on as without one, which comes last."""

    def asked(record: RunRecord) -> RunRecord:
        return record.model_copy(update={"expected": Expected(cases=record.cases, checks=("witness",))})

    ended = asked(made(-30.0))
    assert [finding.code for finding in only(ended).findings] == [witness.UNCONFIRMED]
    assert exit_code(judge(ended, POLICY)) == 3
    assert undecided(ended, POLICY) == undecided(made(-30.0), POLICY) == frozenset()
    assert only(asked(made(-30.0, alone(-30.0)))).status is Status.IMPROVED
    assert only(asked(made(30.0))).status is Status.REGRESSED
    assert only(asked(made(0.0))).status is Status.UNCHANGED


def test_processes_that_lie_far_apart_say_that_the_witnesss_may_too() -> None:
    """On a machine that is used for other work, levels differ by process; on a quiet one that adds nothing."""
    ratios, near, far = np.full(8, 0.1), [np.full(9, 100.0), np.full(9, 101.0)], [np.full(9, 100.0), np.full(9, 180.0)]
    assert witness.apart([ratios], near, near, TOLERANCE).error == 0
    turn = 0.1 + 0.01 * np.arange(8)
    assert witness.apart([turn], near, near, TOLERANCE).error == pytest.approx(stats.median_of(turn).error)
    assert witness.apart([ratios], near, far, TOLERANCE).error > 0.3
    assert witness.apart([ratios], near[:1], far[:1], TOLERANCE).error == 0, "one process shows no scatter"
