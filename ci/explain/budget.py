"""The time budget: a measured change of time, split into the causes that the two profiles show."""

from __future__ import annotations

from dataclasses import dataclass


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
