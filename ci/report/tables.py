"""The table of cases: mark, change, times, case; the same four columns for one GPU and for several.

What is new stands open, ten rows at most; the other cases are folded, and one line says how they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelgate.bench.record import CaseKey
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Column, Line, Mark, Piece, Strong, Table
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import Status, severity
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import GpuReport, JudgedCase

MAX_ROWS = 10
"""Open rows: as many as a phone shows with what stands above them and below."""
COLUMNS = (Column(""), Column("change", numeric=True), Column("base → head", numeric=True), Column("case"))


@dataclass(frozen=True)
class Cases:
    """What a report shows of its cases."""

    shown: Table | None = None
    under: Line = ()
    """What all rows have in common, what blocks, what the marks mean, how the other cases are."""
    folded: Table | None = None
    folded_title: str = ""


@dataclass(frozen=True)
class _CaseRow:
    label: str
    """Of the GPU, where there are several."""
    one: JudgedCase

    @property
    def status(self) -> Status:
        return self.one.status


def cases(gpus: Sequence[GpuReport], gates: Gates, stated: Status | None = None, blocks: bool = True) -> Cases:
    """`stated`: the status that the first lines explain. `blocks`: whether anything blocks, or merging is no subject:
    else no row may look as if it did, such as of a card that the pull request brought."""
    rows = _rows(gpus)
    news = {row.one.case.key for row in rows if row.status is not Status.UNCHANGED}
    new = [row for row in rows if row.one.case.key in news]
    # A case that changed on one GPU is shown on each.
    alone = bool(rows) and all(row.status is Status.ALONE for row in rows)
    shown = new[:MAX_ROWS]
    rest = [row for row in rows if row not in shown]
    common, names = _factored(shown, gpus)
    every = _names(gpus)
    means = any(gpu.verdict.means for gpu in gpus if gpu.verdict)
    words = [f"All: {common}. "] if common else []
    regressed = any(row.status is Status.REGRESSED for row in rows)
    if (blocks or not regressed) and any(row.status.is_slower for row in shown):
        over = f", or {formatting.threshold(gates.mean_regression_pct)} over all cases" if means else ""
        words.append(f"Blocks above {formatting.threshold(gates.regression_pct)}{over}. ")
    others = [f"{_others(rest, gates)}. "] if rest and shown else []
    under: Line = (*words, *_legend([row for row in shown if row.status is not stated], gates), *others)
    # Where there is no base: the head's times, and how many times as fast as the reference they are.
    beside = formatting.reference(card for gpu in gpus if gpu.record for card in gpu.record.cards)
    columns = (COLUMNS[0], Column("head", numeric=True), Column(f"× {beside}", numeric=True), COLUMNS[3])
    tables = [
        Table(columns, tuple(_head(row, named) for row in group))
        if alone
        else Table(COLUMNS, tuple(_row(row, named, blocks) for row in group))
        for group, named in ((shown, names), (rest, every))
    ]
    return Cases(tables[0] if shown else None, under, tables[1] if rest else None, _title(rest))


Names = Mapping[tuple[str, CaseKey], Piece]


def _rows(gpus: Sequence[GpuReport]) -> list[_CaseRow]:
    """Case by case, the worst on any GPU first, and of each case all GPUs."""
    found: dict[CaseKey, list[_CaseRow]] = {}
    for gpu in gpus:
        for one in gpu.cases:
            found.setdefault(one.case.key, []).append(_CaseRow(gpu.label if len(gpus) > 1 else "", one))
    worst = sorted(found.values(), key=lambda rows: min(severity(row.one.case) for row in rows))
    return [row for rows in worst for row in sorted(rows, key=lambda row: severity(row.one.case))]


def _names(gpus: Sequence[GpuReport]) -> dict[tuple[str, CaseKey], Piece]:
    return {(gpu.label if len(gpus) > 1 else "", one.case.key): one.name for gpu in gpus for one in gpu.cases}


def _factored(rows: Sequence[_CaseRow], gpus: Sequence[GpuReport]) -> tuple[str, Names]:
    """What all these rows have in common, and their names without it."""
    names = _names(gpus)
    measured = {case.key: case for gpu in gpus if gpu.record for case in gpu.record.cases}
    shown = {row.one.case.key: names[row.label, row.one.case.key] for row in rows}
    only = next(iter(shown.values()), None)
    if len(shown) == 1 < len(rows) and isinstance(only, str):
        # One case on several GPUs: these tell its rows apart.
        return only, {at: "" if at[1] in shown else name for at, name in names.items()}
    common, short = formatting.factored([measured[key] for key in shown if key in measured], shown)
    return common, {at: short.get(at[1], name) for at, name in names.items()}


def _row(row: _CaseRow, names: Names, blocks: bool) -> tuple[Line, ...]:
    case = row.one.case
    base, head = formatting.durations(case.base_us, case.head_us)
    times = f"{base.rpartition(' ')[0] or base} → {head}" if case.base_us is not None else head
    mark = sentences.mark(row.status) if blocks or row.status is not Status.REGRESSED else Mark.SLIGHT
    # Nothing is shown of a change that nobody should believe.
    unknown = row.status is Status.ALONE or case.disqualifying
    change = formatting.MISSING if unknown else formatting.signed(case.change_pct, case.interval_pct)[0]
    strong = row.status.is_news and not unknown
    return ((mark,), (Strong(change) if strong else change,), (times,), _name(row, names))


def _name(row: _CaseRow, names: Names) -> Line:
    name = names[row.label, row.one.case.key]
    return (Code(row.label), *((" ", name) if name else ())) if row.label else (name,)


def _head(row: _CaseRow, names: Names) -> tuple[Line, ...]:
    case = row.one.case
    head = formatting.durations(case.head_us)[0]
    ratio = f"{case.reference_us / case.head_us:.2f}" if case.reference_us and case.head_us else formatting.MISSING
    return ((sentences.mark(row.status),), (head,), (ratio,), _name(row, names))


# Under the table ------------------------------------------------------------------------------------------------------


def _legend(shown: Sequence[_CaseRow], gates: Gates) -> Line:
    """What the marks mean that nothing else explains, with the numbers of their cases."""
    words: list[Piece] = []
    undecided = [row.one.case for row in shown if row.status is Status.UNDECIDED]
    if sound := [case for case in undecided if not case.disqualifying]:
        words += [Mark.UNKNOWN, f" {sentences.noise(sound)}. "]
    if blamed := sorted({found.code.replace("_", " ") for case in undecided for found in case.disqualifying}):
        words += [Mark.UNKNOWN, f" cannot tell: {', '.join(blamed)}. "]
    said = {sentences.short_of_gate(row.one.case, gates) for row in shown if row.status is Status.UNCONFIRMED}
    for one in sorted(said):
        words += [Mark.SLIGHT, f" {one}. "]
    return tuple(words)


def _others(rest: Sequence[_CaseRow], gates: Gates) -> str:
    """How the cases are that are folded away."""
    if all(row.status is Status.UNCHANGED for row in rest):
        within = f"within {sentences.margin(gates)}"
        if any(row.label for row in rest):
            return f"{formatting.counted(_different(rest), 'other')} {within} wherever measured"
        return f"{formatting.counted(len(rest), 'other')} {within}"
    return f"{len(rest)} more below: {_kinds(rest)}"


def _title(rest: Sequence[_CaseRow]) -> str:
    if not rest:
        return ""
    if all(row.status is Status.UNCHANGED for row in rest):
        if any(row.label for row in rest):
            return f"{formatting.counted(_different(rest), 'case')} unchanged wherever measured"
        return formatting.counted(len(rest), "unchanged case")
    return f"{formatting.counted(len(rest), 'more case')}: {_kinds(rest)}"


def _different(rows: Sequence[_CaseRow]) -> int:
    return len({row.one.case.key for row in rows})


def _kinds(rows: Sequence[_CaseRow]) -> str:
    found = Counter(row.status for row in rows)
    if len(found) == 1:
        words = sentences.STATUS[rows[0].status][1]
        return words if len(rows) == 1 else f"all {words}"
    return ", ".join(f"{found[status]} {words}" for status, (_, words) in sentences.STATUS.items() if found[status])
