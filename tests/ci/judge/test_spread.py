"""The spread between processes: nothing is claimed that rests on a spread which nobody has seen."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as textbook

from benchmarks.verdict import spreads
from kernelgate.ci.judge import spread
from kernelgate.ci.judge.spread import KnownSpread, Prior
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.policy.policy import Policy

POLICY = Policy()
UNKNOWN = spread.prior(spread.CHANGE_PCT)


def known(spread_pct: float, df: float = 5.0) -> Prior:
    return spread.prior(spread.CHANGE_PCT, KnownSpread(spread_pct=spread_pct, noise_pct=0, df=df, comparisons=5))


def pooled(values: Array, prior: Prior = UNKNOWN, noise: float = 1e-4) -> Pooled:
    found = spread.fit(values, np.full(len(values), noise**2), prior)
    return found.pooled(found.share, 200.0)


# ---- the distribution ------------------------------------------------------------------------------------------------


def test_probabilities_add_up() -> None:
    for prior in (UNKNOWN, known(0.03), known(3.0)):
        assert prior.usual.sum() == pytest.approx(1)
        assert prior.other.sum() == pytest.approx(1)
        assert prior.spreads[-1] == pytest.approx(spread.LARGEST_PCT / 100)


@pytest.mark.parametrize("df", [3.0, 8.0])
def test_a_history_alone_is_a_t_test(df: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many degrees of freedom as the history and the processes have together (Smyth 2004)."""
    for name, value in (("HISTORY_DF", df), ("HISTORY_SHARE", 1 - 1e-12), ("LARGEST_PCT", 1000.0)):
        monkeypatch.setattr(spread, name, value)
    prior = spread.prior.__wrapped__(0.001, KnownSpread(spread_pct=1.0, noise_pct=0, df=df, comparisons=5))
    values = np.array([-0.012, 0.001, 0.009])
    found = spread.fit(values, np.zeros(3), prior).pooled(1.0, 1e9)
    variance = (df * 0.01**2 + 2 * values.var(ddof=1)) / (df + 2)
    expected = textbook.t.isf(0.001, df + 2) * math.sqrt(variance / 3)
    assert found.half_width(0.002) == pytest.approx(expected, rel=0.02)


def test_an_interval_and_its_p_are_of_one_distribution() -> None:
    found = pooled(np.array([0.004, 0.0045, 0.005]))
    for alpha in (0.3, 0.05, 1e-4):
        width = found.half_width(alpha)
        assert Pooled(width, found.error, found.df, 0.0, found.factors, found.weights).p() == pytest.approx(alpha)


FEW = st.lists(st.floats(-0.02, 0.02), min_size=2, max_size=7).map(np.array)


@settings(max_examples=50)
@given(FEW, st.floats(-0.5, 0.5))
def test_a_shift_moves_the_change_and_nothing_else(values: Array, shift: float) -> None:
    one, moved = pooled(values), pooled(values + shift)
    assert moved.change == pytest.approx(one.change + shift)
    assert moved.half_width(0.05) == pytest.approx(one.half_width(0.05), rel=1e-6)
    mirrored = pooled(-values)
    assert (mirrored.change, mirrored.half_width(0.01)) == pytest.approx((-one.change, one.half_width(0.01)))


@settings(max_examples=50)
@given(FEW, st.floats(1.5, 10))
def test_what_scatters_more_is_less_certain(values: Array, factor: float) -> None:
    apart = values.mean() + factor * (values - values.mean())
    assert pooled(apart).half_width(0.05) >= pooled(values).half_width(0.05) * (1 - 1e-9)


def test_the_grid_is_fine_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([0.001, 0.0018, 0.0031])
    coarse = pooled(values).half_width(0.001)
    monkeypatch.setattr(spread, "STEPS", 4 * spread.STEPS)
    spread.prior.cache_clear()
    fine = pooled(values, spread.prior(spread.CHANGE_PCT)).half_width(0.001)
    spread.prior.cache_clear()
    assert coarse == pytest.approx(fine, rel=0.03)


def test_other_cases_move_a_share_by_no_more_than_they_weigh() -> None:
    calm, wild = (
        spread.fit(np.array(values), np.full(3, 1e-12), UNKNOWN) for values in ((0.0, 1e-4, -1e-4), (0.0, 0.02, -0.02))
    )
    assert spread.shares([calm]) == [UNKNOWN.share]
    few, many = (spread.shares([calm] * cases)[0] for cases in (3, 30))
    assert UNKNOWN.share < few < many < 1
    assert 0 < spread.shares([calm, *[wild] * 30])[0] < 0.2 * UNKNOWN.share
    usual = spread.fit(np.array([0.0, 1e-4]), np.full(2, 1e-12), known(0.03))
    assert spread.shares([usual, *[calm] * 30])[0] < 1


# ---- how sure, by the true spread ------------------------------------------------------------------------------------

RECORDS = 60


@cache
def measured(spread_pct: float) -> spreads.Sureness:
    return spreads.measured(spreads.unknown(spreads.scattered(spread_pct)), RECORDS, POLICY, 7)


@pytest.mark.parametrize("spread_pct", [0.05, 0.2, 0.5, 2.0])
def test_identical_code_gets_no_direction_whatever_the_spread(spread_pct: float) -> None:
    """Believing in 0.05%, worth ten processes, 15% of records of 0.5% had one."""
    assert measured(spread_pct).direction.value <= 1 / RECORDS
    assert measured(spread_pct).equivalent.value <= 2 / RECORDS


@pytest.mark.parametrize("spread_pct", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0])
def test_two_processes_have_an_interval_that_holds(spread_pct: float) -> None:
    rng = np.random.default_rng(8)
    draw, held = spreads.scattered(spread_pct), 0
    for _ in range(400):
        low, high = spreads.of_two(rng, draw, None, POLICY, 0.0).interval(0.95)
        held += low <= 0 <= high
    assert held / 400 >= (0.94 if spread_pct == 0.05 else 0.9) - 2 * 0.015


def test_a_quiet_case_is_settled_by_few_processes_and_with_a_history_by_two() -> None:
    assert measured(0.05).processes < 3.3
    scene = spreads.remembered(spreads.scattered(0.05))
    assert spreads.measured(scene, RECORDS, POLICY, 9).processes <= 2.1


@pytest.mark.parametrize(("share", "slower_pct", "both"), [(0.2, 2.0, False), (0.5, 0.5, True)])
@pytest.mark.parametrize("remembered", [False, True])
def test_a_lottery_of_placement_gives_no_direction(
    share: float, slower_pct: float, both: bool, remembered: bool
) -> None:
    draw = spreads.lottery(share, slower_pct, both)
    scene = spreads.remembered(draw) if remembered else spreads.unknown(draw)
    assert spreads.measured(scene, RECORDS, POLICY, 10).direction.value <= 2 / RECORDS


def test_one_wild_case_among_ten_quiet_ones_gets_no_direction() -> None:
    assert spreads.measured(spreads.beside(0.5, 10, 0.03), 12, POLICY, 11).direction.value == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", spreads.scenes())
def test_every_scene_has_its_error_rates(name: str) -> None:
    found = spreads.measured(spreads.scenes()[name], 300, POLICY, 12)
    assert found.direction.value <= 0.01 + 2 * found.direction.error
    assert found.covered.value >= 0.85
    assert found.equivalent.value <= 0.015 + 2 * found.equivalent.error
