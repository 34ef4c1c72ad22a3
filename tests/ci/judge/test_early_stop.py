"""What is timed again: the undecided cases alone, and no more false alarms for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from kernelgate.bench.record import Calls, CaseKey
from kernelgate.ci.judge import inference, prior, verdict
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.verdict import judge, undecided
from kernelgate.ci.policy.policy import Certainty, Policy
from tests.ci.records import case, noise, with_calls
from tests.runs import run_record

POLICY = Policy()
LOOSE = Policy(certainty=Certainty(alpha=0.05))
"""False alarms often enough to be counted."""
FINE_PCT = 0.12
"""A resolution that two processes seldom reach."""
CASES = 6
PRIOR = math.log1p(prior.CHANGE_PCT / 100)
KNOWN = prior.prior(prior.CHANGE_PCT)
RECORDS = 150


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


Again = Callable[[Sequence[Evidence], Sequence[Inference | None]], Collection[int]]
"""Given what is known after a process: the cases of the next one."""


def as_bench(cases: Sequence[Evidence], claimed: Sequence[Inference | None]) -> list[int]:
    """The undecided ones, as `kernelgate bench` has it; drawn here are not the samples that a record would hold."""
    with patch.object(verdict, "RESOLUTION_PCT", FINE_PCT):
        pairs = enumerate(zip(cases, claimed, strict=True))
        return [n for n, (one, claim) in pairs if not verdict.settled(one, claim, LOOSE)]


def until_a_direction(_: Sequence[Evidence], claimed: Sequence[Inference | None]) -> list[int]:
    """What somebody would choose who wants to see a difference: go on with every case that shows none."""
    return [n for n, claim in enumerate(claimed) if claim is None or not claim.certain]


def measured(rng: np.random.Generator, again: Again) -> tuple[list[Evidence], list[Inference | None]]:
    """A record of identical code. Its cases scatter more or less, as the prior has it."""
    looks = LOOSE.processes
    scatter = rng.choice(KNOWN.spreads, CASES, p=KNOWN.share * KNOWN.usual + (1 - KNOWN.share) * KNOWN.other)
    drawn: list[list[float]] = [[] for _ in range(CASES)]
    chosen: Collection[int] = range(CASES)
    while True:
        for n in chosen:
            drawn[n].append(rng.normal(0, scatter[n]))
        if min(map(len, drawn)) < looks.minimum:
            continue
        cases = [evidence(f"{n}", np.array(values)) for n, values in enumerate(drawn)]
        claimed = claims(cases, LOOSE)
        chosen = [n for n in again(cases, claimed) if len(drawn[n]) < looks.limit]
        if not chosen:
            return cases, claimed


def evidence(name: str, changes: Array) -> Evidence:
    group = Group(changes, np.zeros(len(changes)), PRIOR, 1000.0, KNOWN)
    return Evidence(CaseKey("", name), (), (), (), True, (group,), 0.0, ())


@pytest.mark.slow
@pytest.mark.parametrize("again", [as_bench, until_a_direction])
def test_choosing_what_is_timed_again_raises_no_more_false_alarms(again: Again) -> None:
    """Of records of identical code, at most a share of alpha has a direction in any case."""
    rng = np.random.default_rng(20260801)
    records = [measured(rng, again) for _ in range(RECORDS)]
    wrong = sum(any(claim is not None and claim.certain for claim in claimed) for _, claimed in records)
    assert wrong <= LOOSE.certainty.alpha * len(records)
    if again is as_bench:
        uneven = sum(len({case.processes for case in cases}) > 1 for cases, _ in records)
        assert uneven > len(records) / 2, "cases of one record have different numbers of processes"


def test_each_case_is_held_against_the_level_of_its_own_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With O'Brien and Fleming's shape, a p between the levels of four and of seven looks is certain at seven alone."""
    monkeypatch.setattr(inference, "SPENDING_SHAPE", 0.0)
    few, many = claims([evidence("4", np.zeros(4)), evidence("7", np.zeros(7))], LOOSE)
    assert few.alpha < many.alpha
    between = (few.alpha + many.alpha) / 2
    assert [replace(claim, p=between).certain for claim in (few, many)] == [False, True]
