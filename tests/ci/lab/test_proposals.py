from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.lab import folder, gathered, pattern, proposals
from kernelgate.ci.lab.log import Decided, Event, GateAttempt, Opened, PatternUse, TriedChange
from kernelgate.ci.lab.proposals import Repetition
from kernelgate.ci.policy.policy import Policy

ROOT = Path(__file__).parents[3]
KNOWN = pattern.read_all(ROOT / pattern.FOLDER)
LIMITS = gathered.thresholds(Policy())
TWICE = Repetition(2, 5.0, 0.6)


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
        "a try that failed at measurement cost 13 min, 2 times in 1 session: no pattern answers to it yet; write one; "
        "the last time: the driver refused it"
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


SAME = (
    (
        "ended: silent for 180 s; last line: [3/12] linking kernel.so",
        "ended: silent for 195 s; last line: [9/12] linking kernel.so",
    ),
    (
        'gemm.cu(33): error: static assertion failed with "more shared memory than 98304 must be asked for"',
        'gemm.cu(41): error: static assertion failed with "more shared memory than 232448 must be asked for"',
    ),
    (
        "ncu ended with 9; its last words: the device is used by another process",
        "ncu ended with 11; its last words: the device is already used by another process",
    ),
    ("free memory: 3.2 GB of 141 GB is free → wait", "free memory: 17 GB of 141 GB is free → wait"),
)
OTHER = (
    (
        "a/block.h:12:5: error: ‘kTile’ was not declared in this scope",
        "a/block.h:14:5: error: ‘kWarps’ was not declared in this scope",
    ),
    ('a/k.cu(3): error: expected a ";"', 'a/k.cu(3): error: expected a ")"'),
    ("k.py:27: Cache modifier .cs not supported", "k.py:40: incompatible shapes"),
    ("ncu ended with 9; its last words: out of memory", "ncu was ended after 120 s; it had not finished"),
)


@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_reason_in_other_numbers_is_proposed(first: str, second: str) -> None:
    failed = [CRASH.model_copy(update={"said": said}) for said in (first, second)]
    assert proposed(a=failed[:1], b=failed[1:]) == [("a try that failed at measurement", 2, 800 / 60, None)]


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_two_different_reasons_are_not(first: str, second: str) -> None:
    failed = [CRASH.model_copy(update={"said": said}) for said in (first, second)]
    assert proposed(a=failed[:1], b=failed[1:]) == []


def test_what_doctor_found_twice_is_no_matter_of_letting_it_look() -> None:
    torch, cores = (
        GateAttempt(gate="environment", passed=False, said=said, seconds=600)
        for said in ("torch: 2.10 was built for CUDA 12, the driver has 13", "load: 30 of 32 cores are busy")
    )
    assert proposed(a=[torch], b=[cores]) == []
    assert proposed(a=[torch], b=[torch]) == [("the gate environment, failed,", 2, 20.0, None)]


def test_an_action_that_was_tried_twice_in_vain_is_said_and_one_that_helped_is_not() -> None:
    def session(*, advised: str = "revert", action: str = "swizzle", kept: bool = False) -> list[Event]:
        fields = {"failed": None, "advised": advised, "action": action, "bottleneck": "dram", "said": "no faster"}
        return [CRASH.model_copy(update=fields), Decided(number=1, kept=kept, why="so")]

    in_vain = session()
    assert proposed(a=in_vain, b=in_vain) == [("swizzle against dram, tried in vain,", 2, 800 / 60, None)]
    assert proposed(a=in_vain, b=session(action="multicast")) == []
    assert proposed(a=in_vain, b=session(advised="keep")) == []  # it helped, and was taken back for another reason
    assert proposed(a=in_vain, b=session(kept=True)) == []


def test_variants_that_were_only_measured_propose_nothing() -> None:
    """The kept sessions of variants revert every try, also those that helped."""
    measured = {one.name: one.events for one in folder.every(ROOT) if one.opened.source == "measured"}
    found = proposals.proposed(measured, KNOWN, LIMITS, TWICE)
    assert not [one for one in found if "tried in vain" in one.what]
