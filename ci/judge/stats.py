"""The statistics of a comparison between processes, as pure functions on arrays: docs/statistics.md has the model.

Changes are natural logarithms of time ratios (positive: slower), so that swapping the sides negates them.
Beyond the page's sources: Cliff 1993, Psychological Bulletin 114; Cochran 1954, Biometrics 10; Hartung and Knapp 2001,
Statistics in Medicine 20; Price and Bonett 2001, Journal of Statistical Computation and Simulation 68; Smyth 2004,
Statistical Applications in Genetics and Molecular Biology 3.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

INTERVAL_LEVEL: Final = 0.95
"""The level of the intervals that are shown."""
NORMAL_95 = 1.959964
"""Standard deviations to either side that hold 95% of a normal distribution."""
POWER: Final = 0.95
""""A change of x% would have been seen" holds with this probability."""
MISS: Final = 0.01
"""The probability that `kernelgate bench` stops on the wrong side of a gate."""
GATES_P: Final = 0.05
"""Both gates require p below this, adjusted over the cases of the record (Holm)."""
RESAMPLES: Final = 10_000
"""Of processes, then of rounds within them."""
SEED: Final = 20260801
"""Fixed, so that a record always gets the same verdict."""


# ---- processes together ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pooled:
    """Processes combined: change, its standard error, degrees of freedom, and a bound on errors that do not average.
    Where the error itself is not certain, it is `error` times each of `factors` with the probability in `weights`."""

    change: float
    error: float
    df: float
    bias: float = 0.0
    factors: Array = field(default_factory=lambda: np.ones(1))
    weights: Array = field(default_factory=lambda: np.ones(1))

    def p(self) -> float:
        """Two-sided p of no difference beyond the bias."""
        return min(1.0, 2 * self._tail(max(0.0, abs(self.change) - self.bias)))

    def half_width(self, alpha: float) -> float:
        """Half the two-sided interval that misses the truth with probability `alpha` at most."""
        return self.bias + self._upper(alpha / 2)

    def detectable(self, alpha: float, power: float) -> float:
        """The smallest true change that a run like this one shows at `alpha` with probability `power`."""
        if len(self.factors) == 1:
            return self.bias + self.error * noncentrality(self.df, alpha, power)
        return self.bias + self._upper(alpha / 2) + self._upper(1 - power)

    def _tail(self, distance: float) -> float:
        return float(self.weights @ scipy.special.stdtr(self.df, -distance / (self.error * self.factors)))

    def _upper(self, tail: float) -> float:
        """The error that is passed with probability `tail`."""
        unit = -float(scipy.special.stdtrit(self.df, tail)) * self.error
        low, high = unit * float(self.factors.min()), unit * float(self.factors.max())
        if high - low <= 1e-13 * high:
            return high
        # False position in logarithms (Illinois): halving the interval takes five times as many looks.
        above, below = self._excess(low, tail), self._excess(high, tail)
        moved = 0
        while high - low > 1e-13 * high and below < 0 < above:
            between = low + (high - low) * above / (above - below)
            if not low < between < high:
                between = (low + high) / 2
                if not low < between < high:
                    break
            excess = self._excess(between, tail)
            if excess > 0:
                low, above = between, excess
                below, moved = (below / 2 if moved > 0 else below), 1
            else:
                high, below = between, excess
                above, moved = (above / 2 if moved < 0 else above), -1
        return high if above > 0 else low

    def _excess(self, distance: float, tail: float) -> float:
        return math.log(max(self._tail(distance), sys.float_info.min) / tail)


def quantile(ordered: Array, share: float) -> float:
    """Of one or more sorted values, as np.quantile has it to the last bit, in a twentieth of its time."""
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high, part = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)]), place - below
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def middle(ordered: Array) -> float:
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def difference(base: Pooled, head: Pooled, bias: float, between: Pooled | None = None) -> Pooled:
    """Head against base of other processes, and what lies `between`; degrees of freedom by Welch and Satterthwaite."""
    parts = [base, head, *([between] if between else [])]
    error = math.hypot(*(part.error for part in parts))
    df = error**4 / sum(part.error**4 / part.df for part in parts)
    # Every combination of the parts' errors, with its probability.
    squares, chances = np.zeros(1), np.ones(1)
    for part in parts:
        squares = np.add.outer(squares, (part.error * part.factors) ** 2).ravel()
        chances = np.multiply.outer(chances, part.weights).ravel()
    change = head.change - base.change
    if error == 0 or len(chances) == 1:
        return Pooled(change, error, df, bias)
    return Pooled(change, error, df, bias, np.sqrt(squares) / error, chances)


def median_of(values: Array) -> Pooled:
    """The median of two or more values, with the standard error of Price and Bonett (2001): the width of an interval
    between order statistics over its normal quantile, zero where most values are one."""
    ordered, n = np.sort(values), len(values)
    outside = max(1, round((n + 1) / 2 - math.sqrt(n)))
    level = 1 - 2 * float(scipy.special.bdtr(outside - 1, n, 0.5))
    width = float(ordered[n - outside] - ordered[outside - 1])
    return Pooled(float(np.median(ordered)), width / (2 * normal_half_width(level)), n - 1)


def pool(estimates: Array, variances: Array, prior: float, prior_df: float) -> Pooled:
    """Process estimates combined with weights 1 / (`prior`² + variance). Their scatter ratio φ is moderated to
    (prior_df + (L - 1) φ) / (prior_df + L - 1), with as many degrees of freedom (Smyth 2004; Hartung and Knapp
    2001)."""
    weights, df = 1 / (prior**2 + variances), len(estimates) - 1
    total = float(weights.sum())
    ratio = (prior_df + df * scatter_ratio(estimates, variances, prior)) / (prior_df + df)
    return Pooled(float(weights @ estimates) / total, math.sqrt(ratio / total), prior_df + df)


def scatter_ratio(estimates: Array, variances: Array, prior: float) -> float:
    """φ: how much further processes scatter than the prior and their rounds explain (1: as much; squared scale)."""
    weights = 1 / (prior**2 + variances)
    centred = estimates - (weights @ estimates) / weights.sum()
    return float(weights @ centred**2) / max(1, len(estimates) - 1)


def scatter_p(ratio: float, df: int) -> float:
    """Probability of a scatter ratio this large where processes scatter as the prior says (Cochran 1954)."""
    return float(scipy.special.chdtrc(df, ratio * df))


def student_half_width(df: float) -> float:
    """Standard errors to either side of a mean that hold 95%, by Student's t."""
    return float(scipy.special.stdtrit(df, (1 + INTERVAL_LEVEL) / 2))


def normal_half_width(level: float) -> float:
    return float(scipy.special.ndtri((1 + level) / 2))


# ---- families and looks ----------------------------------------------------------------------------------------------


def holm(p_values: Sequence[float], levels: Sequence[float]) -> list[float]:
    """p adjusted so that the chance of any false claim in the family stays at the level (Holm 1979), where each p has a
    level of its own, in the units of which the result is."""
    strictest = min(levels, default=1.0)
    scaled = [p * (strictest / level) for p, level in zip(p_values, levels, strict=True)]
    adjusted, largest = [1.0] * len(scaled), 0.0
    for rank, index in enumerate(np.argsort(scaled, kind="stable")):
        largest = max(largest, min(1.0, (len(scaled) - rank) * scaled[index]))
        adjusted[index] = min(1.0, largest * (levels[index] / strictest))
    return adjusted


@lru_cache(maxsize=256)
def look_alpha(alpha: float, processes: int, minimum: int, limit: int, shape: float) -> float:
    """The level at which a run of so many processes may claim, so that looking after each costs at most alpha:
    boundaries z_L = C (L / limit)^(shape - 1/2) (Wang and Tsiatis 1987; shape 0 is O'Brien and Fleming), with C such
    that the levels add up to alpha."""
    looks = np.arange(minimum, max(minimum, limit) + 1) / max(minimum, limit)

    def levels(constant: float) -> Array:
        return np.asarray(2 * scipy.special.ndtr(-constant * looks ** (shape - 0.5)))

    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if levels(middle).sum() > alpha else (low, middle)
    spent = levels(high)
    return float(spent[min(max(processes, minimum) - minimum, len(spent) - 1)])


@lru_cache(maxsize=1024)
def noncentrality(df: float, alpha: float, power: float) -> float:
    """The smallest true change, in standard errors, that a two-sided t-test at `alpha` shows, in its direction, with
    probability `power`. scipy's inverse of the noncentral t distribution does not end where t is large."""
    # Where the distribution of the estimated error is looked at.
    upper_tails = (np.arange(4000) + 0.5) / 4000
    limits = -float(scipy.special.stdtrit(df, alpha / 2)) * np.sqrt(scipy.special.chdtri(df, upper_tails) / df)
    low, high = 0.0, float(limits.max()) + 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if scipy.special.ndtr(middle - limits).mean() > power else (middle, high)
    return high


# ---- textbook measures -----------------------------------------------------------------------------------------------


def cliffs_delta(base: Array, head: Array) -> float:
    """P(head > base) - P(head < base) over all pairs, in O(n log n) (Cliff 1993)."""
    ordered = np.sort(base)
    below = np.searchsorted(ordered, head, side="left").sum()
    not_above = np.searchsorted(ordered, head, side="right").sum()
    return float(below + not_above) / (len(base) * len(head)) - 1.0


def mann_whitney_p(base: Array, head: Array) -> float:
    """Two-sided p of the Mann-Whitney U test: normal approximation, corrected for ties and continuity."""
    n, m = len(base), len(head)
    _, counts = np.unique(np.concatenate((base, head)), return_counts=True)
    u = (cliffs_delta(base, head) + 1) / 2 * n * m
    ties = float((counts.astype(float) ** 3 - counts).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    if variance <= 0:
        return 1.0
    z = (abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return min(1.0, 2 * float(scipy.special.ndtr(-z)))


def kolmogorov_smirnov_p(base: Array, head: Array) -> float:
    """Two-sided p of the two-sample Kolmogorov-Smirnov test: the limiting distribution."""
    values = np.concatenate((base, head))
    below = [np.searchsorted(np.sort(side), values, side="right") / len(side) for side in (base, head)]
    distance = float(np.abs(below[0] - below[1]).max())
    return float(scipy.special.kolmogorov(distance * math.sqrt(len(base) * len(head) / len(values))))


# ---- medians by resampling -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BootstrapIntervals:
    """Percentile intervals of the medians (in the samples' unit) and of log(median head / median base)."""

    base: tuple[float, float]
    head: tuple[float, float]
    change: tuple[float, float]


def bootstrap(
    base: Sequence[Array], head: Sequence[Array], paired: bool, level: float, resamples: int = RESAMPLES
) -> BootstrapIntervals:
    """Hierarchical bootstrap of the medians of both sides: processes resampled above rounds. In place of n rounds their
    median is drawn (normal, variance 1 / 4n, in quantiles). Where rounds are `paired`, both sides draw the same
    processes, and the two draws are correlated as much as the sides lie on the same side of their medians together.
    Swapping the sides mirrors the intervals."""
    correlation = 0.0
    if paired:
        pairs = sorted(zip(base, head, strict=True), key=lambda pair: float(pair[0].sum() + pair[1].sum()))
        base, head = zip(*pairs, strict=True)
        # 1 above a side's median, -1 below it.
        above = ([np.sign(one - middle(np.sort(one))) for one in side] for side in (base, head))
        correlation = float(np.mean(np.concatenate([b * h for b, h in zip(*above, strict=True)])))
    else:
        base, head = (sorted(side, key=lambda samples: float(samples.sum())) for side in (base, head))
    one, other = _draws(resamples)
    more, less = math.sqrt(1 + correlation), math.sqrt(1 - correlation)
    base_draws = ((more + less) * one + (more - less) * other) / 2
    head_draws = ((more - less) * one + (more + less) * other) / 2
    medians_base = _resampled_medians(base, _process_counts(len(base), resamples, SEED), base_draws)
    medians_head = _resampled_medians(head, _process_counts(len(head), resamples, SEED + (not paired)), head_draws)

    def interval(values: Array) -> tuple[float, float]:
        low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2))
        return float(low), float(high)

    change = np.log(medians_head) - np.log(medians_base)
    return BootstrapIntervals(interval(medians_base), interval(medians_head), interval(change))


@lru_cache(maxsize=4)
def _draws(resamples: int) -> Array:
    """Standard normal draws, (2, resamples), the same for every case; the second half is the first, rows swapped."""
    half = np.random.default_rng(SEED).standard_normal((2, math.ceil(resamples / 2)))
    return np.concatenate((half, half[::-1]), axis=1)[:, :resamples]


@lru_cache(maxsize=16)
def _process_counts(processes: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """How often each process is drawn in each resample, (processes, resamples); the second half repeats the first."""
    chances = np.full(processes, 1 / processes)
    half = np.random.default_rng((seed, processes)).multinomial(processes, chances, math.ceil(resamples / 2))
    return np.ascontiguousarray(np.concatenate((half, half))[:resamples].T.astype(np.int64))


def _resampled_medians(processes: Sequence[Array], counts: NDArray[np.int64], draws: Array) -> Array:
    """The median of each resample, (resamples,), by a binary search in the pooled samples for the drawn quantile.
    `counts`: how often a resample holds each process; `draws`: standard normals."""
    pooled = np.sort(np.concatenate(processes))
    ranks = np.stack([np.searchsorted(np.sort(samples), pooled, side="right") for samples in processes], axis=1)
    totals = np.array([len(samples) for samples in processes]) @ counts
    targets = totals * np.clip(0.5 + draws / (2 * np.sqrt(totals)), 0.0, 1.0)
    low, high = np.zeros(len(targets), dtype=np.int64), np.full(len(targets), len(pooled) - 1)
    for _ in range(int(np.ceil(np.log2(len(pooled)))) + 1):
        middle = (low + high) // 2
        enough = np.einsum("rl,rl->r", ranks[middle], counts.T) >= targets
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return np.asarray(pooled[high])
