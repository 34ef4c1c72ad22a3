"""The outcomes that advice is learnt from: every try that was measured in any session, as reviewers corrected it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.judge.case import Status
from kernelgate.ci.lab import folder as sessions
from kernelgate.ci.lab import labels
from kernelgate.ci.lab.folder import FOLDER
from kernelgate.ci.lab.log import FILE, Event, Opened, TriedChange

BLIND = "unknown"
"""The bottleneck of a try before which nobody made a profile."""


@dataclass(frozen=True)
class Features:
    """What is known before a try: where, what holds the kernel back, and what is to be done about it."""

    architecture: str
    bottleneck: str
    action: str

    @property
    def aimed(self) -> bool:
        """Whether the cookbook has the action against this bottleneck."""
        known = CATALOGUE.get(self.action)
        return known is not None and any(one.value == self.bottleneck for one in known.against)


@dataclass(frozen=True)
class TryResult:
    """One try and what came of it."""

    session: Opened
    tried: TriedChange
    features: Features
    folder: Path
    """Of the session: its diffs stand there."""

    @property
    def helped(self) -> bool:
        return helped(self.tried)

    @property
    def log_gain(self) -> float | None:
        """The logarithm of how many times as fast, the mean over its cases; None where nothing was timed."""
        changes = [one.change_pct for one in self.tried.outcomes]
        return -sum(math.log1p(change / 100) for change in changes) / len(changes) if changes else None


def helped(tried: TriedChange) -> bool:
    """Whether a try is certain to be an improvement, by the judge: faster in a case, and slower in none.

    What did not build, was wrong, or could not be told from no change at all did not help.
    """
    statuses = [Status[one.status.upper()] for one in tried.outcomes]
    return any(one.is_faster for one in statuses) and not any(one.is_slower for one in statuses)


def gain_pct(log_gain: float) -> float:
    """Of the time: what goes away; negative where it takes longer."""
    return -100 * math.expm1(-log_gain)


def read(folder: Path = FOLDER) -> tuple[TryResult, ...]:
    """Of every session in the folder, by name. Raises SessionError naming the line that is no event."""
    logs = sorted(folder.glob(f"*/{FILE}"))
    return tuple(one for path in logs for one in of_events(sessions.read(path.parent).events, path.parent))


def of_events(events: Iterable[Event], folder: Path) -> tuple[TryResult, ...]:
    """What can be learnt from one session: nothing of one that was recorded from a document, nothing of a try that
    nobody named an action for or that could not be measured."""
    all_events = tuple(events)
    opened = next((one for one in all_events if isinstance(one, Opened)), None)
    if opened is None or opened.source == "recorded":
        return ()
    return tuple(
        TryResult(opened, one, Features(opened.architecture or BLIND, one.bottleneck or BLIND, one.action), folder)
        for one in labels.corrected(all_events)
        if one.action is not None and one.failed != "measurement"
    )
