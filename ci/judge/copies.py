"""Times that stand in a record twice, or follow from others: pasted or computed, not measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from kernelgate.bench.record import RunRecord, TimedCase, timed_cases
from kernelgate.ci.judge.stats import Array

CHANCE = 1e-12
"""Two processes hold the same stretch of times with no more than this probability, or nothing is said of it."""
SHORTEST = 12
"""Fewer times in a row say nothing: a pasted process has many more."""
ASKED = 1000
SIDES = ("base", "head")


LOCKSTEP = 1e-5
"""Head and base that keep their ratio to such a share of it, round by round, were not both timed."""


def copied(record: RunRecord) -> str | None:
    """The first times of a case that stand in two processes, or that are the base's times a factor, as a sentence."""
    cases = timed_cases(record)
    return next((found for case in cases for found in (*_of_case(case), *_in_lockstep(case))), None)


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


def _of_case(case: TimedCase) -> Iterator[str]:
    for side in SIDES:
        known = [(process.process.id, process.samples_us.get(side, ())) for process in case.processes]
        for (one, first), (other, second) in combinations(((id_, np.array(times)) for id_, times in known), 2):
            if not _same_stretch(first, second, SHORTEST):
                continue
            length = telling(first, second)
            if length and (same := _same_stretch(first, second, length)):
                times = f"the same {same} times" if same < len(first) else f"the same times, all {same},"
                yield f"processes {one} and {other} hold {times} of the {side} of {case.id}: copied, not measured"


def telling(first: Array, second: Array) -> int | None:
    """So many equal times in a row are no coincidence, wherever they stand; None where all of them could be one.

    How readily times repeat is asked within each process, where nothing was pasted. A coarse clock takes a longer
    stretch, and so do times that stay on a tick for long.
    """
    alike = max((_alike(times) for times in (first, second)), default=1.0)
    places = len(first) * len(second)
    if alike >= 1 or not places:
        return None
    length = math.ceil(math.log(CHANCE / places) / math.log(alike))
    return length if length <= min(len(first), len(second)) else None


def _alike(times: Array) -> float:
    """The chance that two of these times are equal, or that what follows two equal ones is."""
    if len(times) < 2:
        return 1.0
    times = times[:ASKED]
    equal = times[:, None] == times[None, :]
    np.fill_diagonal(equal, False)
    followed = equal[:-1, :-1]
    both = int((followed & equal[1:, 1:]).sum())
    pairs = len(times) * (len(times) - 1)
    # One coincidence more than was seen: none in a hundred times does not mean that there are none.
    return max((int(equal.sum()) + 2) / (pairs + 2), (both + 2) / (int(followed.sum()) + 2) if both else 0.0)


def _same_stretch(first: Array, second: Array, length: int) -> int:
    """How many times of the first process stand in stretches that the second holds as well, of at least this length."""
    known = {window.tobytes() for window in _windows(second, length)}
    inside = np.zeros(len(first), dtype=bool)
    for start, window in enumerate(_windows(first, length)):
        if window.tobytes() in known:
            inside[start : start + length] = True
    return int(inside.sum())


def _windows(times: Array, length: int) -> Sequence[Array]:
    return list(np.lib.stride_tricks.sliding_window_view(times, length)) if len(times) >= length else []
