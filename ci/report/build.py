"""The report: what is known of every GPU and what the gate decided, as plain data that document/render.py writes down.

One GPU and several go the same way; where there are several, each line, section and picture names its GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.bench.record import RunRecord, TimedProcess, timed_cases
from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.model import Code, Line, Mark, Report, Section, Verbatim
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.judge.history import NO_HISTORY, History
from kernelgate.ci.judge.policy import AccuracyRules, Gates, Policy, Static
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.report import (
    accepted,
    accuracy,
    card_remarks,
    correctness,
    headline,
    profile_plot,
    sanitizer,
    sections,
    tables,
    why,
)
from kernelgate.ci.report.case_plot import plot
from kernelgate.ci.report.gpu import GpuReport, judged, of_record
from kernelgate.ci.report.headline import of_gpu


def build(gpus: Sequence[GpuReport], decision: Decision, policy: Policy, merge: bool = True) -> Report:
    """The whole report. `merge`: else it is not about merging, such as that of a profile."""
    shown, folded = tables.tables(gpus, policy.gates)
    labels = [gpu.label if len(gpus) > 1 else "" for gpu in gpus]
    each = list(zip(gpus, labels, strict=True))
    return Report(
        headline=headline.headline(gpus, decision, policy.gates, merge),
        summary=headline.summary(gpus, decision, policy.gates, merge),
        remarks=(
            *accepted.lines(gpus, decision),
            *(_named(label, line) for gpu, label in each for line in _remarks(gpu, policy, merge)),
            *_open(gpus, decision),
        ),
        cases=shown,
        folded=folded,
        folded_title=_folded_title(len(folded.rows), len(gpus)) if folded else "",
        checks=(
            *(_named(label, line) for gpu, label in each for line in _checks(gpu, policy)),
            *(_named(label, line) for gpu, label in each for line in gpu.claims),
        ),
        why=tuple(line for gpu, label in each for line in _why(gpu, label)),
        sections=tuple(
            Section(f"{label}: {part.title}" if label else part.title, part.blocks, part.worth)
            for gpu, label in each
            for part in _sections(gpu, policy)
        ),
        pictures=tuple(
            picture
            for gpu, label in each
            if gpu.record is not None and not gpu.is_wrong
            for picture in profile_plot.pictures(gpu.record, label)
        ),
        plots=tuple(
            found for gpu, label in each for one in gpu.cases if (found := plot(one, policy.gates, label)) is not None
        ),
    )


def judged_report(
    record: RunRecord,
    policy: Policy,
    name: str = "record",
    baseline: tuple[str, RunRecord] | None = None,
    history: History = NO_HISTORY,
) -> Report:
    """Judges a record, and against a named baseline where one is given; that alone where the record has no base."""
    stored = judge(record, policy, baseline[1], name, against=baseline[0]) if baseline else None
    processes = [process for case in timed_cases(record) for process in case.processes]
    if stored and processes and not any(map(_has_both, processes)):
        return report(record, stored, policy.gates, None, policy.static, policy.accuracy)
    verdict = judge(record, policy, name=name, history=history)
    return report(record, verdict, policy.gates, stored, policy.static, policy.accuracy)


def report(
    record: RunRecord,
    verdict: RecordVerdict,
    gates: Gates,
    baseline: RecordVerdict | None = None,
    static: Static | None = None,
    accurate: AccuracyRules | None = None,
) -> Report:
    """The report on one judged record, from nothing else. A baseline blocks nothing, so against one merging is no
    subject."""
    policy = Policy(gates=gates, static=static or Static(), accuracy=accurate or AccuracyRules())
    label = record.run.gpu or ""
    decision = gate.decide([gate.evidence(label, record, verdict, policy)])
    part = of_record(label, record, verdict, baseline)
    return build([part], decision, policy, merge=verdict.against == "base")


# The parts of one GPU -------------------------------------------------------------------------------------------------


def _named(label: str, line: Line) -> Line:
    return of_gpu(label, line) if label else line


def _folded_title(rows: int, gpus: int) -> str:
    if gpus == 1:
        return formatting.counted(rows, "unchanged case")
    return f"{formatting.counted(rows, 'case')} unchanged on every GPU"


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
    stated = headline.is_incomplete(headline.worst_gpu(gpus), decision)
    rest = decision.open[1:] if stated else decision.open
    return tuple((Mark.SLIGHT, " Incomplete: ", *line) for line in rest)


def _checks(gpu: GpuReport, policy: Policy) -> tuple[Line, ...]:
    if gpu.record is None:
        return ()
    if gpu.is_wrong:
        return (*correctness.beside_wrong(gpu.record), *sanitizer.lines(gpu.record, policy.gates))
    if gpu.verdict is None:
        return ()
    baseline = (_baseline(gpu.record, gpu.baseline, policy.gates),) if gpu.baseline else ()
    checked = (*sanitizer.lines(gpu.record, policy.gates), *accuracy.lines(gpu.record, policy.accuracy))
    return (*correctness.lines(gpu.record), *checked, *baseline)


def _why(gpu: GpuReport, label: str) -> tuple[Line, ...]:
    if gpu.record is None or gpu.is_wrong:
        return ()
    return why.limits(gpu.record, label) if gpu.verdict is None else why.why(gpu.record, gpu.cases, label)


def _sections(gpu: GpuReport, policy: Policy) -> tuple[Section, ...]:
    if gpu.record is None:
        log = gpu.failure.log if gpu.failure else ()
        return (Section("Log", (Verbatim(tuple(map(escape.verbatim, log)), "text"),), worth=10),) if log else ()
    if not gpu.is_wrong:
        means = gpu.verdict.means if gpu.verdict else ()
        return (
            *sections.sections(gpu.record, gpu.cases, policy.static, means),
            *accuracy.sections(gpu.record, policy.accuracy),
        )
    parts = (
        correctness.section(gpu.record),
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


def _baseline(record: RunRecord, verdict: RecordVerdict, gates: Gates) -> Line:
    """One line on the stored baseline. It shows slow drift and blocks nothing, so its mark is at most a warning."""
    opening = headline.opening(verdict, judged(record, verdict), (), gates)
    mark = Mark.SLIGHT if opening.mark is Mark.SLOWER else opening.mark
    verb = formatting.sentence(opening.verdict) + ", "
    return (mark, " against the baseline ", Code(verdict.against), ": ", verb, *opening.rest)
