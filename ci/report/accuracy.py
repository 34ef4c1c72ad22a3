"""The words for accuracy against float64, for the memory of a call, and for a reference that is far ahead."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Line, Mark, Paragraph, Piece, Section, table
from kernelgate.ci.judge import accuracy, correctness, reference
from kernelgate.ci.judge.accuracy import AccuracyVerdict, ErrorMeasure, Standing
from kernelgate.ci.judge.reference import CaseMemory, MemoryRange
from kernelgate.ci.policy.policy import AccuracyRules, Gates
from kernelgate.ci.report.correctness import of_card, titles
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import docs

MAX_ROWS = 24
TIMED = "normal"
"""The distribution of what is timed, which needs no name."""
TITLES = ("case", "inputs", "#mean", "#largest", "#bias", "#bias in size", "head is")


def lines(record: RunRecord, rules: AccuracyRules) -> tuple[Line, ...]:
    """What came of it, a line for each card; none where nothing was to be measured."""
    verdicts, named = accuracy.judge(record), titles(record)
    lines = []
    for check in correctness.checks(record, "accuracy"):
        why = (": ", formatting.sentence(check.reason)) if check.reason else ()
        line: Line = (Mark.UNKNOWN, " accuracy: not measured", *why)
        if of_check := [one for one in verdicts if one.key.card == check.card]:
            missing = (check.asked or 0) - (check.run or 0)
            rest = f"; {missing} of {check.asked} comparisons are missing" if missing > 0 else ""
            line = (*_outcome(record, of_check, rules), rest)
        lines.append(of_card(named.get(check.card, ""), line))
    return tuple(lines)


def sections(record: RunRecord) -> tuple[Section, ...]:
    verdicts = [one for one in accuracy.judge(record) if one.standing is not Standing.IDENTICAL]
    if not verdicts:
        return ()
    names = formatting.names(record.cases, record.cards)
    rows = (_row(names[one.key], one) for one in verdicts[:MAX_ROWS])
    more = [f"{len(verdicts) - MAX_ROWS} more rows are in the run record. "] if len(verdicts) > MAX_ROWS else []
    if left_out := sum(one.measured.not_finite for one in verdicts):
        more.append(f"{formatting.counted(left_out, 'element')} that were NaN or Inf are left out. ")
    reasons = (check.reason for check in correctness.checks(record, "accuracy") if check.reason)
    more += [f"{formatting.sentence(reason)}. " for reason in reasons]
    units = "Errors against float64 in units in the last place (ulp), base → head, on the same inputs. "
    bias = ("Bias is the mean of ", Code("output - oracle"), ", bias in size of ", Code("|output| - |oracle|"), ". ")
    model = (docs("how accuracy is judged", "statistics.md#accuracy"), " has the model.")
    return (Section("Accuracy", (table(TITLES, rows), Paragraph((units, *bias, *more, *model))), worth=30),)


def to_text(record: RunRecord, rules: AccuracyRules) -> str:
    names = formatting.names(record.cases, record.cards)
    figures = table(TITLES, (_row(names[one.key], one) for one in accuracy.judge(record)))
    return "\n".join([*map(render.plain_line, lines(record, rules)), "", render.in_columns(figures, render.MAX_WIDTH)])


def exit_code(record: RunRecord) -> int:
    """0 not less accurate, 1 less accurate, 2 nothing was measured."""
    verdicts = accuracy.judge(record)
    return int(any(one.standing is Standing.LESS for one in verdicts)) if verdicts else 2


def _outcome(record: RunRecord, verdicts: Sequence[AccuracyVerdict], rules: AccuracyRules) -> Line:
    worst, cases = verdicts[0], {one.key for one in verdicts}
    alike = {one.key for one in verdicts if one.standing is worst.standing}
    certain = "certain" if len(cases) == 1 else f"certain in {len(alike)} of {len(cases)} cases"
    # " in S=512 B=32, peaked inputs", as far as it needs to be said.
    measured = worst.measured
    where: Line = (" in ", formatting.names(record.cases, record.cards)[worst.key]) if len(cases) > 1 else ()
    if measured.output != "out":
        where = (*where, ", " if where else " in ", "output ", Code(measured.output))
    if measured.distribution != TIMED:
        where = (*where, ", " if where else " on ", Code(measured.distribution), " inputs")
    match worst.standing:
        case Standing.LESS:
            mark = Mark.SLOWER if rules.action == "fail" else Mark.SLIGHT
            fuzzed = (one for one in correctness.checks(record, "fuzz") if one.card in ("", worst.key.card))
            whole = any(one.status == "passed" and 0 < len(one.results) >= (one.asked or 0) for one in fuzzed)
            within = ", within the tolerance" if whole else ""
            better = {one.key for one in verdicts if one.standing is Standing.MORE}
            also = f"; more accurate in {formatting.counted(len(better), 'case')}" if better else ""
            return (mark, " less accurate", *where, ": ", f"{_change(worst)}, {certain}{within}{also}")
        case Standing.MORE:
            return (Mark.PASSED, " more accurate", *where, ": ", f"{_change(worst)}, {certain}")
        case Standing.UNCLEAR:
            many = sum(one.standing is Standing.UNCLEAR for one in verdicts)
            of = f"{many} of {formatting.counted(len(verdicts), 'comparison')}"
            margin = formatting.plain(accuracy.ACCURACY_MARGIN_PCT)
            return (Mark.NONE, f" accuracy: no certain change, and none within {margin}% shown in {of}")
        case Standing.ALIKE:
            kept = (one for one in verdicts if one.standing is Standing.ALIKE)
            most = max(kept, key=lambda one: abs(one.errors(ErrorMeasure.MEAN)[1] - one.errors(ErrorMeasure.MEAN)[0]))
            return (Mark.PASSED, f" accuracy: as before ({_change(most)}, where it changed most)")
    return (Mark.PASSED, " accuracy: every output is bit-identical to the base's")


def _change(one: AccuracyVerdict) -> str:
    """ "mean error 0.27 → 0.51 ulp (1.9×)"."""
    measure = one.worse[0] if one.worse else ErrorMeasure.MEAN
    before, after = one.errors(measure)
    words = f"{measure} {_ulp(before)} → {_ulp(after)} ulp"
    certain = one.standing in (Standing.LESS, Standing.MORE)
    if certain and measure in (ErrorMeasure.MEAN, ErrorMeasure.MAXIMUM) and min(before, after):
        return f"{words} ({formatting.significant(max(before, after) / min(before, after), 2)}×)"
    return words


def _row(name: Piece, one: AccuracyVerdict) -> tuple[Piece | Line, ...]:
    output: Line = () if one.measured.output == "out" else (", ", Code(one.measured.output))
    measures = (ErrorMeasure.MEAN, ErrorMeasure.MAXIMUM, ErrorMeasure.BIAS, ErrorMeasure.OUTWARD)
    figures = (" → ".join(map(_ulp, one.errors(measure))) for measure in measures)
    standing = f"{one.standing}: {', '.join(one.worse)}" if one.worse else str(one.standing)
    return ((name, *output), Code(one.measured.distribution), *figures, standing)


def _ulp(value: float) -> str:
    """Two digits, and no more than two places."""
    if abs(value) < 0.005:
        return "0"
    return f"{value:.2f}".replace("-", "−") if abs(value) < 10 else formatting.significant(value, 3).replace("-", "−")


def memory(record: RunRecord, gates: Gates) -> tuple[Line, ...]:
    """That the head takes more than the policy's share of the reference, and that it takes more than the base."""
    names = formatting.names(record.cases, record.cards)
    lines: list[Line] = []

    def more(cases: Sequence[CaseMemory]) -> str:
        return f", and in {formatting.counted(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""

    if gates.above_memory_max != "ignore" and (above := reference.above_memory_max(record, gates)):
        words = f" takes {_times(above[0])} the memory of {formatting.reference(record.cards)} in "
        mark = Mark.SLOWER if gates.above_memory_max == "fail" else Mark.SLIGHT
        lines.append((mark, words, names[above[0].key], f"{more(above)}; the limit is {gates.memory_max:g}×"))
    if grown := reference.memory_grown(record):
        words = f" takes more memory a call than the base: {_range(grown[0].base)} → {_range(grown[0].head)} in "
        lines.append((Mark.SLIGHT, words, names[grown[0].key], more(grown)))
    return tuple(lines)


def memory_section(record: RunRecord, cases: Sequence[JudgedCase], gates: Gates) -> Section | None:
    known = {one.key: one for one in reference.memory(record)}
    if not known:
        return None
    beside = formatting.reference(record.cards)
    each = ((one.name, known.get(one.case.key) or CaseMemory(one.case.key, None, None, None)) for one in cases)
    rows = ((name, *map(_range, (one.base, one.head, one.reference)), _times(one)) for name, one in each)
    acts = {"ignore": "blocks nothing", "warn": "is said, and blocks nothing", "fail": "blocks"}
    note: Line = (
        "The most that one call holds beside its inputs: its outputs, and what it takes from torch's allocator. What a "
        "kernel takes from CUDA by itself, or keeps from call to call, is not seen. By ",
        Code("gates.above_memory_max"),
        f" more than {gates.memory_max:g}× of {beside} {acts[gates.above_memory_max]}.",
    )
    figures = table(("case", "#base", "#head", f"#{beside}", f"#head × {beside}"), rows)
    return Section("Peak memory", (figures, Paragraph(note)), worth=25)


def _range(side: MemoryRange | None) -> str:
    if side is None:
        return formatting.NOT_MEASURED
    least, most = formatting.sizes(side.least), formatting.sizes(side.most)
    return most if side.least == side.most else f"{least} to {most}"


def _times(one: CaseMemory) -> str:
    return formatting.MISSING if one.times is None else f"{formatting.significant(one.times, 3)}×"


def far_below_reference(gpu: GpuReport, gates: Gates) -> tuple[Line, ...]:
    """ "0.31× of PyTorch in S=512", below the policy's minimum; what to do is said by the next step."""
    below = reference.far_below(gpu.verdict, gates)
    if gpu.is_wrong or not below:
        return ()
    (worst, ratio), others = below[0], len(below) - 1
    name, cases = formatting.reference(gpu.record.cards), formatting.names(gpu.record.cases, gpu.record.cards)
    beside = f" and {formatting.counted(others, 'more case')} below {gates.reference_min:g}×" if others else ""
    return ((Mark.SLIGHT, f" {ratio:.2g}× of {name} in ", cases[worst.key], beside),)
