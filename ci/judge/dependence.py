"""What the ratio of base and head depends on besides their code: what ran before a sample, and the SM clock. A power
limit slows both sides of a round alike, so it is no such thing by itself. docs/statistics.md has the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelgate.bench.record import TimedProcess
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import location, stats
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.judge.validity import Finding, Moved

CARRY_OVER = "carry_over"
CLOCK_DEPENDENT = "clock_dependent"
CLOCK_BY_SIDE = "clock_by_side"
DEPENDENCE_P: Final = 2e-6
"""What the ratio of base and head depends on: what ran before a sample, the SM clock, the clock by side. Named if
chance explains it with a probability below this (each case asks about seven times: fewer than one in a thousand
records of 27 healthy cases has such a finding) and it makes at least DEPENDENCE_PCT of time. It widens the interval
by as much as was measured, or there is no verdict if that is beyond the margin and half of the change."""
DEPENDENCE_PCT: Final = 0.1
CARRY_OVER_PCT: Final = 0.5
"""A process whose own samples show that what ran before moved its change by more than this (half of the margin) is
excluded, if enough others show nothing of it."""
SIDE_CLOCK_PCT: Final = 0.5
"""An SM clock that differs by this much between the samples of base and head is named. Measured: below 0.05% between
identical kernels on an H200, 1.3% between two implementations."""
DISAGREE_P: Final = 1e-4
"""If chance explains the scatter of the processes, given everything known beforehand, with a probability below this,
they are judged by their own scatter alone, and the verdict says so. No verdict if they are DISAGREE_PCT apart."""
DISAGREE_PCT: Final = 1.0
CELL: Final = 8
"""Fewer rounds of one order tell nothing of it."""
MOVED: Final = 0.75
"""Where the order within rounds is random, a side follows the other one in three of four rounds."""
CLIP: Final = 3.0
"""Robust standard deviations beyond which a round's ratio counts as being there."""
SEEN_CLOCKS: Final = (0.1, 0.9)
"""The change is stated for the clocks between these quantiles of all rounds."""
LEVEL: Final = 0.95
"""Of the bounds on effects that were found."""
PROCESSES: Final = 10
"""As many of one case share what a single test of the case may err."""


@dataclass(frozen=True)
class CarryOver:
    """How much slower, in log time, either side is right after the head than right after the base."""

    base: Pooled
    head: Pooled
    both: Pooled
    """The sum of the two, of which the ratio of the sides is in error."""

    @property
    def moved(self) -> float:
        """How far the mean ratio of rounds lies from that of each side after itself."""
        return -MOVED * self.both.change

    def shown(self, p: float) -> bool:
        return any(_shown(effect, p) for effect in (self.base, self.head, self.both))

    def sentence(self) -> str:
        side, other, slower = "base", "head", self.base.change
        if self.head.p() < self.base.p():
            side, other, slower = "head", "base", -self.head.change
        size = f"{formatting.percent(as_percent(abs(slower)))} {'slower' if slower > 0 else 'faster'}"
        return f"after the {other}, the {side} is {size} than after itself"


def _shown(effect: Pooled, p: float) -> bool:
    return abs(effect.change) > math.log1p(DEPENDENCE_PCT / 100) and effect.p() < p


@dataclass(frozen=True)
class Dependence:
    left_out: frozenset[int] = frozenset()
    """The processes that are no measure of the change, by index."""
    moved: tuple[Moved, ...] = ()


def judged(processes: Sequence[TimedProcess], minimum: int) -> Dependence:
    own = {index: found for index, process in enumerate(processes) if (found := carry_over(process))}
    far = math.log1p(CARRY_OVER_PCT / 100)
    # A case has several processes, which together get as much of the chance of an error as the case's own tests.
    share = DEPENDENCE_P / PROCESSES
    out = {at: one for at, one in own.items() if abs(one.moved) > far and one.shown(share)}
    # Where it is in nearly all, it is no process's own, but the two kernels'.
    out = out if len(processes) - len(out) >= minimum else {}
    left_out = [
        Finding(CARRY_OVER, f"process {at + 1} is left out: there, {one.sentence()}", False) for at, one in out.items()
    ]
    rest = [process for index, process in enumerate(processes) if index not in out]
    moved = [Moved(0.0, (*left_out, *clock_by_side(rest)))]
    if left := [found for index, found in own.items() if index not in out]:
        parts = ([one.base for one in left], [one.head for one in left], [one.both for one in left])
        shared = CarryOver(*map(_weighted, parts))
        width = MOVED * shared.both.error * stats.normal_half_width(LEVEL)
        if shared.shown(DEPENDENCE_P):
            moved.append(_widened(CARRY_OVER, shared.sentence(), abs(shared.moved) + width))
        else:
            # As small as it may be: no direction may rest on that, however uncertain the rest is.
            moved.append(Moved(max(0.0, abs(shared.moved) - width)))
    if dependent := on_clock(rest):
        moved.append(dependent)
    return Dependence(frozenset(out), tuple(moved))


def _widened(code: str, sentence: str, bound: float) -> Moved:
    text = f"{sentence}, which can make {formatting.percent(as_percent(bound))} of the change"
    return Moved(bound, (Finding(code, text, False),))


def carry_over(process: TimedProcess) -> CarryOver | None:
    """A crossover design's test (Grizzle 1965; Senn 2002) of contrasts between rounds whose order was drawn: in which a
    side followed the base, and in which the head. None where the record does not say."""
    before, ratios = process.timing.previous, _log_ratios(process)
    if not len(ratios) or not {"base", "head"} <= set(before):
        return None
    of_base, of_head = (np.array(before[side], dtype=object) for side in ("base", "head"))
    orders = (("base", "base"), ("head", "base"), ("head", "head"))
    cells = [ratios[(of_base == was) & (of_head == now)] for was, now in orders]
    if min(map(len, cells)) < CELL:
        return None
    times = process.samples_us
    step = location.log_step(np.array([*times["base"], *times["head"]], dtype=float))
    calm, usual, hot = location.levels(cells, step)
    df = sum(map(len, cells)) - len(cells)
    # Half a step on either side is not seen, however often it is looked for.
    base, head = (
        Pooled(one.value - usual.value, math.sqrt(one.variance + usual.variance), df, step / 2) for one in (calm, hot)
    )
    error = math.sqrt(calm.variance + hot.variance + 4 * usual.variance)
    return CarryOver(base, head, Pooled(calm.value + hot.value - 2 * usual.value, error, df, step))


def _log_ratios(process: TimedProcess) -> Array:
    base, head = (np.log(np.array(process.samples_us.get(side, ()), dtype=float)) for side in ("base", "head"))
    return head - base if len(base) == len(head) else np.array([])


def _weighted(effects: Sequence[Pooled]) -> Pooled:
    weights = np.array([1 / max(effect.error, 1e-9) ** 2 for effect in effects])
    mean = float(weights @ np.array([effect.change for effect in effects]) / weights.sum())
    df, bias = sum(effect.df for effect in effects), max(effect.bias for effect in effects)
    return Pooled(mean, float(weights.sum()) ** -0.5, df, bias)


def on_clock(processes: Sequence[TimedProcess]) -> Moved | None:
    """The dependence of the rounds' log ratios on the log of the SM clock, within processes. A round's clock is taken
    from the rounds before and after it: what disturbs a sample disturbs its own reading as well."""
    known = [process for process in processes if len(_clock_ratios(process)) >= CELL]
    if not known:
        return None
    clocks, ratios = [], []
    for process in known:
        base, head = (np.log(np.array(process.timing.sm_mhz[side], dtype=float)) for side in ("base", "head"))
        clocks.append((base + head) / 2)
        inner = _log_ratios(process)[1:-1]
        middle, reach = float(np.median(inner)), CLIP * location.half_width(np.sort(inner))
        ratios.append(np.clip(inner, middle - reach, middle + reach))
    beside = [(each[:-2] + each[2:]) / 2 for each in clocks]
    x, y = ([values - values.mean() for values in each] for each in (beside, ratios))
    total = sum(float(values @ values) for values in x)
    if total == 0.0:
        return None
    slope = sum(float(a @ b) for a, b in zip(x, y, strict=True)) / total
    rest = [b - slope * a for a, b in zip(x, y, strict=True)]
    parts = [a * b for a, b in zip(x, rest, strict=True)]
    # As if the clock never changed: where both wander, chance makes them wander together.
    inflation = max(location.inflations(rest)[0])
    error = math.sqrt(inflation * sum(float(part @ part) for part in parts)) / total
    low, high = (float(np.exp(value)) for value in np.quantile(np.concatenate(clocks), SEEN_CLOCKS))
    half, rounds = math.log(high / low) / 2, sum(map(len, x))
    effect = Pooled(slope * half, max(error * half, 1e-12), rounds / inflation - len(x))
    if effect.df <= 0 or not _shown(effect, DEPENDENCE_P):
        return None
    change = float(np.median(np.concatenate(ratios)))
    ends = (
        f"{formatting.percent(as_percent(change + sign * slope * half), sign=True)} at {clock:.0f} MHz"
        for sign, clock in ((-1, low), (1, high))
    )
    bound = (abs(slope) + error * stats.normal_half_width(LEVEL)) * half
    return _widened(CLOCK_DEPENDENT, f"the change depends on the SM clock: {', '.join(ends)}", bound)


def clock_by_side(processes: Sequence[TimedProcess]) -> Iterator[Finding]:
    apart = [ratios for process in processes if len(ratios := _clock_ratios(process)) >= CELL]
    if not apart:
        return
    levels = [location.levels([ratios], 0.0)[0] for ratios in apart]
    found = _weighted([Pooled(one.value, math.sqrt(one.variance), max(1.0, one.rounds - 1)) for one in levels])
    if found.p() < DEPENDENCE_P and abs(found.change) > math.log1p(SIDE_CLOCK_PCT / 100):
        much = f"{formatting.percent(as_percent(abs(found.change)))} {'lower' if found.change < 0 else 'higher'}"
        text = f"the SM clock is {much} during the head's samples than during the base's in the same rounds"
        yield Finding(CLOCK_BY_SIDE, f"{text}, which is part of the change", False)


def _clock_ratios(process: TimedProcess) -> Array:
    """Of each round, the head's clock over the base's, as logarithms; empty where they are not known."""
    base, head = (np.array(process.timing.sm_mhz.get(side, ()), dtype=float) for side in ("base", "head"))
    rounds = len(process.samples_us.get("base", ()))
    if not rounds or not len(base) == len(head) == rounds or min(base.min(), head.min()) <= 0:
        return np.array([])
    return np.asarray(np.log(head / base))
