"""Which cases `kernelgate bench` times again, and that it stops before the policy's limit of processes."""

from __future__ import annotations

import math

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.judge import cards, estimate, together
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.history import NO_HISTORY, History
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.outputs import BASE_WRONG
from kernelgate.ci.judge.verdict import confirmed, unfit
from kernelgate.ci.judge.witness import CONTRADICTS, UNCONFIRMED
from kernelgate.ci.policy.policy import RESOLUTION_PCT, Policy

LASTING = frozenset({BASE_WRONG, CONTRADICTS, UNCONFIRMED})
"""Findings that further processes cannot undo."""


def undecided(record: RunRecord, policy: Policy, history: History = NO_HISTORY) -> frozenset[CaseKey]:
    """The cases of which more processes would change what is said; empty: `kernelgate bench` stops.

    A case with fewer processes than the policy's minimum is among them, one at its limit is not, and none is where
    nothing in the record can be judged. Each case may be asked about after each of its processes, in any order and
    whichever others are timed with it: the levels of `judge` hold however often this was asked.
    """
    timed = {case.key: len(case.processes) for case in cards.compared(record)}
    if unfit(record):
        return frozenset()
    evidences = estimate.of_record(record, policy, history)
    claimed = claims(evidences, policy)
    few, many = policy.processes.minimum, policy.processes.limit
    lacking = together.unconfirmed(evidences, claimed, policy)
    return frozenset(
        case.key
        for case, claim in zip(evidences, claimed, strict=True)
        if timed[case.key] < few
        or (timed[case.key] < many and (case.key in lacking or not settled(case, claim, policy)))
    )


def settled(case: Evidence, claim: Inference | None, policy: Policy) -> bool:
    """Both questions are answered: on which side of each gate the change lies, and in which direction, if in any.

    Without a direction, a change that matters is excluded, and what will be said of it is that it is the same.
    """
    if any(finding.code in LASTING for finding in case.findings):
        return True
    if claim is None or case.disqualified:
        return False
    gates = policy.gates
    low, high = claim.likely_interval()
    blocks, improves = math.log1p(gates.regression_pct / 100), math.log1p(-gates.improvement_pct / 100)
    if any(low <= gate <= high for gate in (blocks, improves)) or (low > blocks and not confirmed(case, policy)):
        return False
    resolution = math.log1p(RESOLUTION_PCT / 100)
    same = -resolution < low and high < resolution and claim.within(math.log1p(gates.margin_pct / 100))
    return claim.certain or same
