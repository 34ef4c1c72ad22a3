"""When `kernelgate bench` stops before the policy's limit of processes."""

from __future__ import annotations

import math

from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge import cards, estimate
from kernelgate.ci.judge.estimate import Evidence
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import confirmed, unfit


def decided(record: RunRecord, policy: Policy) -> bool:
    """Whether every case is settled, so that more processes would not change what is said: stops `kernelgate bench`.

    True as well at the policy's limit of processes. The levels of `judge` hold however often this was asked.
    """
    timed = cards.compared(record)
    if min((len(case.processes) for case in timed), default=0) >= policy.processes.limit:
        return True
    if unfit(record, policy):
        return True
    evidences = [estimate.of_paired(case, record.environment.device, policy) for case in timed]
    claimed = claims(evidences, policy)
    return all(claim and _settled(case, claim, policy) for case, claim in zip(evidences, claimed, strict=True))


def _settled(case: Evidence, claim: Inference, policy: Policy) -> bool:
    """Both questions are answered: on which side of each gate the change lies, and in which direction, if in any."""
    if case.disqualified:
        return False
    gates = policy.gates
    low, high = claim.likely_interval()
    blocks, improves = math.log1p(gates.regression_pct / 100), math.log1p(-gates.improvement_pct / 100)
    if any(low <= gate <= high for gate in (blocks, improves)) or (low > blocks and not confirmed(case, policy)):
        return False
    resolution = math.log1p(policy.certainty.resolution_pct / 100)
    return claim.certain or (-resolution < low and high < resolution)
