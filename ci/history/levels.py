"""The level of a series of nights, and how likely it changed between two of them.

A hidden Markov model on a grid of levels. Before each night the level stays or, rarely, jumps; a night shows the level
with an error that its own standard error and a spread between nights explain, unless it is a bad one. The spread, and
how much of it carries on to the next night, are each one of a few. The sums over all levels and jumps are exact
(forward and backward: Rabiner 1989, Proceedings of the IEEE 77), so that a change has a probability and its place an
interval, as of a product partition (Barry and Hartigan 1993, JASA 88).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelgate.ci.judge.stats import Array

SPREADS = 6
REACH = 2.5
"""Spreads on the grid, and by how many times the outermost are off the one in the middle."""
STEPS = 2.0
"""Grid points a spread."""
AROUND = 4.0
"""Levels lie within so many spreads of some night."""
MOST_LEVELS = 400
TAIL = 3.0
"""How many times as wide as a good night's error a bad one's is, by its quartiles (a Cauchy distribution)."""
CARRIED = ((0.45, 1.5), (0.75, 1.5))
"""How much of what one night is off its spread may carry to the next (an autoregression), and how probable that is with
each of half of the spreads, against nothing with each of all."""
STRETCH, BESIDE = 365, 32
"""So many nights are looked at at once, on the levels near any of them or of so many beside them: a long series has
many others, which are as good as impossible there."""
SCATTER_NIGHTS = 10
"""Nights that the usual spread weighs against the scatter that is seen."""

NIGHTS_A_YEAR: Final = 365.0
A_YEAR: Final = 4.0
"""So often a year a kernel's speed changes in one case. More makes suspicions more frequent; what people are told
must be confirmed by a comparison all the same."""
MOVE = A_YEAR / NIGHTS_A_YEAR
USUAL_PCT: Final = 1.0
"""The size of a usual change, in percent: larger ones are rarer."""
SMALLEST_PCT: Final = 0.2
"""Below this a change is none: the recorded comparisons of identical code scatter by up to 0.1% in one process."""
NIGHT_PCT: Final = 0.1
"""How far nights of the same code scatter beside what each night's own error says. Kernels on an H200: 0.02% bound by
arithmetic, 0.1% bound by memory; a series of its own nights soon shows its own."""
NIGHT_FACTOR: Final = 2.0
"""By which factor that may be wrong."""
BAD_NIGHTS: Final = 0.03
"""So often a night shows something else than the code, such as a neighbour on the machine."""
SURELY: Final = 0.5
"""A night counts as bad from this probability on."""


@dataclass(frozen=True, eq=False)
class Levels:
    """What is known of a series' level once all its nights are seen. Logarithms throughout."""

    chances: Array
    """Of each night but the first: that the level changed just before it."""
    means: Array
    """Of each night: the expected level, …"""
    deviations: Array
    """… and its standard deviation."""
    spread: float
    """The expected standard deviation of a night, beside what its own error says, …"""
    alone: float
    """… and what it is worth where nights count as independent."""
    bad: Array
    """Of each night: that it is a bad one."""

    @property
    def odd(self) -> Array:
        """Of each night: whether it is a bad one, or alone on its level. The last one may begin a level."""
        gaps = np.concatenate([[1.0], self.chances, [0.0]])
        return np.asarray(self.bad + np.minimum(gaps[:-1], gaps[1:]) >= SURELY)

    @property
    def lowest(self) -> int:
        """The night on the lowest level, an odd one only where all are."""
        return int(np.lexsort((self.means, self.odd))[0])


def of_series(values: Array, errors: Array) -> Levels:
    """The levels of a series of at least one night. `values`: log ratios in order; `errors`: their standard errors."""
    middle = _usual_spread(values, errors)
    grid = _grid(values, middle)
    spreads, carried, before = _scatters(middle)
    jumps, step = MOVE * _jumps(grid), float(np.diff(grid).min())
    now, evidence, stretches = np.full((len(spreads), len(grid)), 1 / len(grid)), np.log(before), []
    for first in range(0, len(values), STRETCH):
        beside = values[max(0, first - BESIDE) : first + STRETCH + BESIDE]
        near = np.flatnonzero(np.abs(grid[:, None] - beside).min(axis=1) < AROUND * middle + 2 * step)
        some = slice(max(0, first - 1), first + STRETCH)  # what is carried on comes from the night before
        seen = _seen(values[some], errors[some], grid[near], spreads, carried)
        fresh, stays, shares, scales = (one[:, min(1, first) :] for one in seen)
        ahead, jumped, proof = _forward(fresh, stays, jumps[np.ix_(near, near)], now[:, near], first > 0)
        evidence += np.log(scales[:, :, 0]).sum(axis=1) + proof
        now = np.zeros_like(now)
        now[:, near] = ahead[:, -1]
        stretches.append((near, fresh, stays, shares, ahead, jumped))
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    after, found = np.ones_like(now), []
    for near, fresh, stays, shares, ahead, jumped in reversed(stretches):
        behind, before = _backward(fresh, stays, jumps[np.ix_(near, near)], after[:, near])
        after = np.zeros_like(after)
        after[:, near] = before
        both = ahead[:, 1:] * behind
        both /= both.sum(axis=2, keepdims=True)
        moved, stayed = (jumped * behind).sum(axis=2), (ahead[:, :-1] * stays * behind).sum(axis=2)
        levels, own = np.tensordot(weights, both, axes=1), grid[near]
        means = levels @ own
        bad = np.tensordot(weights, (both * (1 - shares)).sum(axis=2), axes=1)
        found.append((weights @ (moved / (moved + stayed)), means, levels @ own**2 - means**2, bad))
    chances, means, variances, bad = (np.concatenate(column) for column in zip(*found[::-1], strict=True))
    deviations = np.sqrt(np.maximum(variances, step**2 / 12))
    alone = float(weights @ (spreads * np.sqrt((1 + carried) / (1 - carried))))
    return Levels(chances[1:], means, deviations, float(weights @ spreads), alone, bad)


def _seen(values: Array, errors: Array, grid: Array, spreads: Array, carried: Array) -> tuple[Array, ...]:
    """By spread, night and level: the likelihoods of a level that has just begun and of one that stays, the share of
    a good night, and what the likelihoods are divided by to be at most 1: a part of the evidence."""
    own, at = np.unique(spreads, return_inverse=True)
    fresh, shares = (one[at] for one in _likelihoods(values, errors, grid, own, np.zeros_like(own), None))
    after_last, on = fresh.copy(), carried > 0
    after_last[on], shares[on] = _likelihoods(values, errors, grid, spreads[on], carried[on], shares[on])
    scales = np.maximum(fresh, after_last).max(axis=2, keepdims=True)
    return fresh / scales, (1 - MOVE) * after_last / scales, shares, scales


def _scatters(middle: float) -> tuple[Array, Array, Array]:
    """Spreads around this one, the share that is carried on, and how probable each pair of them is beforehand."""
    every = np.exp(np.linspace(math.log(middle / REACH), math.log(middle * REACH), SPREADS))
    pairs = [(spread, 0.0, 1.0) for spread in every]
    pairs += [(spread, carried, chance) for carried, chance in CARRIED for spread in every[::2]]
    spreads, carried, chances = (np.array(column) for column in zip(*pairs, strict=True))
    usual = math.log(NIGHT_PCT / 100)
    return spreads, carried, chances * np.exp(-(((np.log(spreads) - usual) / math.log(NIGHT_FACTOR)) ** 2) / 2)


def _usual_spread(values: Array, errors: Array) -> float:
    """A first guess at the spread: from differences of neighbouring nights, of which few hold a change."""
    usual = NIGHT_PCT / 100
    if len(values) < 3:
        return usual
    scatter = float(np.median(np.abs(np.diff(values)))) / (0.6745 * math.sqrt(2))
    own = max(scatter**2 - float(np.median(errors)) ** 2, (usual / NIGHT_FACTOR**2) ** 2)
    n = len(values) - 1
    return math.exp((SCATTER_NIGHTS * math.log(usual) + n * math.log(own) / 2) / (SCATTER_NIGHTS + n))


def _grid(values: Array, spread: float) -> Array:
    """Levels near the nights, as multiples of one step; coarser where nights lie all over the place."""
    step = spread / STEPS
    while True:
        reach = math.ceil(AROUND * spread / step)
        places = np.round(values / step).astype(int)[:, None] + np.arange(-reach, reach + 1)
        found = np.unique(places)
        if len(found) <= MOST_LEVELS:
            return np.asarray(found * step)
        step *= 1.25


def _jumps(grid: Array) -> Array:
    """The probability of each level after a jump from each; of one below SMALLEST_PCT none."""
    step = float(np.diff(grid).min())
    size = np.abs(grid[None, :] - grid[:, None])
    usual = math.log1p(USUAL_PCT / 100)
    density = usual / (math.pi * (usual**2 + size**2))  # Cauchy's: a kernel may also become twice as slow
    return np.where(size >= math.log1p(SMALLEST_PCT / 100), density * step, 0.0)


def _likelihoods(
    values: Array, errors: Array, grid: Array, spreads: Array, carried: Array, before: Array | None
) -> tuple[Array, Array]:
    """By spread, night and level: the likelihood, and the share of it that a good night has. With `before`, those
    shares of nights alone, the likelihood is that given the night before at the same level, of whose distance to it so
    much is `carried` as it was a good one."""
    variances = spreads[:, None] ** 2 + errors[None, :] ** 2
    off = np.broadcast_to(values[:, None] - grid[None, :], (len(spreads), len(values), len(grid)))
    scale = np.sqrt(variances)[:, :, None]
    bad = BAD_NIGHTS / (math.pi * TAIL * scale * (1 + (off / (TAIL * scale)) ** 2))
    if before is not None:
        kept = np.zeros(off.shape)
        kept[:, 1:] = (carried[:, None] * spreads[:, None] ** 2 / variances[:, :-1])[:, :, None] * before[:, :-1]
        scale = np.sqrt(variances[:, :, None] - kept**2 * np.roll(variances, 1, axis=1)[:, :, None])
        off = off - kept * np.roll(off, 1, axis=1)
    good = (1 - BAD_NIGHTS) * np.exp(-((off / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))
    return good + bad, good / (good + bad)


def _forward(fresh: Array, stays: Array, jumps: Array, now: Array, begun: bool) -> tuple[Array, Array, Array]:
    """The levels given the nights so far, from those before the first one on, what of them has just jumped there, on
    the scale of the night before, and the log probability of these nights, by spread."""
    found, jumped = np.empty((len(fresh), fresh.shape[1] + 1, fresh.shape[2])), np.zeros_like(fresh)
    evidence = np.zeros(len(fresh))
    found[:, 0] = now
    for night in range(fresh.shape[1]):
        if night or begun:
            jumped[:, night] = (now @ jumps) * fresh[:, night]
        now = now * stays[:, night] + jumped[:, night]
        total = now.sum(axis=1)
        evidence += np.log(total)
        now /= total[:, None]
        found[:, night + 1] = now
    return found, jumped, evidence


def _backward(fresh: Array, stays: Array, jumps: Array, after: Array) -> tuple[Array, Array]:
    """The probability of the nights to come, by spread, night and level, and that of these and all to come; each
    night's on a scale of its own."""
    found = np.empty_like(fresh)
    for night in range(fresh.shape[1] - 1, -1, -1):
        found[:, night] = after
        after = stays[:, night] * after + (fresh[:, night] * after) @ jumps.T
        after /= after.max(axis=1, keepdims=True)
    return found, after
