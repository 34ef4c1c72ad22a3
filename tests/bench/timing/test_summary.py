"""Percentiles and rates from a record."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Case, Launch, RunRecord, Work
from kernelgate.bench.timing import summary


def launch(base: list[float], head: list[float], /, **graphs: float) -> Launch:
    return Launch.model_validate({"samples_us": {"base": base, "head": head}, "graph_us": graphs})


def test_percentiles_interpolate() -> None:
    assert summary.percentile([float(n) for n in range(1, 102)], 95) == pytest.approx(96)
    assert summary.percentile([1.0, 2.0], 50) == pytest.approx(1.5)
    assert summary.percentile([7.0], 99) == 7.0


def test_rates_are_the_work_over_the_median_of_all_launches() -> None:
    work = Work(flops=2e9, bytes=4e6)
    launches = (launch([90, 100, 110], [50, 50, 50], base=80.0), launch([100, 100, 100], [50, 50, 50], base=90.0))
    base, head = summary.rates(RunRecord(cases=(Case(id="c", work=work, launches=launches),)))
    assert (base.case, base.side, base.p50_us, base.graph_us) == ("c", "base", 100, 85)
    assert base.tflops == pytest.approx(20)
    assert base.gbps == pytest.approx(40)
    assert base.cv_pct == pytest.approx(5)
    assert (head.p50_us, head.cv_pct, head.graph_us) == (50, 0, None)


def test_a_case_without_work_has_times_alone() -> None:
    (rate,) = summary.rates(RunRecord(cases=(Case(id="c", launches=(Launch(samples_us={"head": (5.0,)}),)),)))
    assert (rate.p99_us, rate.tflops, rate.gbps) == (5.0, None, None)


def test_the_table_has_a_row_for_each_side() -> None:
    from rich.console import Console

    record = RunRecord(cases=(Case(id="s512", work=Work(flops=2e9), launches=(launch([100.0], [50.0]),)),))
    console = Console(width=200)
    with console.capture() as capture:
        console.print(summary.table(record))
    _, base, head = capture.get().strip().split("\n")
    assert base.split() == ["s512", "base", "100", "100", "100", "0", "–", "20", "–"]
    assert head.split()[:3] == ["s512", "head", "50"]
