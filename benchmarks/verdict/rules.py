"""Decision rules, each from two sides' times to slower, faster or neither.

The usual rules are written here from their public descriptions, on all samples of a record pooled, as they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgate.bench.record import Case, Process, RunRecord, Timing
from kernelgate.ci.judge import stats
from kernelgate.ci.judge.bootstrap import bootstrap
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.verdict import Direction, Outcome, judge
from kernelgate.ci.policy.policy import Policy

POLICY = Policy()
CASE = Case(id="case")
TIMING = dict(Timing(case=CASE.id))
PROCESS = dict(Process(id="1"))


@dataclass(frozen=True)
class PairedTimes:
    """Times in microseconds by process; `stored` where the base comes from other processes than the head."""

    base: Sequence[Array]
    head: Sequence[Array]
    stored: bool = False


Rule = Callable[[PairedTimes], Direction]


@dataclass(frozen=True)
class Said:
    """What all rules say of one record."""

    directions: dict[str, Direction]
    equivalent: bool
    """By our verdict: the others do not know the word."""


def say(pair: PairedTimes) -> Said:
    """Our verdict, with everything that `kernelgate compare` computes, and beside it what the usual rules say."""
    stored = record(head=pair.base) if pair.stored else None
    measured = record(head=pair.head) if pair.stored else record(base=pair.base, head=pair.head)
    verdict = judge(measured, POLICY, stored)
    # A record that is refused holds no case: nothing is said of it.
    direction = verdict.cases[0].direction if verdict.cases else Direction.NONE
    blocks = {Outcome.REGRESSED: Direction.SLOWER, Outcome.IMPROVED: Direction.FASTER}
    ours = {"kernelgate, direction": direction, "kernelgate, gate": blocks.get(verdict.verdict, Direction.NONE)}
    return Said({**ours, **{name: rule(pair) for name, rule in USUAL.items()}}, verdict.verdict is Outcome.EQUIVALENT)


def record(**sides: Sequence[Array]) -> RunRecord:
    """A run record of these times, by side and process; not validated, because here speed matters."""
    every = zip(*sides.values(), strict=True)
    return RunRecord().model_copy(
        update={
            "cases": (CASE,),
            "processes": tuple(_process(number, sides, times) for number, times in enumerate(every, 1)),
        }
    )


def record_of_cases(cases: Sequence[PairedTimes]) -> RunRecord:
    """The same of several cases, which may have different numbers of processes."""
    known = [CASE.model_copy(update={"id": f"case {number}"}) for number in range(len(cases))]
    processes = []
    for number in range(max(len(one.head) for one in cases)):
        timings = [
            _timing(case.id, {"base": one.base[number], "head": one.head[number]})
            for case, one in zip(known, cases, strict=True)
            if number < len(one.head)
        ]
        processes.append(Process.model_construct(**{**PROCESS, "id": str(number + 1), "timings": tuple(timings)}))
    return RunRecord().model_copy(update={"cases": tuple(known), "processes": tuple(processes)})


def _process(number: int, sides: Iterable[str], times: Sequence[Array]) -> Process:
    timing = _timing(CASE.id, dict(zip(sides, times, strict=True)))
    return Process.model_construct(**{**PROCESS, "id": str(number), "timings": (timing,)})


def _timing(case: str, times: Mapping[str, Array]) -> Timing:
    samples = {side: tuple(one.tolist()) for side, one in times.items()}
    return Timing.model_construct(**{**TIMING, "case": case, "samples_us": samples})


# ---- the usual rules -------------------------------------------------------------------------------------------------


def overlap(pair: PairedTimes) -> Direction:
    """95% bootstrap intervals of the medians do not overlap, Mann-Whitney p < 0.05, |Cliff's delta| ≥ 0.3."""
    base, head = _pooled(pair)
    drawn = bootstrap([base], [head], False, 0.95, 2000)
    apart = drawn.head[0] > drawn.base[1] or drawn.head[1] < drawn.base[0]
    shown = stats.mann_whitney_p(base, head) < 0.05 and abs(stats.cliffs_delta(base, head)) >= 0.3
    return _sign(base, head) if apart and shown else Direction.NONE


def mann_whitney(pair: PairedTimes) -> Direction:
    """Mann-Whitney p < 0.05, as benchstat asks by default."""
    base, head = _pooled(pair)
    return _sign(base, head) if stats.mann_whitney_p(base, head) < 0.05 else Direction.NONE


def threshold(percent: float) -> Rule:
    """The ratio of the medians is beyond a fixed threshold."""

    def rule(pair: PairedTimes) -> Direction:
        base, head = (float(np.median(side)) for side in _pooled(pair))
        beyond = max(base, head) > min(base, head) * (1 + percent / 100)
        return _direction(head - base) if beyond else Direction.NONE

    return rule


def nvbench(pair: PairedTimes) -> Direction:
    """nvbench's robust compare: from the smallest time to the upper quartile, the two sides lie 0.5% or more apart.

    Its confirmation by clock rates is taken as given.
    """
    spans = [(float(side.min()), float(np.quantile(side, 0.75))) for side in _pooled(pair)]
    (base_low, base_high), (head_low, head_high) = spans
    if head_low > base_high * 1.005:
        return Direction.SLOWER
    return Direction.FASTER if base_low > head_high * 1.005 else Direction.NONE


def asv(factor: float) -> Rule:
    """asv continuous: Mann-Whitney p < 0.002, and medians further apart than `factor`."""
    apart = threshold(100 * (factor - 1))

    def rule(pair: PairedTimes) -> Direction:
        return apart(pair) if stats.mann_whitney_p(*_pooled(pair)) < 0.002 else Direction.NONE

    return rule


USUAL: dict[str, Rule] = {
    "intervals + U test + delta": overlap,
    "U test alone": mann_whitney,
    "medians, 3%": threshold(3),
    "medians, 10%": threshold(10),
    "nvbench-compare": nvbench,
    "asv, factor 1.01": asv(1.01),
}


def _pooled(pair: PairedTimes) -> tuple[Array, Array]:
    return np.concatenate(pair.base), np.concatenate(pair.head)


def _sign(base: Array, head: Array) -> Direction:
    return _direction(float(np.median(head) - np.median(base)))


def _direction(difference: float) -> Direction:
    if difference == 0:
        return Direction.NONE
    return Direction.SLOWER if difference > 0 else Direction.FASTER
