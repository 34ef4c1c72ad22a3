"""The statistics of a duel, as pure functions on arrays. The model and its sources stand in docs/statistics.md.

Changes are natural logarithms of time ratios throughout (positive: slower), so that swapping the sides negates them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array: TypeAlias = NDArray[np.float64]

NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution whose median absolute deviation is 1."""
HUBER_K = 1.5
"""Huber's usual tuning: 96% efficient where noise is normal, bounded influence where it is not (Huber 1964)."""
SHARED_ROUNDS = 50
"""How many rounds the other launches' noise counts as, in what is known of one launch's noise."""
STEPS = 30
"""Iterations of an M-estimate; it converges in three to six."""
SHAPE_SAMPLES = 170
"""Fewer samples in the other launches do not show the shape of the noise."""
SHAPE_BINS = 512
SHAPE_REACH = 8.0
"""The shape of the noise is learnt within so many robust standard deviations; beyond, a sample has no influence."""
SHAPE_WIDENINGS = (3.0, 1.7, 1.0, 1.0)
"""Bandwidths of the passes in which launches are aligned, in multiples of the last."""
SHAPE_GAIN = 0.8
"""The shape is used where the standard error falls below this part of Huber's …"""
SHAPE_AGREES = 3.0
"""… and its answer lies within so many standard errors of Huber's."""
OUTLIER_REACH = 5.0
"""Robust standard deviations beyond which a sample is no part of a mode."""
DENSEST = 0.4
"""The share of samples whose shortest stretch shows the clock's step."""
MODE_MIDDLE = (0.25, 0.75)
"""Two modes are apart where hardly a sample lies in the middle half of the way between them."""


# ---- location of one launch ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Location:
    """Where a launch's values lie, and the variance of that number as an estimate."""

    value: float
    variance: float
    rounds: float
    """How many independent rounds would say as much."""


@dataclass(frozen=True)
class _Estimate:
    """An M-estimate of one launch, and the influence values of its rounds in order of time, around 0."""

    value: float
    influence: Array


def levels(launches: Sequence[Array], step: float) -> list[Location]:
    """Huber's location of each launch's log times; `step` is the clock's, in log time."""
    return _located([_huber(values, step) for values in launches])


def _located(estimates: Sequence[_Estimate]) -> list[Location]:
    """With the variances that the influence values show, inflated where neighbouring rounds are alike.

    A launch's own variance is known only as well as its rounds allow, so the middle one of all launches counts as
    `SHARED_ROUNDS` further rounds.
    """
    inflation = autocorrelation_inflation([estimate.influence for estimate in estimates])
    own = [float(found.influence @ found.influence) / (len(found.influence) - 1) for found in estimates]
    shared = float(np.median(own))
    found = []
    for estimate, variance in zip(estimates, own, strict=True):
        n = len(estimate.influence)
        independent = (SHARED_ROUNDS * shared + n * variance) / (SHARED_ROUNDS + n) / n
        found.append(Location(estimate.value, inflation * independent, n / inflation))
    return found


def _huber(values: Array, step: float) -> _Estimate:
    """Huber's M-estimate of location.

    Half of `step` is the smallest scale used, so that values on a few ticks are averaged over ticks, not voted on.
    """
    centre = float(np.median(values))
    scale = max(NORMAL_MAD * float(np.median(np.abs(values - centre))), step / 2)
    if scale == 0.0:
        return _Estimate(centre, np.zeros(len(values)))
    bound = HUBER_K * scale
    for _ in range(STEPS):
        shift = float(np.clip(values - centre, -bound, bound).mean())
        inside = max(float(np.mean(np.abs(values - centre) <= bound)), 0.5)
        centre += shift / inside
        if abs(shift) < 1e-9 * scale:
            break
    return _Estimate(centre, np.clip(values - centre, -bound, bound) / inside)


def autocorrelation_inflation(series: Sequence[Array]) -> float:
    """How much more means of such series vary than if their values were independent; at least 1.

    1 + 2 Σ ρ_k over the leading lags whose correlation, over all series, stands above two standard errors (the initial
    positive sequence of Geyer 1992, cut where noise begins). Taking the mean out of n values lowers each ρ_k by
    inflation / n, which is put back.
    """
    total = sum(float(values @ values) for values in series)
    n = float(np.mean([len(values) for values in series]))
    if total == 0.0:
        return 1.0
    correlations = []
    for lag in range(1, int(n) // 4):
        correlation = sum(float(values[lag:] @ values[:-lag]) for values in series) / total
        if correlation < 2 / math.sqrt(n * len(series)):
            break
        correlations.append(correlation)
    inflation = 1.0
    for _ in range(len(correlations)):
        lost = inflation / n
        inflation = 1 + 2 * sum((correlation + lost) / (1 + lost) for correlation in correlations)
    return inflation


# ---- the change within launches --------------------------------------------------------------------------------------


def changes(base: Sequence[Array], head: Sequence[Array], paired: bool, step: float) -> list[Location]:
    """The log change of each launch, from log times by launch: the more precise of two M-estimates that must agree.

    The first takes Huber's location of the rounds' differences (of the two sides' locations where rounds are not
    `paired`). The second aligns the two sides by the shape of their noise, which the other launches show; where times
    fall into two peaks, as on a bandwidth-bound kernel, its variance is half or a third. It is used only where it
    agrees with the first, so that a change of shape is not mistaken for no change. `step`: the clock's, in log time.
    """
    plain = _located([_plain_change(b, h, paired, step) for b, h in zip(base, head, strict=True)])
    aligned = _aligned_changes(base, head, step)
    if aligned is None:
        return plain
    before, after = (math.sqrt(sum(found.variance for found in each)) for each in (plain, aligned))
    apart = abs(sum(a.value - p.value for a, p in zip(aligned, plain, strict=True)))
    return aligned if after < SHAPE_GAIN * before and apart <= SHAPE_AGREES * before else plain


def _plain_change(base: Array, head: Array, paired: bool, step: float) -> _Estimate:
    if paired:
        return _huber(head - base, step)
    was, now = _huber(base, step), _huber(head, step)
    return _Estimate(now.value - was.value, now.influence - was.influence)


def _aligned_changes(base: Sequence[Array], head: Sequence[Array], step: float) -> list[Location] | None:
    """Each launch's shift between the sides, by the score -f'/f of the noise's density f in the other launches.

    An adaptive M-estimate (Stone 1975; Bickel 1982). Learning f from the other launches keeps it independent of the
    launch that it is used on, so the usual variance of an M-estimate holds. f starts wide and is sharpened as launches
    are aligned better. None where nothing can be learnt.
    """
    sides = [*base, *head]
    centres = [_huber(values, step).value for values in sides]
    low, middle, high = np.quantile(np.concatenate(_centred(sides, centres)), (0.1587, 0.5, 0.8413))
    spread = float(high - low) / 2
    if spread == 0.0:
        return None
    edges = np.linspace(middle - SHAPE_REACH * spread, middle + SHAPE_REACH * spread, SHAPE_BINS + 1)
    for widening in SHAPE_WIDENINGS:
        counts = np.stack([np.histogram(values, edges)[0] for values in _centred(sides, centres)]).astype(float)
        by_launch = counts[: len(base)] + counts[len(base) :]
        others = by_launch.sum(axis=0) - by_launch
        if others.sum(axis=1).min() < SHAPE_SAMPLES:
            return None
        scores = 2 * [_Score.of(each, edges, spread, step, widening) for each in others]
        centres = [score.locate(v, centre) for score, v, centre in zip(scores, sides, centres, strict=True)]
    noise = _centred(sides, centres)
    slope = float(np.mean([score.mean_slope(values) for score, values in zip(scores, noise, strict=True)]))
    if slope <= 0.0:
        return None
    influences = [score(values) / slope for score, values in zip(scores, noise, strict=True)]
    pairs = zip(centres, centres[len(base) :], influences, influences[len(base) :], strict=False)
    return _located([_Estimate(now - was, h - b - np.mean(h - b)) for was, now, b, h in pairs])


def _centred(sides: Sequence[Array], centres: Sequence[float]) -> list[Array]:
    return [values - centre for values, centre in zip(sides, centres, strict=True)]


@dataclass(frozen=True)
class _Score:
    """The score of a density on a grid; 0 outside."""

    grid: Array
    values: Array
    slopes: Array
    information: float
    reach: float
    """The longest step of one iteration."""

    @classmethod
    def of(cls, counts: Array, edges: Array, spread: float, step: float, widening: float) -> _Score:
        """From a histogram, smoothed by `widening` times Silverman's (1986) bandwidth, at least by the clock's step."""
        cell = float(edges[1] - edges[0])
        bandwidth = max(widening * 0.9 * spread * counts.sum() ** -0.2, step)
        reach = math.ceil(4 * bandwidth / cell)
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * cell / bandwidth) ** 2)
        density = np.convolve(counts, kernel / kernel.sum())[reach : reach + len(counts)]
        values = -np.gradient(density, cell) / (density + 1e-3 * density.max())
        information = float((values**2 * density).sum() / density.sum())
        return cls((edges[1:] + edges[:-1]) / 2, values, np.gradient(values, cell), information, spread)

    def __call__(self, values: Array) -> Array:
        return np.interp(values, self.grid, self.values, left=0.0, right=0.0)

    def mean_slope(self, values: Array) -> float:
        return float(np.interp(values, self.grid, self.slopes, left=0.0, right=0.0).mean())

    def locate(self, values: Array, start: float) -> float:
        """Where `values` lie, by Fisher scoring from `start`."""
        centre = start
        for _ in range(STEPS):
            move = float(self(values - centre).mean()) / self.information
            centre += min(self.reach, max(-self.reach, move))
            if abs(move) < 1e-4 * self.reach:
                break
        return centre


# ---- the clock -------------------------------------------------------------------------------------------------------


def clock_step(samples: Array) -> float:
    """The step in which these times come, in their unit; 0 where all are equal.

    Half of the shortest stretch that holds `DENSEST` of the samples is crossed in gaps of at least this size: a jitter
    around coarse ticks does not hide the ticks, and the way between two modes or to an outlier is not taken for one.
    Where these samples are all equal, it is the smallest gap between any two.
    """
    values = np.sort(samples)
    held = max(2, math.ceil(DENSEST * len(values)))
    start = int(np.argmin(values[held - 1 :] - values[: len(values) - held + 1]))
    gaps = np.sort(np.diff(values[start : start + held]))
    if span := float(gaps.sum()):
        return float(gaps[np.searchsorted(np.cumsum(gaps), span / 2)])
    gaps = np.diff(np.unique(values))
    return float(gaps.min()) if len(gaps) else 0.0


def rounding_bias(samples: Array, step: float) -> float:
    """Largest error of the mean of the bulk of `samples` through being rounded to `step`, in their unit.

    Where the bulk falls on one tick or two, it may lie anywhere between them: half a step. Otherwise the first term of
    the series of Widrow and Kollár (2008), with Sheppard's correction: a step averages out once it is below the spread.
    """
    if step == 0.0:
        return 0.0
    narrow_low, low, high, narrow_high = np.quantile(samples, (0.02, 0.1587, 0.8413, 0.98))
    if narrow_high - narrow_low < 1.5 * step:
        return step / 2
    variance = max(0.0, ((high - low) / 2) ** 2 - step**2 / 12)
    return step / math.pi * math.exp(-2 * math.pi**2 * variance / step**2)


# ---- launches together -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pooled:
    """Launches combined: change, its standard error, degrees of freedom, and a bound on errors that do not average."""

    change: float
    error: float
    df: float
    bias: float = 0.0

    def p(self) -> float:
        """Two-sided p of no difference beyond the bias."""
        distance = max(0.0, abs(self.change) - self.bias)
        return min(1.0, 2 * float(special.stdtr(self.df, -distance / self.error)))

    def half_width(self, alpha: float) -> float:
        """Half the two-sided interval that misses the truth with probability `alpha` at most."""
        return self.bias + self.error * _upper(self.df, alpha / 2)

    def detectable(self, alpha: float, power: float) -> float:
        """The smallest true change that a run like this one shows at `alpha` with probability `power`."""
        return self.bias + self.error * (_upper(self.df, alpha / 2) + _upper(self.df, 1 - power))


def _upper(df: float, tail: float) -> float:
    return -float(special.stdtrit(df, tail))


def pool(estimates: Array, variances: Array, prior: float, prior_df: float, expected_scatter: float = 1.0) -> Pooled:
    """Launch estimates combined with weights 1 / (`prior`² + variance), their scatter moderated.

    The scatter ratio φ = Σ w (y - ȳ)² / (L - 1) is 1 where launches scatter as the prior and their rounds say. It is
    moderated to (prior_df · expected_scatter + (L - 1) φ) / (prior_df + L - 1), with as many degrees of freedom
    (Smyth 2004; Hartung and Knapp 2001). With `prior_df` 0 the launches speak for themselves.
    """
    weights = 1 / (prior**2 + variances)
    total = float(weights.sum())
    change = float(weights @ estimates) / total
    df = len(estimates) - 1
    ratio = (prior_df * expected_scatter + df * scatter_ratio(estimates, variances, prior)) / (prior_df + df)
    return Pooled(change, math.sqrt(ratio / total), prior_df + df)


def scatter_ratio(estimates: Array, variances: Array, prior: float) -> float:
    """φ: how much further launches scatter than the prior and their rounds explain (1: as much; squared scale)."""
    weights = 1 / (prior**2 + variances)
    centred = estimates - (weights @ estimates) / weights.sum()
    return float(weights @ centred**2) / max(1, len(estimates) - 1)


def scatter_p(ratio: float, df: int) -> float:
    """Probability of a scatter ratio this large where launches scatter as the prior says (Cochran 1954)."""
    return float(special.chdtrc(df, ratio * df))


def scatter_bound(p: float, df: int) -> float:
    """The scatter ratio that chance exceeds with probability `p`."""
    return float(special.chdtri(df, p)) / df


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


@lru_cache(maxsize=256)
def look_alpha(alpha: float, launches: int, minimum: int, limit: int, shape: float) -> float:
    """The level at which a run of `launches` launches may claim, so that looking after each launch costs at most alpha.

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
    return float(spent[min(max(launches, minimum) - minimum, len(spent) - 1)])


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


# ---- bootstrap -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BootstrapIntervals:
    """Percentile intervals of the medians (in the samples' unit) and of log(median head / median base)."""

    base: tuple[float, float]
    head: tuple[float, float]
    change: tuple[float, float]


def bootstrap(
    base: Sequence[Array], head: Sequence[Array], paired: bool, level: float, resamples: int, seed: int
) -> BootstrapIntervals:
    """Hierarchical bootstrap of the medians of both sides: launches resampled above rounds.

    Each resample draws launches with replacement, then as many rounds from them. The median of n values drawn from a
    distribution F is F⁻¹ of the median of n uniforms, so that median is drawn (normal, variance 1 / 4n) in place of the
    n rounds. Where rounds are `paired`, both sides draw the same launches, and the two draws are correlated as much as
    the two sides lie on the same side of their medians together, which is the correlation of two sample medians. The
    order of the launches does not matter, and swapping the sides mirrors the intervals.
    """
    if paired:
        pairs = sorted(zip(base, head, strict=True), key=lambda pair: float(pair[0].sum() + pair[1].sum()))
        base, head = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        base, head = (sorted(side, key=lambda samples: float(samples.sum())) for side in (base, head))
    correlation = _median_correlation(base, head) if paired else 0.0
    one, other = _draws(resamples, seed)
    more, less = math.sqrt(1 + correlation), math.sqrt(1 - correlation)
    base_draws = ((more + less) * one + (more - less) * other) / 2
    head_draws = ((more - less) * one + (more + less) * other) / 2
    medians_base = _resampled_medians(base, _launch_counts(len(base), resamples, seed), base_draws)
    medians_head = _resampled_medians(head, _launch_counts(len(head), resamples, seed + (not paired)), head_draws)
    tails = ((1 - level) / 2, (1 + level) / 2)

    def interval(values: Array) -> tuple[float, float]:
        low, high = np.quantile(values, tails)
        return float(low), float(high)

    change = np.log(medians_head) - np.log(medians_base)
    return BootstrapIntervals(interval(medians_base), interval(medians_head), interval(change))


def _median_correlation(base: Sequence[Array], head: Sequence[Array]) -> float:
    signs = [np.sign(b - np.median(b)) * np.sign(h - np.median(h)) for b, h in zip(base, head, strict=True)]
    return float(np.mean(np.concatenate(signs)))


@lru_cache(maxsize=4)
def _draws(resamples: int, seed: int) -> Array:
    """Standard normal draws, (2, resamples), the same for every case; the second half is the first, rows swapped."""
    half = np.random.default_rng(seed).standard_normal((2, math.ceil(resamples / 2)))
    return np.concatenate((half, half[::-1]), axis=1)[:, :resamples]


@lru_cache(maxsize=16)
def _launch_counts(launches: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """How often each launch is drawn in each resample, (launches, resamples); the second half repeats the first."""
    chances = np.full(launches, 1 / launches)
    half = np.random.default_rng((seed, launches)).multinomial(launches, chances, math.ceil(resamples / 2))
    return np.ascontiguousarray(np.concatenate((half, half))[:resamples].T.astype(np.int64))


def _resampled_medians(launches: Sequence[Array], counts: NDArray[np.int64], draws: Array) -> Array:
    """The median of each resample, (resamples,): a binary search in the pooled samples for the drawn quantile.

    `launches` holds the samples of each launch, `counts` how often a resample holds each, `draws` standard normals.
    """
    sizes = np.array([len(samples) for samples in launches])
    pooled = np.sort(np.concatenate(launches))
    ranks = np.stack([np.searchsorted(np.sort(samples), pooled, side="right") for samples in launches], axis=1)
    totals = sizes @ counts
    targets = totals * np.clip(0.5 + draws / (2 * np.sqrt(totals)), 0.0, 1.0)
    drawn = counts.T
    low = np.zeros(len(targets), dtype=np.int64)
    high = np.full(len(targets), len(pooled) - 1)
    for _ in range(int(np.ceil(np.log2(len(pooled)))) + 1):
        middle = (low + high) // 2
        enough = np.einsum("rl,rl->r", ranks[middle], drawn) >= targets
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return np.asarray(pooled[high])


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
    low, middle, high = np.quantile(values, (0.1587, 0.5, 0.8413))
    ordered = np.sort(values[np.abs(values - middle) <= OUTLIER_REACH * (high - low) / 2])
    n = len(ordered)
    if n < 2:
        return Modes(float(middle), float(middle), 0.0, 0.0)
    sums = np.cumsum(ordered)
    left = np.arange(1, n)
    between = (sums[-1] * left / n - sums[:-1]) ** 2 / (left * (n - left))
    cut = int(np.argmax(between)) + 1
    low, high = float(np.median(ordered[:cut])), float(np.median(ordered[cut:]))
    edges = [low + part * (high - low) for part in MODE_MIDDLE]
    inside = float(np.mean((ordered > edges[0]) & (ordered < edges[1])))
    return Modes(low, high, min(cut, n - cut) / n, inside)


def drift(values: Array) -> tuple[float, float]:
    """How far the median of the last third of `values` (in order of time) lies above the first third's, and the p of
    their being alike (Mann-Whitney)."""
    third = len(values) // 3
    first, last = values[:third], values[-third:]
    return float(np.median(last) - np.median(first)), mann_whitney_p(first, last)
