"""The targets of docs/history.md, on the labelled series that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.history import bisecting, detection, searching, series
from benchmarks.history.series import SeriesLabel
from kernelgate.ci.history import changes

EVERY = series.labelled()
STEPS = [one for one in EVERY if len(one.steps) == 1]
QUIET, NOISY = [one for one in STEPS if one.sd_pct < 0.2], [one for one in STEPS if one.sd_pct > 0.2]
UNCHANGED = [one for one in EVERY if not one.steps and not one.drift]
MOVED = [one for one in UNCHANGED if one.environments]


def missed(labels: Sequence[SeriesLabel], within: int) -> float:
    return 1 - float(np.mean([all(detection.found(one, within)) for one in labels]))


def test_a_step_of_one_percent_is_suspected_and_confirmed_in_time() -> None:
    assert missed(QUIET[:2], within=2) == 0
    assert missed(NOISY[:1], within=4) == 0


@pytest.mark.slow
def test_every_environment_change_is_quiet() -> None:
    assert len(MOVED) == 100
    assert [one for one in MOVED if changes.of_series(series.nights(one))] == []


@pytest.mark.slow
def test_the_interval_of_what_is_lost_since_the_best_is_as_wide_as_it_says() -> None:
    assert 0.93 <= np.mean([detection.best(label, last) for label in EVERY[::3] for last in (60, 250)]) <= 0.97


@pytest.mark.nightly
def test_every_step_is_found_in_time() -> None:
    assert missed(QUIET, within=2) <= 0.02
    assert missed(NOISY, within=4) <= 0.05


@pytest.mark.nightly
def test_a_year_without_a_change_tells_nothing() -> None:
    """One in a thousand series and years may; these are 25."""
    assert [detection.false(one, detection.year(one)) for one in UNCHANGED[::7]] == [[]] * len(UNCHANGED[::7])


@pytest.mark.slow
@pytest.mark.parametrize("scene", list(bisecting.scenes()), ids=lambda scene: scene.name)
def test_a_bisection_names_the_right_commit(scene: bisecting.Scene) -> None:
    rng = np.random.default_rng(3)
    made = [bisecting.searched(scene, rng) for _ in range(40)]
    assert sum(right for right, _, _ in made) >= 39, "99% of many, in docs/bisect.md"
    assert [now.culprits for right, now, _ in made if now.kind == "found" and not right] == []
    assert np.mean([rounds for _, _, rounds in made]) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "in one range"])
def test_seventeen_searches_at_once_end_within_two_nights(apart: bool) -> None:
    nights, spent = searching.searched(apart, seed=0)
    assert nights <= 2
    assert max(spent) <= searching.POLICY.changes.gpu_seconds_a_night
