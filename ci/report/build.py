"""The report: what is known of every GPU and what the gate decided, as plain data that document/render.py writes down.

One GPU and several go the same way; where there are several, each line, section and picture names its GPU.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from kernelgate.bench.record import CaseKey, RunRecord, timed_cases
from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.document.model import Code, Line, Mark, Piece, Report, Section, Strong, Table, Verbatim, table
from kernelgate.ci.judge import baseline_age, gate, reference, sentences
from kernelgate.ci.judge.case import RecordVerdict, Status, severity
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import accuracy, correctness, headline, links, machine, now, remarks, speed, why
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report.gpu import Baseline, GpuReport, JudgedCase, judged, of_record
from kernelgate.ci.report.headline import named
from kernelgate.ci.report.links import NO_LINKS, Links


@dataclass(frozen=True)
class BuiltReport:
    report: Report
    decision: Decision
    gpus: tuple[GpuReport, ...] = ()


def build(
    gpus: Sequence[GpuReport], decision: Decision, policy: Policy, merge: bool = True, places: Links = NO_LINKS
) -> Report:
    """The whole report. `merge`: else it is not about merging, such as that of a profile."""
    deciding = headline.deciding_gpu(gpus, decision)
    about = headline.of_gpu(deciding, policy.gates).about
    each = [(gpu, gpu.label if len(gpus) > 1 else "") for gpu in gpus]
    # What the headline does not say of it.
    unknown = decision.open[1:] if headline.is_incomplete(deciding, decision) else decision.open
    of_deciding_first = sorted(each, key=lambda one: one[0] is not deciding)

    def everywhere(of: Callable[[GpuReport], Iterable[Line]]) -> list[Line]:
        """What is the same on every GPU is said once."""
        found = [(label, tuple(of(gpu))) for gpu, label in each]
        measured = [lines for (gpu, _), (_, lines) in zip(each, found, strict=True) if not gpu.failure]
        alike = {line for line in chain(*measured) if all(line in lines for lines in measured)}
        told = [("" if line in alike else label, line) for label, lines in found for line in lines]
        return [named(label, line) for label, line in dict.fromkeys(told)]

    far_below = everywhere(lambda gpu: accuracy.far_below_reference(gpu, policy.gates))
    reasons = (_why(gpu, label, policy) for gpu, label in of_deciding_first)
    why_here, *why_elsewhere = list(filter(None, reasons)) or [()]
    stated = about.status if about else None
    table_, under, folded, folded_title = _cases(gpus, policy.gates, stated, not merge or decision.blocks)
    made = Report(
        headline=headline.headline(gpus, decision, policy.gates, merge),
        summary=headline.summary(gpus, decision, policy, places),
        remarks=(
            *remarks.accepted(gpus, decision),
            *everywhere(lambda gpu: _remarks(gpu, policy, merge)),
            *((Mark.SLIGHT, " Incomplete: ", *line) for line in unknown),
        ),
        cases=table_,
        under=under,
        folded=folded,
        folded_title=folded_title,
        checks=(
            *chain(*why_elsewhere),
            *everywhere(lambda gpu: _checks(gpu, policy, gpus)),
            *everywhere(lambda gpu: gpu.claims),
            *everywhere(lambda gpu: baselines.nights_lines(gpu, policy.gates)),
        ),
        why=(*far_below, *why_here),
        now=now.step(gpus, decision, places, bool(far_below)) if merge else now.together(deciding),
        sections=tuple(
            replace(part, title=f"{label}: {part.title}" if label else part.title)
            for gpu, label in each
            for part in _sections(gpu, policy)
            if part is not None
        )
        + remarks.compiler_warning_sections(gpus),
        elsewhere=links.elsewhere(places),
    )
    return now.reading(made)


def reported(
    record: RunRecord,
    policy: Policy,
    name: str = "record",
    baseline: tuple[str, RunRecord] | None = None,
    history: History = NO_HISTORY,
) -> BuiltReport:
    """Judges a record, and against a named baseline where one is given; that alone where the record has no base."""
    stored = baselines.against(record, baseline[1], baseline[0], policy, history, name) if baseline else None
    processes = [process for case in timed_cases(record) for process in case.processes]
    if stored and processes and not any(map(remarks.has_both, processes)):
        return of_verdict(record, stored.verdict, policy)
    return of_verdict(record, judge(record, policy, name=name, history=history), policy, stored)


def compared(verdict: RecordVerdict, record: RunRecord | None, policy: Policy, named: bool) -> tuple[Report, int]:
    """The report of `kernelgate compare` on one file, and its exit code. `named`: the first line says of which file."""
    if record is None:
        made, decision = Report((Mark.UNKNOWN, " Cannot be judged: ", verdict.refused or ""), summary=()), None
    else:
        built = of_verdict(record, verdict, policy)
        made, decision = built.report, built.decision
    made = replace(made, headline=(verdict.record, ": ", *made.headline)) if named else made
    return made, exit_code(verdict, decision.conclusion if decision else None)


def of_verdict(
    record: RunRecord, verdict: RecordVerdict, policy: Policy, baseline: Baseline | None = None
) -> BuiltReport:
    part = of_record(record.run.gpu or "", record, verdict, policy, baseline)
    return of_part(part, policy, merge=verdict.against == "base")


def of_part(part: GpuReport, policy: Policy, merge: bool = True) -> BuiltReport:
    decision = gate.decide([part.evidence], hold=policy.gates.doubt == "hold")
    return BuiltReport(build([part], decision, policy, merge), decision, (part,))


# The parts of one GPU -------------------------------------------------------------------------------------------------


def _remarks(gpu: GpuReport, policy: Policy, merge: bool) -> tuple[Line, ...]:
    on_cards = remarks.of_cards(gpu.record, gpu.verdict)
    if gpu.verdict is None or gpu.is_wrong:
        return (*on_cards, *gpu.remarks)
    differs = gpu.verdict.apart
    return (
        *([(Mark.SLIGHT, f" {baseline_age.words(differs)}.")] if differs else ()),
        *on_cards,
        *remarks.precision(gpu.record),
        *remarks.autotuned(gpu.record, gpu.verdict),
        *(why.blocking(gpu.record, policy.static) if merge else ()),
        *gpu.remarks,
    )


def _checks(gpu: GpuReport, policy: Policy, gpus: Sequence[GpuReport]) -> tuple[Line, ...]:
    record, gates = gpu.record, policy.gates
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
    if gpu.is_wrong:
        return ()
    if gpu.verdict is None:
        return why.what_limits(gpu.record, label)
    by_launch = speed.why_by_launch(gpu.record, gpu.cases, policy, label)
    return by_launch or why.why(gpu.record, gpu.verdict, gpu.cases, label)


def _sections(gpu: GpuReport, policy: Policy) -> tuple[Section | None, ...]:
    """In reading order; None where there is nothing to say."""
    record, cases = gpu.record, gpu.cases
    if gpu.failure:
        log = tuple(map(escape.verbatim, gpu.failure.log))
        return (Section("Log", (Verbatim(log, "text"),), worth=10),) if log else ()
    if gpu.is_wrong:
        return (
            *correctness.failures(record),
            correctness.fuzzing(record),
            machine.conditions(record, ()),
            machine.machine(record, policy.costs),
            machine.commands(record, judged(record, gpu.verdict) if gpu.verdict else ()),
        )
    return (
        speed.statistics(cases, record.cards, gpu.verdict.means if gpu.verdict else ()),
        speed.speed(record, cases),
        accuracy.memory_section(record, cases, policy.gates),
        machine.conditions(record, cases),
        machine.machine(record, policy.costs),
        why.section(record, cases),
        why.static_section(record, policy.static),
        machine.commands(record, cases),
        *accuracy.sections(record),
        *correctness.failures(record),
        correctness.fuzzing(record),
        baselines.section(record, gpu.baseline, gpu.yardsticks) if gpu.baseline else None,
    )


# The table of cases: the same four columns for one GPU and for several -----------------------------------------------

MAX_ROWS = 10
"""Open rows: as many as a phone shows with what stands above them and below."""


def _cases(
    gpus: Sequence[GpuReport], gates: Gates, stated: Status | None, blocks: bool
) -> tuple[Table | None, Line, Table | None, str]:
    """The table of cases of a `Report`: what is new stands open, one line says how the others are, which are folded,
    and their title. `stated`: the status that the first lines explain. `blocks`: whether anything blocks, or merging is
    no subject: else no row may look as if it did."""
    found: defaultdict[CaseKey, list[JudgedCase]] = defaultdict(list)
    for gpu in gpus:
        for one in gpu.cases:
            found[one.case.key].append(replace(one, gpu=gpu.label if len(gpus) > 1 else ""))
    # Case by case, the worst on any GPU first, and of each case all GPUs.
    every = [sorted(each, key=lambda row: severity(row.case)) for each in found.values()]
    rows = list(chain(*sorted(every, key=lambda each: severity(each[0].case))))
    # A case that changed on one GPU is shown on each.
    news = {row.case.key for row in rows if row.status is not Status.UNCHANGED}
    shown = [row for row in rows if row.case.key in news][:MAX_ROWS]
    alone = headline.is_alone(rows)
    rest = [row for row in rows if row not in shown]
    common, named = _factored(shown, gpus)
    means = any(gpu.verdict.means for gpu in gpus if gpu.verdict)
    words = [f"All: {common}. "] if common else []
    regressed = any(row.status is Status.REGRESSED for row in rows)
    if (blocks or not regressed) and any(row.status.is_slower for row in shown):
        over = f", or {formatting.threshold(gates.mean_regression_pct)} over all cases" if means else ""
        words.append(f"Blocks above {formatting.threshold(gates.regression_pct)}{over}. ")
    # What the marks mean that nothing else explains, with the numbers of their cases.
    legend: list[Piece] = []
    undecided = [row.case for row in shown if row.status is Status.UNDECIDED and row.status is not stated]
    if sound := [case for case in undecided if not case.disqualifying]:
        legend += [Mark.UNKNOWN, f" {sentences.noise(sound)}. "]
    if blamed := sorted({found.code.replace("_", " ") for case in undecided for found in case.disqualifying}):
        legend += [Mark.UNKNOWN, f" cannot tell: {', '.join(blamed)}. "]
    under: Line = (*words, *legend, *([f"{_folded(rest)}. "] if rest and shown else []))
    # Where there is no base: the head's times, and how many times as fast as the reference they are.
    beside = formatting.reference(card for gpu in gpus for card in gpu.record.cards)
    titles = ("", "#head", f"#× {beside}", "case") if alone else ("", "#change", "#base → head", "case")
    cases, folded = (
        table(titles, (_head(row) if alone else _row(row, blocks) for row in group)) if group else None
        for group in (named, rest)
    )
    return cases, under, folded, _folded(rest)


def _factored(rows: Sequence[JudgedCase], gpus: Sequence[GpuReport]) -> tuple[str, list[JudgedCase]]:
    shown = {row.case.key: row.name for row in rows}
    only = next(iter(shown.values()), None)
    if len(shown) == 1 < len(rows) and isinstance(only, str):
        # One case on several GPUs: these tell its rows apart.
        return only, [replace(row, name="") for row in rows]
    measured = {case.key: case for gpu in gpus for case in gpu.record.cases}
    common, short = formatting.factored([measured[key] for key in shown if key in measured], shown)
    return common, [replace(row, name=short[row.case.key]) for row in rows]


def _row(row: JudgedCase, blocks: bool) -> tuple[Piece | Line, ...]:
    case = row.case
    base, head = formatting.durations(case.base_us, case.head_us)
    times = f"{base.rpartition(' ')[0] or base} → {head}" if case.base_us is not None else head
    mark = sentences.mark(row.status) if blocks or row.status is not Status.REGRESSED else Mark.SLIGHT
    # Nothing is shown of a change that nobody should believe.
    unknown = row.status is Status.ALONE or case.disqualifying
    change = formatting.MISSING if unknown else formatting.signed(case.change_pct, case.interval_pct)[0]
    return (mark, Strong(change) if row.status.is_news and not unknown else change, times, _name(row))


def _name(row: JudgedCase) -> Line:
    return (Code(row.gpu), *((" ", row.name) if row.name else ())) if row.gpu else (row.name,)


def _head(row: JudgedCase) -> tuple[Piece | Line, ...]:
    case = row.case
    head = formatting.durations(case.head_us)[0]
    times = reference.times(case)
    ratio = formatting.MISSING if times is None else f"{times:.2f}"
    return (sentences.mark(row.status), head, ratio, _name(row))


def _folded(rest: Sequence[JudgedCase]) -> str:
    kinds = Counter(row.status for row in rest)
    if kinds.keys() == {Status.UNCHANGED}:
        where = " wherever measured" if rest[0].gpu else ""
        return f"{counted(len({row.case.key for row in rest}), 'case')} unchanged{where}"
    words = [f"{kinds[kind]} {words}" for kind, (_, words) in sentences.STATUS.items() if kinds[kind]]
    return f"{counted(len(rest), 'more case')}: {', '.join(words)}" if rest else ""
