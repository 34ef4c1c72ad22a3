"""Which source lines gained samples of the profiler, and which lost them: two sides' hot spots, line by line.

How many samples a launch gives depends on how long it ran, so shares of them are compared. A line is the same on both
sides where file and text are the same, whatever its number: what stands above it may have grown. No line is called the
cause: a share grows also where others shrink, and warps wait at one line for what another one asked for. Where the
padding of a tile in shared memory was removed, on an H200, the line that gained most read the thread's index: its queue
was full of another line's bank conflicts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.bench.record import HotLine, HotSpots

SURE = 3.0
"""Standard errors of a difference of shares; less may be chance."""


@dataclass(frozen=True)
class SampleShare:
    """Of one side's samples, in percent: the least and the most, where the record does not list all lines."""

    low: float
    high: float


@dataclass(frozen=True)
class MovedLine:
    """One line on both sides; several where a file has the same text more than once."""

    file: str
    text: str | None
    base_lines: tuple[int, ...]
    head_lines: tuple[int, ...]
    base: SampleShare
    head: SampleShare
    base_stall: str | None
    head_stall: str | None
    error_pct: float
    """Standard error of the difference of both shares, in points."""

    @property
    def gain_pct(self) -> float:
        """By how many points of the samples the line gained at least; negative where it lost."""
        return max(self.head.low - self.base.high, 0.0) - max(self.base.low - self.head.high, 0.0)

    @property
    def is_sure(self) -> bool:
        """Whether it is more than the chance of sampling."""
        return abs(self.gain_pct) > SURE * self.error_pct


def moved_lines(base: HotSpots, head: HotSpots) -> tuple[MovedLine, ...]:
    """Every line that either side lists: what gained most first, what lost most last."""
    # By a file, and a line's text; its number where it has no text, as in compilers' headers: the same on both sides.
    sides: dict[tuple[str, str | int], tuple[list[HotLine], list[HotLine]]] = defaultdict(lambda: ([], []))
    for side, spots in ((1, head), (0, base)):
        for one in spots.lines:
            sides[one.file, one.line if one.text is None else one.text.strip()][side].append(one)
    found = [_moved(file, *lines, base, head) for (file, _), lines in sides.items()]
    return tuple(sorted(found, key=lambda one: (-one.gain_pct, -one.head.low, one.file, one.head_lines)))


def _moved(file: str, before: Sequence[HotLine], after: Sequence[HotLine], base: HotSpots, head: HotSpots) -> MovedLine:
    most = max(len(before), len(after))
    shares = _share(before, base, most), _share(after, head, most)
    return MovedLine(
        file=file,
        text=next((one.text for one in (*after, *before)), None),
        base_lines=tuple(sorted(one.line for one in before)),
        head_lines=tuple(sorted(one.line for one in after)),
        base=shares[0],
        head=shares[1],
        base_stall=before[0].stall if before else None,
        head_stall=after[0].stall if after else None,
        error_pct=math.hypot(_error(shares[0], base.samples), _error(shares[1], head.samples)),
    )


def _share(lines: Sequence[HotLine], spots: HotSpots, most: int) -> SampleShare:
    """`most`: how many lines of this text the other side lists, of which this one may have left some out."""
    low = 100 * sum(one.samples for one in lines) / spots.samples
    left = spots.samples - sum(one.samples for one in spots.lines)
    unlisted = 100 * min([left, *(one.samples for one in spots.lines)]) / spots.samples  # the most that such a line has
    return SampleShare(low, min(low + (most - len(lines)) * unlisted, 100.0))


def _error(share: SampleShare, samples: int) -> float:
    """Of a share, by the binomial distribution, in points; as if one sample more were there, so that none is sure."""
    part = (share.low / 100 * samples + 1) / (samples + 2)
    return 100 * math.sqrt(part * (1 - part) / (samples + 2))
