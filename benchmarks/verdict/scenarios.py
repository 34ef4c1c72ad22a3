"""Records with known truth: drawn from recorded times of an H200, as they are or spoilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdict.rules import Duel
from kernelgate.ci.judge.stats import Array

TRACES = Path(__file__).parent.parent.parent / "tests" / "data" / "h200_traces.npz"
SETS = ("quiet_fma", "quiet_copy", "contended_fma", "contended_copy")
LAUNCHES, ROUNDS = 5, 100
STORED_LAUNCHES = 3
"""Of a baseline: the contended sets have eight launches in all."""

Generator = np.random.Generator
Spoiler = Callable[[Generator, Duel], Duel]


@cache
def _stored(name: str) -> Array:
    """(launch, variant, round), in microseconds."""
    with np.load(TRACES) as traces:
        return np.asarray(traces[name], dtype=float)


def effects() -> list[tuple[int, float]]:
    """Variants of the traces to use as head, with the extra work of each in percent; the first is identical code."""
    factors = _stored("factors")
    return [(variant, 100 * (float(factors[variant]) - 1)) for variant in range(1, len(factors))]


def duel(rng: Generator, name: str, variant: int) -> Duel:
    """Base and head of the same launches and rounds, timed in turns."""
    times = _stored(f"{name}_inter")
    launches = rng.choice(len(times), LAUNCHES, replace=False)
    rounds = [np.sort(rng.choice(times.shape[2], ROUNDS, replace=False)) for _ in launches]
    drawn = list(zip(launches, rounds, strict=True))
    return Duel([times[i, 0, kept] for i, kept in drawn], [times[i, variant, kept] for i, kept in drawn])


def against_stored(rng: Generator, name: str, variant: int) -> Duel:
    """The base of some launches, the head of others."""
    times = _stored(f"{name}_inter")[:, :, :ROUNDS]
    launches = rng.permutation(len(times))
    base, head = launches[:STORED_LAUNCHES], launches[STORED_LAUNCHES : STORED_LAUNCHES + LAUNCHES]
    return Duel([times[i, 0] for i in base], [times[i, variant] for i in head], stored=True)


def slowed(duel: Duel, percent: float) -> Duel:
    return Duel(duel.base, [head * (1 + percent / 100) for head in duel.head])


# ---- what spoils a record --------------------------------------------------------------------------------------------


def bimodal_launches(rng: Generator, duel: Duel) -> Duel:
    """Half of the launches run 13% slower, base and head alike."""
    modes = rng.choice([1.0, 1.13], LAUNCHES)
    return _scaled(duel, modes, modes)


def bimodal_sides(rng: Generator, duel: Duel) -> Duel:
    """Base and head each run 13% slower in half of the launches, each in its own."""
    return _scaled(duel, rng.choice([1.0, 1.13], LAUNCHES), rng.choice([1.0, 1.13], LAUNCHES))


def bimodal_rounds(rng: Generator, duel: Duel) -> Duel:
    """Half of the base's rounds take 10% longer."""
    return _scaled(duel, [rng.choice([1.0, 1.1], ROUNDS) for _ in duel.base], LAUNCHES * [1.0])


def common_trend(rng: Generator, duel: Duel) -> Duel:
    """Both sides drift by 5% within each launch."""
    trend = 1 + rng.choice([-0.05, 0.05]) * np.linspace(0, 1, ROUNDS)
    return _scaled(duel, LAUNCHES * [trend], LAUNCHES * [trend])


def own_trends(rng: Generator, duel: Duel) -> Duel:
    """Each side of each launch drifts by up to 5%, each in its own way."""

    def trends() -> list[Array]:
        return [1 + rng.uniform(-0.05, 0.05) * np.linspace(0, 1, ROUNDS) for _ in range(LAUNCHES)]

    return _scaled(duel, trends(), trends())


def one_launch_off(rng: Generator, duel: Duel) -> Duel:
    """In one launch the head takes 3% longer."""
    odd = int(rng.integers(LAUNCHES))
    return _scaled(duel, LAUNCHES * [1.0], [1.03 if launch == odd else 1.0 for launch in range(LAUNCHES)])


def coarse_clock(rng: Generator, duel: Duel) -> Duel:
    """Times come in steps of 1 µs."""
    del rng
    return Duel([np.round(base) for base in duel.base], [np.round(head) for head in duel.head])


def outliers(rng: Generator, duel: Duel) -> Duel:
    """One sample in a hundred takes 100 times as long."""

    def rare() -> list[Array]:
        return [np.where(rng.random(ROUNDS) < 0.01, 100.0, 1.0) for _ in range(LAUNCHES)]

    return _scaled(duel, rare(), rare())


SPOILERS: dict[str, Spoiler] = {
    "launches in two modes, both sides": bimodal_launches,
    "launches in two modes, each side": bimodal_sides,
    "rounds of the base in two modes": bimodal_rounds,
    "trend of 5%, both sides": common_trend,
    "trends up to 5%, each side": own_trends,
    "one launch off by 3%": one_launch_off,
    "clock steps of 1 µs": coarse_clock,
    "1% outliers × 100": outliers,
}


def _scaled(duel: Duel, base: Iterable[Any], head: Iterable[Any]) -> Duel:
    """Each launch's times multiplied by a number, or by one a round."""
    return Duel(
        [np.multiply(samples, factor) for samples, factor in zip(duel.base, base, strict=True)],
        [np.multiply(samples, factor) for samples, factor in zip(duel.head, head, strict=True)],
    )
