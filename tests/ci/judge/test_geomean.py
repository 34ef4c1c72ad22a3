"""All cases of a card together: the interval holds the truth whatever the cases share, and the gates of the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.judge import inference, prior
from kernelgate.ci.judge.cards import HEAD_ALONE
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, Status
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import claims
from kernelgate.ci.judge.prior import KnownSpread
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import TO_DIRECT, Policy
from tests.ci.records import case, noise, remembered
from tests.runs import run_record

POLICY = Policy()
PRIOR = math.log1p(prior.CHANGE_PCT / 100)
QUIET = 1e-3
HISTORY = KnownSpread(spread_pct=0.05, noise_pct=0.02, df=10.0, comparisons=5)
"""So long that two processes may show a direction."""


def evidence(values: Sequence[float], id_: str = "x", noise_: float = PRIOR, card: str = "") -> Evidence:
    """A case with these log changes; its n-th process is the n-th of the record."""
    group = Group(np.array(values), np.full(len(values), noise_**2), PRIOR, 10.0)
    names = tuple(map(str, range(len(values))))
    return Evidence(CaseKey(card, id_), (), (), (), True, (group,), 0.0, (), names)


def verdicts(cases: Sequence[Evidence], policy: Policy = POLICY) -> tuple[MeanVerdict, ...]:
    return inference.mean_verdicts(cases, claims(cases, policy), policy)


def changed(*percents: float, processes: int = 4, card: str = "") -> list[Evidence]:
    """Cases that changed so much. Fewer processes than a direction takes are those of cases with a history."""
    jitter, known = 1e-5 * np.arange(processes), HISTORY if processes < TO_DIRECT else None
    return [
        replace(evidence(math.log1p(percent / 100) + jitter, str(number), 1e-5, card), known=known)
        for number, percent in enumerate(percents)
    ]


@pytest.mark.parametrize(
    ("percents", "processes", "status"),
    [
        ((1.2,) * 27, 3, Status.REGRESSED),
        ((1.2,) * 27, 2, Status.LIKELY_SLOWER),
        ((0.9,) * 27, 4, Status.UNCHANGED),
        ((1.2,) * 3, 4, Status.REGRESSED),
        ((1.2,) * 2, 4, Status.SLOWER),
        ((2.9, 0.0), 4, Status.SLOWER),
        ((-2.9,) * 9, 4, Status.FASTER),
        ((-3.1,) * 9, 2, Status.IMPROVED),
        ((-3.1,) * 4, 4, Status.IMPROVED),
        ((-3.5,) * 3, 4, Status.FASTER),
    ],
)
def test_the_gates_of_the_mean(percents: tuple[float, ...], processes: int, status: Status) -> None:
    """A regression is confirmed; and no case alone, within its own gate, carries the mean past the mean's."""
    (found,) = verdicts(changed(*percents, processes=processes))
    assert found.status is status, found.sentence
    assert found.change_pct == pytest.approx(100 * math.expm1(np.mean(np.log1p(np.array(percents) / 100))), abs=0.01)


def spoilt(cases: Sequence[Evidence], number: int, code: str = "drift") -> list[Evidence]:
    findings = (Finding(code, "it drifted", disqualifies=True),)
    return [replace(one, findings=findings) if index < number else one for index, one in enumerate(cases)]


@pytest.mark.parametrize(
    ("of", "without", "status"), [(27, 13, Status.REGRESSED), (27, 14, Status.SLOWER), (26, 13, Status.SLOWER)]
)
def test_a_mean_of_most_cases_blocks_and_says_of_how_many_it_is(of: int, without: int, status: Status) -> None:
    (found,) = verdicts(spoilt(changed(*(1.2,) * of), without))
    assert (found.cases, found.of, found.status) == (of - without, of, status)
    assert f"over {of - without} of {of} cases [" in found.sentence
    (alone,) = verdicts(spoilt(changed(*(1.2,) * 9), 4, HEAD_ALONE))
    assert (alone.cases, alone.of) == (5, 5), "a head alone was not compared"


def measured(*changes: float, processes: int = 4, seed: int = 1) -> RunRecord:
    rng = np.random.default_rng(seed)
    return run_record(
        [case(*noise(rng, change / 100, processes, 60, QUIET), id_=f"case {i}") for i, change in enumerate(changes)]
    )


def test_a_loss_of_all_cases_is_confirmed_by_a_third_process() -> None:
    """Each case alone is decided after two, with a history; without one placement may be a lottery for all alike."""
    for processes, direction in ((3, Direction.NONE), (4, Direction.SLOWER)):
        assert [one.direction for one in judge(measured(*(1.2,) * 3, processes=processes), POLICY).means] == [direction]
    two, three = (measured(*(1.2,) * 3, processes=processes) for processes in (2, 3))
    known = remembered(two)
    verdict = judge(two, POLICY, history=known)
    assert (verdict.verdict, exit_code(verdict)) == (Outcome.LIKELY_SLOWER, 3)
    assert "past the 1% that blocks, after 2 of 3 repeats" in verdict.reason
    assert len(undecided(two, POLICY, known)) == 3
    assert undecided(three, POLICY, known) == frozenset()
    assert undecided(measured(*(0.2,) * 3, processes=2), POLICY, known) == frozenset()
