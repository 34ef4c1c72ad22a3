"""The statistics of a comparison between processes, as pure functions on arrays: docs/statistics.md has the model.

location.py is about one process, bootstrap.py about resampling. Changes are natural logarithms of time ratios
throughout (positive: slower), so that swapping the sides negates them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array: TypeAlias = NDArray[np.float64]

INTERVAL_LEVEL: Final = 0.95
"""The level of the intervals that are shown."""
POWER: Final = 0.95
""""A change of x% would have been seen" holds with this probability."""
MISS: Final = 0.01
"""The probability that `kernelgate bench` stops on the wrong side of a gate."""
GATES_P: Final = 0.05
"""Both gates require p below this, adjusted over the cases of the record (Holm)."""
OUTLIER_REACH: Final = 5.0
"""Robust standard deviations beyond which a sample is no part of a mode."""
MODE_MIDDLE: Final = (0.25, 0.75)
"""Two modes are apart where hardly a sample lies in the middle half of the way between them."""


# ---- processes together ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pooled:
    """Processes combined: change, its standard error, degrees of freedom, and a bound on errors that do not average.

    Where the error itself is not certain, it is `error` times each of `factors` with the probability in `weights`.
    """

    change: float
    error: float
    df: float
    bias: float = 0.0
    factors: tuple[float, ...] = (1.0,)
    weights: tuple[float, ...] = (1.0,)

    def p(self) -> float:
        """Two-sided p of no difference beyond the bias."""
        return min(1.0, 2 * self._tail(max(0.0, abs(self.change) - self.bias)))

    def half_width(self, alpha: float) -> float:
        """Half the two-sided interval that misses the truth with probability `alpha` at most."""
        return self.bias + self._upper(alpha / 2)

    def detectable(self, alpha: float, power: float) -> float:
        """The smallest true change that a run like this one shows at `alpha` with probability `power`."""
        if len(self.factors) == 1:
            return self.bias + smallest(self.error, self.df, alpha, power)
        return self.bias + self._upper(alpha / 2) + self._upper(1 - power)

    def _tail(self, distance: float) -> float:
        """The probability of an error beyond `distance`, on one side."""
        return float(self._weights @ special.stdtr(self.df, -distance / self._scales))

    @cached_property
    def _scales(self) -> Array:
        return self.error * np.asarray(self.factors)

    @cached_property
    def _weights(self) -> Array:
        return np.asarray(self.weights)

    def _upper(self, tail: float) -> float:
        """The error that is passed with probability `tail`; it lies between those of the smallest and largest scale."""
        unit = -float(special.stdtrit(self.df, tail)) * self.error
        low, high = unit * min(self.factors), unit * max(self.factors)
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if self._tail(middle) > tail else (low, middle)
        return high


def quantile(ordered: Array, share: float) -> float:
    """Of one or more sorted values, as np.quantile has it to the last bit: a twentieth of its time where they are few,
    and a judgement takes thousands."""
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high, part = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)]), place - below
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def middle(ordered: Array) -> float:
    """The median of one or more sorted values."""
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def pooled_median(processes: Sequence[Array]) -> float:
    """The median of the samples of all processes together, at least one."""
    return float(np.median(np.concatenate(processes)))


def difference(base: Pooled, head: Pooled, bias: float, between: Pooled | None = None) -> Pooled:
    """Head against base of other processes, and whatever else lies `between` them.

    Variances add up, degrees of freedom are Welch's and Satterthwaite's.
    """
    parts = [base, head] + ([between] if between else [])
    error = math.hypot(*(part.error for part in parts))
    df = error**4 / sum(part.error**4 / part.df for part in parts)
    factors, weights = _both(parts, error)
    return Pooled(head.change - base.change, error, df, bias, factors, weights)


def _both(parts: Sequence[Pooled], error: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Every combination of the parts' errors as factors of `error`, with its probability."""
    squares, chances = np.zeros(1), np.ones(1)
    for part in parts:
        squares = np.add.outer(squares, (part.error * np.asarray(part.factors)) ** 2).ravel()
        chances = np.multiply.outer(chances, np.asarray(part.weights)).ravel()
    if error == 0 or len(chances) == 1:
        return (1.0,), (1.0,)
    return tuple((np.sqrt(squares) / error).tolist()), tuple(chances.tolist())


def median_of(values: Array) -> Pooled:
    """The median of two or more values, with the standard error of Price and Bonett (2001).

    The error is the width of an interval between order statistics over that interval's normal quantile: it needs no
    shape of the noise, and the farthest values have no part in it. It is zero where most values are one.
    """
    ordered, n = np.sort(values), len(values)
    outside = max(1, round((n + 1) / 2 - math.sqrt(n)))
    level = 1 - 2 * float(special.bdtr(outside - 1, n, 0.5))
    width = float(ordered[n - outside] - ordered[outside - 1])
    return Pooled(float(np.median(ordered)), width / (2 * normal_half_width(level)), n - 1)


def pool(estimates: Array, variances: Array, prior: float, prior_df: float) -> Pooled:
    """Process estimates combined with weights 1 / (`prior`² + variance), their scatter moderated.

    The scatter ratio φ = Σ w (y - ȳ)² / (L - 1) is 1 where processes scatter as the prior and their rounds say. It is
    moderated to (prior_df + (L - 1) φ) / (prior_df + L - 1), with as many degrees of freedom (Smyth 2004; Hartung and
    Knapp 2001). With `prior_df` 0 the processes speak for themselves.
    """
    weights = 1 / (prior**2 + variances)
    total = float(weights.sum())
    change = float(weights @ estimates) / total
    df = len(estimates) - 1
    ratio = (prior_df + df * scatter_ratio(estimates, variances, prior)) / (prior_df + df)
    return Pooled(change, math.sqrt(ratio / total), prior_df + df)


def scatter_ratio(estimates: Array, variances: Array, prior: float) -> float:
    """φ: how much further processes scatter than the prior and their rounds explain (1: as much; squared scale)."""
    weights = 1 / (prior**2 + variances)
    centred = estimates - (weights @ estimates) / weights.sum()
    return float(weights @ centred**2) / max(1, len(estimates) - 1)


def scatter_p(ratio: float, df: int) -> float:
    """Probability of a scatter ratio this large where processes scatter as the prior says (Cochran 1954)."""
    return float(special.chdtrc(df, ratio * df))


def normal_half_width(level: float) -> float:
    """Standard errors in half a normal interval of this level."""
    return float(special.ndtri((1 + level) / 2))


# ---- families and looks ----------------------------------------------------------------------------------------------


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that the chance of any false claim in the family stays at the level (Holm 1979)."""
    order = np.argsort(np.asarray(p_values), kind="stable")
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def holm_at_levels(p_values: Sequence[float], levels: Sequence[float]) -> list[float]:
    """The same where each p is to be held against a level of its own, as after different numbers of looks.

    The levels of a case's looks add up to alpha. So where nothing changed, p reaches x times the level of any look with
    a probability of x alpha at most, whichever looks were taken: p over level, times alpha, is itself a p, and Holm's
    proof holds for it. Each result is in units of its own level; where all levels are equal it is Holm's.
    """
    if not p_values:
        return []
    strictest = min(levels)
    adjusted = holm([p * (strictest / level) for p, level in zip(p_values, levels, strict=True)])
    return [min(1.0, p * (level / strictest)) for p, level in zip(adjusted, levels, strict=True)]


@lru_cache(maxsize=256)
def look_alpha(alpha: float, processes: int, minimum: int, limit: int, shape: float) -> float:
    """The level at which a run of so many processes may claim, so that looking after each costs at most alpha.

    Boundaries z_L = C (L / limit)^(shape - 1/2) for L = minimum … limit (Wang and Tsiatis 1987; shape 0 is O'Brien and
    Fleming), with C such that the looks' levels add up to alpha: by Bonferroni's inequality this holds however the
    looks depend on each other, and whichever of them were taken.
    """
    looks = np.arange(minimum, max(minimum, limit) + 1) / max(minimum, limit)

    def levels(constant: float) -> Array:
        return np.asarray(2 * special.ndtr(-constant * looks ** (shape - 0.5)))

    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if levels(middle).sum() > alpha else (low, middle)
    spent = levels(high)
    return float(spent[min(max(processes, minimum) - minimum, len(spent) - 1)])


# ---- what a run could have shown -------------------------------------------------------------------------------------

UPPER_TAILS = (np.arange(4000) + 0.5) / 4000
"""Where the distribution of the estimated error is looked at."""


def smallest(error: float, df: float, alpha: float, power: float) -> float:
    """The smallest true change that a two-sided t-test at `alpha` shows, in its direction, with probability `power`.

    The estimate over its standard error then has a noncentral t distribution, since the error is itself estimated.
    """
    return error * _noncentrality(df, alpha, power)


@lru_cache(maxsize=1024)
def _noncentrality(df: float, alpha: float, power: float) -> float:
    """The true change in standard errors: where normal noise passes t times the estimated error so often.

    scipy's inverse of this distribution does not end where t is large, as it is for few degrees of freedom.
    """
    limits = -float(special.stdtrit(df, alpha / 2)) * np.sqrt(special.chdtri(df, UPPER_TAILS) / df)
    low, high = 0.0, float(limits.max()) + 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if special.ndtr(middle - limits).mean() > power else (middle, high)
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
    return min(1.0, 2 * float(special.ndtr(-z)))


def kolmogorov_smirnov_p(base: Array, head: Array) -> float:
    """Two-sided p of the two-sample Kolmogorov-Smirnov test: the limiting distribution."""
    values = np.concatenate((base, head))
    below = [np.searchsorted(np.sort(side), values, side="right") / len(side) for side in (base, head)]
    distance = float(np.abs(below[0] - below[1]).max())
    return float(special.kolmogorov(distance * math.sqrt(len(base) * len(head) / len(values))))


# ---- shapes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modes:
    """A split of values in two groups, each around its own centre."""

    low: float
    high: float
    smaller_share: float
    middle_share: float
    """Share of all values in the middle half of the way between the centres."""


def modes(values: Array) -> Modes:
    """The best split of `values` in two (least squares within the groups, Fisher 1958), without far outliers."""
    ordered = np.sort(values)
    low, centre, high = (quantile(ordered, share) for share in (0.1587, 0.5, 0.8413))
    ordered = ordered[np.abs(ordered - centre) <= OUTLIER_REACH * (high - low) / 2]
    n = len(ordered)
    if n < 2:
        return Modes(centre, centre, 0.0, 0.0)
    sums = np.cumsum(ordered)
    left = np.arange(1, n)
    between = (sums[-1] * left / n - sums[:-1]) ** 2 / (left * (n - left))
    cut = int(np.argmax(between)) + 1
    low, high = middle(ordered[:cut]), middle(ordered[cut:])
    edges = [low + part * (high - low) for part in MODE_MIDDLE]
    inside = float(np.mean((ordered > edges[0]) & (ordered < edges[1])))
    return Modes(low, high, min(cut, n - cut) / n, inside)


def drift(values: Array) -> float:
    """How far the median of the last third of `values` (in order of time) lies above the first third's."""
    first, last = _outer_thirds(values)
    return middle(np.sort(last)) - middle(np.sort(first))


def drift_p(values: Array) -> float:
    """The p of these two thirds being alike (Mann-Whitney)."""
    return mann_whitney_p(*_outer_thirds(values))


def _outer_thirds(values: Array) -> tuple[Array, Array]:
    third = len(values) // 3
    return values[:third], values[-third:]
