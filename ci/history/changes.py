"""Which nights of a series arouse suspicion: steps, and gradual drift. Nobody is told of them before nights.py has
looked at a comparison of both commits.

A series is one case of a card on one kind of GPU. Its nights are ordered by the commits' places on the default branch,
not by dates. What is measured is the head against a pinned commit in the same processes, so that a change of the
machine meets both. In a new environment (driver, torch, GPU) the two may still change unequally, so each environment is
looked at by itself, and the level at which one begins tells nothing about the code.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal

import numpy as np
from scipy import special

from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.history import levels
from kernelgate.ci.history.facts import Change
from kernelgate.ci.history.levels import SMALLEST_PCT, Levels
from kernelgate.ci.judge.stats import NORMAL_95, Array

LIKELY = 0.001
"""A gap between nights belongs to a change if it holds it with at least this probability."""
SURELY = 0.5
"""A night counts as bad from this probability on."""
KNOTS = 32
"""Nights at which a ramp is tried to begin or to end."""
RAMP_NUMBERS = 4
"""What a ramp may choose: level, size, begin, end."""

SUSPECT: Final = 0.5
"""A change is suspected from this probability on, and when so many NIGHTS before it and after it have been seen: one
alone may be a bad one."""
NIGHTS: Final = 2
PLACE: Final = 0.999
"""The two commits of a change are as far apart as it takes for the change to lie between them with this probability."""
DRIFT_PCT: Final = 0.5
"""Gradual drift: by at least this much, over at least DRIFT_NIGHTS, where chance explains it as rarely as DRIFT_P."""
DRIFT_NIGHTS: Final = 20
DRIFT_P: Final = 1e-4


@dataclass(frozen=True)
class Night:
    """What one night measured of one case."""

    commit: str
    place: int
    """Of the commit in the first-parent order of the default branch."""
    environment: str
    """A key: nights with the same one are alike in all but the code."""
    log_ratio: float
    """Of the head's time over the pinned commit's, in the same processes."""
    error: float


def of_series(nights: Iterable[Night]) -> tuple[Change, ...]:
    """All changes that the nights of one series suggest, oldest first."""
    ordered = sorted(nights, key=lambda one: one.place)
    environments = dict.fromkeys(one.environment for one in ordered)
    parts = {key: [one for one in ordered if one.environment == key] for key in environments}
    known = {key: levels.of_series(*_columns(part)) for key, part in parts.items()}
    found = _once([change for key, part in parts.items() for change in _steps(part, known[key])])
    return tuple(_with_drift(_joined(parts, known), found))


def _columns(nights: Sequence[Night]) -> tuple[Array, Array]:
    return np.array([one.log_ratio for one in nights]), np.array([one.error for one in nights])


# ---- steps -----------------------------------------------------------------------------------------------------------


def _steps(nights: Sequence[Night], known: Levels) -> list[Change]:
    if len(nights) < 2:
        return []
    # Gap i lies before night i + 1. What is above any gap's: where nights scatter, each may hold a small change.
    chances = np.maximum(0.0, known.chances - np.median(known.chances))
    likely = np.flatnonzero(chances >= LIKELY)
    runs = np.split(likely, np.flatnonzero(np.diff(likely) > 1) + 1)
    made = (_step(nights, known, int(run[0]), chances[run]) for run in runs if len(run))
    return [one for one in made if one is not None]


def _step(nights: Sequence[Night], known: Levels, first: int, chances: Array) -> Change | None:
    """The change in the gaps from `first` on that have these chances; None where there is too little to suspect one."""
    chance = min(1.0, float(chances.sum()))
    likely = first + 1 + int(np.argmax(chances))
    good = known.bad < SURELY
    if chance < SUSPECT or min(good[:likely].sum(), good[likely:].sum()) < NIGHTS:
        return None
    sums, tail = np.cumsum(chances) / chances.sum(), (1 - PLACE) / 2
    before = first + int(np.searchsorted(sums, tail, side="right"))
    after = first + int(np.searchsorted(sums, 1 - tail - 1e-12)) + 1
    while before > 0 and known.bad[before] > SURELY:
        before -= 1
    while after < len(nights) - 1 and known.bad[after] > SURELY:
        after += 1
    size = float(known.means[after] - known.means[before])
    if abs(size) < math.log1p(SMALLEST_PCT / 100):
        return None
    error = math.hypot(known.deviations[before], known.deviations[after])
    return _change("step", nights[before], nights[after], (size, error), chance)


def _change(
    kind: Literal["step", "drift"], before: Night, after: Night, found: tuple[float, float], chance: float = 1.0
) -> Change:
    """`found`: its size as a log ratio, and the standard error of that."""
    low, size, high = (as_percent(found[0] + off * NORMAL_95 * found[1]) for off in (-1, 0, 1))
    same = before.commit == after.commit
    return Change(
        kind=kind,
        previous=before.commit,
        previous_place=before.place,
        commit=after.commit,
        place=after.place,
        environment=after.environment,
        change_pct=size,
        interval_pct=(low, high),
        state="refuted" if same else "suspected",
        chance=chance,
        why="the same commit was measured on both sides: the machine changed, not the code" if same else "",
    )


def _once(found: Sequence[Change]) -> list[Change]:
    """Without what a second environment shows of the same change: of two that overlap, the one that is known closer.
    The oldest first."""
    kept: list[Change] = []
    for change in sorted(found, key=lambda one: (one.place - one.previous_place, -one.chance)):
        alike = (one for one in kept if (one.change_pct > 0) == (change.change_pct > 0))
        elsewhere = (one for one in alike if one.environment != change.environment)
        if not any(one.previous_place < change.place and change.previous_place < one.place for one in elsewhere):
            kept.append(change)
    return sorted(kept, key=lambda one: one.place)


# ---- drift -----------------------------------------------------------------------------------------------------------


def _with_drift(nights: Sequence[Night], found: Sequence[Change]) -> list[Change]:
    """The changes, in which drift takes the place of the steps that it explains better."""
    kept = [one for one in found if one.state != "suspected"]
    open_ = [one for one in found if one.state == "suspected"]
    runs = [list(run) for _, run in groupby(open_, key=lambda one: one.change_pct > 0)]
    edges = [-math.inf, *(run[-1].place for run in runs)], [*(run[0].previous_place for run in runs), math.inf]
    for at, run in enumerate(runs):
        kept += _or_drift(run, nights, edges[0][at], edges[1][at + 1])
    return sorted(kept, key=lambda one: (one.place, one.previous_place))


def _or_drift(run: Sequence[Change], nights: Sequence[Night], low: float, high: float) -> list[Change]:
    """These steps in one direction, or the drift between these places that explains them better; else, as where a step
    lies on a drift, the same of those before the largest one and after it."""
    if not run:
        return []
    part = [one for one in nights if low <= one.place <= high]
    values, errors = _columns(part)
    places = [one.place for one in part]
    firsts = [range(bisect_right(places, one.previous_place), bisect_left(places, one.place) + 1) for one in run]
    if slow := _instead_of(firsts, values, errors):
        first, last = part[slow.first], part[slow.last]
        apart = [one for one in run if one.place <= first.place or one.previous_place >= last.place]
        return [*apart, _change("drift", first, last, (slow.size, slow.error))]
    at = max(range(len(run)), key=lambda number: abs(run[number].change_pct))
    before = _or_drift(run[:at], nights, low, run[at].previous_place)
    return [*before, run[at], *_or_drift(run[at + 1 :], nights, run[at].place, high)]


def _joined(parts: Mapping[str, Sequence[Night]], known: Mapping[str, Levels]) -> list[Night]:
    """The good nights of all environments as one series. Each goes on at the level at which it was joined."""
    every = sorted(
        ((night, key, at) for key, part in parts.items() for at, night in enumerate(part)), key=lambda one: one[0].place
    )
    offsets: dict[str, float] = {}
    level, made = None, []
    for night, key, at in every:
        here = float(known[key].means[at])
        if key not in offsets:
            offsets[key] = 0.0 if level is None else here - level
        level = here - offsets[key]
        if known[key].bad[at] < SURELY:
            error = math.hypot(night.error, known[key].spread)
            made.append(replace(night, log_ratio=night.log_ratio - offsets[key], error=error))
    return made


# ---- a ramp ----------------------------------------------------------------------------------------------------------
#
# Level, an even rise or fall, and level again. It and the steps are compared by their misfit, to which each free number
# adds log n (Schwarz 1978, Annals of Statistics 6).


@dataclass(frozen=True)
class Ramp:
    """The level moves by `size`, a log ratio, from night `first` to night `last`."""

    first: int
    last: int
    size: float
    error: float
    misfit: float


def _instead_of(places: Sequence[range], values: Array, errors: Array) -> Ramp | None:
    """The ramp that explains the nights better than steps do; None where none does, or is large and certain enough.
    `places`: of each step, the nights that may be the first one after it."""
    found = _ramp(values, errors)
    if found is None or abs(found.size) < math.log1p(DRIFT_PCT / 100):
        return None
    free = math.log(len(values))
    stairs = _misfit_of_steps(places, values, errors) + (2 * len(places) + 1) * free
    p = 2 * float(special.ndtr(-abs(found.size) / found.error))
    return found if found.misfit + RAMP_NUMBERS * free < stairs and p < DRIFT_P else None


def _ramp(values: Array, errors: Array) -> Ramp | None:
    """The ramp over at least DRIFT_NIGHTS that fits best; None of fewer nights."""
    n = len(values)
    if n <= DRIFT_NIGHTS:
        return None
    gap = max(1, n // KNOTS)
    knots = [*range(0, n - 1, gap), n - 1]
    found = _best(knots, knots, values, errors)
    while found and gap > 1:  # closer and closer around the best
        near = range(-gap, gap + 1, max(1, gap // 4))
        firsts, lasts = ([at + off for off in near if 0 <= at + off < n] for at in (found.first, found.last))
        found, gap = _best(firsts, lasts, values, errors), gap // 4
    return found


def _best(firsts: Sequence[int], lasts: Sequence[int], values: Array, errors: Array) -> Ramp | None:
    """Of all ramps between these nights, by weighted least squares of a level and a size."""
    tried = np.array([(a, b) for a in firsts for b in lasts if b - a >= DRIFT_NIGHTS])
    if not len(tried):
        return None
    precision = float((1 / errors**2).sum())
    weights = 1 / errors**2 / precision
    begin, end = tried[:, :1], tried[:, 1:]
    shapes = np.clip((np.arange(len(values)) - begin) / (end - begin), 0.0, 1.0)
    shapes -= (shapes @ weights)[:, None]
    centred = values - weights @ values
    across = shapes**2 @ weights
    sizes = shapes @ (weights * centred) / across
    misfits = (float(weights @ centred**2) - sizes**2 * across) * precision
    best = int(np.argmin(misfits))
    error = 1 / math.sqrt(float(across[best]) * precision)
    return Ramp(int(begin[best, 0]), int(end[best, 0]), float(sizes[best]), error, float(misfits[best]))


def _misfit_of_steps(places: Sequence[range], values: Array, errors: Array) -> float:
    """With each step where it fits best while the others stay."""
    cuts = [place[len(place) // 2] for place in places]
    for at, place in enumerate(places):
        tried = ([*cuts[:at], cut, *cuts[at + 1 :]] for cut in place)
        cuts = min(tried, key=lambda every: _misfit(every, values, errors))
    return _misfit(cuts, values, errors)


def _misfit(cuts: Sequence[int], values: Array, errors: Array) -> float:
    cuts = sorted(cuts)
    parts = zip(np.split(values, cuts), np.split(1 / errors**2, cuts), strict=True)
    return sum(float(w @ (part - np.average(part, weights=w)) ** 2) for part, w in parts if len(part))
