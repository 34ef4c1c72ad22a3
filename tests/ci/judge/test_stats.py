"""The statistics against textbooks, scipy, brute force and simulation. Seeds are fixed: what fails has changed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as textbook

from kernelgate.ci.judge import location, stats
from tests.ci.records import DATA, traces

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


def test_processes_without_a_prior_are_a_t_test() -> None:
    changes = np.array([0.3, -0.1, 0.4, 0.2, 0.5])
    pooled = stats.pool(changes, np.full(5, 0.01), 1e-9, prior_df=0)
    expected = textbook.ttest_1samp(changes, 0)
    assert pooled.p() == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert pooled.change - pooled.half_width(0.05) == pytest.approx(interval.low)


@pytest.mark.parametrize("shape", [0.0, 0.5])
def test_the_levels_of_all_looks_add_up_to_alpha(shape: float) -> None:
    spent = [stats.look_alpha(0.001, processes, 2, 5, shape) for processes in range(2, 6)]
    assert sum(spent) == pytest.approx(0.001)
    assert spent == sorted(spent)
    assert stats.look_alpha(0.001, 20, 2, 5, shape) == spent[-1]
    assert stats.look_alpha(0.001, 5, 5, 5, shape) == pytest.approx(0.001)


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
