"""Intervals of medians by resampling processes and rounds; they guard an improvement and decide nothing alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kernelgate.ci.judge import stats
from kernelgate.ci.judge.stats import Array

RESAMPLES: Final = 10_000
"""Of processes, then of rounds within them."""
SEED: Final = 20260801
"""Fixed, so that a record always gets the same verdict."""


@dataclass(frozen=True)
class BootstrapIntervals:
    """Percentile intervals of the medians (in the samples' unit) and of log(median head / median base)."""

    base: tuple[float, float]
    head: tuple[float, float]
    change: tuple[float, float]


def bootstrap(
    base: Sequence[Array], head: Sequence[Array], paired: bool, level: float, resamples: int = RESAMPLES
) -> BootstrapIntervals:
    """Hierarchical bootstrap of the medians of both sides: processes resampled above rounds.

    Each resample draws processes with replacement, then as many rounds from them. The median of n values drawn from a
    distribution F is F⁻¹ of the median of n uniforms, so that median is drawn (normal, variance 1 / 4n) in place of the
    n rounds. Where rounds are `paired`, both sides draw the same processes, and the two draws are correlated as much as
    the two sides lie on the same side of their medians together, which is the correlation of two sample medians. The
    order of the processes does not matter, and swapping the sides mirrors the intervals.
    """
    if paired:
        pairs = sorted(zip(base, head, strict=True), key=lambda pair: float(pair[0].sum() + pair[1].sum()))
        base, head = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        base, head = (sorted(side, key=lambda samples: float(samples.sum())) for side in (base, head))
    correlation = _median_correlation(base, head) if paired else 0.0
    one, other = _draws(resamples, SEED)
    more, less = math.sqrt(1 + correlation), math.sqrt(1 - correlation)
    base_draws = ((more + less) * one + (more - less) * other) / 2
    head_draws = ((more - less) * one + (more + less) * other) / 2
    medians_base = _resampled_medians(base, _process_counts(len(base), resamples, SEED), base_draws)
    medians_head = _resampled_medians(head, _process_counts(len(head), resamples, SEED + (not paired)), head_draws)
    tails = ((1 - level) / 2, (1 + level) / 2)

    def interval(values: Array) -> tuple[float, float]:
        low, high = np.quantile(values, tails)
        return float(low), float(high)

    change = np.log(medians_head) - np.log(medians_base)
    return BootstrapIntervals(interval(medians_base), interval(medians_head), interval(change))


def _median_correlation(base: Sequence[Array], head: Sequence[Array]) -> float:
    signs = [_above(b) * _above(h) for b, h in zip(base, head, strict=True)]
    return float(np.mean(np.concatenate(signs)))


def _above(samples: Array) -> Array:
    """1 above their median, -1 below it."""
    return np.asarray(np.sign(samples - stats.middle(np.sort(samples))))


@lru_cache(maxsize=4)
def _draws(resamples: int, seed: int) -> Array:
    """Standard normal draws, (2, resamples), the same for every case; the second half is the first, rows swapped."""
    half = np.random.default_rng(seed).standard_normal((2, math.ceil(resamples / 2)))
    return np.concatenate((half, half[::-1]), axis=1)[:, :resamples]


@lru_cache(maxsize=16)
def _process_counts(processes: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """How often each process is drawn in each resample, (processes, resamples); the second half repeats the first."""
    chances = np.full(processes, 1 / processes)
    half = np.random.default_rng((seed, processes)).multinomial(processes, chances, math.ceil(resamples / 2))
    return np.ascontiguousarray(np.concatenate((half, half))[:resamples].T.astype(np.int64))


def _resampled_medians(processes: Sequence[Array], counts: NDArray[np.int64], draws: Array) -> Array:
    """The median of each resample, (resamples,): a binary search in the pooled samples for the drawn quantile.

    `processes` holds the samples of each process, `counts` how often a resample holds each, `draws` standard normals.
    """
    sizes = np.array([len(samples) for samples in processes])
    pooled = np.sort(np.concatenate(processes))
    ranks = np.stack([np.searchsorted(np.sort(samples), pooled, side="right") for samples in processes], axis=1)
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
