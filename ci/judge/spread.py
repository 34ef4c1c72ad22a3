"""How far processes may scatter, and what follows for their mean: docs/statistics.md, "Combining processes".

The spread τ between processes is not known: before the data it is one of a grid of spreads, each with a probability.
Processes change these probabilities, and each spread gives the change its own standard error. So p, intervals and tests
come from one distribution, a mixture over the spreads (a scale mixture, as in Gelman 2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final

import numpy as np

from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.policy import bounds
from kernelgate.ci.policy.bounds import PolicySection

CHANGE_PCT: Final = 0.045
"""Standard deviation, between processes, of the change between two libraries in one process. What is known of it
before a case's history: a share QUIET_SHARE of cases is quiet, around this (a standard deviation of x/÷ QUIET_FACTOR;
measured: 0.01 to 0.05% on an H200). The others may have any spread, each order of magnitude alike, from it up to
LARGEST_PCT."""
QUIET_FACTOR: Final = 1.35
QUIET_SHARE: Final = 0.4
"""A larger one takes fewer processes, until too few of the 95% intervals of two processes hold the truth where they
scatter by 0.3% (docs/statistics.md, the table by spread)."""
LARGEST_PCT: Final = 10.0
PRIOR_CASES: Final = 4
"""How many of the record's other cases QUIET_SHARE weighs as much as: a noisy machine shows in all of them."""
HISTORY_DF: Final = 4.0
"""A history of the case (docs/history.md) counts from so many degrees of freedom on, and weighs no more. Spreads wander
from day to day (x/÷ 1.65, a tenfold one day in twenty), so more would be believed where it is wrong."""
HISTORY_SHARE: Final = 0.97
"""In this share of days a case is as its history has it; in the rest, as if it had none."""
HISTORY_MEMORY_DF: Final = 10.0
"""What is remembered of the past, in degrees of freedom; older comparisons fade."""
HISTORY_TO_DIRECT_DF: Final = 8.0
"""A history of so many degrees of freedom excludes a lottery of placement, so that two processes may show a
direction: it stays hidden from eight comparisons of two processes in 5% (20% of processes 2% slower) or 0.04% (half,
0.5%)."""
STEPS: Final = 64
"""Spreads on the grid: neighbours are 12% apart, and twice as many change no figure by a hundredth."""
MOST_STEPS: Final = 200
SETTLED: Final = 1e-6
"""Steps of the EM algorithm, and the change of a share from which on it has ended."""
REACH: Final = 3.0
"""The grid begins so many of its own deviations below what is quiet."""


class KnownSpread(PolicySection):
    """What a case's past comparisons show of its processes, percent."""

    spread_pct: bounds.PercentOrNone
    """Standard deviation of the processes' changes, the noise of their rounds in it."""
    noise_pct: bounds.PercentOrNone
    """How much of it their rounds explain."""
    df: bounds.DegreesOfFreedom
    """Degrees of freedom that it rests on."""
    comparisons: Annotated[int, bounds.between(1, 10**9)]
    last_seen: str | None = None
    """When the last of them was measured."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The probabilities of a grid of spreads: those of a usual case with probability `share`, else the others."""

    spreads: Array
    """Standard deviations of a log change."""
    usual: Array
    other: Array
    share: float


@lru_cache(maxsize=1024)
def prior(quiet_pct: float, known: KnownSpread | None = None) -> Prior:
    """What is known before the processes of a case are seen. `quiet_pct`: the spread of a quiet case of this role.

    Without a history a usual case is quiet, and others have any spread. With one, a usual case is as its history says,
    and on other days as if it had none.
    """
    width = math.log(QUIET_FACTOR)
    lowest, highest = math.log(quiet_pct / 100) - REACH * width, math.log(max(LARGEST_PCT, quiet_pct) / 100)
    logs = np.linspace(lowest, highest, STEPS)
    spreads = np.exp(logs)
    quiet = _normalised(np.exp(-(((logs - math.log(quiet_pct / 100)) / width) ** 2) / 2))
    any_ = _normalised((logs >= math.log(quiet_pct / 100)).astype(float))
    if known is None:
        return Prior(spreads, quiet, any_, QUIET_SHARE)
    unknown = QUIET_SHARE * quiet + (1 - QUIET_SHARE) * any_
    df = min(known.df, HISTORY_DF)
    variances = spreads**2 + (known.noise_pct / 100) ** 2
    log_likelihood = -df / 2 * (np.log(variances) + (known.spread_pct / 100) ** 2 / variances)
    usual = _normalised(any_ * np.exp(log_likelihood - log_likelihood.max()))
    return Prior(spreads, usual, unknown, HISTORY_SHARE)


@dataclass(frozen=True, eq=False)
class Fit:
    """What each spread of the grid makes of a case's processes."""

    means: Array
    errors: Array
    usual: Array
    """Likelihood times prior, on a scale of the case's own."""
    other: Array
    share: float

    def pooled(self, share: float, df: float) -> Pooled:
        """The change with its uncertainty, where `share` of such cases are usual; `df`: of the rounds' noise."""
        weights = _normalised(share * self.usual + (1 - share) * self.other)
        change = float(weights @ self.means)
        # Where processes are not equally precise, each spread has a mean of its own.
        scales = np.hypot(self.errors, self.means - change)
        error = float(np.exp(weights @ np.log(scales)))
        return Pooled(change, error, df, 0.0, tuple((scales / error).tolist()), tuple(weights.tolist()))


def fit(estimates: Array, variances: Array, before: Prior) -> Fit:
    """Process estimates, whose rounds explain `variances`, held against each spread of the prior."""
    totals = before.spreads[:, None] ** 2 + variances[None, :]
    weights = 1 / totals
    sums = weights.sum(axis=1)
    means = weights @ estimates / sums
    squares = (weights * (estimates[None, :] - means[:, None]) ** 2).sum(axis=1)
    # The change itself may be anything, so it is integrated out (restricted likelihood, Patterson and Thompson 1971).
    log_likelihood = -(np.log(totals).sum(axis=1) + np.log(sums) + squares) / 2
    likelihood = np.exp(log_likelihood - log_likelihood.max())
    return Fit(means, 1 / np.sqrt(sums), likelihood * before.usual, likelihood * before.other, before.share)


def shares(fits: Sequence[Fit]) -> list[float]:
    """For each case, how likely it is a usual one as the *other* cases of the record show it.

    An EM algorithm, run to its end, in which the prior weighs PRIOR_CASES cases: a machine on which all is quiet, or
    nothing is, shows in all cases. A case's own processes have no part in its share, so that none is counted twice.
    """
    before = np.array([one.share for one in fits])
    usual, other = (np.array([getattr(one, part).sum() for one in fits]) for part in ("usual", "other"))
    found = before
    for _ in range(MOST_STEPS):
        # From the share before the data to the chance, as a part of the way to 1, or (negative) to 0.
        chances = found * usual / (found * usual + (1 - found) * other)
        moves = (chances - before) / np.where(chances > before, 1 - before, before)
        parts = (moves.sum() - moves) / (PRIOR_CASES + len(fits) - 1)
        last, found = found, before + parts * np.where(parts > 0, 1 - before, before)
        if np.abs(found - last).max(initial=0.0) < SETTLED:
            break
    return [float(share) for share in found]


def _normalised(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())
