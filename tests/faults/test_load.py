"""Many reports at once, on good days and bad ones: each pull request ends with one comment, one check and its label."""

from __future__ import annotations

import pytest

from benchmarks.reports import TWICE, load

MOST_CALLS = 12
"""To GitHub, for a report that nothing disturbs."""


def test_a_report_takes_few_calls() -> None:
    reports, wrong = load(pulls=2, bad_days=0)
    assert wrong == []
    assert [one.calls for one in reports if one.calls > MOST_CALLS] == []
    assert len(reports) == 4


@pytest.mark.nightly
def test_two_hundred_reports_at_once_on_bad_days() -> None:
    reports, wrong = load(pulls=200, bad_days=200)
    assert wrong == []
    assert len(reports) == 420
    assert sum(one.waits for one in reports) > 100, "the bad days hardly came"
    calm = [one.calls for one in reports if not one.waits and one.of != TWICE]
    assert max(calm) <= MOST_CALLS
