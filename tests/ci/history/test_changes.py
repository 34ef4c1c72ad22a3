"""Which nights arouse suspicion, and which do not."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.ci.history import changes, levels, nights
from kernelgate.ci.history.changes import Night
from kernelgate.ci.history.facts import Change
from kernelgate.ci.history.nights import PairMeasured


def series(values: Sequence[float], environments: Sequence[str] | None = None) -> list[Night]:
    """Nights of these log ratios, one commit each, whose own errors are 0.02%."""
    keys = environments or ["driver 580"] * len(values)
    return [Night(f"{at:07x}", at, key, float(values[at]), 2e-4) for at, key in enumerate(keys)]


def noise(nights: int, sd_pct: float = 0.1, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sd_pct / 100, nights)


def stepped(nights: int, at: int, pct: float, sd_pct: float = 0.1) -> np.ndarray:
    values = noise(nights, sd_pct)
    values[at:] += math.log1p(pct / 100)
    return values


def test_the_same_code_arouses_no_suspicion() -> None:
    for values in (noise(0), noise(1), noise(200), np.zeros(300)):  # a clock of coarse steps shows the same every night
        assert changes.of_series(series(values)) == ()


def test_a_step_is_suspected_one_night_after_it() -> None:
    pct = 1.0
    [found] = changes.of_series(series(stepped(62, 60, pct, 0.03)))
    assert (found.kind, found.state, found.previous, found.commit) == ("step", "suspected", f"{59:07x}", f"{60:07x}")
    low, high = found.interval_pct
    assert low < pct < high
    assert low < found.change_pct < high


@pytest.mark.parametrize("environments", [None, ["a"] * 60 + ["b"] * 60])
def test_bad_nights_are_no_change(environments: list[str] | None) -> None:
    values = noise(120)
    values[[0, 60] if environments else 0] += 0.03
    values[[30, 90]] += [0.05, 0.8]
    assert changes.of_series(series(values, environments)) == ()


def test_a_step_that_is_taken_back_after_four_nights_is_two() -> None:
    """Of which the nights do not show exactly where they are, so that no night between them is certain."""
    values = noise(120, 0.2)
    values[60:64] += 0.009
    found = changes.of_series(series(values))
    assert [one.change_pct for one in found] == [pytest.approx(0.9, abs=0.3), pytest.approx(-0.9, abs=0.3)]
    assert [one.previous_place < at <= one.place for one, at in zip(found, (60, 64), strict=True)] == [True, True]


def test_the_same_commit_on_both_sides_is_not_the_code() -> None:
    nights = [replace(one, commit="0123456", place=7) for one in series(stepped(80, 60, 1.0, 0.03))]
    [found] = changes.of_series(nights)
    assert (found.state, found.previous) == ("refuted", found.commit)
    assert "the machine changed, not the code" in found.why


@pytest.mark.parametrize("splits", [[], [110], [75, 90, 105, 120, 135]], ids=str)
def test_drift_is_one_change_and_no_staircase(splits: list[int]) -> None:
    """Whether or not the environment changes in the middle of it, and how often."""
    values = noise(200) + np.clip((np.arange(200) - 60) / 100, 0, 1) * math.log1p(0.015)
    [found] = changes.of_series(series(values, [str(sum(at >= split for split in splits)) for at in range(200)]))
    assert found.kind == "drift"
    assert abs(found.previous_place - 60) < 12
    assert abs(found.place - 160) < 12
    assert found.change_pct == pytest.approx(1.5, abs=0.25)


@pytest.mark.parametrize("seed", [33, 40])
def test_a_drift_that_begins_at_once_is_one_change(seed: int) -> None:
    """A step of less than half a percent where it begins or ends is a part of it, and has no culprit."""
    drift = 0.02 * np.sqrt(np.clip((np.arange(200) - 60) / 80, 0, 1))
    [found] = changes.of_series(series(noise(200, 0.2, seed) + drift))
    low, high = found.interval_pct
    assert (found.kind, low < 2.02 < high) == ("drift", True)


def test_a_drift_goes_on_by_commits_also_over_nights_that_were_not_measured() -> None:
    nights = [replace(one, place=one.place + 60 * (at >= 90)) for at, one in enumerate(series(noise(200, 0.05)))]
    nights = [replace(one, log_ratio=one.log_ratio + max(0, one.place - 60) * 0.02 / 140) for one in nights]
    [found] = changes.of_series(nights)
    assert (found.kind, found.change_pct) == ("drift", pytest.approx(2.0 * 199 / 140, abs=0.15))


@pytest.mark.parametrize(
    ("first", "last", "sizes"), [(0, 300, (0.75, 2.0, 0.75)), (40, 168, (1.5, 2.0, 0.25)), (40, 168, (1.5, -2.0, 0.25))]
)
def test_a_step_on_a_drift_is_told_apart_from_it(first: int, last: int, sizes: tuple[float, float, float]) -> None:
    """Also from what little of the drift lies beyond it."""
    drift = np.clip((np.arange(300) - first) / (last - first), 0, 1) * (sizes[0] + sizes[2]) / 100
    found = changes.of_series(series(stepped(300, 150, sizes[1], 0.1 if sizes[2] > 0.5 else 0.04) + drift))
    assert [one.kind for one in found] == ["drift", "step", "drift"]
    before, step, after = found
    assert before.place <= step.previous_place < 150 <= step.place <= after.previous_place
    assert [one.change_pct for one in found] == pytest.approx(sizes, abs=0.2)


@pytest.mark.parametrize("sd_pct", [0.08, 0.15])
def test_a_step_on_a_steep_drift_is_no_part_of_it(sd_pct: float) -> None:
    """Of which every night may hold a change: all that it does is not one."""
    drift = 0.04 * np.sqrt(np.clip((np.arange(300) - 110) / 60, 0, 1))
    found = changes.of_series(series(stepped(300, 140, 1.6, sd_pct) + drift))
    [step] = (one for one in found if one.kind == "step" and one.change_pct > 1)
    assert 136 <= step.previous_place < 140 <= step.place <= 144
    assert step.change_pct == pytest.approx(1.6, abs=0.5)
    assert any(one.kind == "drift" and one.place > 150 for one in found)


def test_steps_are_changes_oldest_first_and_no_drift() -> None:
    """Five, up and down, of which some are known to a commit and others are not."""
    rng = np.random.default_rng(1)
    at, values = np.sort(rng.choice(np.arange(20, 280, 13), 5, replace=False)), noise(300, 0.15)
    for night in at:
        values[night:] += rng.choice([-1, 1]) * math.exp(rng.uniform(math.log(0.006), math.log(0.03)))
    found = changes.of_series(series(values))
    assert [one.kind for one in found] == ["step"] * 5
    assert all(one.previous_place < night <= one.place for one, night in zip(found, at, strict=True))


def test_nights_like_the_one_before_are_no_changes_and_do_not_hide_one() -> None:
    """Each has 0.6 of what the night before was off."""
    wander = noise(200, 0.15, seed=6)
    for night in range(1, 200):
        wander[night] = 0.6 * wander[night - 1] + 0.8 * wander[night]
    assert changes.of_series(series(wander)) == ()
    wander[100:] += 0.02
    assert any(one.previous_place < 100 <= one.place for one in changes.of_series(series(wander)))


def taken(ask: Callable[[], object]) -> int:
    """The most bytes at once that numbers take meanwhile."""
    tracemalloc.start()
    ask()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_long_series_is_looked_at_on_the_levels_that_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight levels take no more than three times what one does, and are found as on all levels at once."""
    flat, errors = noise(1600), np.full(1600, 2e-4)
    values = flat + 0.01 * (np.arange(1600) // 200)
    assert taken(lambda: levels.of_series(values, errors)) < 3 * taken(lambda: levels.of_series(flat, errors))
    near = levels.of_series(values, errors)
    monkeypatch.setattr(levels, "STRETCH", len(values))
    every = levels.of_series(values, errors)
    assert near.chances == pytest.approx(every.chances, abs=1e-3)
    assert near.means == pytest.approx(every.means, abs=1e-5)


def test_ramps_are_tried_a_few_at_a_time() -> None:
    """Of 2,000 nights each shape of all of them at once takes 54 MB, which is slower by a factor of four."""
    drift = np.clip((np.arange(2000) - 600) / 400, 0, 1) * 0.02
    looks = changes.Looks(series(noise(2000) + drift), np.full(2000, 1e3), np.ones((1, 2000)))
    found: list[changes.Ramp | None] = []
    assert taken(lambda: found.append(changes._ramp(looks, [], 0, 2000))) < 30e6
    [ramp] = found
    assert ramp is not None
    assert (ramp.first, ramp.last, ramp.size) == pytest.approx((600, 1000, 0.02), rel=0.1)


SUSPECTED = Change("step", "aaaaaaa", 10, "bbbbbbb", 13, "e", 1.0, (0.8, 1.2))
SHOWN = PairMeasured("aaaaaaa", 10, "bbbbbbb", 13, 0.0095, 0.0002, 0.0005, 5)
NOTHING = replace(SHOWN, effect=0.0001)
UNCLEAR = replace(SHOWN, effect=0.006, error=0.003, spread=0.007)


WIDER = replace(SUSPECTED, commit="eeeeeee", place=15)
DRIFT = replace(SUSPECTED, kind="drift", previous_place=0, place=100)
PART, MOST = (replace(NOTHING, base_place=first, head_place=last) for first, last in ((40, 50), (20, 90)))


@pytest.mark.parametrize(
    ("change", "measured", "state", "why"),
    [
        (SUSPECTED, [SHOWN], "confirmed", "measured side by side: +0.95%"),
        (SUSPECTED, [NOTHING], "refuted", "no change as large as 0.2%"),
        # Certain, and too small to tell.
        (SUSPECTED, [replace(SHOWN, effect=0.0012, error=1e-5, spread=1e-5)], "refuted", "no change as large as 0.2%"),
        (SUSPECTED, [replace(SHOWN, effect=-0.0095)], "refuted", "the other direction"),
        (SUSPECTED, [UNCLEAR] * 2, "suspected", ""),
        (SUSPECTED, [UNCLEAR] * 3, "refuted", ""),
        # A pair that may not hold the change does not refute it; the ends of a drift shift every night.
        (WIDER, [NOTHING], "suspected", ""),
        (replace(WIDER, kind="drift"), [NOTHING], "refuted", ""),
        (replace(SUSPECTED, previous="aaaaaab", previous_place=11), [NOTHING], "refuted", ""),
        # Nor does a part of a drift that shows nothing refute the drift.
        (DRIFT, [PART], "suspected", ""),
        (DRIFT, [PART, MOST], "refuted", ""),
    ],
)
def test_what_comparisons_make_of_a_suspicion(
    change: Change, measured: list[PairMeasured], state: str, why: str
) -> None:
    found = nights.settled(change, measured)
    assert (found.state, why in found.why) == (state, True)


def test_a_place_that_shifted_is_not_measured_again_once_confirmed() -> None:
    found = nights.settled(replace(SUSPECTED, previous="9999999", previous_place=9), [SHOWN])
    assert (found.state, found.previous, found.commit) == ("confirmed", "aaaaaaa", "bbbbbbb")
    low, high = found.interval_pct
    assert 0.8 < low < 0.95 < found.change_pct < 0.96 < high < 1.1, "of its own size"


def test_looking_twice_needs_more_than_looking_once() -> None:
    """The same ten processes, as one comparison and as two."""
    halves = replace(SHOWN, spread=0.003, error=1e-6, processes=5)
    whole = replace(halves, spread=0.003 * (8 / 9) ** 0.5, processes=10)
    effects = [at * 1e-4 for at in range(20, 120)]
    one = [nights.settled(SUSPECTED, [replace(whole, effect=at)]).state for at in effects]
    two = [nights.settled(SUSPECTED, [replace(halves, effect=at)] * 2).state for at in effects]
    assert one.count("confirmed") > two.count("confirmed") > 0


def test_what_may_be_the_beginning_of_a_drift_waits_until_nights_tell() -> None:
    """A step that many nights do not place, and few have followed."""
    wide = replace(SUSPECTED, place=16)
    young, old = (nights.CaseChanges(wide.series, tuple(range(count)), (), None, True, ()) for count in (30, 40))
    assert (young.may_become_drift(wide), old.may_become_drift(wide)) == (True, False)
    assert not young.may_become_drift(SUSPECTED)
    assert not young.may_become_drift(replace(wide, kind="drift"))


def test_a_first_night_that_is_far_off_is_no_drift_and_hides_no_step() -> None:
    values = stepped(120, 90, 1.0, 0.05)
    values[0] += 0.24
    [found] = changes.of_series(series(values))
    assert (found.kind, found.place) == ("step", series(values)[90].place)


def test_a_drift_that_wears_off_is_one_change() -> None:
    values = noise(300, 0.05) + 0.025 * (1 - np.exp(-np.clip(np.arange(300) - 80, 0, None) / 20))
    [found] = changes.of_series(series(values))
    assert (found.kind, found.change_pct) == ("drift", pytest.approx(2.5, abs=0.15))
