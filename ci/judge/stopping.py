"""When enough was measured: which cases `kernelgate bench` times again."""

from __future__ import annotations

import math

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.judge import cards, correctness, estimate, inference
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.stats import MISS
from kernelgate.ci.judge.verdict import unfit
from kernelgate.ci.judge.witness import CONTRADICTS, UNCONFIRMED
from kernelgate.ci.policy.policy import RESOLUTION_PCT, Policy

LASTING = frozenset({correctness.BASE_WRONG, CONTRADICTS, UNCONFIRMED})
"""Findings that further processes cannot undo."""


def undecided(record: RunRecord, policy: Policy, history: History = NO_HISTORY) -> frozenset[CaseKey]:
    """The cases of which more processes would change what is said; empty: `kernelgate bench` stops. The levels of
    `judge` hold however often this was asked."""
    timed = {case.key: len(case.processes) for case in cards.compared(record)}
    if unfit(record):
        return frozenset()
    policy = _of_family(record, policy)
    evidences = estimate.of_record(record, policy, history, whole=False)
    claimed = claims(evidences, policy)
    few, many = policy.processes.minimum, policy.processes.limit
    likely = inference.mean_verdicts(evidences, claimed, policy)
    cards_ = {mean.card for mean in likely if mean.status is Status.LIKELY_SLOWER}
    short = (case for case in evidences if 0 < case.processes < policy.processes.to_block and not case.disqualified)
    lacking = {case.key for case in short if case.key.card in cards_}  # for their mean to block
    many_of = dict.fromkeys(correctness.wrong_outputs(record, "base"), few)  # nothing can ever be compared with these
    return frozenset(
        case.key
        for case, claim in zip(evidences, claimed, strict=True)
        if timed[case.key] < few
        or (timed[case.key] < many_of.get(case.key, many) and (case.key in lacking or not settled(case, claim, policy)))
    )


def _of_family(record: RunRecord, policy: Policy) -> Policy:
    """A shard's cases are judged together with those of all shards, so they get their part of alpha alone."""
    if record.run.shard is None or not record.expected:
        return policy
    share = len(record.cases) / max(len(record.cases), len(record.expected.cases))
    certainty = policy.certainty.model_copy(update={"alpha": policy.certainty.alpha * share})
    return policy.model_copy(update={"certainty": certainty})


def settled(case: Evidence, claim: Inference | None, policy: Policy) -> bool:
    """It is answered on which side of each gate the change lies, and in which direction, if in any. Without a
    direction, it must be that nothing changed."""
    if any(finding.code in LASTING for finding in case.findings):
        return True
    if claim is None or case.disqualified:
        return False
    gates = policy.gates
    # Enough to stop on, not to claim.
    low, high = claim.interval(2 * MISS)
    blocks, improves = math.log1p(gates.regression_pct / 100), math.log1p(-gates.improvement_pct / 100)
    resolution = math.log1p(RESOLUTION_PCT / 100)
    if low <= blocks <= high:
        return False
    # A gain that is known this well is worth no further process, which would only choose its name.
    if low <= improves <= high and high - low > 2 * resolution:
        return False
    if low > blocks and case.processes < policy.processes.to_block:
        return False
    same = -resolution < low and high < resolution and claim.within(math.log1p(gates.margin_pct / 100))
    return claim.certain or same
