"""Times that stand in a record twice, or follow from others: pasted or computed, not measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from kernelgate.bench.record import RunRecord, TimedCase, timed_cases
from kernelgate.ci.judge.stats import Array

CHANCE: Final = 1e-12
"""Two processes hold the same stretch of times with no more than this probability, or nothing is said of it."""
SHORTEST: Final = 12
"""Fewer times in a row say nothing: a pasted process has many more."""
ASKED: Final = 1000
SIDES = ("base", "head")
LOCKSTEP: Final = 1e-5
"""Head and base that keep their ratio to such a share of it, round by round, were not both timed."""


def duplicated(record: RunRecord) -> str | None:
    """The first times of a case that stand in two processes, or that are the base's times a factor, as a sentence."""
    cases = timed_cases(record)
    return next((found for case in cases for found in (*_pasted(case), *_in_lockstep(case))), None)


def _in_lockstep(case: TimedCase) -> Iterator[str]:
    for process in case.processes:
        base, head = (np.array(process.samples_us.get(side, ())) for side in SIDES)
        # Of few different times, a coarse clock gives the same ratio again and again.
        if len(base) != len(head) or len(np.unique(base)) < SHORTEST:
            continue
        ratio = head / base
        usual = float(np.median(ratio))
        if float(np.quantile(np.abs(ratio / usual - 1), 0.9)) < LOCKSTEP:
            name = process.process.id
            yield f"in process {name}, the head's times of {case.id} are {usual:.4g} times the base's: not measured"


@dataclass(frozen=True)
class _Timed:
    """One side of one process. What is asked of it for each of the others is made once."""

    id: str
    times: Array

    @cached_property
    def short_stretches(self) -> frozenset[bytes]:
        return frozenset(_stretches(self.times, SHORTEST))

    @cached_property
    def alike(self) -> float:
        """The chance that two of these times are equal, or that what follows two equal ones is."""
        times = self.times[:ASKED]
        equal = times[:, None] == times[None, :]
        np.fill_diagonal(equal, False)
        followed = equal[:-1, :-1]
        both = int((followed & equal[1:, 1:]).sum())
        pairs = len(times) * (len(times) - 1)
        # One coincidence more than was seen: none in a hundred times does not mean that there are none.
        return max((int(equal.sum()) + 2) / (pairs + 2), (both + 2) / (int(followed.sum()) + 2) if both else 0.0)


def _pasted(case: TimedCase) -> Iterator[str]:
    for side in SIDES:
        known = [_Timed(process.process.id, np.array(process.samples_us.get(side, ()))) for process in case.processes]
        for first, second in combinations(known, 2):
            # How readily times repeat is asked within each process, where nothing was pasted. A coarse clock takes a
            # longer stretch, and so do times that stay on a tick for long.
            if first.short_stretches.isdisjoint(second.short_stretches):
                continue
            alike = max(first.alike, second.alike)
            if alike >= 1:
                continue
            # So many equal times in a row are no coincidence, wherever they stand.
            length = math.ceil(math.log(CHANCE / (len(first.times) * len(second.times))) / math.log(alike))
            # How many times of the first process stand in stretches that the second holds as well.
            known_stretches = frozenset(_stretches(second.times, length))
            inside = np.zeros(len(first.times), dtype=bool)
            for start, stretch in enumerate(_stretches(first.times, length)):
                inside[start : start + length] |= stretch in known_stretches
            if same := int(inside.sum()):
                times = f"the same {same} times" if same < len(first.times) else f"the same times, all {same},"
                both = f"processes {first.id} and {second.id}"
                yield f"{both} hold {times} of the {side} of {case.id}: copied, not measured"


def _stretches(times: Array, length: int) -> list[bytes]:
    """So many times in a row, from each that has so many after it."""
    data, size = times.tobytes(), times.itemsize
    return [data[size * start : size * (start + length)] for start in range(len(times) - length + 1)]
