from __future__ import annotations

import json

import pytest

from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import metrics
from kernelgate.ci.sessions.log import Closed, Event, PatternUse
from kernelgate.ci.sessions.metrics import SessionRow
from tests.ci.sessions import session_events as made


def row(minutes: float, **fields: object) -> SessionRow:
    uses = (PatternUse(pattern="profile-before-optimise", how="violated"),)
    closed = Closed(at=made.clock(minutes), why="done", said="so")
    events: tuple[Event, ...] = (made.opened(**fields), *made.passed(0.8), *uses, closed)
    return metrics.row(events, Policy(), made.clock(600))


def test_few_sessions_say_nothing_and_how_few_they_are() -> None:
    found = metrics.overall([row(60), row(50), row(40)])

    assert {one.said for one in found if one.n == 3} == {"3 sessions: too few to say"}
    assert all(one.value is None for one in found)


def test_what_people_recorded_is_shown_and_never_counted() -> None:
    rows = [*(row(60) for _ in range(4)), *(row(180, source="recorded") for _ in range(6))]

    assert all(one.n <= 4 for one in metrics.overall(rows))
    assert "Recorded by people" in metrics.to_text(rows)
    told = json.loads(metrics.to_json(rows))
    assert (len(told["measured"]), len(told["recorded"])) == (4, 6)


def test_over_enough_sessions_each_figure_has_its_number_and_interval() -> None:
    found = {one.name: one for one in metrics.overall([row(round(80 * 0.9**number)) for number in range(6)])}

    learning = found["change of a session's time from one to the next"]
    assert learning.value == pytest.approx(-10, abs=1)
    assert learning.interval is not None
    assert learning.interval[0] < -10 < learning.interval[1]
    assert found["time to a working build"].value == 2
    assert found["mistakes repeated a session"].value == pytest.approx(5 / 6)
    assert all(one.n == 6 for one in found.values() if one.value is not None)


def test_an_open_session_is_not_counted() -> None:
    open_one = metrics.row((made.opened(), *made.passed(0.8)), Policy(), made.clock(10))
    assert metrics.overall([open_one])[0].n == 0
