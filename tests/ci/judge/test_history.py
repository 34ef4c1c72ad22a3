"""What past comparisons tell: joined, and believed within limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey, Device, RunRecord
from kernelgate.ci.judge.early_stop import undecided
from kernelgate.ci.judge.history import MOST_PCT, History, joined, known_spread, seen
from kernelgate.ci.judge.spread import HISTORY_DF, HISTORY_MEMORY_DF, KnownSpread
from kernelgate.ci.judge.verdict import Direction, judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import case, noise
from tests.runs import on, run_record

POLICY = Policy()
L4 = Device(name="NVIDIA L4")
KEY = CaseKey("", "one")
QUIET = KnownSpread(spread_pct=0.03, noise_pct=0.01, df=8, comparisons=8, last_seen="2026-08-01")


def made(changes_pct: Sequence[float]) -> RunRecord:
    """A record whose processes change by so much."""
    rng = np.random.default_rng(3)
    base, _ = noise(rng, processes=len(changes_pct), spread=0.001)
    changes = [(1 + pct / 100) * np.exp(rng.normal(0, 2e-5, len(base[0]))) for pct in changes_pct]
    head = [samples * change for samples, change in zip(base, changes, strict=True)]
    return run_record((case(base, head),), on("NVIDIA L4"))


def of_one(known: KnownSpread) -> History:
    return History({("NVIDIA L4", KEY): known})


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_mean_squares_are_weighted_and_the_past_fades() -> None:
    old = KnownSpread(spread_pct=0.3, noise_pct=0.0, df=10, comparisons=20, last_seen="2026-08-01")
    new = KnownSpread(spread_pct=0.1, noise_pct=0.0, df=2, comparisons=1, last_seen="2026-08-02")
    one = joined(old, new)
    assert one.df == HISTORY_MEMORY_DF
    assert one.spread_pct == pytest.approx(np.sqrt((8 * 0.3**2 + 2 * 0.1**2) / 10), rel=0.001)
    assert (one.comparisons, one.last_seen) == (21, "2026-08-02")


def test_processes_that_scatter_without_bounds_can_be_learnt() -> None:
    assert seen(np.array([-3.0, 12.0]), np.zeros(2), None).spread_pct == MOST_PCT


# ---- believing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("df", "believed"), [(HISTORY_DF - 0.1, False), (HISTORY_DF, True)])
def test_a_history_counts_once_there_is_enough_of_it(df: float, believed: bool) -> None:
    known = QUIET.model_copy(update={"df": df})
    assert known_spread(of_one(known), L4, KEY) == (known if believed else None)


def test_a_history_is_of_one_kind_of_gpu_and_of_one_case() -> None:
    assert known_spread(of_one(QUIET), Device(name="NVIDIA H200"), KEY) is None
    assert known_spread(of_one(QUIET), Device(), KEY) is None
    assert known_spread(of_one(QUIET), L4, CaseKey("norm", "one")) is None


def test_with_a_history_two_processes_are_enough_and_the_verdict_says_why() -> None:
    two = made([0.0, 0.02])
    assert undecided(two, POLICY) == {KEY}
    assert undecided(two, POLICY, of_one(QUIET)) == frozenset()
    (one,) = judge(two, POLICY, history=of_one(QUIET)).cases
    said = [finding.message for finding in one.findings if finding.code == "known_spread"]
    assert said == ["the spread between processes is known from 8 earlier comparisons: 0.03%"]
    (without,) = judge(two, POLICY).cases
    assert not [finding for finding in without.findings if finding.code == "known_spread"]


def test_with_a_history_two_processes_show_a_direction() -> None:
    two = made([2.0, 2.02])
    assert judge(two, POLICY).cases[0].direction is Direction.NONE
    assert judge(two, POLICY, history=of_one(QUIET)).cases[0].direction is Direction.SLOWER


def test_a_noisy_history_makes_no_process_odd() -> None:
    """What scatters as it always did is not named, and takes as many processes as it takes."""
    noisy = of_one(QUIET.model_copy(update={"spread_pct": 0.4}))
    apart = made([0.0, 0.5, -0.4])
    assert [finding.code for finding in judge(apart, POLICY).cases[0].findings] == ["processes_disagree"]
    assert [finding.code for finding in judge(apart, POLICY, history=noisy).cases[0].findings] == ["known_spread"]
