"""Confidence is earned where outcomes can be told beforehand, and not where they are a coin's."""

from __future__ import annotations

import pytest

from kernelgate.ci.lab.calibration import calibrate, forecasts
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab.made_up import meaningless, session, telling, tried

POLICY = Policy()


def test_what_can_be_told_earns_its_confidence() -> None:
    found = calibrate(telling(), POLICY)
    assert found.earned
    assert found.skill is not None
    assert found.skill > 0.5
    assert (found.outcomes, found.sessions, found.helped) == (40, 8, 16)
    assert sum(row.n for row in found.bins) == 40
    assert all(row.interval[0] <= row.helped <= row.interval[1] for row in found.bins)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_what_is_a_coins_earns_none(seed: int) -> None:
    found = calibrate(meaningless(seed=seed), POLICY)
    assert not found.earned
    assert found.skill is not None
    assert found.skill < 0.1


def test_no_session_is_predicted_from_itself() -> None:
    """One session alone tries an action that always helps there: the others know nothing of it."""
    others = tuple(one for at in range(6) for one in session(f"o{at}", tried(1, "cache-hints", "dram", 5.0)))
    own = session("own", *(tried(number) for number in range(1, 9)))
    of_own = [made for made in forecasts((*others, *own), POLICY) if made.result.session.name == "own"]
    assert len(of_own) == 8
    for made in of_own:
        assert made.predicted.probability == pytest.approx(made.base_rate)
        assert made.base_rate == pytest.approx(1 / 8)


def test_one_session_says_nothing_of_another() -> None:
    found = calibrate(session("one", *(tried(number) for number in range(12))), POLICY)
    assert (found.skill, found.skill_interval, found.bins, found.earned) == (None, None, (), False)


def test_nvidias_estimates_stand_beside_what_was_realised() -> None:
    found = calibrate(telling(2), POLICY).nvidia
    assert found is not None
    assert (found.n, found.estimated_pct, found.helped) == (10, 30.0, 4)
    assert found.realised_pct == pytest.approx(0.0)
    assert found.rank_correlation is None
