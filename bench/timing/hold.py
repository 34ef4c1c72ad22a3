"""Whether the device can be held until the host has queued all calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

IN_A_ROW, SHARE_OF_HOLD = 4, 0.75
"""So many batches in a row must have come late, though each was held for longer, because of one call that took the host
at least this share of the hold. A host that is slow by chance would have to be twice as slow each time."""


@dataclass(frozen=True)
class LateBatch:
    """One that the host had queued only after the device began it."""

    hold_us: float
    """How long the device was held."""
    longest_us: float
    """The longest that the host took to queue one part of it."""


def waits_for_device(late: Sequence[LateBatch]) -> bool:
    """Whether calls wait for the device, as `.item()` does: then they are late however long it is held."""
    last = late[-IN_A_ROW:]
    return len(last) == IN_A_ROW and all(one.longest_us >= SHARE_OF_HOLD * one.hold_us for one in last)
