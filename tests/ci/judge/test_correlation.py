"""How much correlated rounds count: against the truth, by simulation. Seeds are fixed: what fails has changed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.verdict.noise import autoregressive
from kernelgate.ci.judge.location import inflations


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_the_inflation_is_what_theory_says(correlation: float) -> None:
    """(1 + ρ) / (1 - ρ), less what 100 rounds do not show."""
    rng, noise, lags = np.random.default_rng(4), autoregressive(correlation), np.arange(1, 100)
    found = [inflations([noise(rng, 100) for _ in range(5)])[0][0] for _ in range(30)]
    true = 1 + 2 * float(((1 - lags / 100) * correlation**lags).sum())
    assert np.exp(np.mean(np.log(found))) == pytest.approx(true, rel=0.25)
