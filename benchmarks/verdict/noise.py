"""Whether the intervals hold what they say under correlated noise: `python -m benchmarks.verdict.noise`, seeded.

Keeps what it measured in benchmarks/results/noise.json and writes docs/statistics.md's sentence of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import signal

from benchmarks.tables import put
from benchmarks.verdict.records import POLICY, ROOT, SEED, Generator
from kernelgate.ci.judge import estimate, location, stats
from kernelgate.ci.judge.prior import CHANGE_PCT
from kernelgate.ci.judge.stats import Array

Noise = Callable[[Generator, int], Array]

KEPT = ROOT / "benchmarks" / "results" / "noise.json"
DRAWS, PROCESSES, ROUNDS = 1000, 5, 100
LEVEL = 0.95
ONE_ROUND = 0.01
"""Standard deviation of a round's log time: far above the prior between processes, which would hide a fault."""


def normal(rng: Generator, rounds: int) -> Array:
    return rng.normal(size=rounds)


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


def coverage(base: Noise, head: Noise, draws: int) -> tuple[float, float]:
    """How often the 95% interval of one process holds the truth, and that of a record, by percent."""
    rng = np.random.default_rng(SEED)
    single = whole = 0
    for _ in range(draws):
        before = [ONE_ROUND * base(rng, ROUNDS) for _ in range(PROCESSES)]
        after = [ONE_ROUND * head(rng, ROUNDS) for _ in range(PROCESSES)]
        found = location.changes(before, after, True, 0.0)
        values, variances = (np.array([getattr(one, name) for one in found]) for name in ("value", "variance"))
        single += int((np.abs(values) <= stats.normal_half_width(LEVEL) * np.sqrt(variances)).sum())
        group, _ = estimate.of_changes(found, CHANGE_PCT, None, POLICY)
        pooled = group.pooled()
        whole += abs(pooled.change) <= pooled.half_width(1 - LEVEL)
    return round(100 * single / draws / PROCESSES, 2), round(100 * whole / draws, 2)


def text(kept: Mapping[str, tuple[float, float]]) -> str:
    single, whole = zip(*kept.values(), strict=True)
    return (
        f"**Correlated rounds**, {len(kept)} simulations of {DRAWS} records: the 95% interval of "
        f"{PROCESSES} processes holds the change in {min(whole):.1f} to {max(whole):.1f}%, that of one "
        f"process in {min(single):.1f} to {max(single):.1f}%."
    )


if __name__ == "__main__":
    measured = {name: coverage(*noise, DRAWS) for name, noise in CORRELATED.items()}
    KEPT.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    put(ROOT / "docs" / "statistics.md", "noise", text(measured))
