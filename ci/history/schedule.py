"""Which suspicions are measured tonight: the pairs of commits that fit into the night's GPU-seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelgate.ci.history.changes import Change
from kernelgate.ci.judge import power
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class Suspicion:
    """A suspected change of one series, with what comparing its commits takes."""

    series: str
    change: Change
    process_seconds: float
    """GPU-seconds of one process of a comparison, for this case."""
    spread_pct: float | None = None
    """How far the case's processes are known to scatter; None where it is not known."""
    waited: int = 0
    """Nights that it has been waiting for its turn."""


@dataclass(frozen=True)
class PlannedPair:
    """Two commits to compare, in all series that suspect them, in the same processes."""

    previous: str
    commit: str
    series: tuple[str, ...]
    processes: int
    gpu_seconds: float


@dataclass(frozen=True)
class Schedule:
    pairs: tuple[PlannedPair, ...]
    postponed: tuple[Suspicion, ...]
    """There was no time for these; they come again with one night more of waiting."""

    @property
    def gpu_seconds(self) -> float:
        return sum(one.gpu_seconds for one in self.pairs)


def of_night(suspicions: Iterable[Suspicion], policy: Policy) -> Schedule:
    """The most promising pairs that fit: by how much change each second is likely to reveal, and how long it waited."""
    open_ = [one for one in suspicions if one.change.state == "suspected"]
    groups: dict[tuple[str, str], list[Suspicion]] = {}
    for one in open_:
        groups.setdefault((one.change.previous, one.change.commit), []).append(one)
    left = policy.changes.gpu_seconds_a_night
    pairs, postponed = [], []
    for group in sorted(groups.values(), key=_worth, reverse=True):
        seconds = sum(one.process_seconds for one in group)
        fitting = policy.processes.limit if seconds <= 0 else math.floor(left / seconds)
        processes = min(max(needed(one, policy) for one in group), fitting)
        if processes < policy.processes.minimum:
            postponed += group
            continue
        names = tuple(one.series for one in group)
        first = group[0].change
        pairs.append(PlannedPair(first.previous, first.commit, names, processes, seconds * processes))
        left -= seconds * processes
    return Schedule(tuple(pairs), tuple(postponed))


def needed(suspicion: Suspicion, policy: Policy) -> int:
    """Processes that show a change of the suspected size; the policy's limit where no fewer would."""
    spread_pct = suspicion.spread_pct if suspicion.spread_pct is not None else policy.spread.change_pct
    size = abs(math.log1p(suspicion.change.change_pct / 100))
    least, most = policy.processes.to_direct, policy.processes.limit
    for processes in range(least, most):
        error = max(spread_pct, policy.spread.change_pct) / 100 / math.sqrt(processes)
        if power.smallest(error, processes - 1, policy.changes.confirm_p / 2, policy.certainty.power) <= size:
            return processes
    return most


def _worth(group: Sequence[Suspicion]) -> float:
    """Percent of change that a second of the GPU is likely to reveal, more with each night of waiting."""
    gain = sum(one.change.chance * abs(one.change.change_pct) for one in group)
    seconds = max(sum(one.process_seconds for one in group), 1e-9)
    return gain / seconds * (1 + max(one.waited for one in group))
