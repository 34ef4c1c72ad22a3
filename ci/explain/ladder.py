"""What a ladder of sizes tells: the same kernel from its smallest size to its largest, beside the reference.

Slow already at the smallest, where there is hardly any work: the launch, or something that every call does. Fast there
and slow further up: what grows with the size, bandwidth or occupancy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

LEAST_RUNGS = 5
"""Fewer show no tendency, and are no ladder: a suite has a few sizes anyway."""


class LadderFinding(StrEnum):
    SLOW_FROM_THE_START = "slow from the start"
    SLOW_FURTHER_UP = "slow further up"
    FAST_THROUGHOUT = "fast throughout"


@dataclass(frozen=True)
class SizedCase:
    """A case that was timed beside its reference: typical times in microseconds."""

    card: str
    axes: Mapping[str, object]
    head_us: float
    reference_us: float
    base_us: float | None = None
    """None where the head was measured alone."""


@dataclass(frozen=True)
class Rung:
    """One size."""

    size: int
    head_us: float
    reference_us: float
    base_us: float | None = None

    @property
    def speedup(self) -> float:
        return self.reference_us / self.head_us


@dataclass(frozen=True)
class Ladder:
    card: str
    axis: str
    rungs: tuple[Rung, ...]
    """From the smallest size to the largest."""


@dataclass(frozen=True)
class LadderDiagnosis:
    finding: LadderFinding
    sentence: str


def ladder(cases: Sequence[SizedCase]) -> Ladder | None:
    """The longest series of cases of one card that differ in one whole number alone.

    None where there are fewer than LEAST_RUNGS.
    """
    found: list[Ladder] = []
    for axis in dict.fromkeys(name for case in cases for name, value in case.axes.items() if _size(value)):
        groups: dict[tuple[str, frozenset[tuple[str, object]]], dict[int, Rung]] = {}
        for case in cases:
            size = _size(case.axes.get(axis))
            if size is not None:
                rest = frozenset((name, value) for name, value in case.axes.items() if name != axis)
                rung = Rung(size, case.head_us, case.reference_us, case.base_us)
                groups.setdefault((case.card, rest), {})[size] = rung
        for (card, _), rungs in groups.items():
            found.append(Ladder(card, axis, tuple(rungs[size] for size in sorted(rungs))))
    longest = max(found, key=lambda one: len(one.rungs), default=None)
    return longest if longest is not None and len(longest.rungs) >= LEAST_RUNGS else None


def diagnose(found: Ladder, profile_below: float) -> LadderDiagnosis:
    """`profile_below`: times as fast as the reference, below which a size counts as slow."""
    first = found.rungs[0]
    slow = [rung for rung in found.rungs[1:] if rung.speedup < profile_below]
    at_first = f"at {found.axis}={first.size} {first.speedup:.2g}× as fast as the reference"
    if first.speedup < profile_below:
        rest = f"and slow at {len(slow)} of {len(found.rungs) - 1} larger sizes" if slow else "and fast further up"
        what = "look at the launch and at what every call does, before tiles and bandwidth"
        return LadderDiagnosis(
            LadderFinding.SLOW_FROM_THE_START, f"slow where there is hardly any work: {at_first}, {rest}; {what}"
        )
    if slow:
        worst = min(slow, key=lambda rung: rung.speedup)
        said = f"fast at the smallest size, {at_first}, and slow further up, {worst.speedup:.2g}× at {worst.size}"
        return LadderDiagnosis(
            LadderFinding.SLOW_FURTHER_UP, f"{said}; look at what grows with the size: bandwidth, occupancy"
        )
    least = min(found.rungs, key=lambda rung: rung.speedup)
    said = f"fast at all {len(found.rungs)} sizes, at least {least.speedup:.2g}× at {found.axis}={least.size}"
    return LadderDiagnosis(LadderFinding.FAST_THROUGHOUT, said)


def _size(value: object) -> int | None:
    """A record holds every number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
        return None
    return int(value)
