"""The verdict: on recorded noise with known truth, on hard cases made up, on what must be refused, and in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.verdict import records
from kernelgate.bench.record import Build, Calls, Check, FuzzResult, RunRecord, timed_cases
from kernelgate.ci.judge.case import CaseVerdict, Direction, Outcome
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import Policy
from tests import runs
from tests.ci.judge.told import only
from tests.ci.records import Samples, case, draw, heads, noise, paired_record, with_calls
from tests.runs import run_record

POLICY = Policy()
SETS = ("quiet_fma", "contended_copy")
"""Bound by arithmetic on a quiet GPU, and by bandwidth on one that is shared."""


def judged(base: Samples, head: Samples) -> CaseVerdict:
    return only(paired_record(base, head))


def test_one_slower_case_among_nine_is_found() -> None:
    rng = np.random.default_rng(5)
    cases = [case(*draw(rng, f"{SETS[i % 2]}_inter", 6 if i == 7 else 1), id_=f"case {i}") for i in range(9)]
    verdict = judge(run_record(cases), POLICY)
    assert verdict.verdict is Outcome.REGRESSED
    assert verdict.reason.startswith("case 7: 4.")
    assert "; of 9 cases 1 regressed, 8 equivalent; " in verdict.reason
    assert exit_code(verdict) == 1


def test_a_baseline_without_the_case_is_refused_and_one_without_some_is_named() -> None:
    base, head = noise(np.random.default_rng(11))
    stored = heads(base, id_="old")
    said = "the baseline has other cases: it holds old; this record holds new"
    assert judge(heads(head, id_="new"), POLICY, stored).refused == said
    both = run_record([one for id_ in ("new", "old") for one in timed_cases(heads(head, id_=id_))])
    partly = judge(both, POLICY, stored)
    assert [one.id for one in partly.cases] == ["old"]
    assert "not in the baseline: new" in partly.reason


HARD = {
    "processes in two modes, both sides": None,
    "rounds of the base in two modes": "bimodal",
    "trend of 5%, both sides": None,
    "trends up to 5%, each side": "drift",
    "one process off by 3%": "lone_process",
    "clock steps of 1 µs": None,
    "1% outliers × 100": None,
}
"""How a record is spoilt, and the finding that then forbids a verdict, or, of drift, widens the interval."""


def spoilt(rng: np.random.Generator, spoiler: str, name: str, variant: int) -> CaseVerdict:
    pair = records.SPOILERS[spoiler](rng, records.paired_times(rng, name, variant))
    return judged(list(pair.base), list(pair.head))


@pytest.mark.parametrize("spoiler", HARD)
@pytest.mark.parametrize("name", SETS)
def test_what_is_not_a_difference_never_becomes_one(spoiler: str, name: str) -> None:
    rng = np.random.default_rng(13)
    for _ in range(3):
        one = spoilt(rng, spoiler, name, 1)
        assert one.direction is Direction.NONE
        assert one.verdict in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)
        if (code := HARD[spoiler]) is not None:
            assert code in {finding.code for finding in one.findings if finding.disqualifies or code == "drift"}


def refusal(record: RunRecord) -> str:
    verdict = judge(record, POLICY)
    assert verdict.refused is not None
    assert verdict.reason == f"cannot be judged: {verdict.refused}"
    assert (verdict.verdict, verdict.cases, exit_code(verdict)) == (Outcome.INCONCLUSIVE, (), 3)
    return verdict.refused


@pytest.mark.parametrize(("processes", "rounds", "long"), [(1, 100, "1 process"), (5, 19, "0 processes")])
def test_too_few_samples_are_refused(processes: int, rounds: int, long: str) -> None:
    said = f"too few samples: one has {long} of base and head with at least 20 rounds; it takes 2"
    assert refusal(paired_record(*noise(np.random.default_rng(23), processes=processes, rounds=rounds))) == said
    assert refusal(RunRecord()) == "the record holds no cases"


def test_one_library_on_both_sides_is_equivalent_without_times() -> None:
    sides = tuple(Build(side=side, card="norm", key="k1", call_hash="c1") for side in ("base", "head"))
    for cases in ((), (runs.case("one", card="norm"),)):
        made = run_record(cases, builds=sides)
        verdict = judge(made, POLICY)
        assert (verdict.verdict, verdict.cases, exit_code(verdict)) == (Outcome.EQUIVALENT, (), 2)
        assert verdict.reason == "nothing to compare: base and head compile to the same library"
        assert not undecided(made, POLICY)


def test_a_wrong_result_is_not_judged_for_speed() -> None:
    record = paired_record(*noise(np.random.default_rng(27), change=-0.2))
    results = (FuzzResult(id="a", seed=1, passed=False), FuzzResult(id="b", seed=1, passed=True))
    failed = Check(kind="fuzz", status="failed")
    second = Check(kind="fuzz", card="two", status="failed")
    for checks, said in (
        ((failed.model_copy(update={"results": results}),), "1 of 2 fuzz cases failed"),
        ((failed,), "fuzzing failed"),
        ((Check(kind="fuzz", card="one", status="passed"), second), "fuzzing failed"),
    ):
        wrong = record.model_copy(update={"checks": checks})
        assert refusal(wrong) == f"wrong result: {said}; speed was not judged"
    skipped = record.model_copy(update={"checks": (Check(kind="fuzz", status="skipped"),)})
    assert judge(skipped, POLICY).verdict is Outcome.IMPROVED


SENTENCES = [
    (0.05, 0.005, 5, "4.9% slower, between 4.8% and 5.0%; a change of 0.4% would have been seen"),
    (
        *(0.02, 0.005, 5),
        "1.9% slower, between 1.8% and 2.0%: certain, but below the 3% that blocks; "
        "a change of 0.4% would have been seen",
    ),
    (0.0, 0.005, 3, "no change: within ±1%, between 0.1% faster and 0.2% slower"),
    (0.05, 0.03, 2, "very likely 4.9% slower, between 4.1% and 5.8%, after 2 of 4 repeats"),
    (
        *(0.03, 0.1, 5),
        "cannot tell: likely between 0.1% and 3.1% slower, but not certain in 5 processes; "
        "a change below 7.4% could not be seen",
    ),
]
"""True change, spread of single times, processes."""


@pytest.mark.parametrize(("change", "spread", "processes", "sentence"), SENTENCES)
def test_an_engineer_reads_it_rightly(change: float, spread: float, processes: int, sentence: str) -> None:
    base, head = noise(np.random.default_rng(32), change, processes=processes, spread=spread)
    assert judged(base, head).sentence == sentence


SEEDS = st.integers(0, 2**32)


def numbers(one: CaseVerdict) -> list[float]:
    known = [one.change_pct, one.p, one.cliffs_delta, one.minimum_detectable_pct, one.mann_whitney_p]
    ends = sorted(end for each in one.per_process for end in (each.low_pct, each.high_pct))
    known_ends = (*(one.interval_pct or ()), *(one.bootstrap_pct or ()), *ends)
    return [value for value in (*known, *known_ends) if value is not None]


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 8), st.integers(1, 120), st.floats(1e-3, 7.0), st.sampled_from([0.0, 0.1, 1.0]))
def test_any_positive_times_get_a_verdict(seed: int, processes: int, rounds: int, spread: float, step: float) -> None:
    rng = np.random.default_rng(seed)
    base, head = noise(rng, 0.0, processes, rounds, spread)
    if step:
        base, head = ([np.maximum(step, np.round(s / step) * step) for s in side] for side in (base, head))
    for role in ("paired", "block"):
        verdict = judge(paired_record(base, head, role=role), POLICY)
        assert exit_code(verdict) in (0, 1, 2, 3)
        assert all(np.isfinite(number) for one in verdict.cases for number in numbers(one))


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
