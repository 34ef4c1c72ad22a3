"""What one GPU has to say in a report: its record with the verdict, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kernelgate.bench.core.files import CARDS
from kernelgate.bench.record import CaseKey, Environment, Run, RunRecord
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Line, Piece
from kernelgate.ci.judge import completeness, correctness, gate
from kernelgate.ci.judge.case import CaseVerdict, Outcome, RecordVerdict, Status, worst_first
from kernelgate.ci.judge.gate import Fault, GpuEvidence
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class Failure:
    """Why there is no record to judge."""

    fault: Fault
    message: str
    """One line, such as the compiler's first error."""
    target: str | None = None
    """The architecture that was compiled for, such as "sm_89"."""
    log: tuple[str, ...] = ()
    """The lines around it, folded."""

    @property
    def of_card(self) -> bool:
        """Whether a card cannot be used as it stands: its mistake begins with its place."""
        return self.message.startswith(f"{CARDS}/")


@dataclass(frozen=True)
class JudgedCase:
    case: CaseVerdict
    name: Piece
    gpu: str = ""
    """Its label, where there are several and they are shown together."""

    @property
    def status(self) -> Status:
        return self.case.status


def judged(record: RunRecord, verdict: RecordVerdict) -> tuple[JudgedCase, ...]:
    names = formatting.names(record.cases, record.cards)
    return tuple(JudgedCase(case, names[case.key]) for case in worst_first(verdict.cases))


@dataclass(frozen=True)
class Baseline:
    verdict: RecordVerdict
    run: Run = field(default_factory=Run)
    environment: Environment = field(default_factory=Environment)
    age_days: int | None = None
    """Of its oldest case, on the day of the record; None where that is not known."""
    since: str = ""
    """Such as "since release v1.4", of a yardstick: one that is held beside the baseline and never worsens."""


@dataclass(frozen=True)
class CaseNights:
    """The last times of one case on the default branch, the oldest first, in one environment."""

    times_us: tuple[float, ...]
    first_day: str = ""
    last_day: str = ""
    page: str | None = None


NightsByCase = Mapping[CaseKey, CaseNights]


def no_nights(_: RunRecord) -> NightsByCase:
    return {}


@dataclass(frozen=True)
class GpuReport:
    """One GPU's part of a report: what the gate weighs, and what is shown beside it."""

    evidence: GpuEvidence
    record: RunRecord
    """Where a failure says why there is none, it is empty but for the commits that this is about."""
    verdict: RecordVerdict | None = None
    """None where there is no record, or one without times: made to be profiled or fuzzed."""
    baseline: Baseline | None = None
    yardsticks: tuple[Baseline, ...] = ()
    """And against the last release, and the best ever."""
    failure: Failure | None = None
    claims: tuple[Line, ...] = ()
    nights: NightsByCase = field(default_factory=dict)
    """How its cases' times moved on the default branch, where the history knows that."""
    remarks: tuple[Line, ...] = ()
    changed: tuple[str, ...] | None = None
    """The paths that the pull request touches; None where that is not known."""

    @property
    def label(self) -> str:
        return self.evidence.label

    @cached_property
    def is_wrong(self) -> bool:
        return correctness.is_wrong(self.record) or bool(self.failure and self.failure.fault is Fault.OUTPUT)

    @cached_property
    def cases(self) -> tuple[JudgedCase, ...]:
        """The worst first; none where a result is wrong, which leaves nothing to say of speed."""
        return judged(self.record, self.verdict) if self.verdict and not self.is_wrong else ()

    @property
    def outcome(self) -> Outcome | None:
        return self.verdict.verdict if self.verdict else None

    @property
    def run(self) -> Run:
        return self.record.run


def of_record(
    label: str,
    record: RunRecord,
    verdict: RecordVerdict | None,
    policy: Policy,
    baseline: Baseline | None = None,
    yardsticks: tuple[Baseline, ...] = (),
) -> GpuReport:
    """The part of a record; of one that was made for something else than was planned, only why it is not used."""
    evidence = gate.evidence(label, record, verdict, policy)
    contrary = completeness.against_plan(record, label).contrary
    if not contrary:
        return GpuReport(evidence, record, verdict, baseline, yardsticks)
    why = f"the record cannot be used: {'; '.join(map(render.plain_line, contrary))}"
    return GpuReport(evidence, RunRecord(run=record.run), failure=Failure(Fault.DISPUTED, why))


def of_failure(label: str, failure: Failure, run: Run) -> GpuReport:
    return GpuReport(GpuEvidence(label, fault=failure.fault), RunRecord(run=run), failure=failure)
