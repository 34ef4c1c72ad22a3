"""What is timed again: the undecided cases alone, and no more false alarms for it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import Calls, CaseKey
from kernelgate.ci.judge import inference, prior
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import claims
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Certainty, Policy
from tests.ci.records import case, noise, with_calls
from tests.runs import run_record

POLICY = Policy()
LOOSE = Policy(certainty=Certainty(alpha=0.05))
"""False alarms often enough to be counted."""
PRIOR = math.log1p(prior.CHANGE_PCT / 100)
KNOWN = prior.prior(prior.CHANGE_PCT)


def test_cases_of_one_record_may_have_any_numbers_of_processes() -> None:
    """Two short of the minimum, one open, one at the limit that stays open, one decided, one whose base is wrong."""
    rng = np.random.default_rng(1)
    wild, calm = noise(rng, spread=0.3), noise(rng, spread=0.001)
    sides = {
        "untimed": ([], []),
        "once": (calm[0][:1], calm[1][:1]),
        "open": (wild[0][:3], wild[1][:3]),
        "at the limit": noise(rng, spread=0.3, processes=7),
        "decided": (calm[0][:3], calm[1][:3]),
    }
    wrong = case(wild[0][:3], wild[1][:3], id_="of a wrong base")
    cases = [
        *(case(*times, id_=name) for name, times in sides.items()),
        with_calls(wrong, base=Calls(compared=9, failed=1)),
    ]
    record = run_record(cases)
    assert {key.id for key in undecided(record, POLICY)} == {"untimed", "once", "open"}
    counted = {one.id: one.processes for one in judge(record, POLICY).cases}
    assert counted == {"untimed": 0, "once": 1, "open": 3, "at the limit": 7, "decided": 3, "of a wrong base": 3}


@pytest.mark.parametrize(
    ("change", "spread", "again"),
    [
        pytest.param(-POLICY.gates.improvement_pct, 0.001, False, id="a gain at its gate"),
        pytest.param(-POLICY.gates.improvement_pct, 0.02, True, id="a gain at its gate, not well known"),
        pytest.param(POLICY.gates.regression_pct, 0.001, True, id="a loss at its gate"),
    ],
)
def test_no_process_is_spent_on_what_to_call_a_gain(change: float, spread: float, again: bool) -> None:
    record = run_record([case(*noise(np.random.default_rng(4), change / 100, processes=4, spread=spread))])
    assert bool(undecided(record, POLICY)) == again


def evidence(name: str, changes: Array) -> Evidence:
    group = Group(changes, np.zeros(len(changes)), PRIOR, 1000.0, KNOWN)
    return Evidence(CaseKey("", name), (), (), (), True, (group,), 0.0, ())


def test_each_case_is_held_against_the_level_of_its_own_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With O'Brien and Fleming's shape, a p between the levels of four and of seven looks is certain at seven alone."""
    monkeypatch.setattr(inference, "SPENDING_SHAPE", 0.0)
    few, many = claims([evidence("4", np.zeros(4)), evidence("7", np.zeros(7))], LOOSE)
    assert few.alpha < many.alpha
    between = (few.alpha + many.alpha) / 2
    assert [replace(claim, p=between).certain for claim in (few, many)] == [False, True]
