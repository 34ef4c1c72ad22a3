"""The statistical results in short, for a pull request's description: what the statistics of the comment's fold hold.

From the judged record alone, so that the same measurement always gives the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelgate.bench.record import Run
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Block, Code, Line, Paragraph, Table
from kernelgate.ci.report import sections
from kernelgate.ci.report.gpu import GpuReport

MAX_ROWS = 30
"""Cases of one GPU, the worst first."""


def results(gpus: Sequence[GpuReport], run: Run) -> tuple[Block, ...]:
    """A table for each GPU, or that it has none; nothing where none has."""
    tables = {gpu.label: _table(gpu) for gpu in gpus}
    if not any(tables.values()):
        return ()
    base = (" against ", formatting.commit(run.base_sha, "")) if run.base_sha else ()
    said: Line = ("Of ", formatting.commit(run.head_sha, "the head"), *base)
    note = ", written by kernelgate, whose comment holds the verdict. Changes are of time: positive is slower."
    rows = (block for label, table in tables.items() for block in _of_gpu(label if len(tables) > 1 else "", table))
    return (Paragraph((*said, note)), *rows)


def _of_gpu(label: str, table: Table | None) -> Iterator[Block]:
    """`label`: where there are several."""
    if table is None:
        yield Paragraph(("On ", Code(label), " no case was compared, or a result is wrong."))
        return
    if label:
        yield Paragraph(("On ", Code(label), ":"))
    yield replace(table, rows=table.rows[:MAX_ROWS])
    if len(table.rows) > MAX_ROWS:
        yield Paragraph((f"{len(table.rows) - MAX_ROWS} more cases are in the comment.",))


def _table(gpu: GpuReport) -> Table | None:
    if gpu.record is None or gpu.verdict is None or gpu.is_wrong:
        return None
    found = sections.statistics(gpu.cases, gpu.record.cards)
    return next((block for block in found.blocks if isinstance(block, Table)), None) if found else None
