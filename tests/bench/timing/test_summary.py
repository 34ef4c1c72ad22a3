"""The table that `kernelgate bench` shows."""

from __future__ import annotations

from rich.console import Console

from kernelgate.bench.record import Case, Process, RunRecord, Timing, Work
from kernelgate.bench.timing import summary


def test_the_table_has_a_row_for_each_side() -> None:
    timing = Timing(case="s512", samples_us={"base": (100.0,), "head": (50.0,)})
    record = RunRecord(cases=(Case(id="s512", work=Work(flops=2e9)),), processes=(Process(id="1", timings=(timing,)),))
    console = Console(width=200)
    with console.capture() as capture:
        console.print(summary.table(record))
    _, base, head = capture.get().strip().split("\n")
    assert base.split() == ["s512", "base", "100", "100", "100", "0", "–", "20", "–"]
    assert head.split()[:3] == ["s512", "head", "50"]
