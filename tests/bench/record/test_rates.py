"""Percentiles and rates from a record."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.bench.record import Case, Process, RunRecord, Timing, Work, rates


def record(*timings: dict[str, list[float]], work: Work | None = None, graphs: tuple[float, ...] = ()) -> RunRecord:
    """One case, a process for each map of samples; `graphs` are the base's."""
    processes = tuple(
        Process(
            id=str(number),
            timings=(
                Timing.model_validate(
                    {"case": "c", "samples_us": samples, "graph_us": {"base": graphs[number]} if graphs else {}}
                ),
            ),
        )
        for number, samples in enumerate(timings)
    )
    return RunRecord(cases=(Case(id="c", work=work),), processes=processes)


def test_percentiles_are_those_of_numpy() -> None:
    samples = np.random.default_rng(1).lognormal(size=137).tolist()
    for percent in (1, 50, 95, 99):
        assert rates.percentile(samples, percent) == pytest.approx(np.percentile(samples, percent))


def test_rates_are_the_work_over_the_median_of_all_processes() -> None:
    base, head = rates.rates(
        record(
            {"base": [90, 100, 110], "head": [50, 50, 50]},
            {"base": [100, 100, 100], "head": [50, 50, 50]},
            work=Work(flops=2e9, bytes=4e6),
            graphs=(80.0, 90.0),
        )
    )
    assert (base.key.id, base.side, base.us, base.graph_us, base.overhead_us) == ("c", "base", 100, 85, 15)
    assert base.tflops == pytest.approx(20)
    assert base.gbps == pytest.approx(40)
    assert base.cv_pct == pytest.approx(5)
    assert (head.us, head.cv_pct, head.graph_us, head.overhead_us) == (50, 0, None, None)


def test_a_side_that_was_not_timed_has_no_rates() -> None:
    assert rates.rates(record({"head": []})) == ()
    assert [rate.side for rate in rates.rates(record({"reference": [1.0], "head": [1.0]}))] == ["head", "reference"]
