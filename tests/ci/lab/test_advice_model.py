"""The pooled model: nothing known is the base rate, much known is the cell's own, and order does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.ci.lab.advice_model import LEVELS, PooledModel, alike, pooled
from kernelgate.ci.lab.outcomes import Features, TryResult
from tests.ci.lab.made_up import session, telling, tried

GRID = (1.0, 3.0, 10.0, 30.0, 100.0)
SWIZZLE = Features("sm_90", "bank_conflicts", "swizzle")


def chance(outcomes: tuple[TryResult, ...], features: Features = SWIZZLE) -> float:
    return PooledModel(outcomes, GRID).predict([features])[0].probability


def gain(outcomes: tuple[TryResult, ...], features: Features = SWIZZLE) -> float:
    found = PooledModel(outcomes, GRID).predict([features])[0].gain_pct
    assert found is not None
    return found


def test_without_any_outcome_all_is_even_and_no_gain_is_named() -> None:
    found = PooledModel((), GRID).predict([SWIZZLE])[0]
    assert (found.probability, found.gain_pct, found.interval_pct) == (pytest.approx(0.5), None, None)


def test_where_nothing_alike_is_known_it_is_the_base_rate() -> None:
    others = tuple(one for at in range(6) for one in session(f"s{at}", tried(1, "cache-hints", "dram", 5.0)))
    model = PooledModel(others, GRID)
    assert model.predict([SWIZZLE])[0].probability == pytest.approx(model.base_rate)


@pytest.mark.parametrize("change_pct", [-25.0, 25.0])
def test_where_much_is_known_it_is_the_cells_own(change_pct: float) -> None:
    many = tuple(
        one for at in range(30) for one in session(f"m{at}", *(tried(n, change_pct=change_pct) for n in range(9)))
    )
    both = (*telling(3), *many)
    assert chance(both) == pytest.approx(float(change_pct < 0), abs=0.06)
    assert gain(both) == pytest.approx(-change_pct, abs=3.0)


def test_the_order_of_outcomes_does_not_matter() -> None:
    outcomes = telling(5)
    shuffled = tuple(outcomes[at] for at in np.random.default_rng(1).permutation(len(outcomes)))
    for asked in (SWIZZLE, Features("sm_90", "dram", "swizzle"), Features("sm_89", "l2", "multicast")):
        assert chance(shuffled, asked) == pytest.approx(chance(outcomes, asked))
        assert gain(shuffled, asked) == pytest.approx(gain(outcomes, asked))


@pytest.mark.parametrize("grid", [(strength,) for strength in GRID])
def test_one_more_that_helped_raises_the_chance_and_one_more_that_did_not_lowers_it(grid: tuple[float]) -> None:
    known = telling(4)
    for asked in (SWIZZLE, Features("sm_90", "dram", "swizzle"), Features("sm_89", "dram", "cache-hints")):
        before, better, worse = (
            PooledModel(outcomes, grid).predict([asked])[0].probability
            for outcomes in (
                known,
                (*known, *session("more", tried(1, asked.action, asked.bottleneck, -9.0))),
                (*known, *session("more", tried(1, asked.action, asked.bottleneck, 9.0))),
            )
        )
        assert worse < before < better


def test_another_architecture_learns_from_this_one_and_less_than_this_one() -> None:
    known = telling(8)
    there = Features("sm_89", "bank_conflicts", "swizzle")
    assert PooledModel(known, GRID).base_rate < chance(known, there) < chance(known) < 1


def test_a_cell_is_the_mean_of_its_outcomes_and_of_its_parent() -> None:
    """By hand: two of two helped in each cell, at strengths of 2, from a start of a half."""
    shared = np.ones((LEVELS, 1, 2), dtype=bool)
    strengths = np.full((1, LEVELS), 2.0)
    assert pooled(np.ones(2), shared, strengths, np.array([0.5]))[0, 0] == pytest.approx(1 - 0.5**5)


def test_cells_are_parts_of_each_other() -> None:
    features = [one.features for one in telling(2)]
    shared = alike(features, features)
    assert all((shared[level + 1] <= shared[level]).all() for level in range(LEVELS - 1))


def test_intervals_are_wide_where_gains_differ() -> None:
    quiet = tuple(one for at in range(8) for one in session(f"q{at}", tried(1, change_pct=-20.0)))
    noisy = tuple(one for at in range(8) for one in session(f"n{at}", tried(1, change_pct=(-60.0, 40.0)[at % 2])))
    widths = []
    for outcomes in (quiet, noisy):
        interval = PooledModel(outcomes, GRID).predict([SWIZZLE])[0].interval_pct
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[0] < widths[1] / 3
