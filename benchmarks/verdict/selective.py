"""Records of many cases, timed as `kernelgate bench` does: again the undecided ones, and a few decided ones beside.

Compared with timing all cases again as long as one of them is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verdict import records
from benchmarks.verdict.records import POLICY, SETS, Generator, PairedTimes, record
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.judge.case import Direction
from kernelgate.ci.judge.verdict import judge, undecided

CASES = 9
"""As many as the suite of a pull request has."""
CONTROLS = 2
"""Decided cases in each further process, as in bench/timing/paired.py."""

Again = Callable[[Generator, frozenset[CaseKey], Sequence[CaseKey]], frozenset[CaseKey]]
"""Which cases the next process holds, given the undecided ones and all that may have another."""


@dataclass(frozen=True)
class Spent:
    """Of many records: the share in which any case got a direction that is not its own, and processes by case."""

    wrong: float
    processes: float


def only_undecided(rng: Generator, open_: frozenset[CaseKey], able: Sequence[CaseKey]) -> frozenset[CaseKey]:
    rest = sorted(set(able) - open_)
    return open_ | {rest[n] for n in rng.permutation(len(rest))[:CONTROLS]}


def everything(_: Generator, open_: frozenset[CaseKey], able: Sequence[CaseKey]) -> frozenset[CaseKey]:
    return open_ | frozenset(able)


def identical(_: Generator) -> list[int]:
    return CASES * [1]


def one_slower(rng: Generator) -> list[int]:
    """One case of nine has 5% more work."""
    changed = int(rng.integers(CASES))
    return [6 if n == changed else 1 for n in range(CASES)]


def each_its_own(rng: Generator) -> list[int]:
    """Each case has another amount of work more, or none."""
    return [int(n) for n in rng.integers(1, len(records.effects()) + 1, CASES)]


MIXES: dict[str, Callable[[Generator], list[int]]] = {
    "nine identical": identical,
    "one of nine 5% slower": one_slower,
    "nine with 0 to 10% more work": each_its_own,
}
"""By name: the variant of the traces that each case's head is."""
WAYS: dict[str, Again] = {"undecided cases again": only_undecided, "all cases again": everything}


def spent(mix: str, way: str, draws: int, seed: int) -> Spent:
    """Draws so many records and times each in the given way; with one seed, both ways get the same records."""
    rng, choosing = np.random.default_rng(seed), np.random.default_rng(seed)
    wrong, processes = 0, 0
    for _ in range(draws):
        variants = MIXES[mix](rng)
        cases = [records.paired_times(rng, SETS[int(rng.integers(len(SETS)))], variant) for variant in variants]
        made = _timed(choosing, cases, WAYS[way])
        found = judge(made, POLICY).cases
        wrong += any(
            one.direction is Direction.FASTER or (one.direction is Direction.SLOWER and variant == 1)
            for one, variant in zip(found, variants, strict=True)
        )
        processes += sum(one.processes for one in found)
    return Spent(wrong / draws, processes / draws / CASES)


def _timed(rng: Generator, cases: Sequence[PairedTimes], again: Again) -> RunRecord:
    """The record when nothing is undecided any more."""
    counts = [POLICY.processes.minimum] * len(cases)
    while True:
        made = record(
            *({side: times[:n] for side, times in one.sides.items()} for one, n in zip(cases, counts, strict=True))
        )
        open_ = undecided(made, POLICY)
        if not open_:
            return made
        keys = [case.key for case in made.cases]
        able = [key for key, count in zip(keys, counts, strict=True) if count < POLICY.processes.limit]
        chosen = again(rng, open_, able)
        counts = [count + (key in chosen) for key, count in zip(keys, counts, strict=True)]
