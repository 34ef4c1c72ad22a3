"""Records with known truth: drawn from recorded times of an H200, as they are or spoilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdict.rules import POLICY, PairedTimes
from kernelgate.ci.judge.stats import Array

TRACES = Path(__file__).parent.parent.parent / "tests" / "data" / "h200_traces.npz"
SETS = ("quiet_fma", "quiet_copy", "contended_fma", "contended_copy")
PROCESSES, ROUNDS = POLICY.processes.limit, 100
STORED_PROCESSES, AGAINST_STORED = 3, 5
"""Of a baseline, and of what is compared with it: the contended sets have eight processes in all."""

Generator = np.random.Generator
Spoiler = Callable[[Generator, PairedTimes], PairedTimes]


@cache
def _stored(name: str) -> Array:
    """(process, variant, round), in microseconds."""
    with np.load(TRACES) as traces:
        return np.asarray(traces[name], dtype=float)


def effects() -> list[tuple[int, float]]:
    """Variants of the traces to use as head, with the extra work of each in percent; the first is identical code."""
    factors = _stored("factors")
    return [(variant, 100 * (float(factors[variant]) - 1)) for variant in range(1, len(factors))]


def paired_times(rng: Generator, name: str, variant: int) -> PairedTimes:
    """Base and head of the same processes and rounds, timed in turns."""
    times = _stored(f"{name}_inter")
    processes = rng.choice(len(times), PROCESSES, replace=False)
    rounds = [np.sort(rng.choice(times.shape[2], ROUNDS, replace=False)) for _ in processes]
    drawn = list(zip(processes, rounds, strict=True))
    return PairedTimes([times[i, 0, kept] for i, kept in drawn], [times[i, variant, kept] for i, kept in drawn])


def against_stored(rng: Generator, name: str, variant: int) -> PairedTimes:
    """The base of some processes, the head of others."""
    times = _stored(f"{name}_inter")[:, :, :ROUNDS]
    processes = rng.permutation(len(times))
    base, head = processes[:STORED_PROCESSES], processes[STORED_PROCESSES : STORED_PROCESSES + AGAINST_STORED]
    return PairedTimes([times[i, 0] for i in base], [times[i, variant] for i in head], stored=True)


def slowed(pair: PairedTimes, percent: float) -> PairedTimes:
    return PairedTimes(pair.base, [head * (1 + percent / 100) for head in pair.head])


# ---- what spoils a record --------------------------------------------------------------------------------------------


def bimodal_processes(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Half of the processes run 13% slower, base and head alike."""
    modes = rng.choice([1.0, 1.13], PROCESSES)
    return _scaled(pair, modes, modes)


def bimodal_sides(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Base and head each run 13% slower in half of the processes, each in its own."""
    return _scaled(pair, rng.choice([1.0, 1.13], PROCESSES), rng.choice([1.0, 1.13], PROCESSES))


def bimodal_rounds(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Half of the base's rounds take 10% longer."""
    return _scaled(pair, [rng.choice([1.0, 1.1], ROUNDS) for _ in pair.base], PROCESSES * [1.0])


def common_trend(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Both sides drift by 5% within each process."""
    trend = 1 + rng.choice([-0.05, 0.05]) * np.linspace(0, 1, ROUNDS)
    return _scaled(pair, PROCESSES * [trend], PROCESSES * [trend])


def own_trends(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Each side of each process drifts by up to 5%, each in its own way."""

    def trends() -> list[Array]:
        return [1 + rng.uniform(-0.05, 0.05) * np.linspace(0, 1, ROUNDS) for _ in range(PROCESSES)]

    return _scaled(pair, trends(), trends())


def one_process_off(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """In one process the head takes 3% longer."""
    odd = int(rng.integers(PROCESSES))
    return _scaled(pair, PROCESSES * [1.0], [1.03 if process == odd else 1.0 for process in range(PROCESSES)])


def coarse_clock(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Times come in steps of 1 µs."""
    del rng
    return PairedTimes([np.round(base) for base in pair.base], [np.round(head) for head in pair.head])


def outliers(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """One sample in a hundred takes 100 times as long."""

    def rare() -> list[Array]:
        return [np.where(rng.random(ROUNDS) < 0.01, 100.0, 1.0) for _ in range(PROCESSES)]

    return _scaled(pair, rare(), rare())


SPOILERS: dict[str, Spoiler] = {
    "processes in two modes, both sides": bimodal_processes,
    "processes in two modes, each side": bimodal_sides,
    "rounds of the base in two modes": bimodal_rounds,
    "trend of 5%, both sides": common_trend,
    "trends up to 5%, each side": own_trends,
    "one process off by 3%": one_process_off,
    "clock steps of 1 µs": coarse_clock,
    "1% outliers × 100": outliers,
}


def _scaled(pair: PairedTimes, base: Iterable[Any], head: Iterable[Any]) -> PairedTimes:
    """Each process's times multiplied by a number, or by one a round."""
    return PairedTimes(
        [np.multiply(samples, factor) for samples, factor in zip(pair.base, base, strict=True)],
        [np.multiply(samples, factor) for samples, factor in zip(pair.head, head, strict=True)],
    )
