"""Whether the head computes what it should: the fuzz list, and the outputs of the timed calls."""

from __future__ import annotations

from kernelgate.bench.record import CaseKey, FuzzResult, RunRecord, timed_cases


def fuzz_failures(record: RunRecord) -> tuple[FuzzResult, ...]:
    return tuple(result for result in record.fuzz.results if not result.passed) if record.fuzz else ()


def wrong_outputs(record: RunRecord) -> tuple[CaseKey, ...]:
    """The cases where a timed call of the head gave a wrong answer."""
    return tuple(
        case.key
        for case in timed_cases(record)
        if any(process.timing.calls["head"].failed for process in case.processes if "head" in process.timing.calls)
    )


def is_wrong(record: RunRecord) -> bool:
    failed = record.fuzz is not None and record.fuzz.status == "failed"
    return failed or bool(wrong_outputs(record))
