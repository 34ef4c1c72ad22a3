"""Which pairs of commits are measured tonight."""

from __future__ import annotations

from dataclasses import replace

from kernelgate.ci.history import schedule
from kernelgate.ci.history.changes import Change
from kernelgate.ci.history.schedule import Suspicion
from kernelgate.ci.policy.policy import Policy

POLICY = Policy()
CHANGE = Change("step", "aaaaaaa", 10, "bbbbbbb", 13, "e", 1.0, (0.8, 1.2))
ONE = Suspicion("attention/M=512", CHANGE, process_seconds=10.0)


def with_budget(seconds: float) -> Policy:
    return POLICY.model_copy(update={"changes": POLICY.changes.model_copy(update={"gpu_seconds_a_night": seconds})})


def test_cases_of_the_same_two_commits_share_processes() -> None:
    planned = schedule.of_night([ONE, replace(ONE, series="attention/M=1024")], POLICY)
    [pair] = planned.pairs
    assert (pair.previous, pair.commit, pair.series) == ("aaaaaaa", "bbbbbbb", ("attention/M=512", "attention/M=1024"))
    assert pair.gpu_seconds == 20.0 * pair.processes
    assert planned.postponed == ()


def test_what_is_settled_is_not_measured() -> None:
    settled = [replace(ONE, change=replace(CHANGE, state=state)) for state in ("confirmed", "refuted", "accepted")]
    assert schedule.of_night(settled, POLICY).pairs == ()


def test_small_changes_and_noisy_cases_take_more_processes() -> None:
    small = replace(ONE, change=replace(CHANGE, change_pct=0.2))
    noisy = replace(ONE, spread_pct=0.5)
    least, most = POLICY.processes.to_direct, POLICY.processes.limit
    counts = [
        schedule.needed(one, POLICY) for one in (replace(ONE, change=replace(CHANGE, change_pct=9.0)), small, noisy)
    ]
    assert counts[0] == least
    assert counts[1] > least
    assert counts[2] == most


def test_the_budget_holds_and_the_larger_change_comes_first() -> None:
    large = replace(ONE, series="large", change=replace(CHANGE, previous="c", commit="d", change_pct=-4.0))
    planned = schedule.of_night([ONE, large], with_budget(50.0))
    assert [pair.series for pair in planned.pairs] == [("large",)]
    assert planned.gpu_seconds <= 50.0
    assert planned.postponed == (ONE,)


def test_who_waited_long_enough_has_its_turn() -> None:
    large = replace(ONE, series="large", change=replace(CHANGE, previous="c", commit="d", change_pct=4.0))
    planned = schedule.of_night([replace(ONE, waited=9), large], with_budget(50.0))
    assert [pair.series for pair in planned.pairs] == [(ONE.series,)]


def test_a_pair_that_is_too_long_gets_fewer_processes_or_is_postponed() -> None:
    [pair] = schedule.of_night([ONE], with_budget(25.0)).pairs
    assert pair.processes == POLICY.processes.minimum
    assert schedule.of_night([ONE], with_budget(19.0)).postponed == (ONE,)
    assert schedule.of_night([ONE], with_budget(0.0)).postponed == (ONE,)
