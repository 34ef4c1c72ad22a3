"""How two measurements compare that were not made together: by what is nearest to a paired comparison, if at all."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kernelgate.ci.report.dashboard import SitePoint, SiteSeries
from tests.ci.report.dashboard_examples import change, comparison, sha


def point(commit: str, us: float, **parts: object) -> SitePoint:
    return replace(SitePoint(commit, "2026-08-01", 0, us, reach=0.003), **parts)  # type: ignore[arg-type]


def series(*points: SitePoint, **parts: object) -> SiteSeries:
    return replace(SiteSeries("", "norm", "one", "", ({}, {}), points), **parts)  # type: ignore[arg-type]


OLD, NEW = point("a", 100.0), point("b", 110.0)


def test_times_of_one_environment_compare_and_are_said_to_be_of_different_days() -> None:
    found = series(OLD, NEW).between(NEW, OLD)
    assert found.interval_pct is not None
    assert (found.means, found.change_pct) == ("times", pytest.approx(10.0))
    reach = math.hypot(0.003, 0.003)
    assert found.interval_pct == pytest.approx((100 * (1.1 * math.exp(-reach) - 1), 100 * (1.1 * math.exp(reach) - 1)))
    assert found.mark(1.0) is None, "a day may differ from another by that much"
    assert found.words[0].startswith("≈")


def test_the_pinned_commit_cancels_the_day_out_and_a_new_environment_may_change_both_unequally() -> None:
    old, new = replace(OLD, pinned=0.01, pinned_reach=0.001), replace(NEW, pinned=0.03, pinned_reach=0.001)
    moved = replace(new, environment=1)
    nights = [replace(old, commit=str(at)) for at in range(5)]
    for found, means in (
        (series(old, new).between(new, old), "pinned"),
        (series(old, moved).between(moved, old), "moved"),
        (series(*nights, moved).best, "moved"),
    ):
        assert (found.means, found.change_pct) == (means, pytest.approx(100 * math.expm1(0.02), abs=0.01))
        assert (found.mark(1.0) is None) == (found.interval_pct is None) == (means == "moved")


def test_a_comparison_in_the_same_processes_is_worth_more_than_any_other() -> None:
    old, new = replace(OLD, pinned=0.0, pinned_reach=0.1), replace(NEW, pinned=0.5, pinned_reach=0.1)
    paired = comparison("a", "b", 2.0, (1.5, 2.5))
    found = series(old, new, comparisons=(paired,)).between(new, old)
    assert (found.change_pct, found.interval_pct, found.means) == (pytest.approx(2.0), (1.5, 2.5), "together")
    assert found.mark(1.0) is not None
    assert found.mark(3.0) is None, "below what is of any concern"


def test_one_lucky_night_is_not_the_best() -> None:
    nights = [point(str(at), 100.0) for at in range(20)]
    nights[7] = point("lucky", 96.0)
    found = series(*nights).best
    assert found.change_pct == pytest.approx(0.0, abs=0.05)
    better = [point(str(at), 95.0) for at in range(5)]
    found = series(*better, *nights).best
    assert found.change_pct == pytest.approx(100 * (100 / 95 - 1), abs=0.05)


def test_nights_before_a_change_that_the_code_did_not_make_are_not_the_best() -> None:
    nights = [point(sha(at), us) for at, us in enumerate([98.0] * 9 + [97.0] * 3 + [100.0] * 9)]
    for state, lost_pct in (("confirmed", 100 * 3 / 97), ("refuted", 100 * 2 / 98)):
        odd = replace(change(12, state, 3.0), previous=sha(9))
        found = series(*nights, changes=(change(9, "confirmed", -1.0), odd)).best
        assert found.change_pct == pytest.approx(lost_pct, abs=0.05)


def test_what_no_verdict_may_rest_on_is_neither_newest_nor_best() -> None:
    odd = point("c", 10.0, finding="another process")
    assert series(OLD, odd).newest == OLD
    found = series(OLD, OLD, odd).best
    assert found.change_pct == pytest.approx(0.0, abs=0.05)
    assert series(odd).best is None
    assert series(NEW).best is None
    moved = replace(NEW, environment=1)
    assert (series(OLD, moved).best, series(OLD, moved).between(moved, OLD)) == (None, None)
