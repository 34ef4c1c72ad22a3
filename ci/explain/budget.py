"""The time budget: a measured change of time, split into the causes that the two profiles show.

A kernel's cycles are the cycles that its warps spend, over the warps that share them: those of instructions that issue
or wait for one another, and those of waits for memory, shared memory and barriers (Nsight Compute's warp states, per
issued instruction). Logarithms of ratios add up, so each factor has its part: the logarithmic mean Divisia index of
Ang, Energy Policy 32 (2004). What moved a wait, such as spills, is named in its place where a count shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.ci.explain import split

WORTH_A_WORD = 0.08
"""The share of the change from which on a contribution is named: with ten of less, most would still be named."""
STEADY = 0.02
"""Occupancy varies by less from run to run."""


@dataclass(frozen=True)
class Contribution:
    """One cause's part of the change."""

    metric: str
    """The figure that moved, by its key in explain/metrics.py; `stall_…` for a wait."""
    before: float
    after: float
    share_pct: float
    """Percent of the base's time, positive where it costs time: shares and `unexplained_pct` sum to `change_pct`."""
    because: str = ""
    """What moved this figure, where the profiles show it: "shared memory rose 48 → 144 KiB"."""


@dataclass(frozen=True)
class Budget:
    """What became of the base's time: the bars of a waterfall from 0 to `change_pct`."""

    change_pct: float
    """The measured change of time, head against base; positive is slower."""
    contributions: tuple[Contribution, ...]
    """Those worth a word, the largest in the change's direction first, then those against it."""
    unexplained_pct: float
    """What is left of the change, in percent of the base's time."""
    profiled_pct: float | None
    """The change of the profile's own duration at equal clocks; None where a side does not hold it."""
    unchanged: tuple[str, ...] = ()
    """What people would suspect and what did not change, in words: "registers", "occupancy", "spills"."""

    @property
    def is_shown(self) -> bool:
        """Whether the profiles show the measured change: its direction, and at least half of its size."""
        if self.profiled_pct is None:
            return bool(self.contributions)
        return self.profiled_pct * self.change_pct > 0 and abs(self.profiled_pct) >= abs(self.change_pct) / 2


def budget(before: Mapping[str, float], after: Mapping[str, float], change_pct: float) -> Budget:
    """Splits the measured change by the figures of both profiles. Figures that are missing explain nothing."""
    parts = split.parts(before, after)
    total = sum(part.log for part in parts) if parts else None
    profiled = None if total is None else 100 * math.expm1(total)
    # Points of percent for a logarithm, so that the parts sum up to the profiled change.
    points = 100 * math.expm1(total) / total if total else 100.0
    sign = math.copysign(1, change_pct)
    least = WORTH_A_WORD * abs(change_pct)
    named = [
        Contribution(part.metric, part.before, part.after, points * part.log, part.because)
        for part in parts
        if abs(points * part.log) >= least and part.metric
    ]
    named.sort(key=lambda one: -sign * one.share_pct)
    left = change_pct - sum(one.share_pct for one in named)
    return Budget(change_pct, tuple(named), left, profiled, _unchanged(before, after))


def _unchanged(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, ...]:
    keys = {"registers": "registers", "occupancy_pct": "occupancy", "local_instructions": "spills"}
    return tuple(
        words
        for key, words in keys.items()
        if key in before and key in after and abs(after[key] - before[key]) <= STEADY * before[key]
    )
