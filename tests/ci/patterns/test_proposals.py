from __future__ import annotations

from pathlib import Path

from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.patterns import gathered, pattern, proposals
from kernelgate.ci.patterns.proposals import Repetition
from kernelgate.ci.sessions import folder
from kernelgate.ci.sessions.log import Event, GateAttempt, Opened, PatternUse, TriedChange

ROOT = Path(__file__).parents[3]
KNOWN = pattern.read_all(ROOT / pattern.FOLDER)
LIMITS = gathered.thresholds(Policy())
TWICE = Repetition(2, 5.0)


def proposed(**sessions: list[Event]) -> list[tuple[str, int, float, str | None]]:
    found = proposals.proposed({name: [OPENED, *events] for name, events in sessions.items()}, KNOWN, LIMITS, TWICE)
    return [(one.what, one.times, one.minutes, one.pattern) for one in found]


OPENED = Opened(name="s", objective="o")
UNDEFINED = GateAttempt(gate="build", passed=False, said="undefined symbol: _Z1fIfEvT_", seconds=600)
CRASH = TriedChange(number=1, what="w", why="y", said="the driver refused it", failed="measurement", seconds=400)


def test_what_cost_time_twice_is_proposed_with_the_pattern_that_answers_to_it() -> None:
    assert proposed(a=[UNDEFINED], b=[UNDEFINED]) == [("the gate build, failed,", 2, 20.0, "explicit-instantiation")]


def test_what_no_pattern_answers_to_proposes_a_new_one() -> None:
    [one] = proposals.proposed({"a": [CRASH, CRASH]}, KNOWN, LIMITS, TWICE)
    assert one.pattern is None
    assert one.sentence() == (
        "a try that failed at measurement cost 13 min, 2 times in 1 session: no pattern answers to it yet; write one"
    )


def test_proposals_are_events_of_the_session_that_is_closed() -> None:
    found = proposals.proposed({"a": [UNDEFINED, UNDEFINED, CRASH, CRASH]}, KNOWN, LIMITS, TWICE)
    events = proposals.as_events(found, "2026-11-22T21:00:00Z")
    assert [(one.how, one.pattern) for one in events] == [("proposed", "explicit-instantiation"), ("proposed", "new")]


def test_once_is_bad_luck_and_seconds_are_no_loss() -> None:
    assert proposed(a=[UNDEFINED]) == []
    quick = UNDEFINED.model_copy(update={"seconds": 30.0})
    assert proposed(a=[quick], b=[quick]) == []
    assert proposed(a=[UNDEFINED.model_copy(update={"seconds": None})] * 3) == []


def test_two_different_losses_are_not_one() -> None:
    assert proposed(a=[UNDEFINED, CRASH]) == []
    other = UNDEFINED.model_copy(update={"said": "expected a ;"})
    assert proposed(a=[UNDEFINED], b=[other]) == []


def test_a_pattern_that_was_violated_twice_is_said() -> None:
    lost = PatternUse(pattern="cadence", how="violated", minutes=10)
    assert proposed(a=[lost], b=[lost]) == [("cadence, violated,", 2, 20.0, "cadence")]


def test_the_recorded_sessions_lost_two_builds_to_symbols() -> None:
    recorded = {one.name: one.events for one in folder.every(ROOT) if one.opened.source == "recorded"}
    [first, *_] = proposals.proposed(recorded, KNOWN, LIMITS, TWICE)
    assert (first.times, first.minutes, first.pattern) == (2, 180.0, "explicit-instantiation")
