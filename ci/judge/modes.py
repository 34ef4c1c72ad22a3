"""Times that fall into two modes: not whether there are modes, but whether base and head are in them equally often.

Equal shares cancel in the ratio, whether the sides change mode in the same rounds or each in its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelgate.ci.document import formatting
from kernelgate.ci.judge import correlation, stats
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.judge.validity import Finding, Moved, percent

BIMODAL = "bimodal"
MODE_DISTANCE_PCT: Final = 3.0
"""Two modes are named if they are at least this far apart, each with at least MODE_SHARE of a side's samples, and
with at most MODE_OVERLAP in the middle half between them. They matter only if base and head are in the slow mode
unequally often (probability by chance below MODE_SHARE_P). Then the interval is wider by as much, or there is no
verdict if that is beyond the margin and half of the change."""
MODE_SHARE: Final = 0.15
MODE_OVERLAP: Final = 0.05
MODE_SHARE_P: Final = 1e-3
SCATTER_PRIOR: Final = 30
"""So many processes' worth of belief that shares scatter as their rounds say: most modes are drawn round by round."""


@dataclass(frozen=True)
class TwoModes:
    """Of one side, in log time."""

    low: float
    high: float
    slow: tuple[Array, ...]
    """By process, of each sample whether it is in the slow mode: 0 or 1."""

    @property
    def shares(self) -> list[float]:
        """By process, of samples in the slow mode."""
        return [float(samples.mean()) for samples in self.slow]

    def keeps(self) -> bool:
        """Whether each process keeps to one mode."""
        return all(min(share, 1 - share) < MODE_SHARE for share in self.shares)

    def named(self, side: str, verb: str) -> str:
        return f"the {side} {verb} {math.exp(self.low):.4g} and {math.exp(self.high):.4g} µs"


@dataclass(frozen=True)
class Share:
    """How much more often the head is in its slow mode than the base, and how far apart the modes are in log time."""

    difference: Pooled
    distance: float

    @property
    def bound(self) -> float:
        """The most that it makes of a log change."""
        return self.distance * min(1.0, abs(self.difference.change) + self.difference.half_width(0.05))


def of_side(side: str, processes: Sequence[Array]) -> list[Finding]:
    """What is to be said of one side's modes. They forbid a verdict: how often the other was in which is unknown."""
    two = two_modes([np.log(samples) for samples in processes])
    if two is None:
        return []
    return [_kept(side, two)] if two.keeps() else [Finding(BIMODAL, two.named(side, "jumps between"), True)]


def of_sides(base: Sequence[Array], head: Sequence[Array]) -> Moved:
    """What is to be said of the modes of both sides, and how far they may have moved the change."""
    logs = {side: [np.log(samples) for samples in processes] for side, processes in (("base", base), ("head", head))}
    modes = {side: two for side, processes in logs.items() if (two := two_modes(processes))}
    kept = tuple(_kept(side, two) for side, two in modes.items() if two.keeps())
    jumping = {side: two for side, two in modes.items() if not two.keeps()}
    if not jumping:
        return Moved(0.0, kept)
    share = _compared(logs, jumping)
    if share.difference.p() < MODE_SHARE_P:
        return Moved(share.bound, (*kept, _differing(jumping, share)))
    return Moved(0.0, (*kept, *_equal(jumping)))


def two_modes(processes: Sequence[Array]) -> TwoModes | None:
    """The two modes of a side's log times; None where they are one, or too close to be worth a word."""
    together = np.concatenate(processes)
    split = stats.modes(together)
    apart = split.high - split.low > math.log1p(MODE_DISTANCE_PCT / 100)
    if not apart or split.smaller_share < MODE_SHARE or split.middle_share > MODE_OVERLAP:
        return None
    middle = (split.low + split.high) / 2
    return TwoModes(split.low, split.high, tuple((samples > middle).astype(float) for samples in processes))


def speeds_us(processes: Sequence[Array]) -> tuple[float, ...]:
    """A side's typical times in microseconds: of both modes, the faster first, or of all where they are one."""
    logs = [np.log(samples) for samples in processes]
    two = two_modes(logs)
    return (math.exp(two.low), math.exp(two.high)) if two else (math.exp(float(np.median(np.concatenate(logs)))),)


def _like(other: TwoModes, processes: Sequence[Array]) -> TwoModes:
    """This side's samples by modes as far apart as the other side's: its own are too rare to be found, or none.

    Its bulk is the fast mode or the slow one, whichever leaves more samples in the second.
    """
    together, distance = np.concatenate(processes), other.high - other.low
    bulk = float(np.median(together))
    above, below = (float(np.mean(sign * (together - bulk) > distance / 2)) for sign in (1, -1))
    low = bulk if above >= below else bulk - distance
    return TwoModes(low, low + distance, tuple((samples > low + distance / 2).astype(float) for samples in processes))


def _compared(logs: Mapping[str, Sequence[Array]], jumping: Mapping[str, TwoModes]) -> Share:
    """McNemar's (1947) comparison of paired shares: rounds in which both sides are in the same mode cancel.

    Neighbouring rounds may be alike, and so may those of a process: its share then scatters more than its rounds say.
    How much more is moderated as for the change itself.
    """
    first = next(iter(jumping.values()))
    base, head = (jumping.get(side) or _like(first, logs[side]) for side in ("base", "head"))
    rounds = [now - was for was, now in zip(base.slow, head.slow, strict=True)]
    means = np.array([float(each.mean()) for each in rounds])
    centred = [each - mean for each, mean in zip(rounds, means, strict=True)]
    total, processes = sum(map(len, rounds)), len(rounds)
    # A round more on either side: where hardly any round differs, it may be by chance.
    squares = sum(float(each @ each) for each in centred) + 2
    variance = correlation.inflation(centred) * squares / total**2
    scatter = float(means.var(ddof=1)) / processes / variance if processes > 1 else 1.0
    df = SCATTER_PRIOR + processes - 1
    ratio = max(1.0, (SCATTER_PRIOR + (processes - 1) * scatter) / df)
    return Share(
        Pooled(float(np.concatenate(rounds).mean()), math.sqrt(ratio * variance), df),
        max(two.high - two.low for two in jumping.values()),
    )


def _kept(side: str, two: TwoModes) -> Finding:
    """Whether the processes agree on the change is asked elsewhere."""
    text = two.named(side, "sits at").replace(" and ", " or ")
    return Finding(BIMODAL, f"{text} from process to process", False)


def _equal(jumping: Mapping[str, TwoModes]) -> list[Finding]:
    return [
        Finding(BIMODAL, f"{two.named(side, 'jumps between')}, as often as the other side", False)
        for side, two in jumping.items()
    ]


def _differing(jumping: Mapping[str, TwoModes], share: Share) -> Finding:
    (side, two), more = next(iter(jumping.items())), share.difference.change
    often = f"the head is {100 * abs(more):.0f}% of the rounds {'more' if more > 0 else 'less'} in the slow mode"
    far = formatting.percent(percent(share.bound))
    return Finding(BIMODAL, f"{two.named(side, 'jumps between')}, and {often}: up to {far} of change", False)
