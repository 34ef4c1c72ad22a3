"""The advice on a kernel: by what it has earned, with n and evidence, and the cookbook's order where it has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.lab.advise import advise
from kernelgate.ci.lab.outcomes import TryResult
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import thresholds
from tests.ci.lab.made_up import meaningless, session, telling, tried

POLICY = Policy()
NSIGHT = Path(__file__).parents[2] / "data" / "nsight"


@pytest.fixture(scope="module")
def banks() -> Analysis:
    return analyze.analyze(NSIGHT / "bank_conflicts.ncu-rep", thresholds.bottleneck_limits(POLICY))[0]


@pytest.mark.parametrize("outcomes", [(), telling(2)[:9]])
def test_under_ten_outcomes_there_are_no_figures(banks: Analysis, outcomes: tuple[TryResult, ...]) -> None:
    found = advise(banks, outcomes, POLICY)
    assert found.order == "cookbook"
    assert found.why.startswith("no data: the cookbook's order")
    assert [one.action for one in found.recommendations] == ["swizzle", "wider-shared-loads"]
    assert {(one.probability, one.predicted_gain_pct, one.interval_pct) for one in found.recommendations} == {
        (None, None, None)
    }


def test_figures_that_have_earned_it_decide_the_order(banks: Analysis) -> None:
    """The cookbook's first does not help here, and one that it does not name does."""
    outcomes = tuple(
        one
        for at in range(10)
        for one in session(
            f"s{at}",
            tried(1, "swizzle", change_pct=3.0),
            tried(2, "larger-tiles", change_pct=-15.0),
            tried(3, "cache-hints", "dram", change_pct=2.0),
        )
    )
    found = advise(banks, outcomes, POLICY)
    assert (found.order, found.weak, found.bottleneck) == ("learned", False, "bank_conflicts")
    first, last = found.recommendations[0], found.recommendations[-1]
    assert (first.action, first.n, first.reason) == ("larger-tiles", 10, None)
    assert first.evidence == (
        "10 of 10 tries against this bottleneck helped, on sm_90; they gained 15.0 to 15.0% of the time"
    )
    assert first.probability is not None
    assert first.probability > 0.8
    assert last.action == "swizzle"
    assert last.evidence.startswith("0 of 10 tries")


def test_figures_that_have_not_are_shown_as_weak_in_the_cookbooks_order(banks: Analysis) -> None:
    found = advise(banks, meaningless(), POLICY)
    assert (found.order, found.weak) == ("cookbook", True)
    assert "that interval includes zero" in found.why
    assert [one.action for one in found.recommendations] == ["swizzle", "wider-shared-loads"]
    swizzle, wider = found.recommendations
    assert swizzle.probability is not None
    assert swizzle.n == 0
    assert swizzle.evidence.startswith("not tried against this bottleneck yet; elsewhere ")
    assert wider.evidence == "not tried yet; of all others 39 of 72 tries helped"


def test_one_session_alone_is_no_evidence(banks: Analysis) -> None:
    found = advise(banks, session("one", *(tried(number) for number in range(20))), POLICY)
    assert found.order == "cookbook"
    assert "no other session" in found.why
