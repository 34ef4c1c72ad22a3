"""What a ladder of sizes tells, folded: a table from the smallest to the largest, and a sentence."""

from __future__ import annotations

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Column, Paragraph, Section, Table
from kernelgate.ci.explain import ladder
from kernelgate.ci.judge.policy import Guidance
from kernelgate.ci.report.gpu import GpuReport


def sections(gpu: GpuReport, guidance: Guidance) -> tuple[Section, ...]:
    """Of a record whose cases are a ladder, each beside its reference, such as one of `--suite ladder`."""
    if gpu.record is None:
        return ()
    axes = {case.key: case.axes for case in gpu.record.cases}
    timed = [(axes.get(one.case.key, {}), one.case.head_us, one.case.reference_us) for one in gpu.cases]
    found = ladder.ladder([(known, head, beside) for known, head, beside in timed if head and beside])
    if found is None:
        return ()
    said = ladder.diagnose(found, guidance.profile_below).sentence
    name = formatting.reference(gpu.record.cards)
    columns = (Column(found.axis, numeric=True), Column("head", numeric=True), Column(f"× {name}", numeric=True))
    rows = tuple(
        ((str(rung.size),), formatting.durations(rung.head_us), (f"{rung.speedup:.2f}",)) for rung in found.rungs
    )
    return (Section("Sizes", (Paragraph((f"{said[0].upper()}{said[1:]}.",)), Table(columns, rows)), worth=60),)
