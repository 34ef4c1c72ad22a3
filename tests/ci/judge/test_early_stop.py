"""What is timed again: the undecided cases alone, and no more false alarms for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey, Check
from kernelgate.ci.judge import early_stop
from kernelgate.ci.judge.early_stop import undecided
from kernelgate.ci.judge.estimate import Evidence, Group
from kernelgate.ci.judge.inference import Inference, claims
from kernelgate.ci.judge.policy import Certainty, Policy
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.verdict import judge
from tests.ci.records import case, noise
from tests.runs import run_record

POLICY = Policy()
LOOSE = Policy(certainty=Certainty(alpha=0.05, resolution_pct=0.12))
"""False alarms often enough to be counted, and a resolution that two processes seldom reach."""
CASES = 6
PRIOR = math.log1p(POLICY.spread.change_pct / 100)


# ---- which cases -----------------------------------------------------------------------------------------------------


def test_cases_of_one_record_may_have_any_numbers_of_processes() -> None:
    """Two short of the minimum, one open, one at the limit that stays open, one decided."""
    rng = np.random.default_rng(1)
    wild, calm = noise(rng, spread=0.3), noise(rng, spread=0.001)
    sides = {
        "untimed": ([], []),
        "once": (calm[0][:1], calm[1][:1]),
        "open": (wild[0][:3], wild[1][:3]),
        "at the limit": wild,
        "decided": (calm[0][:2], calm[1][:2]),
    }
    record = run_record([case(*times, id_=name) for name, times in sides.items()])
    assert {key.id for key in undecided(record, POLICY)} == {"untimed", "once", "open"}
    counted = {one.id: one.processes for one in judge(record, POLICY).cases}
    assert counted == {"untimed": 0, "once": 1, "open": 3, "at the limit": 5, "decided": 2}


def test_nothing_is_timed_again_where_nothing_can_be_judged() -> None:
    record = run_record([case(*noise(np.random.default_rng(2), processes=1))])
    assert undecided(record, POLICY)
    wrong = record.model_copy(update={"checks": (Check(kind="fuzz", status="failed"),)})
    assert undecided(wrong, POLICY) == frozenset()


def test_a_control_that_differs_is_undecided_again() -> None:
    base, head = noise(np.random.default_rng(3), processes=3, spread=0.001)
    assert not undecided(run_record([case(base[:2], head[:2])]), POLICY)
    assert undecided(run_record([case(base, [*head[:2], head[2] * 1.03])]), POLICY)


# ---- error rates -----------------------------------------------------------------------------------------------------

Again = Callable[[Sequence[Evidence], Sequence[Inference | None]], Collection[int]]
"""Given what is known after a process: the cases of the next one."""


def as_bench(cases: Sequence[Evidence], claimed: Sequence[Inference | None]) -> list[int]:
    """The undecided ones, as `kernelgate bench` has it."""
    return [n for n, (one, claim) in enumerate(zip(cases, claimed, strict=True)) if not settled(one, claim)]


def settled(one: Evidence, claim: Inference | None) -> bool:
    # Evidence is drawn here, not the samples that a record would hold.
    return early_stop._settled(one, claim, LOOSE)


def until_a_direction(_: Sequence[Evidence], claimed: Sequence[Inference | None]) -> list[int]:
    """What somebody would choose who wants to see a difference: go on with every case that shows none."""
    return [n for n, claim in enumerate(claimed) if claim is None or not claim.certain]


def only_the_largest(_: Sequence[Evidence], claimed: Sequence[Inference | None]) -> list[int]:
    """Go on with the case that looks most like a difference."""
    return [int(np.argmin([1.0 if claim is None or claim.p is None else claim.p for claim in claimed]))]


def everything(cases: Sequence[Evidence], claimed: Sequence[Inference | None]) -> Collection[int]:
    """All cases as long as one is undecided, for comparison."""
    return range(len(cases)) if as_bench(cases, claimed) else ()


def measured(rng: np.random.Generator, again: Again) -> tuple[list[Evidence], list[Inference | None]]:
    """A record of identical code. Its cases scatter more or less, as far as the prior leaves that open."""
    looks, known = LOOSE.processes, LOOSE.spread.prior_processes
    scatter = PRIOR * np.sqrt(known / rng.chisquare(known, CASES))
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
    group = Group(changes, np.zeros(len(changes)), PRIOR, float(LOOSE.spread.prior_processes))
    return Evidence(CaseKey("", name), (), (), (), True, (group,), 0.0, ())


@pytest.mark.parametrize("again", [as_bench, until_a_direction, only_the_largest, everything])
def test_choosing_what_is_timed_again_raises_no_more_false_alarms(again: Again) -> None:
    """Of records of identical code, at most a share of alpha has a direction in any case."""
    rng = np.random.default_rng(20260801)
    records = [measured(rng, again) for _ in range(600)]
    wrong = sum(any(claim is not None and claim.certain for claim in claimed) for _, claimed in records)
    assert 0 < wrong <= LOOSE.certainty.alpha * len(records)
    if again is as_bench:
        uneven = sum(len({case.processes for case in cases}) > 1 for cases, _ in records)
        assert uneven > len(records) / 2, "cases of one record have different numbers of processes"


def test_only_undecided_cases_cost_processes() -> None:
    rng = np.random.default_rng(5)
    spent = {
        again: sum(case.processes for _ in range(60) for case in measured(rng, again)[0])
        for again in (as_bench, everything)
    }
    assert spent[as_bench] < 0.9 * spent[everything]


def test_the_case_of_most_processes_does_not_lend_its_level() -> None:
    """A case after two looks whose p lies between the levels of two and of five looks is not certain."""
    levels = [claim.alpha for claim in claims([evidence("2", np.zeros(2)), evidence("5", np.zeros(5))], LOOSE) if claim]
    assert levels[0] < levels[1]
    few, many = evidence("few", np.zeros(2)), evidence("many", np.full(5, 20 * PRIOR))
    between = (shifted(few, float(change)) for change in np.linspace(0, 10 * PRIOR, 2000))
    few = next(one for one in between if levels[0] < p_alone(one) <= levels[1])
    assert [claim.certain for claim in (*claims([few], LOOSE), *claims([few, many], LOOSE)) if claim] == [
        False,
        False,
        True,
    ]


def shifted(one: Evidence, change: float) -> Evidence:
    return replace(one, groups=tuple(replace(group, values=group.values + change) for group in one.groups))


def p_alone(one: Evidence) -> float:
    (claim,) = claims([one], LOOSE)
    assert claim is not None
    assert claim.p is not None
    return claim.p
