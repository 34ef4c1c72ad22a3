"""Whether the head computes what it should: the fuzz list, and the outputs of the timed calls."""

from __future__ import annotations

from kernelgate.bench.record import CaseKey, Check, FuzzResult, RunRecord, timed_cases


def fuzz_checks(record: RunRecord) -> tuple[Check, ...]:
    """One for each card that was fuzzed."""
    return tuple(check for check in record.checks if check.kind == "fuzz")


def fuzz_failures(record: RunRecord) -> tuple[tuple[str, FuzzResult], ...]:
    """Each with the card that it is of."""
    checks = fuzz_checks(record)
    return tuple((check.card, result) for check in checks for result in check.results if not result.passed)


def wrong_outputs(record: RunRecord) -> tuple[CaseKey, ...]:
    """The cases where a timed call of the head gave a wrong answer."""
    return tuple(
        case.key
        for case in timed_cases(record)
        if any(process.timing.calls["head"].failed for process in case.processes if "head" in process.timing.calls)
    )


def is_wrong(record: RunRecord) -> bool:
    failed = any(check.status == "failed" for check in fuzz_checks(record))
    return failed or bool(wrong_outputs(record))
