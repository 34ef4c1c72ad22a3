"""The words for accuracy: whether the head's outputs are further from float64 than the base's were."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelgate.bench.record import Check, RunRecord
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Column, Line, Mark, Paragraph, Piece, Section, Table
from kernelgate.ci.judge import accuracy
from kernelgate.ci.judge.accuracy import AccuracyVerdict, ErrorMeasure, SideAccuracy, Standing
from kernelgate.ci.judge.outputs import fuzz_checks
from kernelgate.ci.policy.policy import AccuracyRules
from kernelgate.ci.report.correctness import titles

MAX_ROWS = 24
"""Of the table; the record holds them all."""
TIMED = "normal"
"""The distribution of what is timed, which needs no name."""
COLUMNS = (
    Column("case"),
    Column("inputs"),
    *(Column(title, numeric=True) for title in ("mean", "largest", "bias", "bias in size")),
    Column("head is"),
)


def lines(record: RunRecord, rules: AccuracyRules) -> tuple[Line, ...]:
    """What came of it, a line for each card; none where nothing was to be measured."""
    verdicts, named = accuracy.judge(record, rules), titles(record)
    made = []
    for check in accuracy.checks(record):
        line = _line(record, check, [one for one in verdicts if one.key.card == check.card], rules)
        title = named.get(check.card)
        made.append((line[0], f" {title}:", *line[1:]) if title else line)
    return tuple(made)


def sections(record: RunRecord, rules: AccuracyRules) -> tuple[Section, ...]:
    """The figures, where some output differs in some bit."""
    verdicts = [one for one in accuracy.judge(record, rules) if one.standing is not Standing.IDENTICAL]
    if not verdicts:
        return ()
    names = formatting.names(record.cases, record.cards)
    rows = tuple(_row(names.get(one.key, Code(one.key.id)), one) for one in verdicts[:MAX_ROWS])
    note: Line = (
        "Errors against float64 in units in the last place (ulp), base → head, on the same inputs. "
        "Bias is the mean of ",
        Code("output - oracle"),
        ", bias in size of ",
        Code("|output| - |oracle|"),
        ". ",
        *_beside(record, verdicts),
        Code("docs/statistics.md"),
        " has the model.",
    )
    return (Section("Accuracy", (Table(COLUMNS, rows), Paragraph(note)), worth=30),)


def to_text(record: RunRecord, rules: AccuracyRules) -> str:
    """The same for a terminal: the lines, and the figures of every output."""
    names = formatting.names(record.cases, record.cards)
    rows = (_row(names.get(one.key, Code(one.key.id)), one) for one in accuracy.judge(record, rules))
    titles_of_columns = (column.title for column in COLUMNS)
    table = ["  ".join(titles_of_columns), *("  ".join(map(render.plain_line, row)) for row in rows)]
    return "\n".join([*map(render.plain_line, lines(record, rules)), "", *table])


def exit_code(record: RunRecord, rules: AccuracyRules) -> int:
    """0 not less accurate, 1 less accurate, 2 nothing was measured."""
    verdicts = accuracy.judge(record, rules)
    if not verdicts:
        return 2
    return int(any(one.standing is Standing.LESS for one in verdicts))


def _beside(record: RunRecord, verdicts: Sequence[AccuracyVerdict]) -> Line:
    """What the table does not show."""
    said = []
    if len(verdicts) > MAX_ROWS:
        said.append(f"{len(verdicts) - MAX_ROWS} more rows are in the run record. ")
    left_out = sum(one.not_finite for one in verdicts)
    if left_out:
        said.append(f"{formatting.counted(left_out, 'element')} that were NaN or Inf are left out. ")
    said += [f"{formatting.sentence(check.reason)}. " for check in accuracy.checks(record) if check.reason]
    return tuple(said)


def _line(record: RunRecord, check: Check, verdicts: Sequence[AccuracyVerdict], rules: AccuracyRules) -> Line:
    if not verdicts:
        why = (": ", formatting.sentence(check.reason)) if check.reason else ()
        return (Mark.UNKNOWN, " accuracy: not measured", *why)
    return (*_found(record, verdicts, rules), _rest(check))


def _found(record: RunRecord, verdicts: Sequence[AccuracyVerdict], rules: AccuracyRules) -> Line:
    worst = verdicts[0]
    where = _where(record, worst, len({one.key for one in verdicts}) > 1)
    match worst.standing:
        case Standing.LESS:
            mark = Mark.SLOWER if rules.action == "fail" else Mark.SLIGHT
            within = ", within the tolerance" if _is_proven(record, worst.key.card) else ""
            rest = f"{_certain(verdicts, worst)}{within}{_also_better(verdicts)}"
            return (mark, " less accurate", *where, ": ", f"{_change(worst)}, {rest}")
        case Standing.MORE:
            return (Mark.PASSED, " more accurate", *where, ": ", f"{_change(worst)}, {_certain(verdicts, worst)}")
        case Standing.UNCLEAR:
            many = sum(one.standing is Standing.UNCLEAR for one in verdicts)
            of = f"{many} of {formatting.counted(len(verdicts), 'comparison')}"
            margin = formatting.plain(rules.margin_pct)
            return (Mark.NONE, f" accuracy: no certain change, and none within {margin}% shown in {of}")
        case Standing.ALIKE:
            most = max((one for one in verdicts if one.standing is Standing.ALIKE), key=_moved)
            return (Mark.PASSED, f" accuracy: as before ({_change(most)}, where it changed most)")
    return (Mark.PASSED, " accuracy: every output is bit-identical to the base's")


def _where(record: RunRecord, worst: AccuracyVerdict, several: bool) -> Line:
    """ " in S=512 B=32, peaked inputs", as far as it needs to be said."""
    names = formatting.names(record.cases, record.cards)
    case: tuple[Piece, ...] = (" in ", names.get(worst.key, Code(worst.key.id))) if several else ()
    output: Line = () if worst.output == "out" else (" in " if not case else ", ", "output ", Code(worst.output))
    inputs: Line = (
        () if worst.distribution == TIMED else (", " if case or output else " on ", Code(worst.distribution), " inputs")
    )
    return (*case, *output, *inputs)


def _certain(verdicts: Sequence[AccuracyVerdict], worst: AccuracyVerdict) -> str:
    alike = {one.key for one in verdicts if one.standing is worst.standing}
    every = {one.key for one in verdicts}
    return "certain" if len(every) == 1 else f"certain in {len(alike)} of {len(every)} cases"


def _also_better(verdicts: Sequence[AccuracyVerdict]) -> str:
    better = {one.key for one in verdicts if one.standing is Standing.MORE}
    return f"; more accurate in {formatting.counted(len(better), 'case')}" if better else ""


def _moved(one: AccuracyVerdict) -> float:
    """How far the mean error went, either way."""
    return abs(one.head.mean - one.base.mean)


def _change(one: AccuracyVerdict) -> str:
    """ "mean error 0.27 → 0.51 ulp (1.9×)", of what is worse where something is."""
    measure = one.worse[0] if one.worse else ErrorMeasure.MEAN
    before, after = _value(one.base, measure), _value(one.head, measure)
    words = f"{measure} {_ulp(before)} → {_ulp(after)} ulp"
    if measure in (ErrorMeasure.MEAN, ErrorMeasure.MAXIMUM) and one.standing in (Standing.LESS, Standing.MORE):
        ratio = max(before, after) / min(before, after) if min(before, after) else math.inf
        times = "" if ratio == math.inf else f" ({formatting.significant(ratio, 2)}×)"
        return f"{words}{times}"
    return words


def _value(side: SideAccuracy, measure: ErrorMeasure) -> float:
    values = {
        ErrorMeasure.MEAN: side.mean,
        ErrorMeasure.MAXIMUM: side.maximum,
        ErrorMeasure.BIAS: side.bias,
        ErrorMeasure.OUTWARD: side.outward,
    }
    return values[measure]


def _is_proven(record: RunRecord, card: str) -> bool:
    """Whether the fuzz list ran to its end, and passed."""
    whole = (check for check in fuzz_checks(record) if check.results and len(check.results) >= (check.asked or 0))
    return any(check.status == "passed" and check.card in ("", card) for check in whole)


def _rest(check: Check) -> str:
    asked, run = check.asked or 0, check.run or 0
    return f"; {asked - run} of {asked} comparisons are missing" if asked > run else ""


def _row(name: Piece, one: AccuracyVerdict) -> tuple[Line, ...]:
    output: Line = () if one.output == "out" else (", ", Code(one.output))
    figures = tuple(
        (f"{_ulp(_value(one.base, measure))} → {_ulp(_value(one.head, measure))}",)
        for measure in (ErrorMeasure.MEAN, ErrorMeasure.MAXIMUM, ErrorMeasure.BIAS, ErrorMeasure.OUTWARD)
    )
    said = f"{one.standing}: {', '.join(one.worse)}" if one.worse else str(one.standing)
    return ((name, *output), (Code(one.distribution),), *figures, (said,))


def _ulp(value: float) -> str:
    """Two digits, and no more than two places."""
    if abs(value) < 0.005:
        return "0"
    return f"{value:.2f}".replace("-", "−") if abs(value) < 10 else formatting.significant(value, 3).replace("-", "−")
