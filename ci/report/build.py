"""The report: what is known of every GPU and what the gate decided, as plain data that document/render.py writes down.

One GPU and several go the same way; where there are several, each line, section and picture names its GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgate.bench.record import RunRecord, timed_cases
from kernelgate.ci.document import escape
from kernelgate.ci.document.model import Line, Mark, Report, Section, Verbatim
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import AccuracyRules, Gates, Policy, Static
from kernelgate.ci.report import (
    accuracy,
    correctness,
    headline,
    links,
    machine,
    remarks,
    speed,
    summary,
    tables,
    why,
)
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report.gpu import Baseline, GpuReport, judged, of_record
from kernelgate.ci.report.headline import named
from kernelgate.ci.report.links import NO_LINKS, Links


@dataclass(frozen=True)
class BuiltReport:
    """A report with what it was made of, which the page draws."""

    report: Report
    gpus: tuple[GpuReport, ...]


def build(
    gpus: Sequence[GpuReport], decision: Decision, policy: Policy, merge: bool = True, places: Links = NO_LINKS
) -> Report:
    """The whole report. `merge`: else it is not about merging, such as that of a profile."""
    deciding = headline.deciding_gpu(gpus, decision)
    about = headline.of_gpu(deciding, policy.gates).about
    shown = tables.cases(gpus, policy.gates, about.status if about else None, not merge or decision.blocks)
    each = [(gpu, gpu.label if len(gpus) > 1 else "") for gpu in gpus]
    cases = [one.case for gpu in gpus for one in gpu.cases]
    # What of the page is worth a look: both distributions, where an interval is not to be believed.
    drawn = "ECDF" if any(case.disqualifying for case in cases) else "plots" if cases else None
    # What is not known, as far as the headline does not say it.
    unknown = decision.open[1:] if headline.is_incomplete(deciding, decision) else decision.open
    of_deciding_first = sorted(each, key=lambda one: one[0] is not deciding)
    far_below = [named(label, line) for gpu, label in each for line in accuracy.far_below_reference(gpu, policy.gates)]
    reasons = (_why(gpu, label, policy) for gpu, label in of_deciding_first)
    why_here, *why_elsewhere = list(filter(None, reasons)) or [()]
    return Report(
        headline=headline.headline(gpus, decision, policy.gates, merge),
        summary=summary.summary(gpus, decision, policy, places, drawn),
        remarks=(
            *remarks.accepted(gpus, decision),
            *(named(label, line) for gpu, label in each for line in _remarks(gpu, policy, merge)),
            *((Mark.SLIGHT, " Incomplete: ", *line) for line in unknown),
        ),
        cases=shown.shown,
        under=shown.under,
        folded=shown.folded,
        folded_title=shown.folded_title,
        checks=(
            *(named(label, line) for gpu, label in each for line in _checks(gpu, policy, gpus)),
            *(named(label, line) for gpu, label in each for line in gpu.claims),
            *(named(label, line) for gpu, label in each for line in baselines.nights_lines(gpu, policy.gates)),
        ),
        why=(*far_below, *why_here),
        also_why=tuple(line for lines in why_elsewhere for line in lines),
        now=summary.now(gpus, decision, places, bool(far_below)) if merge else (),
        sections=tuple(
            replace(part, title=f"{label}: {part.title}" if label else part.title)
            for gpu, label in each
            for part in _sections(gpu, policy)
            if part is not None
        )
        + remarks.compiler_warning_sections(gpus),
        elsewhere=links.elsewhere(gpus, places, drawn is not None),
    )


def reported(
    record: RunRecord,
    policy: Policy,
    name: str = "record",
    baseline: tuple[str, RunRecord] | None = None,
    history: History = NO_HISTORY,
) -> BuiltReport:
    """Judges a record, and against a named baseline where one is given; that alone where the record has no base."""
    against = judge(record, policy, baseline[1], name, baseline[0], history) if baseline else None
    processes = [process for case in timed_cases(record) for process in case.processes]
    if against and processes and not any(map(remarks.has_both, processes)):
        return of_verdict(record, against, policy)
    stored = baselines.of_record(against, baseline[1], record.run.created_at) if baseline and against else None
    return of_verdict(record, judge(record, policy, name=name, history=history), policy, stored)


def compared_report(verdict: RecordVerdict, record: RunRecord | None, policy: Policy, named: bool) -> Report:
    """The report of `kernelgate compare` on one file. `named`: of several, the first line says of which."""
    if record is None:
        made = Report(headline=(Mark.UNKNOWN, " Cannot be judged: ", verdict.refused or ""), summary=())
    else:
        made = of_verdict(record, verdict, policy).report
    return replace(made, headline=(verdict.record, ": ", *made.headline)) if named else made


def report(
    record: RunRecord,
    verdict: RecordVerdict,
    gates: Gates,
    baseline: Baseline | None = None,
    static: Static | None = None,
    accurate: AccuracyRules | None = None,
) -> Report:
    """The report on one judged record, from nothing else. A baseline blocks nothing, so against one merging is no
    subject."""
    policy = Policy(gates=gates, static=static or Static(), accuracy=accurate or AccuracyRules())
    return of_verdict(record, verdict, policy, baseline).report


def of_verdict(
    record: RunRecord, verdict: RecordVerdict, policy: Policy, baseline: Baseline | None = None
) -> BuiltReport:
    """The report on one judged record, with what it was made of."""
    label = record.run.gpu or ""
    decision = gate.decide([gate.evidence(label, record, verdict, policy)])
    part = of_record(label, record, verdict, baseline)
    return BuiltReport(build([part], decision, policy, merge=verdict.against == "base"), (part,))


# The parts of one GPU -------------------------------------------------------------------------------------------------


def _remarks(gpu: GpuReport, policy: Policy, merge: bool) -> tuple[Line, ...]:
    if gpu.record is None:
        return gpu.remarks
    on_cards = remarks.of_cards(gpu.record, gpu.verdict)
    if gpu.verdict is None or gpu.is_wrong:
        return (*on_cards, *gpu.remarks)
    blocking = why.blocking(gpu.record, policy.static) if merge else ()
    return (*on_cards, *remarks.precision(gpu.record), *blocking, *gpu.remarks)


def _checks(gpu: GpuReport, policy: Policy, gpus: Sequence[GpuReport]) -> tuple[Line, ...]:
    record, gates = gpu.record, policy.gates
    if record is None:
        return ()
    if gpu.is_wrong:
        return (*correctness.beside_wrong(record), *correctness.sanitizer(record, gates))
    if gpu.verdict is None:
        return ()
    return (
        *correctness.lines(record, any(one.is_wrong for one in gpus)),
        *correctness.sanitizer(record, gates),
        *accuracy.lines(record, policy.accuracy),
        *accuracy.memory(record, gates),
        *(baselines.line(record, gpu.baseline, gates) if gpu.baseline else ()),
        *baselines.yardstick_lines(record, gpu.yardsticks),
    )


def _why(gpu: GpuReport, label: str, policy: Policy) -> tuple[Line, ...]:
    if gpu.record is None or gpu.is_wrong:
        return ()
    if gpu.verdict is None:
        return why.what_limits(gpu.record, label)
    return speed.why_by_launch(gpu.record, gpu.cases, policy, label) or why.why(gpu.record, gpu.cases, label)


def _sections(gpu: GpuReport, policy: Policy) -> tuple[Section | None, ...]:
    """In reading order; None where there is nothing to say."""
    record, cases = gpu.record, gpu.cases
    if record is None:
        log = gpu.failure.log if gpu.failure else ()
        return (Section("Log", (Verbatim(tuple(map(escape.verbatim, log)), "text"),), worth=10),) if log else ()
    if gpu.is_wrong:
        return (
            correctness.failures(record),
            correctness.fuzzing(gpu),
            machine.conditions(record, ()),
            machine.machine(record),
            machine.commands(record, judged(record, gpu.verdict) if gpu.verdict else ()),
        )
    return (
        speed.statistics(cases, record.cards, gpu.verdict.means if gpu.verdict else ()),
        speed.speed(record, cases),
        accuracy.memory_section(record, cases, policy.gates),
        machine.conditions(record, cases),
        machine.machine(record),
        why.section(record, cases),
        why.static_section(record, policy.static),
        machine.commands(record, cases),
        *accuracy.sections(record),
        *speed.ladder_sections(gpu),
        correctness.fuzzing(gpu),
        baselines.nights_section(gpu, policy.gates),
        baselines.section(record, gpu.baseline, gpu.yardsticks) if gpu.baseline else None,
    )
