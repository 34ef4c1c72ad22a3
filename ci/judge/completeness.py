"""Holds a record against what the plan asked for: what is missing keeps a verdict open, what contradicts refuses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelgate.bench.record import COMPARED, Case, CaseKey, Expected, RunRecord
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.document.model import Code, Line, Piece

MAX_NAMED = 3
"""Cases that a sentence names; of more it gives the number."""


@dataclass(frozen=True)
class Completeness:
    """Sentences for people; both empty where the record is what was asked for, or where nothing says what was."""

    missing: tuple[Line, ...] = ()
    contrary: tuple[Line, ...] = ()
    """The record is of something else than what was asked for, and proves nothing."""


def against_plan(record: RunRecord, label: str) -> Completeness:
    """`label`: of the GPU that was to be measured, or "". A record that does not say what was expected is complete."""
    if record.expected is None:
        return Completeness()
    return Completeness(tuple(_missing(record, record.expected)), tuple(_contrary(record, record.expected, label)))


def _missing(record: RunRecord, expected: Expected) -> Iterator[Line]:
    counts = _processes_by_case(record)
    held = {case.key: counts[case.key] or counts[CaseKey("", case.id)] for case in expected.cases}
    least = expected.processes or 1
    absent = [case for case in expected.cases if held[case.key] == 0]
    if absent:
        yield (*_named(absent), f" {_were(absent)} not timed")
    short = [case for case in expected.cases if 0 < held[case.key] < least]
    if short:
        fewest = min(held[case.key] for case in short)
        yield (*_named(short), f" {_were(short)} timed in {fewest} of {least} processes")
    done = {check.kind for check in record.checks if check.status != "skipped"}
    for kind in expected.checks:
        if kind not in done:
            yield (f"the {kind} check did not run",)
    if record.run.ended not in (None, "complete"):
        yield (f"the run ended early: {record.run.ended}",)


def _contrary(record: RunRecord, expected: Expected, label: str) -> Iterator[Line]:
    if label and expected.label not in (None, label):
        yield ("it was planned for the GPU ", Code(expected.label or ""), ", not for ", Code(label))
    capabilities = {one.device.compute_capability for one in record.environments} - {None}
    if expected.target is not None and capabilities - {expected.target}:
        measured = ", ".join(sorted(filter(None, capabilities)))
        yield ("it was measured on compute capability ", Code(measured), "; the plan asked for ", Code(expected.target))
    # A record of run/1 names no card.
    asked = {key for case in expected.cases for key in (case.key, CaseKey("", case.id))}
    extra = [case for case in record.cases if case.key not in asked] if asked else []
    if extra:
        yield ("it holds ", *_named(extra), ", which the plan did not ask for")


def _processes_by_case(record: RunRecord) -> Counter[CaseKey]:
    """How many processes hold samples of each case's head."""
    return Counter(
        timing.key
        for process in record.processes
        if process.role in COMPARED
        for timing in process.timings
        if timing.samples_us.get("head")
    )


def _named(cases: Sequence[Case]) -> tuple[Piece, ...]:
    if len(cases) > MAX_NAMED:
        return (counted(len(cases), "case"),)
    return tuple(piece for number, case in enumerate(cases) for piece in (", " if number else "", Code(case.id)))


def _were(cases: Sequence[Case]) -> str:
    return "was" if len(cases) == 1 else "were"
