"""The cases of every GPU in one order, the worst first, each with what there is to draw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.bench.record import CaseKey, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.judge.case import severity
from kernelgate.ci.report import sections
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.page.samples import Sampled
from kernelgate.ci.report.why import Both, both_sides, budget_of


@dataclass(frozen=True)
class CaseRow:
    """One case on one GPU."""

    gpu: str
    """Its label where there are several, else empty."""
    one: JudgedCase
    timed: TimedCase | None
    profile: Both | None
    budget: Budget | None
    """What the change is made of, where a certain one was profiled on both sides."""
    samples: Sampled | None
    """Of its profile, where there is one."""

    @property
    def title(self) -> Line:
        return (Code(self.gpu), " ", self.one.name) if self.gpu else (self.one.name,)


def rows(gpus: Sequence[GpuReport]) -> list[CaseRow]:
    """Every judged case of every GPU."""
    found = [row for gpu in gpus for row in _of(gpu, gpu.label if len(gpus) > 1 else "")]
    return sorted(found, key=lambda row: severity(row.one.case))


@dataclass(frozen=True)
class ProfiledCase:
    """A case that was profiled and not timed."""

    title: Line
    profile: Both
    samples: Sampled


def untimed(gpus: Sequence[GpuReport]) -> list[ProfiledCase]:
    """Every profiled case that no row has, such as of a run that only profiles."""
    return [
        ProfiledCase((Code(gpu.label), " ", name) if len(gpus) > 1 else (name,), found, _sampled(gpu.record, found.key))
        for gpu in gpus
        if gpu.record is not None
        for ids in (formatting.ids((one.key for one in gpu.record.profile), gpu.record.cards),)
        for found in both_sides(gpu.record)
        if found.key not in {one.case.key for one in gpu.cases}
        for name in (ids[found.key],)
    ]


def _of(gpu: GpuReport, label: str) -> list[CaseRow]:
    if gpu.record is None:
        return []
    timed = {case.key: case for case in timed_cases(gpu.record)}
    profiles = {found.key: found for found in both_sides(gpu.record)}
    return [
        CaseRow(
            label,
            one,
            timed.get(one.case.key),
            found,
            _budget(gpu.record, found, one),
            _sampled(gpu.record, one.case.key) if found else None,
        )
        for one in gpu.cases
        for found in (profiles.get(one.case.key),)
    ]


def _sampled(record: RunRecord, key: CaseKey) -> Sampled:
    spots = {one.side: one.hot_spots for one in record.profile if one.key == key}
    return Sampled(spots, sections.profile_command(record, key, "--set", "full"))


def _budget(record: RunRecord, found: Both | None, one: JudgedCase) -> Budget | None:
    if found is None or found.base is None or not one.status.is_news or not one.case.change_pct:
        return None
    return budget_of(record, found, one)
