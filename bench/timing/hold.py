"""Whether the device can be held until the host has queued all calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

RISES, SAME_RISE = 3, 0.8
"""So many times in a row a longer hold must have made the host later by as much, or nearly. A host that is slow by
chance would have to be slower each time, and by what the device was held longer."""


@dataclass(frozen=True)
class LateBatch:
    """How long the device was held before a batch, and after how long the host had queued it, which was too late."""

    hold_us: float
    queued_us: float


def waits_for_device(late: Sequence[LateBatch]) -> bool:
    """Whether calls wait for the device, as `.item()` does: the longer it is held, the later they are queued."""
    rises = [
        later.queued_us - one.queued_us >= SAME_RISE * (later.hold_us - one.hold_us) > 0
        for one, later in pairwise(late)
    ]
    return len(rises) >= RISES and all(rises[-RISES:])
