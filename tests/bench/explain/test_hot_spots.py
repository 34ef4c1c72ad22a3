"""Samples by line and instruction, of a real report; and of reports that lack them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.record import HotSpots
from tests import hot_examples

REPORTS = Path(__file__).parents[2] / "data" / "nsight"


def spots(kernel: str) -> HotSpots:
    found = hot_examples.launches()[kernel].hot_spots
    assert found is not None
    return found


def test_the_hottest_lines_and_instructions_are_those_of_the_report() -> None:
    found = spots("transpose_naive")
    assert found.samples == 31617
    assert [(one.line, one.samples, one.stall) for one in found.lines] == [
        (6, 16998, "drain"),
        (5, 10368, "long_scoreboard"),
        (4, 4172, "short_scoreboard"),
        (3, 79, "no_instructions"),
    ]
    assert sum(one.samples for one in found.lines) == found.samples
    first, second, *_ = found.instructions
    assert (first.sass, first.line, first.samples) == ("BRA `(.L_x_0)", 6, 16993)
    assert (second.sass, second.line, second.stall) == ("STG.E desc[UR4][R4.64], R7", 5, "long_scoreboard")


@pytest.mark.parametrize("report", ["dram.ncu-rep", "dram_sections.ncu-rep"])
def test_a_report_without_samples_has_none(report: str) -> None:
    assert ncu_reader.launches(str(REPORTS / report))[0].hot_spots is None


def test_a_kernel_that_was_never_sampled_has_none() -> None:
    assert hot_examples.launches()["empty"].hot_spots is None
