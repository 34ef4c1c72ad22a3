"""Doubts: what is neither shown to be bad nor known to be good, and whether the head may be the cause.

What only the machine makes unclear passes and is said. What a head could do to escape a verdict does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from kernelgate.bench.record import CaseKey, RunRecord, Side, TimedCase, timed_cases
from kernelgate.ci.judge import cards, correctness
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict, Status, worst_first
from kernelgate.ci.judge.witness import UNCONFIRMED, WITNESS
from kernelgate.ci.policy.policy import Gates

LIKELY_SLOWER: Final = "likely_slower"
REFUSED: Final = "refused"
INCOMPLETE: Final = "incomplete"
UNMEASURED: Final = "not_measured"
Cause = Literal["head", "machine"]
OF_MACHINE: Final = frozenset({"throttled", "clock_change", "few_values", "too_few", UNCONFIRMED})
"""Findings that no head causes, or that withhold no more than the name of an improvement."""
WIDER: Final = 2.0
"""Where the head's times lie so many times as far apart between processes as the base's, which ran beside them, it is
the head whose speed alternates."""


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
    alone = {case.key for case in timed_cases(record, WITNESS) if _is_wrong(case)}
    for case in worst_first(verdict.cases):
        if case.status is Status.LIKELY_SLOWER:
            yield Doubt(LIKELY_SLOWER, label, case.id)
        elif case.status is Status.ALONE and not alone_by_note & {None, case.card}:
            yield Doubt(cards.HEAD_ALONE, label, case.id)
        elif case.status is Status.UNDECIDED and case.disqualifying:
            by_head = _may_be_the_heads(case, timed[case.key], alone, gates)
            yield Doubt(case.disqualifying[0].code, label, case.id, "head" if by_head else "machine")


def _may_be_the_heads(case: CaseVerdict, timed: TimedCase, base_wrong_alone: set[CaseKey], gates: Gates) -> bool:
    changes = [process.change_pct for process in case.per_process]
    if changes and min(changes) > gates.regression_pct:
        # Whatever spoils it, each process is past the gate by itself.
        return True
    # What the base shows, too, such as a time below what the card's work allows, is not the head's.
    machines = OF_MACHINE | {finding.code for finding in case.disqualifying if finding.side == "base"}
    if case.key in base_wrong_alone:
        machines |= {correctness.BASE_WRONG}
    if _reach(timed, "head") <= WIDER * _reach(timed, "base"):
        machines |= {"processes_disagree", "lone_process"}
    return any(finding.code not in machines for finding in case.disqualifying)


def _reach(timed: TimedCase, side: Side) -> float:
    """How far a side's processes lie apart, in log time."""
    levels = [float(np.median(np.log(times))) for one in timed.processes if (times := one.samples_us.get(side))]
    return max(levels) - min(levels) if levels else 0.0


def _is_wrong(case: TimedCase) -> bool:
    calls = (process.timing.calls.get("base") for process in case.processes)
    return any(one is not None and one.failed for one in calls)
