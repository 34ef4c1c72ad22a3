"""How much correlated rounds count: against the truth, by simulation. Seeds are fixed: what fails has changed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.verdict.noise import CORRELATED, Noise, autoregressive, coverage, heavy_tail, ramp, two_peaks
from kernelgate.ci.judge import location
from kernelgate.ci.judge.location import inflations


def test_independent_rounds_count_in_full() -> None:
    rng = np.random.default_rng(3)
    found = [inflations([rng.normal(size=100) for _ in range(5)]) for _ in range(100)]
    assert sum(math.isinf(df) for _, df in found) >= 97
    assert all(factors == [1.0] * 5 for factors, df in found if math.isinf(df))


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_the_inflation_is_what_theory_says(correlation: float) -> None:
    """(1 + ρ) / (1 - ρ), less what 100 rounds do not show."""
    rng, noise, lags = np.random.default_rng(4), autoregressive(correlation), np.arange(1, 100)
    found = [inflations([noise(rng, 100) for _ in range(5)])[0][0] for _ in range(30)]
    true = 1 + 2 * float(((1 - lags / 100) * correlation**lags).sum())
    assert np.exp(np.mean(np.log(found))) == pytest.approx(true, rel=0.25)


def test_the_scale_and_the_order_of_processes_do_not_matter() -> None:
    rng, noise = np.random.default_rng(5), autoregressive(0.8)
    series = [noise(rng, 60), noise(rng, 100), noise(rng, 80)]
    scales = (series, [-1e-3 * values for values in series], series[::-1])
    one, scaled, turned = (inflations(each)[0] for each in scales)
    assert scaled == pytest.approx(one)
    assert turned == pytest.approx(one[::-1])
    assert one[0] < one[1], "long memories count for more in a longer process"


def test_a_memory_as_long_as_the_process_leaves_little_to_go_by() -> None:
    rng = np.random.default_rng(7)
    found = location.levels([0.01 * ramp(rng, 100) for _ in range(3)], 0.0)
    assert sum(one.rounds for one in found) < 15


@pytest.mark.parametrize(("shape", "ratio"), [(two_peaks, 0.2), (heavy_tail, 2.0)])
def test_intervals_of_uneven_noise_hold(shape: Noise, ratio: float) -> None:
    """With one slope for both sides, or one shape for two that differ, 55 to 80% of them do."""
    found = coverage(shape, shape, draws=30, rounds=50, ratio=ratio)
    assert found.process.value > 0.93 - 2 * found.process.error


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRELATED)
@pytest.mark.parametrize("processes", [2, 5])
def test_intervals_of_correlated_rounds_hold_closely(name: str, processes: int) -> None:
    found = coverage(*CORRELATED[name], draws=400, processes=processes)
    # Two processes of which one side has a ramp as small as the noise often do not show it.
    least = 0.80 if (name, processes) == ("ramps, head alone", 2) else 0.88
    assert found.record.value > least - found.record.error
