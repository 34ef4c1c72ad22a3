"""How much GPU memory a call takes: the head's beside the base's and the reference's.

A call takes the same in every process, so that numbers are compared as they are; where processes differ, such as by
what an autotuner chose, only what holds for all of them is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kernelgate.bench.record import CaseKey, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line
from kernelgate.ci.policy.policy import Gates

MEMORY_INCREASE_PCT: Final = 1.0
"""A call that takes this much more memory than the base's is said; torch's allocator rounds each tensor up to 512
bytes."""


@dataclass(frozen=True)
class MemoryRange:
    """Bytes that one call holds at most beside its inputs, in the process with the least and in that with the most."""

    least: int
    most: int


@dataclass(frozen=True)
class CaseMemory:
    """None where a side's memory was not measured."""

    key: CaseKey
    base: MemoryRange | None
    head: MemoryRange | None
    reference: MemoryRange | None

    @property
    def times(self) -> float | None:
        """How many times the reference's memory the head takes; None where either is unknown, or the reference takes
        none."""
        if self.head is None or self.reference is None or not self.reference.most:
            return None
        return self.head.most / self.reference.most


def of_record(record: RunRecord) -> tuple[CaseMemory, ...]:
    """Every case of which some side's memory was measured."""
    found = (_of_case(case) for case in timed_cases(record))
    return tuple(one for one in found if one.base or one.head or one.reference)


def above(record: RunRecord, gates: Gates) -> tuple[CaseMemory, ...]:
    """The cases whose head certainly takes more than `memory_max` times the reference, the worst first."""
    found = [one for one in of_record(record) if _is_above(one, gates.memory_max)]
    return tuple(sorted(found, key=lambda one: -(one.times or 0.0)))


def grown(record: RunRecord) -> tuple[CaseMemory, ...]:
    """The cases whose head certainly takes more than the base, by more than MEMORY_INCREASE_PCT; the worst first."""
    allowed = 1 + MEMORY_INCREASE_PCT / 100
    pairs = [(one, one.base, one.head) for one in of_record(record) if one.base is not None and one.head is not None]
    found = [(head.least - base.most, one) for one, base, head in pairs if head.least > allowed * base.most]
    return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))


def unmeasured(record: RunRecord) -> tuple[Line, ...]:
    """That cases which a gate on memory is about were timed on a GPU, and their memory was not measured."""
    if formatting.on_cpu(record.environment.device):
        return ()
    count = sum(1 for _ in _unmeasured(record))
    return ((f"the peak memory of {formatting.counted(count, 'case')} was not measured",),) if count else ()


def _unmeasured(record: RunRecord) -> Iterator[CaseKey]:
    for case in timed_cases(record):
        beside = any({"head", "reference"} <= process.samples_us.keys() for process in case.processes)
        found = _of_case(case)
        if beside and (found.head is None or found.reference is None):
            yield case.key


def _of_case(case: TimedCase) -> CaseMemory:
    return CaseMemory(case.key, *(_range(case, side) for side in ("base", "head", "reference")))


def _range(case: TimedCase, side: str) -> MemoryRange | None:
    known = [one.timing.memory_bytes[side] for one in case.processes if side in one.timing.memory_bytes]
    return MemoryRange(min(known), max(known)) if known else None


def _is_above(one: CaseMemory, limit: float) -> bool:
    if one.head is None or one.reference is None or not one.reference.most:
        return False
    return one.head.least > limit * one.reference.most
