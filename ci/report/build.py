"""The report: what is said of a run record and its verdict, as plain data that document/render.py writes down."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kernelgate.bench.record import Launch, RunRecord, Subject
from kernelgate.ci.document import escape, formatting
from kernelgate.ci.document.model import Code, Column, Line, Mark, Report, Section, Strong, Table, Verbatim
from kernelgate.ci.judge.policy import Gates, Policy, Static
from kernelgate.ci.judge.verdict import CaseVerdict, Direction, RecordVerdict, judge
from kernelgate.ci.report import correctness, headline, profile_plot, sections, why
from kernelgate.ci.report.case_plot import plot
from kernelgate.ci.report.headline import Judged, Standing

MOST_UNCHANGED = 9
"""More unchanged cases than this are folded away, …"""
MOST_UNCHANGED_BESIDE_NEWS = 3
"""… and more than this where another case changed."""

_MARKS = {
    Standing.REGRESSED: Mark.SLOWER,
    Standing.SLOWER: Mark.SLIGHT,
    Standing.UNDECIDED: Mark.UNKNOWN,
    Standing.IMPROVED: Mark.FASTER,
    Standing.FASTER: Mark.FASTER,
    Standing.UNCHANGED: Mark.SAME,
}


class Fault(Enum):
    """Whose trouble it is that there is nothing to judge."""

    BUILD = "build"
    OUTPUT = "output"
    RUNNER = "runner"
    OURS = "ours"


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
    subject: Subject = field(default_factory=Subject)


def judged_report(
    record: RunRecord, policy: Policy, name: str = "record", baseline: tuple[str, RunRecord] | None = None
) -> Report:
    """Judges a record, and against a named baseline where one is given; that alone where the record has no base."""
    stored = judge(record, policy, baseline[1], name, against=baseline[0]) if baseline else None
    if stored and not any(_is_duel(launch) for case in record.cases for launch in case.launches):
        return report(record, stored, policy.gates, static=policy.static)
    return report(record, judge(record, policy, name=name), policy.gates, stored, policy.static)


def report(
    record: RunRecord,
    verdict: RecordVerdict,
    gates: Gates,
    baseline: RecordVerdict | None = None,
    static: Static | None = None,
) -> Report:
    """Everything that is to be said of a judged record."""
    cases = headline.judged(record, verdict)
    if correctness.is_wrong(record):
        return _wrong(record, cases)
    said = headline.opening(verdict, cases, headline.place(record.environment.device), gates)
    shown, folded = _tables(cases, gates)
    baselines = (_baseline(baseline, headline.judged(record, baseline), gates),) if baseline else ()
    plots = (plot(one, gates, _MARKS[one.standing]) for one in cases)
    return Report(
        headline=(said.mark, f" {said.verdict}: ", *said.rest),
        summary=headline.summary(record, verdict, cases),
        remarks=(*_one_library(record), *_precision(record), *why.blocking(record, static or Static())),
        cases=shown,
        folded=folded,
        folded_title=formatting.counted(len(folded.rows), "unchanged case") if folded else "",
        checks=(correctness.line(record.fuzz), *baselines),
        why=why.why(record, cases),
        sections=sections.sections(record, cases, static or Static()),
        pictures=profile_plot.pictures(record),
        plots=tuple(found for found in plots if found is not None),
    )


def _wrong(record: RunRecord, cases: tuple[Judged, ...]) -> Report:
    """A wrong result leaves nothing to say of speed."""
    parts = (
        correctness.section(record),
        sections.conditions(record, ()),
        sections.machine(record),
        sections.commands(record, cases),
    )
    return Report(
        headline=correctness.headline(record),
        summary=(*correctness.first_failure(record), *headline.compared(record), "."),
        checks=(correctness.how_to_repeat(record) or correctness.line(record.fuzz),),
        sections=tuple(part for part in parts if part is not None),
    )


def failure_report(failure: Failure) -> Report:
    """What is said where nothing could be measured, and whose fault that is."""
    target: Line = (" for ", Code(failure.target)) if failure.target else ()
    message = formatting.sentence(failure.message)
    first: Line
    if failure.fault is Fault.BUILD:
        first = (Mark.BUILD, " Does not compile", *target, ": ", Code(failure.message, most=300))
    elif failure.fault is Fault.OUTPUT:
        first = (Mark.WRONG, " Wrong result: ", message)
    elif failure.fault is Fault.RUNNER:
        first = (Mark.RUNNER, " Not your fault: ", message)
    else:
        first = (Mark.RUNNER, " Not your fault: kernelgate itself failed: ", message)
    log = Section("Log", (Verbatim(tuple(map(escape.verbatim, failure.log)), "text"),), worth=10)
    record = RunRecord(subject=failure.subject)
    return Report(
        headline=first,
        summary=("Speed was not judged. ", *headline.compared(record), "."),
        sections=(log,) if failure.log else (),
    )


# The table ------------------------------------------------------------------------------------------------------------


def _tables(cases: tuple[Judged, ...], gates: Gates) -> tuple[Table | None, Table | None]:
    """The open table and the folded one: unchanged cases are folded where they are many."""
    if not cases:
        return None, None
    unchanged = tuple(one for one in cases if one.standing is Standing.UNCHANGED)
    news = tuple(one for one in cases if one.standing is not Standing.UNCHANGED)
    if len(unchanged) > (MOST_UNCHANGED_BESIDE_NEWS if news else MOST_UNCHANGED):
        return (_table(news, gates) if news else None), _table(unchanged, gates)
    return _table(cases, gates), None


def _table(cases: tuple[Judged, ...], gates: Gates) -> Table:
    columns = (
        Column("case"),
        Column("base", numeric=True),
        Column("head", numeric=True),
        Column("change", numeric=True),
        Column("× PyTorch", numeric=True),
        Column("verdict"),
    )
    return Table(columns, tuple(_row(one, gates) for one in cases))


def _row(one: Judged, gates: Gates) -> tuple[Line, ...]:
    case = one.case
    base, head = formatting.durations(case.base_us, case.head_us)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    news = one.standing not in (Standing.UNCHANGED, Standing.UNDECIDED)
    return (
        (Strong(one.name) if news and isinstance(one.name, str) else one.name,),
        (base,),
        (head,),
        (Strong(change) if news else change, f" {interval}" if interval else ""),
        (_against_oracle(case),),
        (_MARKS[one.standing], " ", _verdict(one, gates)),
    )


def change_cell(one: Judged) -> Line:
    """A case in one cell, for a table with a column for each GPU."""
    change, interval = formatting.signed(one.case.change_pct, one.case.interval_pct)
    news = one.standing not in (Standing.UNCHANGED, Standing.UNDECIDED)
    return (_MARKS[one.standing], " ", Strong(change) if news else change, f" {interval}" if interval else "")


def _against_oracle(case: CaseVerdict) -> str:
    """How many times as fast as PyTorch, base → head; from medians of one run."""
    if case.oracle_us is None:
        return formatting.MISSING
    sides = [f"{case.oracle_us / side:.2f}" if side else formatting.MISSING for side in (case.base_us, case.head_us)]
    return " → ".join(sides)


def _verdict(one: Judged, gates: Gates) -> str:
    case = one.case
    if one.standing is Standing.REGRESSED:
        return "slower"
    if one.standing is Standing.IMPROVED:
        return "faster"
    if one.standing is Standing.UNCHANGED:
        return "same" if case.direction is Direction.NONE else f"same: within ±{formatting.threshold(gates.margin_pct)}"
    if one.standing is Standing.UNDECIDED:
        blamed = sorted({finding.code.replace("_", " ") for finding in headline.disqualifying(case)})
        return f"cannot tell: {', '.join(blamed)}" if blamed else headline.noise([case])
    return f"{case.direction.value}, {headline.short_of(case, gates)}"


# Lines around the table -----------------------------------------------------------------------------------------------


def _one_library(record: RunRecord) -> tuple[Line, ...]:
    """A remark where base and head compiled to the same: then no difference could be found."""
    libraries = {build.side: build.library_sha256 for build in record.build if build.library_sha256}
    if "base" not in libraries or libraries["base"] != libraries.get("head"):
        return ()
    return ((Mark.SAME, " Base and head compile to the same library, which was timed against itself."),)


def _precision(record: RunRecord) -> tuple[Line, ...]:
    """A remark where base and head did not share a process: design.md measured what that costs."""
    orders = {launch.order for case in record.cases for launch in case.launches if _is_duel(launch)}
    said = {
        "alternating": "base and head took turns in separate processes",
        "block": "base and head were timed one after the other",
    }
    found = [said[order] for order in sorted(orders & said.keys())]
    if not found:
        return ()
    return ((Mark.SLIGHT, f" Lower precision: {' or '.join(found)}, not in interleaved rounds of one process."),)


def _is_duel(launch: Launch) -> bool:
    return {"base", "head"} <= launch.samples_us.keys()


def _baseline(verdict: RecordVerdict, cases: tuple[Judged, ...], gates: Gates) -> Line:
    """One line on the stored baseline. It shows slow drift and blocks nothing, so its mark is at most a warning."""
    said = headline.opening(verdict, cases, (), gates)
    mark = Mark.SLIGHT if said.mark is Mark.SLOWER else said.mark
    verb = formatting.sentence(said.verdict) + ", "
    return (mark, " against the baseline ", Code(verdict.against), ": ", verb, *said.rest)
