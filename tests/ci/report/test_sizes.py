"""A suite of sizes says whether the kernel is slow from the start or further up."""

from __future__ import annotations

from dataclasses import replace

from kernelgate.bench.record import Case
from kernelgate.ci.document.model import Paragraph
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import speed
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.report_examples import EXAMPLES

MADE = EXAMPLES["equivalent"]()


def part(count: int) -> GpuReport:
    """The first cases as sizes from 32 on, each a little less fast beside its reference."""
    keys = [case.key for case in MADE.verdict.cases[:count]]
    listed = tuple(
        Case(**{**dict(case), "axes": {"S": 32 << keys.index(case.key), "dtype": "fp16"}}) if case.key in keys else case
        for case in MADE.record.cases
    )
    judged = tuple(
        replace(case, head_us=10.0, reference_us=12.0 - at) for at, case in enumerate(MADE.verdict.cases[:count])
    )
    return GpuReport(
        "l4", MADE.record.model_copy(update={"cases": listed}), replace(MADE.verdict, cases=judged, means=())
    )


def test_a_ladder_has_its_table_and_its_diagnosis() -> None:
    (section,) = speed.ladder_sections(part(6), Policy().guidance)
    (said,) = [block for block in section.blocks if isinstance(block, Paragraph)]
    assert "".join(map(str, said.line)).startswith("Fast at the smallest size, at S=32 1.2× as fast as the reference")


def test_a_few_sizes_are_no_ladder() -> None:
    assert speed.ladder_sections(part(4), Policy().guidance) == ()
    assert speed.ladder_sections(GpuReport("l4"), Policy().guidance) == ()
