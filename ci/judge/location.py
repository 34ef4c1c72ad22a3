"""One process's samples: where they lie, how far base and head are apart, how much rounds that are alike widen that,
and what the clock's step does. docs/statistics.md has the model and its sources; Silverman 1986 is Density estimation
for statistics and data analysis. Changes are natural logarithms of time ratios, positive: slower."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import scipy

from kernelgate.ci.judge import stats
from kernelgate.ci.judge.stats import Array, kolmogorov_smirnov_p

HUBER_K: Final = 1.5
"""Huber's usual tuning: 96% efficient where noise is normal, bounded influence where it is not (Huber 1964)."""
SHARED_ROUNDS: Final = 50
"""How many rounds the other processes' noise counts as, in what is known of one process's noise."""
STEPS: Final = 30
"""Iterations of an M-estimate; it converges in three to six."""
SHAPE_SAMPLES: Final = 170
"""Fewer samples in the other processes do not show the shape of the noise."""
SHAPE_BINS: Final = 512
SHAPE_REACH: Final = 8.0
"""The shape of the noise is learnt within so many robust standard deviations; beyond, a sample has no influence."""
SHAPE_WIDENINGS: Final = (3.0, 1.7, 1.0, 1.0)
"""Bandwidths of the passes in which processes are aligned, in multiples of the last."""
SHAPE_UNEVEN: Final = 2.0
"""One shape serves both sides as long as neither is wider than the other by more than this factor …"""
SHAPE_ALIKE_P: Final = 0.01
"""… and chance explains how far their shapes are apart once they are aligned (Kolmogorov and Smirnov)."""
SHAPE_COST: Final = 6
"""Rounds of a process that its alignment costs: simulated, its variance falls short by so many of few rounds."""
SHAPE_GAIN: Final = 0.8
"""The shape is used where the standard error falls below this part of Huber's …"""
SHAPE_AGREES: Final = 3.0
"""… and its answer lies within so many standard errors of Huber's."""
DENSEST: Final = 0.4
"""The share of samples whose shortest stretch shows the clock's step."""
MEMORY_GAIN: Final = 8.0
"""Twice the gain in log likelihood from which rounds count as correlated; independent rounds pass it in about 1%."""
MEMORY_SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.0)
"""How much of the noise's variance has a memory; the rest is white."""
MEMORY_SHORTEST: Final = 0.5
MEMORY_STEP: Final = 1.6
"""Lengths of the memory in rounds: from the shortest, in this ratio, to all rounds of a process."""
MEMORY_OCTAVES: Final = 3
"""Noise without a length of its own (1/f) is taken to go on for so many octaves beyond a process."""
MEMORY_LEAST_DF: Final = 4.0
"""With fewer, two processes of rounds that are hardly alike could say nothing at all; simulated, coverage holds."""
MEMORY_LEAST_VARIANCE: Final = 1e-4


# ---- location of one process -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Location:
    value: float
    variance: float
    rounds: float
    """How many independent rounds would say as much, of the value or of its variance: whichever is fewer."""


@dataclass(frozen=True)
class _Estimate:
    """An M-estimate of one process, and the influence values of its rounds in order of time, around 0."""

    value: float
    influence: Array


def levels(processes: Sequence[Array], step: float) -> list[Location]:
    """Huber's location of each process's log times; `step` is the clock's, in log time."""
    return _located([_huber(values, step) for values in processes])


def _located(estimates: Sequence[_Estimate]) -> list[Location]:
    """With the variances that the influence values show, inflated where neighbouring rounds are alike. The middle
    variance of all processes counts as `SHARED_ROUNDS` further rounds of each."""
    inflated, df = inflations([estimate.influence for estimate in estimates])
    own = [float(found.influence @ found.influence) / (len(found.influence) - 1) for found in estimates]
    shared = float(np.median(own))
    found = []
    for estimate, variance, inflation in zip(estimates, own, inflated, strict=True):
        n = len(estimate.influence)
        independent = (SHARED_ROUNDS * shared + n * variance) / (SHARED_ROUNDS + n) / n
        rounds = min(n / inflation, (df + len(estimates) - 1) / len(estimates))
        found.append(Location(estimate.value, inflation * independent, rounds))
    return found


def _huber(values: Array, step: float) -> _Estimate:
    """Huber's M-estimate of location. The scale is half of the middle 68%, which in two peaks is the distance, and half
    of the clock's `step` at least."""
    ordered, n = np.sort(values), len(values)
    centre = stats.middle(ordered)
    scale = max(half_width(ordered), step / 2)
    if scale == 0.0:
        return _Estimate(centre, np.zeros(n))
    bound = HUBER_K * scale
    for _ in range(STEPS):
        far = values - centre
        shift = float(np.minimum(np.maximum(far, -bound), bound).sum()) / n
        inside = max(np.count_nonzero(np.abs(far) <= bound) / n, 0.5)
        centre += shift / inside
        if abs(shift) < 1e-9 * scale:
            break
    return _Estimate(centre, np.clip(values - centre, -bound, bound) / inside)


# ---- the change within processes -------------------------------------------------------------------------------------


def changes(base: Sequence[Array], head: Sequence[Array], paired: bool, step: float) -> list[Location]:
    """The log change of each process, from log times: Huber's location of the rounds' differences (of the two sides'
    locations where rounds are not `paired`), or the more precise one that aligns the sides by the shape of their noise,
    if it agrees. `step`: the clock's, in log time."""
    if paired:
        plain = _located([_huber(h - b, step) for b, h in zip(base, head, strict=True)])
    else:
        sides = [(_huber(b, step), _huber(h, step)) for b, h in zip(base, head, strict=True)]
        plain = _located([_Estimate(h.value - b.value, h.influence - b.influence) for b, h in sides])
    aligned = _aligned_changes(base, head, step)
    if aligned is None:
        return plain
    before, after = (math.sqrt(sum(found.variance for found in each)) for each in (plain, aligned))
    apart = abs(sum(a.value - p.value for a, p in zip(aligned, plain, strict=True)))
    return aligned if after < SHAPE_GAIN * before and apart <= SHAPE_AGREES * before else plain


def _aligned_changes(base: Sequence[Array], head: Sequence[Array], step: float) -> list[Location] | None:
    """Each process's shift between the sides, by the score -f'/f of the noise's density f, learnt from the other
    processes: an adaptive M-estimate (Stone 1975; Bickel 1982). f starts wide and is sharpened as the processes are
    aligned better. One f serves both sides, but each has the slope that its own noise shows. None where nothing can be
    learnt, or where the sides' noise is too unlike."""
    sides = [*base, *head]
    centres = [_huber(values, step).value for values in sides]
    noise = _centred(sides, centres)
    parts = (noise[: len(base)], noise[len(base) :], noise)
    before, after, spread = (half_width(np.sort(np.concatenate(part))) for part in parts)
    if min(before, after) * SHAPE_UNEVEN < max(before, after) or spread == 0.0:
        return None
    middle = float(np.median(np.concatenate(noise)))
    edges = np.linspace(middle - SHAPE_REACH * spread, middle + SHAPE_REACH * spread, SHAPE_BINS + 1)
    for widening in SHAPE_WIDENINGS:
        counts = np.stack([np.histogram(values, edges)[0] for values in _centred(sides, centres)]).astype(float)
        by_process = counts[: len(base)] + counts[len(base) :]
        others = by_process.sum(axis=0) - by_process
        if others.sum(axis=1).min() < SHAPE_SAMPLES:
            return None
        scores = 2 * [_Score.of(each, edges, spread, step, widening) for each in others]
        centres = [score.locate(v, centre) for score, v, centre in zip(scores, sides, centres, strict=True)]
    noise = _centred(sides, centres)
    inside = (np.interp(one, s.grid, s.slopes, left=0.0, right=0.0) for s, one in zip(scores, noise, strict=True))
    by_side = np.reshape([float(slopes.mean()) for slopes in inside], (2, -1))
    both = [np.concatenate(part) for part in (noise[: len(base)], noise[len(base) :])]
    if kolmogorov_smirnov_p(*both) < SHAPE_ALIKE_P:
        return None
    slopes = np.repeat(by_side.mean(axis=1), len(base))
    if slopes.min() <= 0.0:
        return None
    influences = [score(values) / slope for score, values, slope in zip(scores, noise, slopes, strict=True)]
    pairs = zip(centres, centres[len(base) :], influences, influences[len(base) :], strict=False)
    found = _located([_Estimate(now - was, h - b - np.mean(h - b)) for was, now, b, h in pairs])
    cost = [1 + SHAPE_COST / len(values) for values in head]
    return [replace(one, variance=one.variance * factor) for one, factor in zip(found, cost, strict=True)]


def half_width(ordered: Array) -> float:
    """Half of the way that holds the middle 68% of sorted values: a normal distribution's standard deviation."""
    return (stats.quantile(ordered, 0.8413) - stats.quantile(ordered, 0.1587)) / 2


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

    def locate(self, values: Array, start: float) -> float:
        centre = start
        for _ in range(STEPS):
            move = float(self(values - centre).sum()) / len(values) / self.information
            centre += min(self.reach, max(-self.reach, move))
            if abs(move) < 1e-4 * self.reach:
                break
        return centre


# ---- rounds that are alike -------------------------------------------------------------------------------------------


def inflations(series: Sequence[Array]) -> tuple[list[float], float]:
    """By process, from the noise of its rounds in order of time, around 0: the variance of its mean over that of as
    many independent rounds, at least 1; and the degrees of freedom of these factors, infinite where rounds are
    independent. By the likelihood of the cosine coefficients (Whittle 1953) under white noise with a part that has a
    memory, over whose models the factor is averaged where that is clearly likelier than white noise alone."""
    independent = [1.0 for _ in series], math.inf
    longest = max(map(len, series))
    moving = [values for values in series if len(values) > 2 and float(np.ptp(values)) > 0.0]
    if not moving:
        return independent
    # Squared cosine coefficients without the first, which is the mean; they average to 1.
    squares = [scipy.fft.dct(values, norm="ortho")[1:] ** 2 for values in moving]
    powers = [np.asarray(each / each.mean()) for each in squares]
    models = [_models(len(values), longest) for values in moving]
    count = sum(map(len, powers))
    scale = sum((model.whitening @ power for model, power in zip(models, powers, strict=True)), np.zeros(1)) / count
    log_likelihood = -(sum((model.log_size for model in models), np.zeros(1)) + count * np.log(scale)) / 2
    # The first model is white noise, whose scale is 1 by the powers' mean.
    if 2 * float(log_likelihood.max() - log_likelihood[0]) < MEMORY_GAIN:
        return independent
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights[0] = 0.0
    weights /= weights.sum()
    factors = [np.log(_models(max(3, len(values)), longest).inflation * scale) for values in series]
    spread = max(float(weights @ (factor - weights @ factor) ** 2) for factor in factors)
    # The logarithm of a chi-squared variable has variance 2 / df, nearly.
    df = max(MEMORY_LEAST_DF, 2 / spread) if spread else math.inf
    # Half of the way from the median to the mean: the one is too narrow for five processes, the other wide for two.
    return [max(1.0, math.exp(float(weights @ factor) + 0.5 / df)) for factor in factors], df


@dataclass(frozen=True)
class _Models:
    """Noises of unit variance: one a row."""

    whitening: Array
    """One over the variance of each cosine coefficient but the first."""
    log_size: Array
    inflation: Array


@lru_cache(maxsize=32)
def _models(rounds: int, longest: int) -> _Models:
    """The first is white; then each memory in each share."""
    frequencies = np.pi * np.arange(1, rounds) / rounds
    lengths = 1 + math.ceil(math.log(longest / MEMORY_SHORTEST) / math.log(MEMORY_STEP))
    octaves = np.exp2(np.arange(0, math.log2(longest) + MEMORY_OCTAVES))
    one_length = [_of_length(length, frequencies, rounds) for length in np.geomspace(MEMORY_SHORTEST, longest, lengths)]
    no_length = [_of_length(length, frequencies, rounds) for length in octaves]
    scale_free = tuple(np.mean(part, axis=0) for part in zip(*no_length, strict=True))
    # A straight line from 0 to a random end: half of the end is what it adds to the mean.
    line = np.linspace(0, 1, rounds)
    scatter = float(line.var())
    ramp = scipy.fft.dct(line / math.sqrt(scatter), norm="ortho")[1:] ** 2, rounds / 4 / scatter
    kinds = [*one_length, scale_free, ramp]
    mixed = [[1 - share + share * part for part in kind] for kind in kinds for share in MEMORY_SHARES]
    # No line is so straight that its other coefficients are nothing at all.
    variances = np.maximum(np.stack([np.ones(rounds - 1), *(each for each, _ in mixed)]), MEMORY_LEAST_VARIANCE)
    inflation = np.array([1.0, *(float(inflation) for _, inflation in mixed)])
    return _Models(1 / variances, np.log(variances).sum(axis=1), inflation)


def _of_length(length: float, frequencies: Array, rounds: int) -> tuple[Array, float]:
    """A first-order autoregression: the cosine coefficients' variances, and the mean's inflation."""
    rho, lags = math.exp(-1 / length), np.arange(1, rounds)
    inflation = 1 + 2 * float(((1 - lags / rounds) * rho**lags).sum())
    return (1 - rho**2) / (1 - 2 * rho * np.cos(frequencies) + rho**2), inflation


# ---- the clock -------------------------------------------------------------------------------------------------------


def clock_step(samples: Array) -> float:
    """The step in which these times come, in their unit; 0 where all are equal. Half of the shortest stretch that holds
    `DENSEST` of the samples is crossed in gaps of at least this size; where these samples are all equal, it is the
    smallest gap between any two."""
    values = np.sort(samples)
    held = max(2, math.ceil(DENSEST * len(values)))
    start = int(np.argmin(values[held - 1 :] - values[: len(values) - held + 1]))
    gaps = np.sort(np.diff(values[start : start + held]))
    if span := float(gaps.sum()):
        return float(gaps[np.searchsorted(np.cumsum(gaps), span / 2)])
    return float(np.diff(np.unique(values)).min()) if values[0] < values[-1] else 0.0


def log_step(samples: Array) -> float:
    """The clock's step in log time, at the median of these times."""
    return clock_step(samples) / float(np.median(samples))


def rounding_bias(samples: Array, step: float) -> float:
    """Largest error of the mean of the bulk of `samples` through being rounded to `step`, in their unit: half a step
    where the bulk falls on one tick or two, else the first term of the series of Widrow and Kollár (2008), with
    Sheppard's correction."""
    if step == 0.0:
        return 0.0
    ordered = np.sort(samples)
    if stats.quantile(ordered, 0.98) - stats.quantile(ordered, 0.02) < 1.5 * step:
        return step / 2
    variance = max(0.0, half_width(ordered) ** 2 - step**2 / 12)
    return step / math.pi * math.exp(-2 * math.pi**2 * variance / step**2)
