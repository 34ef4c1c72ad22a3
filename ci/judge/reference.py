"""The head beside the reference: cases so far below it that work on details is wasted, and the GPU memory of a call.
Where processes differ in that, only what holds for all of them is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kernelgate.bench.record import CaseKey, RunRecord, Side, TimedCase, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line
from kernelgate.ci.judge.cards import HEAD_ALONE
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict
from kernelgate.ci.policy.policy import Gates

MEMORY_INCREASE_PCT: Final = 1.0
"""A call that takes this much more memory than the base's is said; torch's allocator rounds each tensor up to 512
bytes."""


def times(case: CaseVerdict, side: Side = "head") -> float | None:
    """How many times as fast as the reference this side is; None where either was not timed, or proves nothing."""
    spoilt = any(finding.code != HEAD_ALONE for finding in case.disqualifying)
    us = case.us(side)
    return None if spoilt or not us or not case.reference_us else case.reference_us / us


def far_below(verdict: RecordVerdict | None, gates: Gates) -> tuple[tuple[CaseVerdict, float], ...]:
    """The cases below `reference_min`, the slowest against its reference first; none where the policy ignores them."""
    if verdict is None or verdict.refused is not None or gates.below_reference_min == "ignore":
        return ()
    known = [(case, ratio) for case in verdict.cases if (ratio := times(case)) is not None]
    return tuple(sorted((one for one in known if one[1] < gates.reference_min), key=lambda one: one[1]))


@dataclass(frozen=True)
class MemoryRange:
    """Bytes that one call holds at most beside its inputs, in the process with the least and in that with the most."""

    least: int
    most: int


@dataclass(frozen=True)
class CaseMemory:
    key: CaseKey
    base: MemoryRange | None
    head: MemoryRange | None
    reference: MemoryRange | None

    @property
    def times(self) -> float | None:
        """How many times the reference's memory the head takes; None where either is unknown, or none."""
        if self.head is None or self.reference is None or not self.reference.most:
            return None
        return self.head.most / self.reference.most


def memory(record: RunRecord) -> tuple[CaseMemory, ...]:
    return tuple(one for one in map(_of_case, timed_cases(record)) if one.base or one.head or one.reference)


def above_memory_max(record: RunRecord, gates: Gates) -> tuple[CaseMemory, ...]:
    """The cases whose head certainly takes more than `memory_max` times the reference, the worst first."""
    known = [(one, one.head.least, one.reference.most) for one in memory(record) if one.head and one.reference]
    found = [one for one, head, beside in known if beside and head > gates.memory_max * beside]
    return tuple(sorted(found, key=lambda one: -(one.times or 0.0)))


def memory_grown(record: RunRecord) -> tuple[CaseMemory, ...]:
    """The cases whose head certainly takes more than the base, by more than MEMORY_INCREASE_PCT; the worst first."""
    known = [(one, one.base.most, one.head.least) for one in memory(record) if one.base and one.head]
    found = [(head - base, one) for one, base, head in known if head > (1 + MEMORY_INCREASE_PCT / 100) * base]
    return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))


def memory_unmeasured(record: RunRecord) -> tuple[Line, ...]:
    """That cases were timed on a GPU, and their memory was not measured; nothing of a record without any memory."""
    both = {"head", "reference"}
    timed = [case for case in timed_cases(record) if any(both <= one.samples_us.keys() for one in case.processes)]
    count = sum(one.head is None or one.reference is None for one in map(_of_case, timed))
    if not count or not memory(record) or formatting.on_cpu(record.environment.device):
        return ()
    return ((f"the peak memory of {formatting.counted(count, 'case')} was not measured",),)


def _of_case(case: TimedCase) -> CaseMemory:
    def of_side(side: Side) -> MemoryRange | None:
        known = [one.timing.memory_bytes[side] for one in case.processes if side in one.timing.memory_bytes]
        return MemoryRange(min(known), max(known)) if known else None

    return CaseMemory(case.key, of_side("base"), of_side("head"), of_side("reference"))
