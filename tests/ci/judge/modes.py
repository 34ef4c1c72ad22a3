"""Times in two modes, made up with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.verdict import records
from benchmarks.verdict.records import SEED, Count, Generator, PairedTimes, record
from kernelgate.ci.judge.stats import Array

PROCESSES, ROUNDS = 5, 100
NOISE = 0.004
"""Of a sample within its mode."""
SPREAD = 0.0003
"""Of the change, between processes."""


@dataclass(frozen=True)
class Jumps:
    """How far apart two modes are, and how often each side is in the slow one."""

    distance: float
    base: float
    head: float
    together: bool = False
    """Both sides change mode in the same rounds."""
    change: float = 0.0


def times(rng: Generator, modes: Jumps) -> PairedTimes:
    base: list[Array] = []
    head: list[Array] = []
    for _ in range(PROCESSES):
        drawn = rng.random((2, ROUNDS))
        slow = drawn[0] < modes.base, drawn[0 if modes.together else 1] < modes.head
        moved = modes.change + rng.normal(0, SPREAD)
        for side, jumps, shift in zip((base, head), slow, (0.0, moved), strict=True):
            side.append(100 * np.exp(rng.normal(0, NOISE, ROUNDS) + math.log1p(modes.distance) * jumps + shift))
    return PairedTimes(base, head)


SHARES, DISTANCES = (0.05, 0.2, 0.35, 0.5), (0.01, 0.02, 0.03, 0.05, 0.1)
KINDS: dict[str, Callable[[float, float], Jumps]] = {
    "shared by the rounds": lambda distance, share: Jumps(distance, share, share, together=True),
    "each side its own": lambda distance, share: Jumps(distance, share, share),
    "head more often by 20 points": lambda distance, share: Jumps(distance, share, share + 0.2),
}


def counted(modes: Jumps, draws: int) -> Count:
    rng = np.random.default_rng(SEED)
    return records.counted(record(times(rng, modes).sides) for _ in range(draws))
