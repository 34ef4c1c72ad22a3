"""The words for peak memory: what a call takes, base → head, beside the reference."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Column, Line, Mark, Paragraph, Piece, Section, Table
from kernelgate.ci.judge import memory
from kernelgate.ci.judge.memory import CaseMemory, MemoryRange
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import JudgedCase


def lines(record: RunRecord, gates: Gates) -> tuple[Line, ...]:
    """That the head takes more than the policy's share of the reference, and that it takes more than the base."""
    names = formatting.names(record.cases, record.cards)
    found: list[Line] = []
    above = memory.above(record, gates) if gates.above_memory_max != "ignore" else ()
    if above:
        mark = Mark.SLOWER if gates.above_memory_max == "fail" else Mark.SLIGHT
        words = f" takes {_times(above[0])} the memory of {formatting.reference(record.cards)} in "
        limit = f"{_more(above)}; the limit is {gates.memory_max:g}×"
        found.append((mark, words, _named(names, above[0].key), limit))
    if grown := memory.grown(record, gates):
        one = grown[0]
        words = f" takes more memory a call than the base: {_shown(one.base)} → {_shown(one.head)} in "
        found.append((Mark.SLIGHT, words, _named(names, one.key), _more(grown)))
    return tuple(found)


def section(record: RunRecord, cases: Sequence[JudgedCase], gates: Gates) -> Section | None:
    """Every case, where the memory of any was measured."""
    known = {one.key: one for one in memory.of_record(record)}
    if not known:
        return None
    beside = formatting.reference(record.cards)
    columns = (Column("case"), *(Column(one, numeric=True) for one in ("base", "head", beside, f"head × {beside}")))
    rows = tuple(_row(one.name, known.get(one.case.key)) for one in cases)
    acts = {"ignore": "blocks nothing", "warn": "is said, and blocks nothing", "fail": "blocks"}
    note: Line = (
        "The most that one call holds beside its inputs: its outputs, and what it takes from torch's allocator. What a "
        "kernel takes from CUDA by itself, or keeps from call to call, is not seen. By ",
        Code("gates.above_memory_max"),
        f" more than {gates.memory_max:g}× of {beside} {acts[gates.above_memory_max]}.",
    )
    return Section("Peak memory", (Table(columns, rows), Paragraph(note)), worth=25)


def _row(name: Piece, found: CaseMemory | None) -> tuple[Line, ...]:
    if found is None:
        return ((name,), *(((formatting.NOT_MEASURED,),) * 3), (formatting.MISSING,))
    return ((name,), *((_shown(side),) for side in (found.base, found.head, found.reference)), (_times(found),))


def _shown(side: MemoryRange | None) -> str:
    if side is None:
        return formatting.NOT_MEASURED
    least, most = formatting.sizes(side.least), formatting.sizes(side.most)
    return most if side.least == side.most else f"{least} to {most}"


def _times(one: CaseMemory) -> str:
    return formatting.MISSING if one.times is None else f"{formatting.significant(one.times, 3)}×"


def _named(names: dict[CaseKey, Piece], key: CaseKey) -> Piece:
    return names.get(key, Code(key.id))


def _more(found: Sequence[CaseMemory]) -> str:
    return f", and in {formatting.counted(len(found) - 1, 'more case')}" if len(found) > 1 else ""
