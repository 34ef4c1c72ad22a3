"""Which nights arouse suspicion, and which do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.ci.history import changes
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.facts import Change


def series(values: Sequence[float], environments: Sequence[str] | None = None) -> list[Night]:
    """Nights of these log ratios, one commit each, whose own errors are 0.02%."""
    keys = environments or ["driver 580"] * len(values)
    return [Night(f"{at:07x}", at, key, float(values[at]), 2e-4) for at, key in enumerate(keys)]


def noise(nights: int, sd_pct: float = 0.1) -> np.ndarray:
    return np.random.default_rng(1).normal(0, sd_pct / 100, nights)


def stepped(nights: int, at: int, pct: float, sd_pct: float = 0.1) -> np.ndarray:
    values = noise(nights, sd_pct)
    values[at:] += math.log1p(pct / 100)
    return values


def places(found: Sequence[Change]) -> list[tuple[str, int, int]]:
    return [(one.kind, one.previous_place, one.place) for one in found]


def test_the_same_code_arouses_no_suspicion() -> None:
    for values in (noise(0), noise(1), noise(200), np.zeros(300)):  # a clock of coarse steps shows the same every night
        assert changes.of_series(series(values)) == ()


@pytest.mark.parametrize("pct", [1.0, -1.0])
def test_a_step_is_suspected_one_night_after_it(pct: float) -> None:
    [found] = changes.of_series(series(stepped(62, 60, pct, 0.03)))
    assert (found.kind, found.state, found.previous, found.commit) == ("step", "suspected", f"{59:07x}", f"{60:07x}")
    low, high = found.interval_pct
    assert low < pct < high
    assert low < found.change_pct < high


def test_one_night_alone_is_no_change_yet() -> None:
    assert changes.of_series(series(stepped(61, 60, 1.0, 0.03))) == ()


@pytest.mark.parametrize("environments", [None, ["a"] * 60 + ["b"] * 60])
def test_bad_nights_are_no_change(environments: list[str] | None) -> None:
    values = noise(120)
    values[[0, 60] if environments else 0] += 0.03
    values[[30, 90]] += [0.05, 0.8]
    assert changes.of_series(series(values, environments)) == ()


def test_a_bad_night_beside_a_step_is_neither_of_its_commits() -> None:
    values = stepped(80, 60, 1.0, 0.03)
    values[59] += 0.2
    [found] = changes.of_series(series(values))
    assert places([found]) == [("step", 58, 60)]


def test_a_new_environment_is_no_change_and_a_change_in_it_is_one() -> None:
    values, keys = stepped(120, 60, 5.0, 0.03), ["driver 580"] * 60 + ["driver 590"] * 60
    assert changes.of_series(series(values, keys)) == ()
    values[90:] += 0.01
    assert places(changes.of_series(series(values, keys))) == [("step", 89, 90)]


def test_two_machines_that_take_turns_show_one_change_once() -> None:
    values = stepped(120, 61, 1.0, 0.03)
    values[1::2] += 0.02
    [found] = changes.of_series(series(values, ["a", "b"] * 60))
    assert found.previous_place < 61 <= found.place


def test_commits_count_not_dates() -> None:
    nights = series(stepped(80, 60, 1.0, 0.03))
    backwards = changes.of_series(nights[::-1])
    assert backwards == changes.of_series(nights)


def test_the_same_commit_on_both_sides_is_not_the_code() -> None:
    nights = [replace(one, commit="0123456", place=7) for one in series(stepped(80, 60, 1.0, 0.03))]
    [found] = changes.of_series(nights)
    assert (found.state, found.previous) == ("refuted", found.commit)
    assert "the machine changed, not the code" in found.why


@pytest.mark.parametrize("split", [None, 110])
def test_drift_is_one_change_and_no_staircase(split: int | None) -> None:
    """Whether or not the environment changes in the middle of it."""
    values = noise(200) + np.clip((np.arange(200) - 60) / 100, 0, 1) * math.log1p(0.015)
    keys = ["a"] * 200 if split is None else ["a"] * split + ["b"] * (200 - split)
    [found] = changes.of_series(series(values, keys))
    assert found.kind == "drift"
    assert abs(found.previous_place - 60) < 12
    assert abs(found.place - 160) < 12
    assert found.change_pct == pytest.approx(1.5, abs=0.25)


def test_steps_are_changes_oldest_first_and_no_drift() -> None:
    """Five, up and down, of which some are known to a commit and others are not."""
    rng = np.random.default_rng(1)
    at, values = np.sort(rng.choice(np.arange(20, 280, 13), 5, replace=False)), noise(300, 0.15)
    for night in at:
        values[night:] += rng.choice([-1, 1]) * math.exp(rng.uniform(math.log(0.006), math.log(0.03)))
    found = changes.of_series(series(values))
    assert [one.kind for one in found] == ["step"] * 5
    assert all(one.previous_place < night <= one.place for one, night in zip(found, at, strict=True))
