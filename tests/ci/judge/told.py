"""What the judge says of a record, as a test asks for it."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Line
from kernelgate.ci.judge import completeness
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy


def only(record: RunRecord, rules: Policy | None = None) -> CaseVerdict:
    verdict = judge(record, rules or Policy())
    assert verdict.refused is None, verdict.refused
    (one,) = verdict.cases
    return one


def plain(lines: Iterable[Line]) -> list[str]:
    return [render.plain_line(line) for line in lines]


def missing(record: RunRecord, label: str = "l4") -> list[str]:
    """What the record lacks of its plan, where nothing in it contradicts the plan."""
    held = completeness.against_plan(record, label)
    assert held.contrary == ()
    return plain(held.missing)
