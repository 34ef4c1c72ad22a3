"""The picture of one case: everything in its place on the axis of percent."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.ci.document.model import Plot
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.judge.verdict import CaseVerdict, ProcessChange
from kernelgate.ci.report.case_plot import LEFT, RIGHT, Scale, plot
from kernelgate.ci.report.gpu import JudgedCase
from tests.ci.report_examples import NINE, faster, same, slower


def drawn(case: CaseVerdict) -> Plot:
    made = plot(JudgedCase(case, "a case"), Gates())
    assert made is not None
    return made


def test_processes_and_the_overall_estimate_stand_at_their_percent() -> None:
    made = drawn(slower(NINE[0], 5.0, 0.5))
    zero, one = made.zero, made.margin[1]
    per_percent = one - zero
    assert made.overall is not None
    assert made.overall.x == pytest.approx(zero + 5.0 * per_percent, abs=0.3)
    assert made.overall.low == pytest.approx(zero + 4.5 * per_percent, abs=0.3)
    assert made.gate is not None
    assert made.gate.x == pytest.approx(zero + 3.0 * per_percent, abs=0.3)
    assert [process.label for process in made.processes] == [f"process {n}" for n in range(1, 6)]
    assert made.processes[0].x < made.processes[4].x


def test_rows_do_not_meet_and_stay_in_the_frame() -> None:
    made = drawn(slower(NINE[0], 5.0))
    assert made.overall is not None
    heights = [made.top, *(process.y for process in made.processes), made.overall.y, made.bottom]
    assert all(below - above >= 7 for above, below in pairwise(heights))


def test_the_gate_leaves_the_picture_of_a_case_that_is_clearly_faster() -> None:
    assert drawn(faster(NINE[0], -12.0)).gate is None
    assert drawn(same(NINE[0], -0.5)).gate is not None


def test_an_interval_beyond_the_frame_is_cut_and_marked() -> None:
    wide = replace(slower(NINE[0], 5.0), per_process=(ProcessChange(5.0, -80.0, 90.0), ProcessChange(5.1, 4.9, 5.3)))
    first, second = drawn(wide).processes
    assert (first.cut_low, first.cut_high, second.cut_low, second.cut_high) == (True, True, False, False)
    assert (first.low, first.high) == (LEFT, RIGHT)


def test_a_case_without_estimates_has_no_picture() -> None:
    case = replace(slower(NINE[0], 5.0), per_process=())
    assert plot(JudgedCase(case, "a case"), Gates()) is None


def test_processes_alone_make_a_picture_too() -> None:
    made = drawn(replace(slower(NINE[0], 5.0), change_pct=None, interval_pct=None))
    assert made.overall is None
    assert made.description.startswith("Change of each process: +4.90%, +5.04%")


def test_the_description_says_what_the_picture_shows() -> None:
    assert drawn(slower(NINE[0], 5.0)).description == (
        "Change of each process: +4.90%, +5.04%, +5.00%, +4.97%, +5.08%. Overall +5.0% [+4.9, +5.1]. "
        "Within ±1% counts as the same; above +3% blocks."
    )


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_few_and_inside(low: float, width: float) -> None:
    scale = Scale(low, low + width)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8
    assert all(scale.low - 1e-6 * width <= tick <= scale.high + 1e-6 * width for tick in ticks)
    steps = {round((b - a) / width, 6) for a, b in pairwise(ticks)}
    assert max(steps) - min(steps) < 1e-4


@given(st.lists(st.floats(-99, 1e4), min_size=1, max_size=8))
def test_everything_stays_between_the_edges(changes: list[float]) -> None:
    processes = tuple(ProcessChange(change, change - 1e5, change + 1e5) for change in changes)
    made = drawn(replace(slower(NINE[0], 5.0), per_process=processes))
    for whisker in made.processes:
        assert LEFT <= whisker.low <= whisker.x <= whisker.high <= RIGHT
