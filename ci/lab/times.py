"""Times of events: minutes between them, and what a clock that jumps leaves of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from kernelgate.ci.lab.log import Event


def minutes_between(earlier: str | None, later: str | None) -> float | None:
    """None where a time is not known; 0 where the clock went back in between."""
    if earlier is None or later is None:
        return None
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 60)


def in_words(minutes: float) -> str:
    """Such as "12.3 min"; less than a minute is told in seconds."""
    return f"{60 * minutes:.0f} s" if minutes < 1 else f"{minutes:.3g} min"


def jumps(events: Sequence[Event], until: str) -> Iterator[str]:
    """A sentence on each place where the clock went back."""
    known = [event.at for event in events if event.at is not None]
    for earlier, later in pairwise([*known, until]):
        back = (datetime.fromisoformat(earlier) - datetime.fromisoformat(later)).total_seconds()
        if back > 1:
            yield f"the clock went back by {back:.0f} s after {earlier}: times of this session are not to be relied on"
