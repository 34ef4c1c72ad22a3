"""Which comparisons a night is to make, from the index to the commands."""

from __future__ import annotations

import shlex

import pytest

from kernelgate.bench.record import Cost
from kernelgate.ci.history import database, nights, tonight
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, Entry, PointEntry
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.history.tonight import Tonight
from kernelgate.ci.policy.policy import Policy
from tests.ci.history.entries import an_entry, put
from tests.ci.history.test_nights import NIGHTS, STEP, a_night, a_pair, found, sha, stepped, times


def planned(index_at: Database, policy: Policy | None = None) -> tuple[Tonight, ...]:
    rules = policy or Policy()
    with database.reading(index_at) as connection:
        return tonight.of_index(connection, nights.of_index(connection, Wanted(), rules), rules)


def suspect(index_at: Database, *cases: str) -> None:
    found(index_at, *(a_night(at, stepped(at), case=case) for at in range(NIGHTS) for case in cases))


def a_cost(gpu_seconds: float, processes: int) -> Entry:
    """What two cases cost together."""
    point = PointEntry(side="head", commit=sha(0), us=10.0, processes=processes, rounds=60)
    cases = tuple(CaseEntry(card="norm", case=case, points=(point,)) for case in ("one", "other"))
    return an_entry("cost", cases=cases, costs=(Cost(phase="calls", gpu_seconds=gpu_seconds),))


def test_what_is_suspected_becomes_commands_that_settle_it(index_at: Database) -> None:
    suspect(index_at, "one", "two")
    [one] = planned(index_at)
    [pair] = one.schedule.pairs
    assert (pair.previous, pair.commit, pair.series) == (sha(STEP - 1), sha(STEP), ("norm/one", "norm/two"))
    measure, keep = tonight.commands(pair)
    words = shlex.split(measure)
    assert words[:6] == ["kernelgate", "bench", "--base", sha(STEP - 1), "--head", sha(STEP)]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--case"] == ["norm/one", "norm/two"]
    assert shlex.split(keep) == ["kernelgate", "history", "add", words[-1]]
    assert f"on {one.gpu}: about {pair.gpu_seconds:.0f} of 600 GPU-seconds" in tonight.text([one], Policy())
    assert tonight.answer([one]).pairs[0].commands == (measure, keep)


def test_what_was_confirmed_is_not_measured_again(index_at: Database) -> None:
    suspect(index_at, "one")
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    assert planned(index_at) == ()
    assert tonight.text((), Policy()) == "# nothing is suspected"


def test_another_projects_commits_are_not_to_be_built(index_at: Database) -> None:
    put(index_at, *times(40, 25, 8.0))
    with database.reading(index_at) as connection:
        [case] = nights.of_index(connection, Wanted(), Policy())
    assert [change.state for change in case.changes] == ["suspected"]
    assert planned(index_at) == ()


def test_a_process_costs_what_the_history_says(index_at: Database) -> None:
    suspect(index_at, "one")
    [unknown] = planned(index_at)
    [pair] = unknown.schedule.pairs
    assert pair.gpu_seconds == pytest.approx(Policy().changes.process_seconds * pair.processes)
    put(index_at, a_cost(gpu_seconds=30.0, processes=5))
    [known] = planned(index_at)
    assert known.schedule.pairs[0].gpu_seconds == pytest.approx(30.0 / (2 * 5) * pair.processes)


def test_what_does_not_fit_into_the_night_is_said(index_at: Database) -> None:
    suspect(index_at, "one")
    rules = Policy()
    little = rules.model_copy(update={"changes": rules.changes.model_copy(update={"gpu_seconds_a_night": 1.0})})
    [one] = planned(index_at, little)
    assert one.schedule.pairs == ()
    assert "another night: 1 suspicion" in tonight.text([one], little)
    assert tonight.answer([one]).postponed[0].case == "norm/one"
