"""The cases of every GPU in one order, the worst first, each with what there is to draw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.bench.record import TimedCase, timed_cases
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.judge.case import severity
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.why import Both, both_sides


@dataclass(frozen=True)
class CaseRow:
    """One case on one GPU."""

    gpu: str
    """Its label where there are several, else empty."""
    one: JudgedCase
    timed: TimedCase | None
    profile: Both | None

    @property
    def title(self) -> Line:
        return (Code(self.gpu), " ", self.one.name) if self.gpu else (self.one.name,)


def rows(gpus: Sequence[GpuReport]) -> list[CaseRow]:
    """Every judged case of every GPU."""
    found = [row for gpu in gpus for row in _of(gpu, gpu.label if len(gpus) > 1 else "")]
    return sorted(found, key=lambda row: severity(row.one.case))


def _of(gpu: GpuReport, label: str) -> list[CaseRow]:
    if gpu.record is None:
        return []
    timed = {case.key: case for case in timed_cases(gpu.record)}
    profiles = {found.key: found for found in both_sides(gpu.record)}
    return [CaseRow(label, one, timed.get(one.case.key), profiles.get(one.case.key)) for one in gpu.cases]
