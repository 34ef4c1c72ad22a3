"""How likely an action helps, and how much: outcomes pooled from the few that are alike to all that there are.

Each outcome stands in a chain of cells, each part of the one before: all outcomes; those of actions that the cookbook
has against the bottleneck, or those of others; of this action; of this action at this bottleneck; and the same on this
architecture. A cell's estimate is the mean of its own outcomes and of its parent's estimate, which weighs as many
outcomes as the level's strength says: the posterior mean of a beta-binomial for "helped", of a normal for the logarithm
of the gain (D. V. Lindley and A. F. M. Smith, J. R. Stat. Soc. B 34, 1972). Strengths are not known; a small grid of
them is averaged over, weighted by how well each predicts the outcomes of a session from those of all others (the
weights of Y. Yao et al., Bayesian Analysis 13, 2018, with sessions in the place of observations).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kernelgate.ci.lab.outcomes import Features, TryResult, gain_pct

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
LEVELS = 4


def cells(one: Features) -> tuple[Hashable, ...]:
    """From the widest to the narrowest."""
    return (
        (one.aimed,),
        (one.aimed, one.action),
        (one.aimed, one.action, one.bottleneck),
        (one.aimed, one.action, one.bottleneck, one.architecture),
    )


def alike(asked: Sequence[Features], known: Sequence[Features]) -> Flags:
    """By level, for each that is asked about, which of the known ones share its cell."""
    numbers: dict[Hashable, int] = {}
    here, there = (
        np.array([[numbers.setdefault(cell, len(numbers)) for cell in cells(one)] for one in side], dtype=int)
        .reshape(len(side), LEVELS)
        .T
        for side in (asked, known)
    )
    return np.asarray(here[:, :, None] == there[:, None, :])


def pooled(values: Floats, shared: Flags, strengths: Floats, start: Floats) -> Floats:
    """The estimates for each row of `strengths` and each that is asked about.

    `values` of the known outcomes; `shared` as `alike` says it; `start` for each that is asked about, of all outcomes.
    """
    estimate = np.broadcast_to(start, (len(strengths), len(start)))
    for level in range(LEVELS):
        strength = strengths[:, level, None]
        count = shared[level].sum(axis=1)
        estimate = (shared[level] @ values + strength * estimate) / (count + strength)
    return estimate


@dataclass(frozen=True)
class Prediction:
    probability: float
    """That it helps."""
    gain_pct: float | None
    """Of the time; None where no try was ever timed."""
    interval_pct: tuple[float, float] | None
    """In which another try's gain lies, at the model's level."""


@dataclass(frozen=True)
class PooledModel:
    """What all outcomes say."""

    outcomes: tuple[TryResult, ...]
    grid: tuple[float, ...]
    level: float = 0.95

    @cached_property
    def strengths(self) -> Floats:
        return np.array(list(product(self.grid, repeat=LEVELS)))

    @cached_property
    def helped(self) -> Floats:
        return np.array([float(one.helped) for one in self.outcomes])

    @cached_property
    def timed(self) -> Flags:
        return np.array([one.log_gain is not None for one in self.outcomes], dtype=bool)

    @cached_property
    def gains(self) -> Floats:
        """Of those that were timed; 0 for the others, which do not count."""
        return np.array([one.log_gain or 0.0 for one in self.outcomes])

    @property
    def base_rate(self) -> float:
        """The share that helped, after one more that did and one that did not."""
        return float((self.helped.sum() + 1) / (len(self.helped) + 2))

    def predict(self, asked: Sequence[Features]) -> tuple[Prediction, ...]:
        shared = alike(asked, [one.features for one in self.outcomes])
        every = np.ones(len(self.outcomes), dtype=bool)[None, :] & np.ones((len(asked), 1), dtype=bool)
        chances = self._helped_weights @ self._chances(shared, every)
        if not self.timed.any():
            return tuple(Prediction(float(chance), None, None) for chance in chances)
        means = self._gain_weights @ self._means(shared, every)
        spread = self._spread(shared, every)
        reach = ndtri((1 + self.level) / 2) * spread
        return tuple(
            Prediction(float(chance), gain_pct(mean), (gain_pct(mean - far), gain_pct(mean + far)))
            for chance, mean, far in zip(chances, means, reach, strict=True)
        )

    # ---- how strengths are weighted ----------------------------------------------------------------------------------

    @cached_property
    def _of_others(self) -> tuple[Flags, Flags]:
        """Which outcomes share a cell with which, and which are of another session."""
        features = [one.features for one in self.outcomes]
        sessions = np.array([one.session.name for one in self.outcomes])
        return alike(features, features), sessions[:, None] != sessions[None, :]

    @cached_property
    def _helped_weights(self) -> Floats:
        if not self.outcomes:
            return np.full(len(self.strengths), 1 / len(self.strengths))
        chances = self._chances(*self._of_others)
        return _weights(np.where(self.helped > 0, np.log(chances), np.log1p(-chances)).sum(axis=1))

    @cached_property
    def _gain_residuals(self) -> Floats:
        """By row of strengths, of each outcome's gain against what the other sessions predict."""
        return (self.gains - self._means(*self._of_others)) * self.timed

    @cached_property
    def _gain_weights(self) -> Floats:
        count = self.timed.sum()
        squares = np.maximum((self._gain_residuals**2).sum(axis=1) / count, 1e-12)
        return _weights(-0.5 * count * np.log(squares))

    def _chances(self, shared: Flags, counted: Flags) -> Floats:
        start = (counted @ self.helped + 1) / (counted.sum(axis=1) + 2)
        return pooled(self.helped, shared & counted, self.strengths, start)

    def _means(self, shared: Flags, counted: Flags) -> Floats:
        counted = counted & self.timed
        start = (counted @ self.gains) / (counted.sum(axis=1) + 1)
        return pooled(self.gains, shared & counted, self.strengths, start)

    def _spread(self, shared: Flags, counted: Flags) -> Floats:
        """The standard deviation of a try's gain around its prediction, pooled as the gain itself."""
        squares = (self._gain_weights @ self._gain_residuals) ** 2
        counted = counted & self.timed
        start = (counted @ squares) / counted.sum(axis=1)
        return np.asarray(np.sqrt(self._gain_weights @ pooled(squares, shared & counted, self.strengths, start)))


def _weights(scores: Floats) -> Floats:
    """Of logarithms of likelihoods."""
    likely = np.exp(scores - scores.max())
    return np.asarray(likely / likely.sum())
