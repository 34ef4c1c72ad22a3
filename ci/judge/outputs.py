"""Whether the head computes what it should: the fuzz list, and the outputs of the timed calls."""

from __future__ import annotations

from kernelgate.bench.record import CaseKey, FuzzResult, RunRecord, timed_cases


def fuzz_failures(record: RunRecord) -> tuple[FuzzResult, ...]:
    fuzzed = (check for check in record.checks if check.kind == "fuzz")
    return tuple(result for check in fuzzed for result in check.results if not result.passed)


def wrong_outputs(record: RunRecord) -> tuple[CaseKey, ...]:
    """The cases where a timed call of the head gave a wrong answer."""
    return tuple(
        case.key
        for case in timed_cases(record)
        if any(process.timing.calls["head"].failed for process in case.processes if "head" in process.timing.calls)
    )


def is_wrong(record: RunRecord) -> bool:
    failed = any(check.kind == "fuzz" and check.status == "failed" for check in record.checks)
    return failed or bool(wrong_outputs(record))
