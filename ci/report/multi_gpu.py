"""Several GPUs in one comment: a column for each, the worst one's sentence first."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Column, Line, Mark, Report, Section, Table
from kernelgate.ci.judge.verdict import RecordVerdict
from kernelgate.ci.report import headline
from kernelgate.ci.report.build import change_cell
from kernelgate.ci.report.headline import Judged, Standing

MOST_ROWS = 20
"""More cases than this are folded where no GPU shows a change."""

_WORST_FIRST = (Mark.WRONG, Mark.BUILD, Mark.SLOWER, Mark.SLIGHT, Mark.RUNNER, Mark.UNKNOWN, Mark.FASTER, Mark.SAME)

Gpu = tuple[str, Report, RecordVerdict | None, RunRecord | None]
"""A GPU's label, its own report, and verdict and record where it has them."""


def side_by_side(gpus: Sequence[Gpu]) -> Report:
    """One report of several: the headline of the worst GPU, and what each of them says, in the order given."""
    worst = min(gpus, key=lambda gpu: _WORST_FIRST.index(_mark(gpu[1])))
    cases = [(label, _by_id(verdict, record)) for label, _, verdict, record in gpus]
    shown, folded = _tables(cases)
    return Report(
        headline=(_mark(worst[1]), " ", Code(worst[0]), ":", *worst[1].headline[1:]),
        summary=_each(gpus),
        remarks=tuple(_of(label, line) for label, said, _, _ in gpus for line in said.remarks),
        cases=shown,
        folded=folded,
        folded_title=formatting.counted(len(folded.rows), "case") + " unchanged everywhere" if folded else "",
        checks=tuple(_of(label, line) for label, said, _, _ in gpus for line in said.checks),
        sections=tuple(
            Section(f"{label}: {section.title}", section.blocks, section.worth)
            for label, said, _, _ in gpus
            for section in said.sections
        ),
        plots=tuple(plot for _, said, _, _ in gpus for plot in said.plots),
    )


def _mark(said: Report) -> Mark:
    return said.headline[0] if isinstance(said.headline[0], Mark) else Mark.UNKNOWN


def _of(label: str, line: Line) -> Line:
    """The line with its GPU named, behind the mark where it has one."""
    if line and isinstance(line[0], Mark):
        return (line[0], " ", Code(label), ":", *line[1:])
    return (Code(label), ": ", *line)


def _each(gpus: Sequence[Gpu]) -> Line:
    """ "`l4` slower, `h100` no change. " and the commits."""
    line: list[str | Code] = []
    for number, (label, said, _, _) in enumerate(gpus):
        verdict = said.headline[1] if len(said.headline) > 1 and isinstance(said.headline[1], str) else ""
        line += ["" if number == 0 else ", ", Code(label), f" {verdict.split(':')[0].strip().lower()}"]
    record = next((record for _, _, _, record in gpus if record is not None), None)
    return (*line, ". ", *(headline.compared(record) if record else ()), *((".",) if record else ()))


def _by_id(verdict: RecordVerdict | None, record: RunRecord | None) -> dict[str, Judged]:
    if verdict is None or record is None:
        return {}
    return {one.case.id: one for one in headline.judged(record, verdict)}


def _tables(gpus: Sequence[tuple[str, dict[str, Judged]]]) -> tuple[Table | None, Table | None]:
    """The open table and the folded one, the worst case on any GPU first."""
    found: dict[str, list[Judged]] = {}
    for _, cases in gpus:
        for id_, one in cases.items():
            found.setdefault(id_, []).append(one)
    ids = sorted(found, key=lambda id_: min(one.standing for one in found[id_]))
    quiet = [id_ for id_ in ids if all(one.standing is Standing.UNCHANGED for one in found[id_])]
    apart = quiet if len(ids) > MOST_ROWS else []
    return _table([id_ for id_ in ids if id_ not in apart], found, gpus), _table(apart, found, gpus)


def _table(
    ids: Sequence[str], found: dict[str, list[Judged]], gpus: Sequence[tuple[str, dict[str, Judged]]]
) -> Table | None:
    if not ids:
        return None
    columns = (Column("case"), *(Column(label, numeric=True) for label, _ in gpus))
    rows = tuple(
        (
            (found[id_][0].name,),
            *(change_cell(cases[id_]) if id_ in cases else (formatting.NOT_MEASURED,) for _, cases in gpus),
        )
        for id_ in ids
    )
    return Table(columns, rows)
