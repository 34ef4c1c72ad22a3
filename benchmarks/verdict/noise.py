"""Whether the intervals hold what they say under uneven and correlated noise: simulated, with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import signal

from benchmarks.verdict.records import POLICY, SEED, Generator, Share
from kernelgate.ci.judge import estimate, location, stats
from kernelgate.ci.judge.prior import CHANGE_PCT
from kernelgate.ci.judge.stats import Array

Noise = Callable[[Generator, int], Array]

LEVEL = 0.95
ONE_ROUND = 0.01
"""Standard deviation of a round's log time: far above the prior between processes, which would hide a fault."""


def normal(rng: Generator, rounds: int) -> Array:
    return rng.normal(size=rounds)


def two_peaks(rng: Generator, rounds: int) -> Array:
    return rng.choice([-1.0, 1.0], rounds) + rng.normal(0, 0.25, rounds)


def heavy_tail(rng: Generator, rounds: int) -> Array:
    """Student's t with two degrees of freedom: no variance at all."""
    return np.asarray(rng.standard_t(2, rounds))


def autoregressive(correlation: float) -> Noise:
    def noise(rng: Generator, rounds: int) -> Array:
        before = int(10 / (1 - correlation))
        steps = rng.normal(0, math.sqrt(1 - correlation**2), before + rounds)
        return np.asarray(signal.lfilter([1], [1, -correlation], steps)[before:])

    return noise


def pink(rng: Generator, rounds: int) -> Array:
    """A stretch of 1/f noise that is eight times as long, with unit variance: its slowest waves shift the process."""
    rates = np.fft.rfftfreq(8 * rounds)
    waves = rng.normal(size=(2, len(rates)))
    waves[:, 0] = 0
    rates[0] = 1
    series = np.fft.irfft((waves[0] + 1j * waves[1]) / np.sqrt(rates), 8 * rounds)
    start = int(rng.integers(7 * rounds))
    return np.asarray(series[start : start + rounds] / series.std())


def ramp(rng: Generator, rounds: int) -> Array:
    """A line from 0 to a random end, beneath a quarter as much noise."""
    return rng.normal() * np.linspace(0, 1, rounds) + rng.normal(0, 0.25, rounds)


CORRELATED: dict[str, tuple[Noise, Noise]] = {
    "independent": (normal, normal),
    "AR(0.6)": (autoregressive(0.6), autoregressive(0.6)),
    "AR(0.95)": (autoregressive(0.95), autoregressive(0.95)),
    "AR(0.95), head alone": (normal, autoregressive(0.95)),
    "1/f": (pink, pink),
    "1/f, head alone": (normal, pink),
    "ramps": (ramp, ramp),
    "ramps, head alone": (normal, ramp),
}
"""Noise of base and of head."""


@dataclass(frozen=True)
class Coverage:
    """How often the 95% interval holds the truth."""

    process: Share
    """Of one process, from its rounds alone."""
    record: Share
    """Of all processes together, whose spread the judge does not know: it is no more than the rounds'."""


def coverage(
    base: Noise, head: Noise, draws: int, processes: int = 5, rounds: int = 100, ratio: float = 1.0
) -> Coverage:
    """The head's noise is `ratio` times as wide."""
    rng = np.random.default_rng(SEED)
    single = whole = 0
    for _ in range(draws):
        before = [ONE_ROUND * base(rng, rounds) for _ in range(processes)]
        after = [ONE_ROUND * ratio * head(rng, rounds) for _ in range(processes)]
        found = location.changes(before, after, True, 0.0)
        values, variances = (np.array([getattr(one, name) for one in found]) for name in ("value", "variance"))
        single += int((np.abs(values) <= stats.normal_half_width(LEVEL) * np.sqrt(variances)).sum())
        group, _ = estimate.of_changes(found, CHANGE_PCT, None, POLICY)
        pooled = group.pooled()
        whole += abs(pooled.change) <= pooled.half_width(1 - LEVEL)
    return Coverage(Share(single, draws * processes), Share(whole, draws))
