from __future__ import annotations

import json

import pytest

from kernelgate.ci.commands.options import shown
from kernelgate.ci.lab import metrics
from kernelgate.ci.lab.log import Closed, Event, PatternUse
from kernelgate.ci.lab.state import SessionSummary, summary
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made


def row(minutes: float, **fields: object) -> SessionSummary:
    uses = (PatternUse(pattern="profile-before-optimise", how="violated"),)
    closed = Closed(at=made.clock(minutes), why="done", said="so")
    events: tuple[Event, ...] = (made.opened(**fields), *made.passed(0.8), *uses, closed)
    return summary(events, Policy(), made.clock(600))


def test_few_sessions_say_nothing_and_how_few_they_are() -> None:
    """Of the median of five, the least and the largest are an interval of 93.75%. One that is open is not counted."""
    still_open = summary((made.opened(), *made.passed(0.8)), Policy(), made.clock(10))
    found = metrics.overall([*(row(60) for _ in range(5)), still_open])

    assert {one.said for one in found if one.n == 5} == {"5 sessions: too few to say"}
    assert all(one.value is None for one in found)


def test_what_people_recorded_is_shown_and_never_counted() -> None:
    rows = [*(row(60) for _ in range(4)), *(row(180, source="recorded") for _ in range(6))]

    assert all(one.n <= 4 for one in metrics.overall(rows))
    assert "Recorded by people" in "\n".join(metrics.lines(rows))
    told = json.loads(shown(metrics.beside(rows)))
    assert (len(told["measured"]), len(told["recorded"])) == (4, 6)


def test_over_enough_sessions_each_figure_has_its_number_and_interval() -> None:
    found = {one.name: one for one in metrics.overall([row(round(180 * 0.8**number)) for number in range(6)])}

    learning = found["change of a session's time from one to the next"]
    assert learning.value == pytest.approx(-20, abs=1)
    assert learning.interval is not None
    assert learning.interval[0] < -20 < learning.interval[1]
    assert found["time to a working build"].value == 2
    assert found["mistakes repeated a session"].value == pytest.approx(5 / 6)
    assert found["gap to the expert's time"].interval == (59 - 120, 180 - 120), "the least and the largest of six"
    assert found["sessions to convergence"].said == "2 of 6; each later one took at most 120 min"
    assert found["assistant's cost of a session"].said == "not measured"
    assert all(one.n == 6 for one in found.values() if one.value is not None)


def test_a_search_of_a_script_is_shown_and_says_nothing_of_a_sessions_time() -> None:
    gate = made.gate("profile", 0, seconds=None, bottleneck="memory")
    search = summary((made.opened(), gate, Closed(at=made.clock(14), why="done", said="")), Policy(), made.clock(9))

    assert search.figures.minutes_to_bottleneck is None, "its log was written when it was over"
    assert {one.said for one in metrics.overall([search] * 9)} == {"not measured"}
    lines = [*metrics.lines([search] * 9)]
    assert lines[2].startswith("  9 searches of scripts with 0 changes tried, not counted")
    assert not [line for line in lines if "one:" in line], "nor is there a line for each"


def test_a_speed_up_has_the_interval_of_its_gate_and_of_what_was_kept_since() -> None:
    sure = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}
    gate = made.gate("performance", 4, figures=sure)
    kept = (made.opened(), gate, made.tried(1, -50.0), made.decided(1, kept=True))
    found = summary(kept, Policy(), made.clock(20))

    assert found.figures.speedup == pytest.approx(4)
    assert found.figures.speedup_interval == pytest.approx((3.78, 4.22), abs=0.02)
    assert summary(kept[:2], Policy(), made.clock(20)).figures.speedup_interval == pytest.approx((1.9, 2.1))
    without = (made.opened(), made.measured(2.0), *kept[2:])
    assert summary(without, Policy(), made.clock(20)).figures.speedup_interval is None, (
        "half of one would be too narrow"
    )
