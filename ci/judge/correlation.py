"""Rounds that are alike: how much more a process's mean varies than independent rounds would, and how surely we know.

docs/statistics.md ("Correlated rounds") has the model and its sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy import fft

from kernelgate.ci.judge.stats import Array

GAIN: Final = 8.0
"""Twice the gain in log likelihood from which rounds count as correlated; independent rounds pass it in about 1%."""
SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.0)
"""How much of the noise's variance has a memory; the rest is white."""
SHORTEST: Final = 0.5
STEP: Final = 1.6
"""Lengths of the memory in rounds: from the shortest, in this ratio, to all rounds of a process."""
OCTAVES_BEYOND: Final = 3
"""Noise without a length of its own (1/f) is taken to go on for so many octaves beyond a process."""
LEAST_DF: Final = 4.0
"""With fewer, two processes of rounds that are hardly alike could say nothing at all; simulated, coverage holds."""
LEAST_VARIANCE: Final = 1e-4


@dataclass(frozen=True)
class RoundMemory:
    """What correlation does to each process's mean."""

    inflations: tuple[float, ...]
    """By process: its variance over that of as many independent rounds with the same scatter; at least 1."""
    df: float
    """Degrees of freedom that these factors deserve, all processes together; infinite where rounds are independent."""


@dataclass(frozen=True)
class _Models:
    """Noises of unit variance: one a row."""

    whitening: Array
    """One over the variance of each cosine coefficient but the first."""
    log_size: Array
    """Sum of the logarithms of these variances."""
    inflation: Array


def memory(series: Sequence[Array]) -> RoundMemory:
    """From the noise of the rounds of each process, in order of time, around 0.

    The likelihood of the cosine coefficients (Whittle 1953) of all processes together, under white noise with a part
    that has a memory. Where it is clearly above that of white noise alone, the factor is averaged over all models by
    likelihood, so that lengths and shares that the rounds cannot tell apart all count; how far these models differ is
    what the factor's degrees of freedom say.
    """
    longest = max(map(len, series))
    moving = [values for values in series if len(values) > 2 and float(np.ptp(values)) > 0.0]
    if not moving:
        return RoundMemory(tuple(1.0 for _ in series), math.inf)
    powers = [_powers(values) for values in moving]
    models = [_models(len(values), longest) for values in moving]
    count = sum(map(len, powers))
    scale = sum((model.whitening @ power for model, power in zip(models, powers, strict=True)), np.zeros(1)) / count
    log_likelihood = -(sum((model.log_size for model in models), np.zeros(1)) + count * np.log(scale)) / 2
    # The first model is white noise, whose scale is 1 by `_powers`.
    if 2 * float(log_likelihood.max() - log_likelihood[0]) < GAIN:
        return RoundMemory(tuple(1.0 for _ in series), math.inf)
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights[0] = 0.0
    weights /= weights.sum()
    factors = [np.log(_models(max(3, len(values)), longest).inflation * scale) for values in series]
    spread = max(float(weights @ (factor - weights @ factor) ** 2) for factor in factors)
    # The logarithm of a chi-squared variable has variance 2 / df, nearly.
    df = max(LEAST_DF, 2 / spread) if spread else math.inf
    # Half of the way from the median to the mean: the one is too narrow for five processes, the other wide for two.
    return RoundMemory(tuple(max(1.0, math.exp(float(weights @ factor) + 0.5 / df)) for factor in factors), df)


def inflation(series: Sequence[Array]) -> float:
    """How much more the mean of all processes varies than if their rounds were independent: of the worst one."""
    return max(memory(series).inflations)


def _powers(values: Array) -> Array:
    """Squared cosine coefficients without the first, which is the mean; they average to 1."""
    squares = fft.dct(values, norm="ortho")[1:] ** 2
    return np.asarray(squares / squares.mean())


@lru_cache(maxsize=32)
def _models(rounds: int, longest: int) -> _Models:
    """The first is white; then each memory in each share."""
    frequencies = np.pi * np.arange(1, rounds) / rounds
    octaves = np.exp2(np.arange(0, math.log2(longest) + OCTAVES_BEYOND))
    one_length = [_of_length(length, frequencies, rounds) for length in _lengths(longest)]
    no_length = [_of_length(length, frequencies, rounds) for length in octaves]
    scale_free = (
        np.mean([variances for variances, _ in no_length], axis=0),
        float(np.mean([inflation for _, inflation in no_length])),
    )
    kinds = [*one_length, scale_free, _ramp(rounds)]
    mixed = [(1 - share + share * kind[0], 1 - share + share * kind[1]) for kind in kinds for share in SHARES]
    # No line is so straight that its other coefficients are nothing at all.
    variances = np.maximum(np.stack([np.ones(rounds - 1), *(variance for variance, _ in mixed)]), LEAST_VARIANCE)
    inflation = np.array([1.0, *(float(inflation) for _, inflation in mixed)])
    return _Models(1 / variances, np.log(variances).sum(axis=1), inflation)


def _lengths(longest: int) -> Array:
    count = 1 + math.ceil(math.log(longest / SHORTEST) / math.log(STEP))
    return np.geomspace(SHORTEST, longest, count)


def _of_length(length: float, frequencies: Array, rounds: int) -> tuple[Array, float]:
    """A first-order autoregression: the cosine coefficients' variances, and the mean's inflation."""
    rho = math.exp(-1 / length)
    lags = np.arange(1, rounds)
    inflation = 1 + 2 * float(((1 - lags / rounds) * rho**lags).sum())
    return (1 - rho**2) / (1 - 2 * rho * np.cos(frequencies) + rho**2), inflation


def _ramp(rounds: int) -> tuple[Array, float]:
    """A straight line from 0 to a random end: half of the end is what it adds to the mean."""
    line = np.linspace(0, 1, rounds)
    scatter = float(line.var())
    squares = fft.dct(line / math.sqrt(scatter), norm="ortho")[1:] ** 2
    return np.asarray(squares), rounds / 4 / scatter
