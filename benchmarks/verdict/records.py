"""Records with known truth, drawn from recorded times of an H200, as they are or spoilt; and what rules say of them.

The usual rules are written here from their public descriptions, on all samples of a record pooled, as they are used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.bench.record import Case, Process, RunRecord, Timing
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.case import Direction, Outcome
from kernelgate.ci.judge.stats import Array, bootstrap
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy

ROOT = Path(__file__).parents[2]
SEED = 20260801
Generator = np.random.Generator
POLICY = Policy()
CASE = Case(id="case")
TIMING = dict(Timing(case=CASE.id))
PROCESS = dict(Process(id="1"))


@dataclass(frozen=True)
class PairedTimes:
    """Times in microseconds by process; `stored` where the base comes from other processes than the head."""

    base: Sequence[Array]
    head: Sequence[Array]
    stored: bool = False

    @property
    def sides(self) -> dict[str, Sequence[Array]]:
        return {"base": self.base, "head": self.head}


@dataclass(frozen=True)
class Share:
    """How often something happened, with its standard error, which is that of once where it never did."""

    hits: int
    draws: int

    @property
    def value(self) -> float:
        return self.hits / self.draws

    @property
    def error(self) -> float:
        return math.sqrt(max(self.value * (1 - self.value), 1 / self.draws) / self.draws)

    def __str__(self) -> str:
        return f"{100 * self.value:.2f} ± {100 * self.error:.2f}%"


Rule = Callable[[PairedTimes], Direction]


def say(pair: PairedTimes) -> dict[str, Direction]:
    """Our verdict, with everything that `kernelgate compare` computes, and beside it what the usual rules say."""
    stored = record({"head": pair.base}) if pair.stored else None
    measured = record({"head": pair.head} if pair.stored else pair.sides)
    verdict = judge(measured, POLICY, stored)
    # A record that is refused holds no case: nothing is said of it.
    direction = verdict.cases[0].direction if verdict.cases else Direction.NONE
    blocks = {Outcome.REGRESSED: Direction.SLOWER, Outcome.IMPROVED: Direction.FASTER}
    ours = {"kernelgate, direction": direction, "kernelgate, gate": blocks.get(verdict.verdict, Direction.NONE)}
    return {**ours, **{name: rule(pair) for name, rule in USUAL.items()}}


def record(sides: Mapping[str, Sequence[Array]]) -> RunRecord:
    """A run record of one case's times, by side and process; not validated, because here speed matters."""
    processes = []
    for number in range(len(sides["head"])):
        samples = {side: tuple(times[number].tolist()) for side, times in sides.items()}
        timing = Timing.model_construct(**{**TIMING, "samples_us": samples})
        processes.append(Process.model_construct(**{**PROCESS, "id": str(number + 1), "timings": (timing,)}))
    return RunRecord().model_copy(update={"cases": (CASE,), "processes": tuple(processes)})


@dataclass(frozen=True)
class Count:
    """Of many records of one case, how often what was said."""

    slower: int
    faster: int
    equivalent: int
    refused: int
    """Without a verdict."""
    dependent: int
    """With a finding that is about dependence."""


def counted(made: Iterable[RunRecord]) -> Count:
    found = [judge(one, POLICY).cases[0] for one in made]
    directions, about = Counter(one.direction for one in found), {"carry_over", "clock_dependent", "clock_by_side"}
    return Count(
        slower=directions[Direction.SLOWER],
        faster=directions[Direction.FASTER],
        equivalent=sum(one.verdict is Outcome.EQUIVALENT for one in found),
        refused=sum(bool(one.disqualifying) for one in found),
        dependent=sum(not about.isdisjoint(finding.code for finding in one.findings) for one in found),
    )


def stopped(whole: RunRecord) -> RunRecord:
    """The first processes of the record: as many as `kernelgate bench` takes."""
    looks = range(POLICY.processes.minimum, len(whole.processes))
    cut = (whole.model_copy(update={"processes": whole.processes[:count]}) for count in looks)
    return next((made for made in cut if not undecided(made, POLICY)), whole)


def overlap(pair: PairedTimes) -> Direction:
    """95% bootstrap intervals of the medians do not overlap, Mann-Whitney p < 0.05, |Cliff's delta| ≥ 0.3."""
    base, head = _pooled(pair)
    drawn = bootstrap([base], [head], False, 0.95, 2000)
    apart = drawn.head[0] > drawn.base[1] or drawn.head[1] < drawn.base[0]
    return mann_whitney(pair) if apart and abs(stats.cliffs_delta(base, head)) >= 0.3 else Direction.NONE


def mann_whitney(pair: PairedTimes, p: float = 0.05) -> Direction:
    """Mann-Whitney p < 0.05, as benchstat asks by default."""
    base, head = _pooled(pair)
    return threshold(0.0)(pair) if stats.mann_whitney_p(base, head) < p else Direction.NONE


def threshold(percent: float) -> Rule:
    """The ratio of the medians is beyond a fixed threshold."""

    def rule(pair: PairedTimes) -> Direction:
        base, head = (float(np.median(side)) for side in _pooled(pair))
        if max(base, head) <= min(base, head) * (1 + percent / 100):
            return Direction.NONE
        return Direction.SLOWER if head > base else Direction.FASTER

    return rule


def nvbench(pair: PairedTimes) -> Direction:
    """nvbench's robust compare: from the smallest time to the upper quartile, the two sides lie 0.5% or more apart.

    Its confirmation by clock rates is taken as given.
    """
    spans = [(float(side.min()), float(np.quantile(side, 0.75))) for side in _pooled(pair)]
    (base_low, base_high), (head_low, head_high) = spans
    if head_low > base_high * 1.005:
        return Direction.SLOWER
    return Direction.FASTER if base_low > head_high * 1.005 else Direction.NONE


def asv(factor: float) -> Rule:
    """asv continuous: Mann-Whitney p < 0.002, and medians further apart than `factor`."""
    apart = threshold(100 * (factor - 1))
    return lambda pair: Direction.NONE if mann_whitney(pair, 0.002) is Direction.NONE else apart(pair)


USUAL: dict[str, Rule] = {
    "intervals + U test + delta": overlap,
    "U test alone": mann_whitney,
    "medians, 3%": threshold(3),
    "nvbench-compare": nvbench,
    "asv, factor 1.01": asv(1.01),
}


def _pooled(pair: PairedTimes) -> tuple[Array, Array]:
    return np.concatenate(pair.base), np.concatenate(pair.head)


TRACES = ROOT / "tests" / "data" / "h200_traces.npz"
SETS = ("quiet_fma", "quiet_copy", "contended_fma", "contended_copy")
PROCESSES, ROUNDS = POLICY.processes.limit, 100
STORED_PROCESSES, AGAINST_STORED = 3, 5
"""Of a baseline, and of what is compared with it: the contended sets have eight processes in all."""

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


def bimodal_processes(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Half of the processes run 13% slower, base and head alike."""
    return _scaled(pair, *[rng.choice([1.0, 1.13], PROCESSES)] * 2)


def bimodal_sides(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Base and head each run 13% slower in half of the processes, each in its own."""
    return _scaled(pair, rng.choice([1.0, 1.13], PROCESSES), rng.choice([1.0, 1.13], PROCESSES))


def bimodal_rounds(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Half of the base's rounds take 10% longer."""
    return _scaled(pair, rng.choice([1.0, 1.1], (PROCESSES, ROUNDS)), PROCESSES * [1.0])


def common_trend(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Both sides drift by 5% within each process."""
    return _scaled(pair, *[PROCESSES * [1 + rng.choice([-0.05, 0.05]) * np.linspace(0, 1, ROUNDS)]] * 2)


def own_trends(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Each side of each process drifts by up to 5%, each in its own way."""
    return _scaled(pair, *(1 + rng.uniform(-0.05, 0.05, (2, PROCESSES, 1)) * np.linspace(0, 1, ROUNDS)))


def one_process_off(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """In one process the head takes 3% longer."""
    odd = np.arange(PROCESSES) == rng.integers(PROCESSES)
    return _scaled(pair, PROCESSES * [1.0], np.where(odd, 1.03, 1.0))


def coarse_clock(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """Times come in steps of 1 µs."""
    del rng
    return PairedTimes([np.round(base) for base in pair.base], [np.round(head) for head in pair.head])


def outliers(rng: Generator, pair: PairedTimes) -> PairedTimes:
    """One sample in a hundred takes 100 times as long."""
    return _scaled(pair, *np.where(rng.random((2, PROCESSES, ROUNDS)) < 0.01, 100.0, 1.0))


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
