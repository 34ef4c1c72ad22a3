"""Whether base and head compute what they should: the fuzz list, and the outputs of the timed calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kernelgate.bench.record import COMPARED, CaseKey, Check, FuzzResult, Role, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.judge.validity import Finding

CHECKED: tuple[Role, ...] = (*COMPARED, "witness")
"""The roles whose calls are compared with what is right."""
BASE_WRONG = "base_wrong"


def fuzz_checks(record: RunRecord) -> tuple[Check, ...]:
    """One for each card that was fuzzed."""
    return tuple(check for check in record.checks if check.kind == "fuzz")


def fuzz_failures(record: RunRecord) -> tuple[tuple[str, FuzzResult], ...]:
    """Each with the card that it is of."""
    checks = fuzz_checks(record)
    return tuple((check.card, result) for check in checks for result in check.results if not result.passed)


def wrong_outputs(record: RunRecord) -> dict[CaseKey, Finding]:
    """The cases where timed calls of the head gave wrong answers, with how many of them in the first such process."""
    return {
        case.key: Finding("wrong_output", f"the head's timed output is wrong in {calls}", True)
        for case in timed_cases(record, CHECKED)
        for calls in first_wrong_calls(case, "head")
    }


def wrong_bases(record: RunRecord) -> dict[CaseKey, Finding]:
    """The same of the base, which is no fault of the head."""
    return {
        case.key: Finding(
            BASE_WRONG, f"the base's timed output is wrong in {calls}: nothing can be compared with it", True
        )
        for case in timed_cases(record, CHECKED)
        for calls in first_wrong_calls(case, "base")
    }


def first_wrong_calls(case: TimedCase, side: Literal["base", "head"]) -> Iterator[str]:
    """ "12 of 200 compared calls of process 2 (largest error 0.25)"; nothing where every answer was right."""
    number = 0
    for process in case.processes:
        number += process.role != "witness"
        calls, errors = process.timing.calls.get(side), process.timing.errors.get(side)
        if calls and calls.failed:
            of = counted(calls.failed, "call")
            if calls.compared:
                of = f"{calls.failed} of {counted(calls.compared, 'compared call')}"
            where = f"process {number}" if process.role != "witness" else f"the process that holds the {side} alone"
            error = "" if errors is None or errors.maximum is None else f" (largest error {errors.maximum:.3g})"
            yield f"{of} of {where}{error}"
            return


def is_wrong(record: RunRecord) -> bool:
    failed = any(check.status == "failed" for check in fuzz_checks(record))
    return failed or bool(wrong_outputs(record))
