"""Which commits to measure next, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from kernelgate.ci.bisect.posterior import Posterior, Two
from kernelgate.ci.bisect.search import Search
from kernelgate.ci.judge.stats import Array

NORMAL_95 = 1.959964
"""Standard deviations to either side that hold 95% of a normal distribution."""
UNSETTLED = 0.5
"""Where two changes are likelier than one, no commit is named alone."""
LEAST_GAIN = 0.01
"""A further commit that is expected to tell less than this, in nats, is not measured."""

CHANCE: Final = 0.99
"""The search for a commit ends when one, or commits that cannot be told apart, has this probability."""
SMALLEST_PCT: Final = 0.2
"""Ends that differ by less, with 95% certainty, have no culprit."""
LIBRARIES: Final = 8
"""At most so many libraries in one process, both ends of the range among them."""
PROCESSES: Final = 2
"""Of a round."""


@dataclass(frozen=True)
class SearchStanding:
    """Where a search stands."""

    kind: Literal["found", "none", "several", "open"]
    culprits: tuple[int, ...]
    """The likeliest commit, or commits that nothing measurable lies between."""
    chance: float
    """That it is one of them, if one change is all there is."""
    effect: float
    """The log change, if it is, …"""
    error: float
    """… and its standard deviation."""
    two: Two | None = None
    """Where two commits changed the time."""


def standing(search: Search, found: Posterior) -> SearchStanding:
    """What is known by now; all but `open` end a search."""
    ends = [*search.measurable, search.last]
    groups = [range(before + 1, end + 1) for before, end in zip([0, *ends], ends, strict=False)]
    best = max(groups, key=lambda group: float(found.culprit[group.start : group.stop].sum()))
    one = max(1 - found.several, 1e-300)
    chance = float(found.culprit[best.start : best.stop].sum()) / one
    culprits = tuple(at for at in best if found.culprit[at] > 0)
    effect, error = found.effect(best.start, best.stop - 1) if search.processes else (0.0, 0.0)
    if found.several >= CHANCE:
        return SearchStanding("several", (), found.several, effect, error, found.two)
    if found.several >= UNSETTLED:
        return SearchStanding("open", culprits, chance, effect, error)
    if search.processes and chance >= CHANCE:
        return SearchStanding("found", culprits, chance, effect, error)
    alike = search.processes and abs(effect) + NORMAL_95 * error < math.log1p(SMALLEST_PCT / 100)
    if found.none / one >= CHANCE or alike:
        return SearchStanding("none", (), found.none, effect, error)
    return SearchStanding("open", culprits, chance, effect, error)


def processes(search: Search, found: Posterior) -> tuple[tuple[int, ...], ...]:
    """The commits of each process of the next round, both ends among them.

    What measuring tells of a commit is on which side of it the culprit lies. If times were exact, commits would tell
    the entropy of the parts into which they split the culprit's probability; they are all about as exact, so those
    that split it best come first, whatever the noise. First no two processes measure the same; where nothing is left
    to split, they repeat what splits best, which is what noise has left open.
    """
    room = LIBRARIES - 2
    chosen: list[list[int]] = [[] for _ in range(PROCESSES)]
    splits: list[int] = []
    for turn in range(room * PROCESSES):
        best = _best(search.measurable, splits, found.culprit)
        if best is None:
            break
        splits.append(best)
        chosen[turn % PROCESSES].append(best)
    for one in chosen:
        while len(one) < room and (best := _best(search.measurable, one, found.culprit)) is not None:
            one.append(best)
    return tuple((0, *sorted(one), search.last) for one in chosen)


def _best(candidates: Iterable[int], splits: Sequence[int], chances: Array) -> int | None:
    """The commit that splits what these leave together most evenly, weighted by its probability."""
    gains = {at: _entropy([*splits, at], chances) for at in candidates if at not in splits}
    if not gains:
        return None
    best = max(gains, key=lambda at: (gains[at], -at))
    gain = gains[best] - _entropy(splits, chances)
    return best if gain > (LEAST_GAIN if splits else 0.0) else None


def _entropy(splits: Sequence[int], chances: Array) -> float:
    """Of the parts of the culprit's probability: a culprit at or before a split, or after it."""
    parts = np.add.reduceat(chances, [0, *(at + 1 for at in sorted(splits))])
    parts = parts[parts > 0] / max(float(chances.sum()), 1e-300)
    return -float(parts @ np.log(parts))
