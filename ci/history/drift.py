"""Gradual drift: whether a ramp explains a stretch of nights better than the steps that were found in it.

A ramp is level, rises or falls evenly, and is level again. It and the steps are compared by their misfit, to which each
free number adds log n (Schwarz 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kernelgate.ci.judge.stats import Array
from kernelgate.ci.policy.change_rules import ChangeRules

KNOTS = 32
"""Nights at which a ramp is tried to begin or to end."""
RAMP_NUMBERS = 4
"""What a ramp may choose: level, size, begin, end."""


@dataclass(frozen=True)
class Ramp:
    """The level moves by `size`, a log ratio, from night `first` to night `last`."""

    first: int
    last: int
    size: float
    error: float
    misfit: float


def instead_of(places: Sequence[range], values: Array, errors: Array, rules: ChangeRules) -> Ramp | None:
    """The ramp that explains the nights better than steps do; None where none does, or is large and certain enough.

    `places`: of each step, the nights that may be the first one after it.
    """
    found = _ramp(values, errors, rules.drift_nights)
    if found is None or abs(found.size) < math.log1p(rules.drift_pct / 100):
        return None
    free = math.log(len(values))
    stairs = _misfit_of_steps(places, values, errors) + (2 * len(places) + 1) * free
    p = 2 * float(special.ndtr(-abs(found.size) / found.error))
    return found if found.misfit + RAMP_NUMBERS * free < stairs and p < rules.drift_p else None


def _ramp(values: Array, errors: Array, shortest: int) -> Ramp | None:
    """The ramp over at least `shortest` nights that fits best; None of fewer nights."""
    n = len(values)
    if n <= shortest:
        return None
    gap = max(1, n // KNOTS)
    knots = [*range(0, n - 1, gap), n - 1]
    found = _best(knots, knots, values, errors, shortest)
    while found and gap > 1:  # closer and closer around the best
        near = range(-gap, gap + 1, max(1, gap // 4))
        firsts, lasts = ([at + off for off in near if 0 <= at + off < n] for at in (found.first, found.last))
        found, gap = _best(firsts, lasts, values, errors, shortest), gap // 4
    return found


def _best(firsts: Sequence[int], lasts: Sequence[int], values: Array, errors: Array, shortest: int) -> Ramp | None:
    """Of all ramps between these nights, by weighted least squares of a level and a size."""
    tried = np.array([(a, b) for a in firsts for b in lasts if b - a >= shortest])
    if not len(tried):
        return None
    weights = 1 / errors**2
    weights /= weights.sum()
    begin, end = tried[:, :1], tried[:, 1:]
    shapes = np.clip((np.arange(len(values)) - begin) / (end - begin), 0.0, 1.0)
    shapes -= (shapes @ weights)[:, None]
    centred = values - weights @ values
    across = shapes**2 @ weights
    sizes = shapes @ (weights * centred) / across
    misfits = (float(weights @ centred**2) - sizes**2 * across) * float((1 / errors**2).sum())
    best = int(np.argmin(misfits))
    error = 1 / math.sqrt(float(across[best]) * float((1 / errors**2).sum()))
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
