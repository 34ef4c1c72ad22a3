"""The report: what is known of every GPU and what the gate decided, as plain data that document/render.py writes down.

One GPU and several go the same way; where there are several, each line, section and picture names its GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgate.bench.record import RunRecord, TimedProcess, timed_cases
from kernelgate.ci.document import escape
from kernelgate.ci.document.model import Line, Mark, Report, Section, Verbatim
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.compare import Judged
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.judge.history import NO_HISTORY, History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import AccuracyRules, Gates, Policy, Static
from kernelgate.ci.report import (
    accepted,
    accuracy,
    card_remarks,
    compiler_warnings,
    correctness,
    fuzzing,
    headline,
    launches,
    links,
    memory,
    next_steps,
    nights,
    reference,
    sanitizer,
    sections,
    sizes,
    summary,
    tables,
    thresholds,
    why,
    yardsticks,
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
    drawn = _drawn(gpus)
    of_deciding_first = sorted(each, key=lambda one: one[0] is not deciding)
    far_below = [named(label, line) for gpu, label in each for line in reference.lines(gpu, policy.gates)]
    reasons = (_why(gpu, label, policy) for gpu, label in of_deciding_first)
    why_here, *why_elsewhere = list(filter(None, reasons)) or [()]
    return Report(
        headline=headline.headline(gpus, decision, policy.gates, merge),
        summary=summary.summary(gpus, decision, policy, places, drawn),
        remarks=(
            *accepted.lines(gpus, decision),
            *(named(label, line) for gpu, label in each for line in _remarks(gpu, policy, merge)),
            *_open(gpus, decision),
        ),
        cases=shown.shown,
        under=shown.under,
        folded=shown.folded,
        folded_title=shown.folded_title,
        checks=(
            *(named(label, line) for gpu, label in each for line in _checks(gpu, policy, gpus)),
            *(named(label, line) for gpu, label in each for line in gpu.claims),
            *(named(label, line) for gpu, label in each for line in nights.lines(gpu, policy.gates)),
        ),
        why=(*far_below, *why_here),
        also_why=tuple(line for lines in why_elsewhere for line in lines),
        now=next_steps.now(gpus, decision, places, bool(far_below)) if merge else (),
        sections=tuple(
            Section(f"{label}: {part.title}" if label else part.title, part.blocks, part.worth)
            for gpu, label in each
            for part in _sections(gpu, policy)
        )
        + compiler_warnings.sections(gpus),
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
    if against and processes and not any(map(_has_both, processes)):
        return of_verdict(record, against, policy)
    stored = baselines.of_record(against, baseline[1], record.run.created_at) if baseline and against else None
    return of_verdict(record, judge(record, policy, name=name, history=history), policy, stored)


def compared_report(one: Judged, policy: Policy, named: bool) -> Report:
    """The report of `kernelgate compare` on one file. `named`: of several, the first line says of which."""
    if one.record is None:
        made = Report(headline=(Mark.UNKNOWN, " Cannot be judged: ", one.verdict.refused or ""), summary=())
    else:
        made = of_verdict(one.record, one.verdict, policy).report
    return replace(made, headline=(one.verdict.record, ": ", *made.headline)) if named else made


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


def _drawn(gpus: Sequence[GpuReport]) -> str | None:
    """What of the page is worth a look: both distributions, where an interval is not to be believed."""
    cases = [one.case for gpu in gpus for one in gpu.cases]
    return "ECDF" if any(case.disqualifying for case in cases) else "plots" if cases else None


def _remarks(gpu: GpuReport, policy: Policy, merge: bool) -> tuple[Line, ...]:
    if gpu.record is None:
        return gpu.remarks
    record = gpu.record
    on_cards = card_remarks.remarks(record, gpu.verdict)
    if gpu.verdict is None or gpu.is_wrong:
        return (*on_cards, *gpu.remarks)
    blocking = why.blocking(record, policy.static) if merge else ()
    return (*on_cards, *_precision(record), *blocking, *gpu.remarks)


def _open(gpus: Sequence[GpuReport], decision: Decision) -> tuple[Line, ...]:
    """What is not known, as far as the headline does not say it."""
    stated = headline.is_incomplete(headline.deciding_gpu(gpus, decision), decision)
    rest = decision.open[1:] if stated else decision.open
    return tuple((Mark.SLIGHT, " Incomplete: ", *line) for line in rest)


def _checks(gpu: GpuReport, policy: Policy, gpus: Sequence[GpuReport]) -> tuple[Line, ...]:
    if gpu.record is None:
        return ()
    if gpu.is_wrong:
        return (*correctness.beside_wrong(gpu.record), *sanitizer.lines(gpu.record, policy.gates))
    if gpu.verdict is None:
        return ()
    stored = baselines.line(gpu.record, gpu.baseline, policy.gates) if gpu.baseline else ()
    accurate = accuracy.lines(gpu.record, policy.accuracy)
    checked = (*sanitizer.lines(gpu.record, policy.gates), *accurate, *memory.lines(gpu.record, policy.gates))
    since = yardsticks.lines(gpu.record, gpu.yardsticks)
    return (*correctness.lines(gpu.record, any(one.is_wrong for one in gpus)), *checked, *stored, *since)


def _why(gpu: GpuReport, label: str, policy: Policy) -> tuple[Line, ...]:
    if gpu.record is None or gpu.is_wrong:
        return ()
    limits = thresholds.bottleneck_limits(policy)
    if gpu.verdict is None:
        return why.what_limits(gpu.record, limits, label)
    return launches.why(gpu.record, gpu.cases, policy, label) or why.why(gpu.record, gpu.cases, limits, label)


def _sections(gpu: GpuReport, policy: Policy) -> tuple[Section, ...]:
    if gpu.record is None:
        log = gpu.failure.log if gpu.failure else ()
        return (Section("Log", (Verbatim(tuple(map(escape.verbatim, log)), "text"),), worth=10),) if log else ()
    if not gpu.is_wrong:
        found = sections.sections(gpu.record, gpu.cases, policy, gpu.verdict.means if gpu.verdict else ())
        found = (*found, *accuracy.sections(gpu.record, policy.accuracy), *sizes.sections(gpu, policy.guidance))
        known = (fuzzing.section(gpu), nights.section(gpu, policy.gates))
        found = (*found, *(part for part in known if part is not None))
        if gpu.baseline:
            found = (*found, baselines.section(gpu.record, gpu.baseline, policy, gpu.yardsticks))
        return found
    parts = (
        correctness.section(gpu.record),
        fuzzing.section(gpu),
        sections.conditions(gpu.record, ()),
        sections.machine(gpu.record),
        sections.commands(gpu.record, judged(gpu.record, gpu.verdict) if gpu.verdict else ()),
    )
    return tuple(part for part in parts if part is not None)


# Lines around the table -----------------------------------------------------------------------------------------------


def _precision(record: RunRecord) -> tuple[Line, ...]:
    """A remark where base and head did not share a process: docs/measured-facts.md has what that costs."""
    roles = {process.role for case in timed_cases(record) for process in case.processes if _has_both(process)}
    words = {
        "alternating": "base and head took turns in separate processes",
        "block": "base and head were timed one after the other",
    }
    found = [words[role] for role in sorted(roles & words.keys())]
    if not found:
        return ()
    return ((Mark.SLIGHT, f" Lower precision: {' or '.join(found)}, not in interleaved rounds of one process."),)


def _has_both(process: TimedProcess) -> bool:
    return {"base", "head"} <= process.samples_us.keys()
