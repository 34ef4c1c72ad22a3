"""How far times drift from day to day: learnt from a baseline's days where they are enough, else assumed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verdict.noise import said
from kernelgate.bench.record import BaselineDay
from kernelgate.ci.judge import days


def day(number: int, median_us: float = 100.0, code: str = "one") -> BaselineDay:
    return BaselineDay(measured=f"2026-11-{number:02}", code=code, median_us=median_us)


def test_few_days_leave_the_drift_to_what_is_assumed() -> None:
    for held in ((), (day(1),), (day(1), day(2), day(3))):
        found = days.drift(held)
        assert (found.change, found.error, found.df) == (0.0, math.log1p(0.01), 10)


def test_few_days_that_differ_more_are_believed() -> None:
    assert days.drift((day(1, 100), day(2, 110))).error == pytest.approx(math.log(1.1))


def test_enough_days_show_the_drift_themselves() -> None:
    levels = np.array([100.0, 100.2, 99.9, 100.1])
    found = days.drift([day(n, float(level)) for n, level in enumerate(levels, 1)])
    assert found.error == pytest.approx(math.sqrt(2) * np.log(levels).std(ddof=1))
    assert found.df == 3


def test_many_days_weigh_no_more_than_a_few() -> None:
    assert days.drift([day(n, 100 + n / 10) for n in range(1, 21)]).df == 5


def test_a_change_of_the_code_is_no_drift() -> None:
    held = [day(1, 100), day(2, 100.1), day(3, 100), day(4, 80, "two"), day(5, 80.1, "two")]
    assert days.drift(held).df == 3
    assert days.drift(held).error < 0.002


@given(st.lists(st.integers(1, 28), max_size=40))
def test_a_day_of_one_code_counts_once(numbers: list[int]) -> None:
    held: tuple[BaselineDay, ...] = ()
    for number in numbers:
        held = days.added(held, day(number, 100.0 + number))
    kept = [one.measured for one in held]
    assert kept == sorted(set(kept))
    assert len(held) == min(len(set(numbers)), days.KEPT_DAYS)


def test_people_are_told_where_the_drift_is_assumed() -> None:
    known, unknown = [day(n) for n in range(1, 5)], [day(1)]
    assert days.notes([known, known]) == []
    (note,) = days.notes([unknown])
    assert note.startswith(
        "how far times drift from day to day is assumed (sd 1%), not known: the baseline holds fewer"
    )
    (note,) = days.notes([known, unknown])
    assert "of 1 of 2 cases" in note


@pytest.mark.parametrize(("drift_pct", "held"), [(0.5, 1), (1.0, 1), (1.0, 5)])
def test_identical_code_of_another_day_is_not_called_different(drift_pct: float, held: int) -> None:
    """By a bound of 0.5%, up to 40% were."""
    assert said(drift_pct, held, 0.0, draws=20).hits <= 1


def test_days_that_drift_little_let_three_percent_be_seen() -> None:
    assert said(0.15, 5, 3.0, draws=10).hits >= 9


@pytest.mark.slow
@pytest.mark.parametrize("held", [1, 5])
@pytest.mark.parametrize("drift_pct", [0.15, 0.5, 1.0])
def test_alarms_of_other_days_are_rare(drift_pct: float, held: int) -> None:
    found = said(drift_pct, held, 0.0, draws=600)
    assert found.value <= 0.01 + found.error
