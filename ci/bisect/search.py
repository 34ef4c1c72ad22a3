"""What is known of a search, as plain data: the commits, what was measured, and what cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CommitTime:
    """One commit's time in one process."""

    log_time: float
    """Of the commit, beside the others of the process: any constant may be added to all of them."""
    variance: float
    """Of that, as its rounds show it."""


ProcessRead = Mapping[int, CommitTime]
"""The commits of one process, or of processes that took turns, by their place in the range; at least two."""


@dataclass(frozen=True)
class Search:
    """Commits from the good end, 0, to the bad end, `last`. The culprit is the first one with the new time."""

    last: int
    processes: tuple[ProcessRead, ...] = ()
    unmeasurable: Mapping[int, str] = field(default_factory=dict)
    """Commits that are stepped over, and why."""
    same: frozenset[tuple[int, int]] = frozenset()
    """Pairs of commits, the earlier first, whose libraries are the same: nothing between them is the culprit."""
    spread_pct: float = 0.15
    """How far times of one commit beside others scatter from process to process, as far as is known beforehand."""

    @property
    def measurable(self) -> tuple[int, ...]:
        """The commits between the ends that may be measured."""
        return tuple(at for at in range(1, self.last) if at not in self.unmeasurable)
