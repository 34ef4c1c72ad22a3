"""From a record to its entry: what the judge says, by the record and the policy alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelgate.bench.record import Calls, Check, FuzzResult, Run
from kernelgate.ci.history import judging
from kernelgate.ci.history.entry import moment
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Measure, Policy
from tests import runs
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import BASE, H200, HEAD, a_record
from tests.ci.records import case, noise


def test_an_entry_says_what_the_verdict_says() -> None:
    made = a_record(change=0.02, processes=4)
    (case,) = judging.judged("n", made, QUICK).cases
    (comparison,) = case.comparisons
    (verdict,) = judge(made, QUICK).cases
    assert (comparison.base, comparison.head, comparison.status) == (BASE, HEAD, verdict.status.name.lower())
    assert 100 * math.expm1(comparison.effect) == pytest.approx(verdict.change_pct)
    assert comparison.interval_pct == verdict.interval_pct
    points = {one.side: one for one in case.points}
    assert points["head"].us == pytest.approx(102, rel=1e-3)
    assert (points["base"].commit, points["head"].commit) == (BASE, HEAD)
    assert (points["head"].processes, points["head"].rounds) == (4, 80)


def test_a_commit_that_ran_beside_is_compared_round_by_round() -> None:
    """Processes jump by 10%, and the ratio of each does not show it."""
    rng = np.random.default_rng(1)
    pinned = "c" * 40
    processes = []
    for level in (100, 110, 121):
        times = level * np.exp(rng.normal(0, 0.001, 40))
        processes.append(runs.process({"head": times * 1.03, f"commit:{pinned}": times}))
    made = runs.run_record((runs.case("one", processes),), H200, run=Run(head_sha=HEAD))
    (case,) = judging.judged("n", made, QUICK).cases
    (comparison,) = case.comparisons
    assert (comparison.base, comparison.head, comparison.status) == (pinned, HEAD, None)
    assert 100 * math.expm1(comparison.effect) == pytest.approx(3.0, abs=1e-6)
    assert comparison.spread_pct == pytest.approx(0, abs=1e-6)
    assert comparison.noise_pct == pytest.approx(0, abs=1e-6)
    assert {one.side: one.commit for one in case.points} == {"head": HEAD, f"commit:{pinned}": pinned}


def test_a_pinned_commit_whose_results_are_wrong_is_compared_with_nothing() -> None:
    calls = {"commit:" + "c" * 40: Calls(made=3, compared=3, failed=1)}
    timed = runs.process({"head": (100.0,) * 3, "commit:" + "c" * 40: (90.0,) * 3}, calls=calls)
    made = runs.run_record((runs.case("one", (timed,)),), H200, run=Run(head_sha=HEAD))
    (case,) = judging.judged("n", made, QUICK).cases
    assert case.comparisons == ()


def test_wrong_results_have_no_times() -> None:
    wrong = FuzzResult(id="f", seed=1, passed=False)
    made = judging.judged("n", a_record(checks=(Check(kind="fuzz", status="failed", results=(wrong,)),)), QUICK)
    assert made.cases == ()
    assert made.reason is not None
    assert "wrong result" in made.reason


def test_times_that_nobody_should_believe_say_why() -> None:
    rng = np.random.default_rng(1)
    cases = (case(*noise(rng, processes=3), "fine"), case(*noise(rng, processes=1), "alone"))
    fine, alone = judging.judged("n", runs.run_record(cases, H200), QUICK).cases
    assert (fine.finding, alone.finding) == (None, "1 process of base and head with at least 20 rounds; it takes 2")
    assert [one.error for one in alone.points] == [None, None]


def test_the_rules_are_what_a_verdict_depends_on() -> None:
    """All sections that judging reads count, and no other: a change of what is measured judges no record again."""
    read: set[str] = set()

    class Watched(Policy):
        def __getattribute__(self, name: str) -> object:
            if name in Policy.model_fields:
                read.add(name)
            return super().__getattribute__(name)

    watched = Watched()
    read.clear()  # of what made it valid
    judge(a_record(processes=4), watched)
    assert read <= judging.JUDGING
    assert judging.rules_of(Policy(gates=Gates(margin_pct=0.5))) != judging.rules_of(Policy())
    assert judging.rules_of(Policy(measure=Measure(skip_labels=()))) == judging.rules_of(Policy())


def test_times_can_be_compared_as_text() -> None:
    assert moment("2026-08-01T12:00:00.5+02:00") == "2026-08-01T10:00:00Z"
    assert moment("0001-01-01T00:00:00+14:00") is None
