"""How likely each commit is the culprit.

In process p the log time of commit i is m(p) + δ [i ≥ c] + u(i) + b(p, i): what the process does to all of them, the
effect δ of the culprit c, what the commit itself does beside that, and chance. All but c and how large chance is are
normal, so their integrals are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal

import numpy as np

from kernelgate.ci.judge.stats import Array

SPREADS = 9
REACH = 3.0
"""Spreads on the grid, which ends so many of its own deviations from the usual one."""
SIZES = 4
LARGER = 4.0
"""Effects are of the usual size, or so many times as large with half of the probability, and so on."""
SHORT = 12
"""Digits of a commit."""
CHANCE: Final = 0.99
"""The search for a commit ends when one, or commits that cannot be told apart, has this probability."""
ANY_LEVEL = 1.0
"""Standard deviation of a process's level, which may be anything, beside its mean."""

NONE: Final = 0.1
"""Before anything is measured: the probability that the two ends do not differ, ..."""
SEVERAL: Final = 0.02
"""... that two commits of the range changed the time, ..."""
USUAL_PCT: Final = 3.0
"""... and the size of a usual change, in percent."""
OTHER_PCT: Final = 0.05
"""Other commits of the range may change a little, too."""
SPREAD_FACTOR: Final = 2.0
"""By which factor the spreads that are assumed (ci/bisect/rounds.py) may be wrong."""


@dataclass(frozen=True)
class CommitTime:
    log_time: float
    """Of the commit, beside the others of the process: any constant may be added to all of them."""
    variance: float
    """Of that, as its rounds show it."""


ChangedAt = tuple[int, float]
"""The place of the first measured commit that has a new time, and the log change."""
ProcessRead = Mapping[int, CommitTime]
"""The commits of one process, or of processes that took turns, by their place in the range; at least two."""


@dataclass(frozen=True)
class Search:
    """Commits from the good end, 0, to the bad end, `last`. The culprit is the first one with the new time."""

    last: int
    processes: tuple[ProcessRead, ...] = ()
    unmeasurable: Mapping[int, str] = field(default_factory=dict)
    """Commits that are stepped over, and why."""
    same: frozenset[tuple[int, int]] = frozenset()
    """Pairs of commits, the earlier first, whose libraries are the same: nothing between them is the culprit."""
    spread_pct: float = 0.15
    """How far times of one commit beside others scatter from process to process, as far as is known beforehand."""

    @property
    def measurable(self) -> tuple[int, ...]:
        return tuple(at for at in range(1, self.last) if at not in self.unmeasurable)


@dataclass(frozen=True)
class SearchStanding:
    kind: Literal["found", "none", "several", "open"]
    culprits: tuple[int, ...]
    """The likeliest commit, or commits that nothing measurable lies between."""
    chance: float
    """That it is one of them, if one change is all there is."""
    effect: float
    """The log change, if it is, …"""
    error: float
    """… and its standard deviation."""
    two: tuple[ChangedAt, ...] = ()
    """Where two commits changed the time: those."""


@dataclass(frozen=True, eq=False)
class Posterior:
    none: float
    """The probability that the ends do not differ."""
    culprit: Array
    """Of each commit from 1 on, at its place, that it alone changed the time; 0 at the place of the good end."""
    several: float
    """That two did, …"""
    two: tuple[ChangedAt, ...]
    """… and the likeliest two."""
    effects: Array
    """The log change, by culprit, …"""
    errors: Array
    """… and its standard deviation."""

    def effect(self, first: int, last: int) -> tuple[float, float]:
        """The log change and its standard deviation, given that the culprit is one of these."""
        weights = self.culprit[first : last + 1]
        weights = weights / max(weights.sum(), 1e-300)
        means, errors = self.effects[first : last + 1], self.errors[first : last + 1]
        mean = float(weights @ means)
        return mean, math.sqrt(float(weights @ (errors**2 + (means - mean) ** 2)))


def of(search: Search) -> Posterior:
    before = _before(search)
    if not search.processes:
        nothing = np.zeros(search.last + 1)
        return Posterior(float(before[0]), np.append(0.0, before[1:]), 0.0, (), nothing, nothing)
    # Every two measured commits of which each may be the first one with a new time.
    places = sorted({place for process in search.processes for place in process if place > 0})
    pairs = np.array(list(combinations(places, 2)), dtype=int).reshape(-1, 2)
    scales = _scales(search)
    fits = zip(*(_fit(search, pairs, spread, size) for spread, size, _ in scales), strict=True)
    singles, means, errors, doubles, pair_effects = map(np.array, fits)
    usual = np.log([chance for *_, chance in scales])[:, None]
    with np.errstate(divide="ignore"):
        singles = singles + (np.log(before) + math.log(1 - SEVERAL)) + usual
    doubles = doubles + usual + math.log(SEVERAL / max(1, len(pairs)))
    most = max(singles.max(), doubles.max(initial=-math.inf))
    joint, joint_pairs = np.exp(singles - most), np.exp(doubles - most)
    by_culprit, total = joint.sum(axis=0), joint.sum() + joint_pairs.sum()
    chances, pair_chances = by_culprit / total, joint_pairs.sum(axis=0) / total
    given = joint / np.maximum(by_culprit, 1e-300)
    effects = (given * means).sum(axis=0)
    deviations = np.sqrt((given * (errors**2 + (means - effects) ** 2)).sum(axis=0))
    two: tuple[ChangedAt, ...] = ()
    if len(pairs):
        best = int(np.argmax(pair_chances))
        sizes = pair_effects[int(np.argmax(joint_pairs[:, best])), best]
        two = tuple((int(place), float(size)) for place, size in zip(pairs[best], sizes, strict=True))
    return Posterior(
        float(chances[0]), np.append(0.0, chances[1:]), float(pair_chances.sum()), two, effects, deviations
    )


def _before(search: Search) -> Array:
    """None, and each commit: all are as likely, but those between two commits with the same library."""
    chances = np.ones(search.last + 1)
    chances[0] = 0.0
    for first, second in search.same:
        chances[first + 1 : second + 1] = 0.0
    if total := chances.sum():
        chances *= (1 - NONE) / total
    chances[0] = NONE if total else 1.0
    return chances


def _scales(search: Search) -> list[tuple[float, float, float]]:
    """Standard deviations before anything is measured, each pair with its probability: of one commit's log time beside
    the others', from process to process, and of an effect. A ratio of two times scatters by √2 as much as each."""
    off = np.linspace(-REACH, REACH, SPREADS)
    spreads = search.spread_pct / 100 / math.sqrt(2) * np.exp(off * math.log(SPREAD_FACTOR))
    chances = np.exp(-(off**2) / 2)
    usual = math.log1p(USUAL_PCT / 100)
    sizes = [(usual * LARGER**at, 0.5 ** (at + 1)) for at in range(SIZES)]
    total = chances.sum() * sum(chance for _, chance in sizes)
    return [
        (float(spread), size, float(one * other / total))
        for spread, one in zip(spreads, chances, strict=True)
        for size, other in sizes
    ]


def _fit(search: Search, pairs: Array, spread: float, size: float) -> tuple[Array, Array, Array, Array, Array]:
    """What two scales make of all hypotheses, no change or one at each commit: log likelihoods, effects, errors; and of
    all pairs of changes: log likelihoods, effects. Each is a regression on its steps."""
    places = np.array([place for process in search.processes for place in process])
    # The first hypothesis is that nothing changed.
    steps = (places[:, None] >= np.arange(search.last + 1)[None, :]).astype(float)
    steps[:, 0] = 0.0
    times = [np.array([one.log_time for one in process.values()]) for process in search.processes]
    values = np.concatenate([one - one.mean() for one in times])
    variances = np.array([one.variance for process in search.processes for one in process.values()])
    which = np.repeat(np.arange(len(search.processes)), [len(process) for process in search.processes])
    covariance = np.diag(spread**2 + variances)
    covariance += ANY_LEVEL**2 * (which[:, None] == which[None, :])
    covariance += (OTHER_PCT / 100) ** 2 * (places[:, None] == places[None, :])
    factor = np.linalg.cholesky(covariance)
    seen, expected = np.linalg.solve(factor, values), np.linalg.solve(factor, steps)
    base = -float(np.log(np.diag(factor)).sum()) - float(seen @ seen) / 2
    before = 1 / size**2
    gram, along = expected.T @ expected, seen @ expected
    precision = before + np.diag(gram)
    singles = base + along**2 / precision / 2 - np.log(precision / before) / 2
    one, two = pairs[:, 0], pairs[:, 1]
    shared = gram[one, two]
    determinant = precision[one] * precision[two] - shared**2
    first = (precision[two] * along[one] - shared * along[two]) / determinant
    second = (precision[one] * along[two] - shared * along[one]) / determinant
    doubles = base + (first * along[one] + second * along[two]) / 2 - np.log(determinant / before**2) / 2
    return singles, along / precision, 1 / np.sqrt(precision), doubles, np.stack([first, second], axis=1)
