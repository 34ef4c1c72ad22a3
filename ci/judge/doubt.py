"""Doubts: what is neither shown to be bad nor known to be good, and whether the head may be the cause.

What only the machine makes unclear passes and is said. What a head could do to escape a verdict does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy import special

from kernelgate.bench.record import CaseKey, RunRecord, TimedCase, timed_cases
from kernelgate.ci.judge import cards, correctness
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict, Status, worst_first
from kernelgate.ci.judge.validity import DRIFT, Finding
from kernelgate.ci.judge.witness import CONTRADICTS, UNCONFIRMED, VERIFIED_IN_PROCESS, WITNESS
from kernelgate.ci.policy.policy import Gates

LIKELY_SLOWER: Final = "likely_slower"
REFUSED: Final = "refused"
INCOMPLETE: Final = "incomplete"
UNMEASURED: Final = "not_measured"
Cause = Literal["head", "machine"]
OF_MACHINE: Final = frozenset({"throttled", "clock_change", "few_values", "too_few", UNCONFIRMED, VERIFIED_IN_PROCESS})
"""Findings that no head causes, or that withhold no more than the name of an improvement."""
SCATTER: Final = frozenset({"processes_disagree", "lone_process"})
"""Findings of processes that are not alike."""
WIDER_P: Final = 1e-3
"""The head's processes scatter more than the base's, which ran beside them, where chance explains it less often (F)."""
LASTING: Final = {
    *(correctness.BASE_WRONG, CONTRADICTS, UNCONFIRMED, VERIFIED_IN_PROCESS),
    *("below_floor", "beyond_reference", "few_values"),
}
"""Findings that come again whenever it is measured."""


@dataclass(frozen=True)
class Doubt:
    code: str
    """A stable key: one of those above, or that of the finding that keeps a case open."""
    gpu: str | None
    subject: str = ""
    """The case, or the card whose cases it is about; untrusted text."""
    cause: Cause = "head"
    """`head` wherever the head may be the cause."""

    @property
    def holds(self) -> bool:
        """Nothing passes of which nothing is known, whoever caused that."""
        return self.cause == "head" or self.code == UNMEASURED

    @property
    def lasts(self) -> bool:
        """Measured again, it is the same: what the machine lacks it lacks again."""
        return self.code in LASTING or (self.code == INCOMPLETE and self.cause == "machine")


def of_verdict(label: str, record: RunRecord, verdict: RecordVerdict | None, gates: Gates) -> Iterator[Doubt]:
    """What a verdict leaves open."""
    if verdict is None:
        return
    if verdict.refused is not None and cards.known(record) - cards.of_head(record):
        untimed = verdict.too_short or cards.notes(record, cards.NO_CASES)
        yield Doubt(REFUSED, label, cause="machine" if untimed else "head")
    yield from (Doubt(LIKELY_SLOWER, label, one.card) for one in verdict.means if one.status is Status.LIKELY_SLOWER)
    timed = {case.key: case for case in timed_cases(record)}
    alone_by_note = {note.card for note in cards.notes(record, cards.HEAD_ALONE)}
    calls = ((case, one.timing.calls.get("base")) for case in timed_cases(record, WITNESS) for one in case.processes)
    alone = {case.key for case, of_base in calls if of_base is not None and of_base.failed}
    for case in worst_first(verdict.cases):
        if case.status is Status.LIKELY_SLOWER:
            yield Doubt(LIKELY_SLOWER, label, case.id)
        elif case.status is Status.ALONE and not alone_by_note & {None, case.card}:
            yield Doubt(cards.HEAD_ALONE, label, case.id)
        elif case.status is Status.UNDECIDED:
            # A drift that the interval is wide enough for hides as much as one that forbids a verdict.
            hiding = case.disqualifying or tuple(one for one in case.findings if one.code == DRIFT)
            by_head = _may_be_the_heads(case, hiding, timed[case.key], alone, gates)
            if by_head or case.disqualifying:
                yield Doubt(hiding[0].code, label, case.id, "head" if by_head else "machine")


def _may_be_the_heads(
    case: CaseVerdict, hiding: Sequence[Finding], timed: TimedCase, base_wrong_alone: set[CaseKey], gates: Gates
) -> bool:
    """`hiding`: why nothing is known of the case."""
    changes = [process.change_pct for process in case.per_process]
    if hiding and changes and min(changes) > gates.regression_pct:
        # Whatever spoils it, each process is past the gate by itself.
        return True
    # What the base shows, too, such as a time below what the card's work allows, is not the head's.
    machines = OF_MACHINE | {finding.code for finding in hiding if finding.side == "base"}
    if case.key in base_wrong_alone:
        machines |= {correctness.BASE_WRONG}
    levels, within = _slowest(timed)
    gate = math.log1p(gates.regression_pct / 100)
    if within <= gate:
        machines |= {DRIFT}
    if levels <= gate:
        machines |= {"carry_over", "clock_dependent", *SCATTER}
    elif not _scatters_more(timed):
        machines |= SCATTER
    return any(finding.code not in machines for finding in hiding)


def _slowest(timed: TimedCase) -> tuple[float, float]:
    """In log time, how much slower than the base the head is in its slowest process, and how much slower than its
    process in the slowest first or last third of one."""
    levels, within = [0.0], [0.0]
    for times in (one.samples_us for one in timed.processes):
        if {"base", "head"} <= times.keys() and len(times["head"]) >= 3:
            ratios = np.log(np.array(times["head"]) / np.array(times["base"]))
            third = len(ratios) // 3
            levels.append(float(np.median(ratios)))
            within += [float(np.median(part)) - levels[-1] for part in (ratios[:third], ratios[-third:])]
    return max(levels), max(within)


def _scatters_more(timed: TimedCase) -> bool:
    sides = ([one.samples_us.get(side) for one in timed.processes] for side in ("base", "head"))
    base, head = ([float(np.median(np.log(times))) for times in side if times] for side in sides)
    ratio = float(np.var(head)) / max(float(np.var(base)), 1e-12)
    return float(special.fdtrc(max(1, len(head) - 1), max(1, len(base) - 1), ratio)) < WIDER_P
