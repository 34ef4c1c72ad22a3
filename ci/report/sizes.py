"""What a ladder of sizes tells, folded: a table from the smallest to the largest, and a sentence."""

from __future__ import annotations

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Column, Paragraph, Section, Table
from kernelgate.ci.explain import ladder
from kernelgate.ci.explain.ladder import Ladder, SizedCase
from kernelgate.ci.judge import reference
from kernelgate.ci.policy.policy import Guidance
from kernelgate.ci.report.gpu import GpuReport


def of_gpu(gpu: GpuReport) -> Ladder | None:
    """What of this GPU's cases is a ladder, each beside its reference; no case whose times prove nothing."""
    if gpu.record is None:
        return None
    axes = {case.key: case.axes for case in gpu.record.cases}
    return ladder.ladder(
        [
            SizedCase(case.card, axes.get(case.key, {}), case.head_us, case.reference_us, case.base_us)
            for case in (one.case for one in gpu.cases)
            if reference.times(case) is not None and case.head_us and case.reference_us
        ]
    )


def title(gpu: GpuReport, found: Ladder) -> str:
    """ "Sizes", and of which card where there are several."""
    record = gpu.record
    titles = formatting.titles_of((case.card for case in record.cases), record.cards) if record else {}
    return f"Sizes of {titles[found.card]}" if found.card in titles else "Sizes"


def beside(gpu: GpuReport, found: Ladder) -> str:
    """What the ladder's reference is called."""
    return formatting.reference(card for card in (gpu.record.cards if gpu.record else ()) if card.name == found.card)


def sections(gpu: GpuReport, guidance: Guidance) -> tuple[Section, ...]:
    """Of a record whose cases are a ladder, such as one of `--suite ladder`."""
    found = of_gpu(gpu)
    if found is None:
        return ()
    said = ladder.diagnose(found, guidance.profile_below).sentence
    titles = ("base", "head", f"× {beside(gpu, found)}")
    columns = (Column(found.axis, numeric=True), *(Column(one, numeric=True) for one in titles))
    rows = tuple(
        (
            (str(rung.size),),
            *((time,) for time in formatting.durations(rung.base_us, rung.head_us)),
            (f"{rung.speedup:.2f}",),
        )
        for rung in found.rungs
    )
    spoken = Paragraph((f"{said[0].upper()}{said[1:]}.",))
    return (Section(title(gpu, found), (spoken, Table(columns, rows)), worth=60),)
