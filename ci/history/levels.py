"""The level of a series of nights, and how likely it changed between two of them: docs/history-detection.md.

A hidden Markov model on a grid of levels. Before each night the level stays or, rarely, jumps; a night shows the level
with an error that its own standard error and a spread between nights explain, unless it is a bad one, which may show
anything. The spread is not known: it is one of a few, each with a probability. The sums over all levels and all jumps
are exact (forward and backward, Rabiner 1989), so that a change has a probability and its place an interval, as of a
product partition (Barry and Hartigan 1993; online: Adams and MacKay 2007).
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
SCATTER_NIGHTS = 10
"""Nights that the usual spread weighs against the scatter that is seen."""

NIGHTS_A_YEAR: Final = 365.0
A_YEAR: Final = 4.0
"""So often a year a kernel's speed changes in one case. More makes suspicions more frequent; what people are told
must be confirmed by a comparison all the same."""
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
    """The expected standard deviation from night to night, beside what the nights' own errors say."""
    bad: Array
    """Of each night: that it is a bad one."""


def of_series(values: Array, errors: Array) -> Levels:
    """The levels of a series of at least one night. `values`: log ratios in order; `errors`: their standard errors."""
    middle = _usual_spread(values, errors)
    spreads = np.exp(np.linspace(math.log(middle / REACH), math.log(middle * REACH), SPREADS))
    grid = _grid(values, middle)
    jumps = _jumps(grid)
    good, bad = _likelihoods(values, errors, grid, spreads)
    seen = good + bad
    # Each night's likelihoods are scaled to a maximum of 1; what was divided out is part of the evidence.
    scales = seen.max(axis=2, keepdims=True)
    seen, shares = seen / scales, good / (good + bad)
    stay, move = 1 - A_YEAR / NIGHTS_A_YEAR, A_YEAR / NIGHTS_A_YEAR
    ahead, evidence = _forward(seen, jumps, stay, move)
    behind = _backward(seen, jumps, stay, move)
    evidence += np.log(scales[:, :, 0]).sum(axis=1)
    usual = math.log(NIGHT_PCT / 100)
    evidence -= ((np.log(spreads) - usual) / math.log(NIGHT_FACTOR)) ** 2 / 2
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    both = ahead * behind
    both /= both.sum(axis=2, keepdims=True)
    moved = (move * (ahead[:, :-1] @ jumps)) * seen[:, 1:] * behind[:, 1:]
    stayed = (stay * ahead[:, :-1]) * seen[:, 1:] * behind[:, 1:]
    changed = moved.sum(axis=2)
    chances = changed / (changed + stayed.sum(axis=2))
    levels = np.tensordot(weights, both, axes=1)
    means = levels @ grid
    deviations = np.sqrt(np.maximum(levels @ grid**2 - means**2, (grid[1] - grid[0]) ** 2 / 12))
    bad_chance = np.tensordot(weights, (both * (1 - shares)).sum(axis=2), axes=1)
    return Levels(weights @ chances, means, deviations, float(weights @ spreads), bad_chance)


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
    """The probability of each level after a jump from each. Below `smallest_pct` it is none: nobody would be told."""
    step = float(np.diff(grid).min())
    size = np.abs(grid[None, :] - grid[:, None])
    usual = math.log1p(USUAL_PCT / 100)
    density = usual / (math.pi * (usual**2 + size**2))  # Cauchy's: a kernel may also become twice as slow
    return np.where(size >= math.log1p(SMALLEST_PCT / 100), density * step, 0.0)


def _likelihoods(values: Array, errors: Array, grid: Array, spreads: Array) -> tuple[Array, Array]:
    """By spread, night and level: of a good night, and of a bad one."""
    scale = np.hypot(spreads[:, None], errors[None, :])[:, :, None]
    off = (values[:, None] - grid[None, :])[None] / scale
    good = (1 - BAD_NIGHTS) * np.exp(-(off**2) / 2) / (scale * math.sqrt(2 * math.pi))
    bad = BAD_NIGHTS / (math.pi * TAIL * scale * (1 + (off / TAIL) ** 2))
    return good, bad


def _forward(seen: Array, jumps: Array, stay: float, move: float) -> tuple[Array, Array]:
    """The levels given the nights so far, and the log probability of all nights, by spread."""
    found = np.empty_like(seen)
    evidence = np.zeros(len(seen))
    now = np.full(seen.shape[::2], 1 / seen.shape[2])
    for night in range(seen.shape[1]):
        if night:
            now = stay * now + move * (now @ jumps)
        now = now * seen[:, night]
        total = now.sum(axis=1)
        evidence += np.log(total)
        now /= total[:, None]
        found[:, night] = now
    return found, evidence


def _backward(seen: Array, jumps: Array, stay: float, move: float) -> Array:
    """The probability of the nights to come, by spread, night and level; each night's on a scale of its own."""
    found = np.empty_like(seen)
    after = np.ones(seen.shape[::2])
    for night in range(seen.shape[1] - 1, -1, -1):
        found[:, night] = after
        ahead = seen[:, night] * after
        after = stay * ahead + move * (ahead @ jumps.T)
        after /= after.max(axis=1, keepdims=True)
    return found
