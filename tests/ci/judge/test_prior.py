"""What is known beforehand: the spread between processes, what past comparisons tell, how far times drift by the day.
Nothing is claimed that rests on a spread which nobody has seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats as textbook

from benchmarks.verdict import spreads
from kernelgate.bench.record import BaselineDay, CaseKey, Device, RunRecord
from kernelgate.ci.judge import prior
from kernelgate.ci.judge.prior import HISTORY_DF, NO_HISTORY, History, KnownSpread, Prior
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import case, noise
from tests.runs import on, run_record

POLICY = Policy()


def known(spread_pct: float, df: float = 5.0) -> Prior:
    return prior.prior(prior.CHANGE_PCT, KnownSpread(spread_pct=spread_pct, noise_pct=0, df=df, comparisons=5))


def test_a_history_alone_is_a_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many degrees of freedom as the history and the processes have together (Smyth 2004)."""
    df = 8.0
    for name, value in (("HISTORY_DF", df), ("HISTORY_SHARE", 1 - 1e-12), ("LARGEST_PCT", 1000.0)):
        monkeypatch.setattr(prior, name, value)
    before = prior.prior.__wrapped__(0.001, KnownSpread(spread_pct=1.0, noise_pct=0, df=df, comparisons=5))
    values = np.array([-0.012, 0.001, 0.009])
    found = prior.fit(values, np.zeros(3), before).pooled(1.0, 1e9)
    variance = (df * 0.01**2 + 2 * values.var(ddof=1)) / (df + 2)
    expected = textbook.t.isf(0.001, df + 2) * math.sqrt(variance / 3)
    assert found.half_width(0.002) == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", spreads.scenes())
def test_every_scene_has_its_error_rates(name: str) -> None:
    found = spreads.measured(spreads.scenes()[name], 300, 12)
    assert found.direction.value <= 0.01 + 2 * found.direction.error
    assert found.covered.value >= 0.85
    assert found.equivalent.value <= 0.015 + 2 * found.equivalent.error


L4 = Device(name="NVIDIA L4")
KEY = CaseKey("", "one")
QUIET = KnownSpread(spread_pct=0.03, noise_pct=0.01, df=8, comparisons=8, last_seen="2026-08-01")


def made(changes_pct: Sequence[float]) -> RunRecord:
    rng = np.random.default_rng(3)
    base, _ = noise(rng, processes=len(changes_pct), spread=0.001)
    changes = [(1 + pct / 100) * np.exp(rng.normal(0, 2e-5, len(base[0]))) for pct in changes_pct]
    head = [samples * change for samples, change in zip(base, changes, strict=True)]
    return run_record((case(base, head),), on("NVIDIA L4"))


def of_one(known: KnownSpread) -> History:
    return History({("NVIDIA L4", KEY): known})


def test_mean_squares_are_weighted_the_past_fades_and_any_scatter_can_be_learnt() -> None:
    old = KnownSpread(spread_pct=0.3, noise_pct=0.0, df=10, comparisons=20, last_seen="2026-08-01")
    new = KnownSpread(spread_pct=0.1, noise_pct=0.0, df=2, comparisons=1, last_seen="2026-08-02")
    one = prior.joined(old, new)
    assert one.df == prior.HISTORY_MEMORY_DF
    assert one.spread_pct == pytest.approx(np.sqrt((8 * 0.3**2 + 2 * 0.1**2) / 10), rel=0.001)
    assert (one.comparisons, one.last_seen) == (21, "2026-08-02")
    seen = prior.seen(np.array([-3.0, 12.0]), np.zeros(2), "2026-08-01")
    assert (seen.spread_pct, seen.last_seen) == (prior.MOST_PCT, "2026-08-01")


@pytest.mark.parametrize(("df", "believed"), [(HISTORY_DF - 0.1, False), (HISTORY_DF, True)])
def test_a_history_counts_once_there_is_enough_of_it_of_one_kind_of_gpu_and_case(df: float, believed: bool) -> None:
    known = QUIET.model_copy(update={"df": df})
    assert of_one(known).spread(L4, KEY) == (known if believed else None)
    assert of_one(known).spread(Device(name="NVIDIA H200"), KEY) is None
    assert of_one(known).spread(Device(), KEY) is None
    assert of_one(known).spread(L4, CaseKey("norm", "one")) is None


def test_with_a_history_two_processes_are_enough_and_the_verdict_says_why() -> None:
    two = made([0.0, 0.02])
    assert undecided(two, POLICY) == {KEY}
    assert undecided(two, POLICY, of_one(QUIET)) == frozenset()
    said = "the spread between processes is known from 8 earlier comparisons: 0.03%"
    for history, messages in ((of_one(QUIET), [said]), (NO_HISTORY, [])):
        (one,) = judge(two, POLICY, history=history).cases
        assert [finding.message for finding in one.findings if finding.code == "known_spread"] == messages


def day(number: int, median_us: float = 100.0, code: str = "one") -> BaselineDay:
    return BaselineDay(measured=f"2026-11-{number:02}", code=code, median_us=median_us)


def test_days_of_one_code_show_the_drift_where_they_are_enough_or_differ_more_than_is_assumed() -> None:
    for held in ((), (day(1), day(2), day(3))):
        found = prior.drift(held)
        assert (found.change, found.error, found.df) == (0.0, math.log1p(0.01), 10)
    assert prior.drift((day(1, 100), day(2, 110))).error == pytest.approx(math.log(1.1))
    levels = np.array([100.0, 100.2, 99.9, 100.1])
    found = prior.drift([day(n, float(level)) for n, level in enumerate(levels, 1)])
    assert found.error == pytest.approx(math.sqrt(2) * np.log(levels).std(ddof=1))
    assert (found.change, found.df) == (0.0, 3)
    of_two = prior.drift([day(1, 100), day(2, 100.1), day(3, 100), day(4, 80, "two"), day(5, 80.1, "two")])
    assert of_two.df == 3
    assert of_two.error < 0.002
