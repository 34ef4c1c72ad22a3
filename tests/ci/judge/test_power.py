""" "A change of x% would have been seen" holds with the probability that it says, whatever is known of the error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from kernelgate.ci.judge import stats
from kernelgate.ci.judge.stats import Pooled

RUNS = 20_000


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("df", [1, 2, 3, 5, 11, 20])
def test_what_would_be_seen_is_seen_as_often_as_that(df: int, alpha: float) -> None:
    """The error of each run is estimated with `df` degrees of freedom, around a true error of 2."""
    rng = np.random.default_rng([df, int(1e6 * alpha)])
    true = stats.smallest(2.0, df, alpha, 0.95)
    estimates = rng.normal(true, 2.0, RUNS)
    errors = 2.0 * np.sqrt(rng.chisquare(df, RUNS) / df)
    seen = np.mean(2 * special.stdtr(df, -np.abs(estimates) / errors) <= alpha)
    assert seen == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / RUNS))


def test_it_grows_with_error_and_power_and_falls_with_what_is_known() -> None:
    assert stats.smallest(0.2, 5, 0.01, 0.95) == pytest.approx(2 * stats.smallest(0.1, 5, 0.01, 0.95))
    by_df = [stats.smallest(1.0, df, 0.001, 0.95) for df in (1, 2, 4, 8, 100)]
    assert by_df == sorted(by_df, reverse=True)
    assert stats.smallest(1.0, 5, 0.001, 0.99) > stats.smallest(1.0, 5, 0.001, 0.95)


def test_with_a_known_error_it_is_the_normal_one() -> None:
    expected = -float(special.ndtri(0.0005)) - float(special.ndtri(0.05))
    assert stats.smallest(1.0, 1e6, 0.001, 0.95) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-9, 1e-12])
def test_at_the_ends_it_is_still_a_number_or_beyond_all(alpha: float) -> None:
    for df in (0.5, 1, 3, 50):
        found = Pooled(0.0, 1.0, df).detectable(alpha, 0.95)
        assert found > 1.0
        assert not math.isnan(found)
