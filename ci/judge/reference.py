"""Which cases are so far below the reference that work on details is wasted: profile before anything else."""

from __future__ import annotations

from kernelgate.ci.judge.cards import HEAD_ALONE
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict
from kernelgate.ci.policy.policy import Gates


def times(case: CaseVerdict) -> float | None:
    """How many times as fast as the reference the head is; None where either was not timed, or proves nothing.

    A head without a base was timed beside its reference all the same.
    """
    if not case.head_us or not case.reference_us:
        return None
    if any(finding.code != HEAD_ALONE for finding in case.disqualifying):
        return None
    return case.reference_us / case.head_us


def far_below(verdict: RecordVerdict | None, gates: Gates) -> tuple[tuple[CaseVerdict, float], ...]:
    """The cases below `reference_min`, the slowest against its reference first; none where the policy ignores them."""
    if verdict is None or verdict.refused is not None or gates.below_reference_min == "ignore":
        return ()
    known = [(case, times(case)) for case in verdict.cases]
    found = [(case, ratio) for case, ratio in known if ratio is not None and ratio < gates.reference_min]
    return tuple(sorted(found, key=lambda one: one[1]))
