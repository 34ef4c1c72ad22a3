"""The statistics against textbooks, scipy, brute force and simulation. Seeds are fixed: what fails has changed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special
from scipy import stats as textbook

from kernelgate.ci.judge import location, stats
from kernelgate.ci.judge.stats import bootstrap
from tests.ci.records import DATA, draw, traces

Array = NDArray[np.float64]

POINTS = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=30).map(np.array)
"""Small whole numbers: ties are the rule."""


@given(POINTS, POINTS)
def test_cliffs_delta_is_what_counting_all_pairs_gives(base: Array, head: Array) -> None:
    pairs = np.sign(head[:, None] - base[None, :])
    assert stats.cliffs_delta(base, head) == pytest.approx(float(pairs.mean()))


@given(POINTS, POINTS)
def test_mann_whitney_is_scipys(base: Array, head: Array) -> None:
    if np.ptp(np.concatenate((base, head))) == 0:
        assert stats.mann_whitney_p(base, head) == 1.0
        return
    expected = textbook.mannwhitneyu(base, head, method="asymptotic").pvalue
    assert stats.mann_whitney_p(base, head) == pytest.approx(expected)


def test_holm_on_worked_examples() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005], [0.05] * 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.7], [0.05] * 2) == [1.0, 1.0]
    assert stats.holm([], []) == []
    # 0.02 at 0.01 is further from its level than 0.03 at 0.04, so it counts once and the other twice.
    assert stats.holm([0.02, 0.03], [0.01, 0.04]) == pytest.approx([0.02, 0.06])


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(P_VALUES, st.lists(st.sampled_from([1e-4, 2e-4, 4e-4]), min_size=12, max_size=12))
def test_with_levels_of_their_own_the_quotients_are_holms(p_values: list[float], levels: list[float]) -> None:
    """A p is at most its level exactly where the quotients, times any common level, would be."""
    equal = stats.holm(p_values, [0.05] * len(p_values))
    for raw, adjusted in zip(p_values, equal, strict=True):
        assert raw <= adjusted <= min(1.0, len(p_values) * raw) or adjusted == max(equal)
    adjusted = stats.holm(p_values, levels[: len(p_values)])
    scaled = [p * 1e-4 / level for p, level in zip(p_values, levels, strict=False)]
    quotients = stats.holm(scaled, [1.0] * len(scaled))
    assert adjusted == pytest.approx([min(1.0, q * level / 1e-4) for q, level in zip(quotients, levels, strict=False)])


@pytest.mark.parametrize("n", [8, 20])
def test_the_error_of_a_median_is_about_what_simulation_shows_and_no_value_far_off_widens_it(n: int) -> None:
    rng = np.random.default_rng(n)
    found = [stats.median_of(rng.normal(3, 1, n)) for _ in range(1500)]
    actual = np.std([one.change for one in found])
    assert 0.85 < np.mean([one.error for one in found]) / actual < 1.35
    assert {one.df for one in found} == {n - 1}
    missed = np.mean([abs(one.change - 3) > one.half_width(0.05) for one in found])
    assert missed <= 0.06
    values = rng.normal(0, 1, n)
    spoilt = stats.median_of(np.where(values == values.max(), 1e6, values))
    assert (spoilt.change, spoilt.error) == (stats.median_of(values).change, stats.median_of(values).error)


def test_processes_without_a_prior_are_a_t_test() -> None:
    changes = np.array([0.3, -0.1, 0.4, 0.2, 0.5])
    pooled = stats.pool(changes, np.full(5, 0.01), 1e-9, prior_df=0)
    expected = textbook.ttest_1samp(changes, 0)
    assert pooled.p() == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert pooled.change - pooled.half_width(0.05) == pytest.approx(interval.low)


def test_a_bias_is_taken_off_before_anything_is_claimed() -> None:
    plain = stats.Pooled(change=0.5, error=0.1, df=20)
    biased = stats.Pooled(change=0.5, error=0.1, df=20, bias=0.4)
    assert stats.Pooled(change=0.3, error=0.1, df=20, bias=0.4).p() == 1.0
    assert biased.p() == pytest.approx(stats.Pooled(change=0.1, error=0.1, df=20).p())
    assert biased.half_width(0.05) == pytest.approx(plain.half_width(0.05) + 0.4)
    assert biased.detectable(0.05, 0.9) == pytest.approx(plain.detectable(0.05, 0.9) + 0.4)


@pytest.mark.parametrize("shape", [0.0, 0.5])
def test_the_levels_of_all_looks_add_up_to_alpha(shape: float) -> None:
    spent = [stats.look_alpha(0.001, processes, 2, 5, shape) for processes in range(2, 6)]
    assert sum(spent) == pytest.approx(0.001)
    assert spent == sorted(spent)
    assert stats.look_alpha(0.001, 20, 2, 5, shape) == spent[-1]
    assert stats.look_alpha(0.001, 5, 5, 5, shape) == pytest.approx(0.001)


def test_outliers_hardly_move_a_location() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, 200)
    spoilt = values.copy()
    spoilt[rng.choice(200, 2, replace=False)] = 1000.0
    (clean,), (dirty,) = location.levels([values], 0.0), location.levels([spoilt], 0.0)
    assert abs(dirty.value - clean.value) < 0.05
    assert dirty.variance < 1.2 * clean.variance


def test_the_clocks_step_is_found_under_jitter_modes_and_outliers() -> None:
    rng = np.random.default_rng(4)
    stored = json.loads((DATA / "l4_sdpa_latencies.json").read_text(encoding="utf-8"))["configurations"]
    (l4,) = [one["latency_ms"] for one in stored if (one["batch"], one["heads"], one["seq"]) == (32, 8, 512)]
    assert location.clock_step(1e3 * np.array(l4)) == pytest.approx(1.024, rel=0.05)
    assert location.clock_step(traces("quiet_copy_inter")[0, 0]) == pytest.approx(0.032, rel=0.05)
    ticks = np.round(rng.normal(70, 3, 300))
    assert location.clock_step(ticks) == 1.0
    assert location.clock_step(np.concatenate((ticks, ticks + 40))) == 1.0
    assert location.clock_step(np.concatenate((ticks, [5000.0, 9000.0]))) == 1.0
    assert location.clock_step(np.array([148.0] * 95 + [149.0, 2000.0])) == 1.0
    assert location.clock_step(rng.normal(70, 3, 300)) < 0.05
    assert location.clock_step(np.full(50, 7.0)) == 0.0


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
def test_rounding_never_errs_by_more_than_its_bound(spread: float) -> None:
    """Over all positions between two ticks: the error of the mean of rounded values, against the bound they show."""
    quantiles = textbook.norm.ppf((np.arange(2000) + 0.5) / 2000)
    for position in np.linspace(0, 1, 21):
        exact = position + spread * quantiles
        rounded = np.round(exact)
        error = abs(float(rounded.mean() - exact.mean()))
        assert error <= location.rounding_bias(rounded, 1.0) + 0.03
    assert location.rounding_bias(np.full(10, 3.0), 0.0) == 0.0


def two_peaks(rng: np.random.Generator, share: float, rounds: int = 100) -> Array:
    """Log times of a bandwidth-bound kernel: 0.5% wide peaks, 2% apart."""
    return rng.normal(0, 0.005, rounds) + np.where(rng.random(rounds) < share, 0.02, 0.0)


@pytest.mark.slow
def test_aligning_the_shapes_needs_far_fewer_rounds() -> None:
    rng = np.random.default_rng(6)
    plain, aligned = [], []
    for _ in range(150):
        base, head = ([two_peaks(rng, 0.6) for _ in range(5)] for _ in range(2))
        aligned.append(np.mean([found.value for found in location.changes(base, head, True, 0.0)]))
        plain.append(np.mean([location.levels([h - b], 0.0)[0].value for b, h in zip(base, head, strict=True)]))
    assert np.std(aligned) < 0.6 * np.std(plain)
    assert abs(np.mean(aligned)) < 3 * np.std(aligned) / math.sqrt(len(aligned))


def test_a_change_of_shape_is_not_taken_for_no_change() -> None:
    """The peaks stay where they are, but the head visits the slow one more often: it is slower."""
    rng = np.random.default_rng(7)
    base = [two_peaks(rng, 0.3) for _ in range(5)]
    head = [two_peaks(rng, 0.7) for _ in range(5)]
    found = np.mean([one.value for one in location.changes(base, head, True, 0.0)])
    assert found == pytest.approx(0.4 * 0.02, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quiet_fma", "contended_copy"])
def test_the_errors_of_changes_are_what_redrawing_shows(name: str) -> None:
    rng = np.random.default_rng(8)
    values, variances = [], []
    for _ in range(120):
        base, head = draw(rng, f"{name}_inter", 1)
        found = location.changes([np.log(b) for b in base], [np.log(h) for h in head], True, 0.0)
        values.append(np.mean([one.value for one in found]))
        variances.append(np.mean([one.variance for one in found]) / len(found))
    assert np.std(values) < 1.25 * math.sqrt(np.mean(variances))


def brute_force(rng: np.random.Generator, base: list[Array], head: list[Array], resamples: int) -> Array:
    """Log ratios of medians, with processes and then rounds drawn in plain sight."""
    changes = []
    for _ in range(resamples):
        processes = rng.integers(0, len(base), len(base))
        rounds = [rng.integers(0, len(base[process]), len(base[process])) for process in processes]
        b = np.concatenate([base[process][index] for process, index in zip(processes, rounds, strict=True)])
        h = np.concatenate([head[process][index] for process, index in zip(processes, rounds, strict=True)])
        changes.append(math.log(np.median(h) / np.median(b)))
    return np.array(changes)


def test_the_bootstrap_agrees_with_drawing_every_round() -> None:
    rng, correlation = np.random.default_rng(9), 0.8
    base, head = [], []
    for _ in range(5):
        noise, own, level = rng.normal(size=100), rng.normal(size=100), rng.normal(0, 0.002)
        base.append(100 * np.exp(level + 0.01 * noise))
        head.append(101 * np.exp(level + 0.01 * (correlation * noise + math.sqrt(1 - correlation**2) * own)))
    drawn = bootstrap(base, head, True, 0.95, 10_000)
    expected = np.quantile(brute_force(rng, base, head, 2000), (0.025, 0.975))
    width = expected[1] - expected[0]
    assert drawn.change == pytest.approx(expected, abs=0.15 * width)
    assert drawn.base[0] < np.median(np.concatenate(base)) < drawn.base[1]


RUNS = 20_000


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("df", [1, 11])
def test_what_would_be_seen_is_seen_as_often_as_that(df: int, alpha: float) -> None:
    """The error of each run is estimated with `df` degrees of freedom, around a true error of 2."""
    rng = np.random.default_rng([df, int(1e6 * alpha)])
    true = 2.0 * stats.noncentrality(df, alpha, 0.95)
    estimates = rng.normal(true, 2.0, RUNS)
    errors = 2.0 * np.sqrt(rng.chisquare(df, RUNS) / df)
    seen = np.mean(2 * special.stdtr(df, -np.abs(estimates) / errors) <= alpha)
    assert seen == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / RUNS))
