"""What comes next in a session and what it came to; and sessions beside each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelgate.ci.commands.options import shown
from kernelgate.ci.lab import metrics
from kernelgate.ci.lab.log import Closed, Event, PatternUse, SessionCost
from kernelgate.ci.lab.state import TRY, AdviceAtHand, SessionState, SessionSummary, state_of, summary
from kernelgate.ci.policy.policy import Policy
from tests.called import EndsWith
from tests.ci.lab import session_events as made

ROOT = Path(__file__).parents[3]

PROFILED = made.gate("profile", 5, bottleneck="dram")


def state(*events: Event, minute: float = 12, **fields: object) -> SessionState:
    return state_of((made.opened(**fields), *events), Policy(), made.clock(minute))


GATE, SESSION = "kernelgate session gate", "kernelgate session"
UNBUILT = (made.gate("environment", 1), made.gate("build", 2, passed=False, said="a semicolon is missing"))
TUNED = (*made.passed(0.9), PROFILED)
KEPT = (made.tried(1, -50), made.decided(1, True))


@pytest.mark.parametrize(
    ("events", "minute", "command", "why"),
    [
        *((made.passed(1.1)[:at], 12, f"{GATE} {name}", f"{name} is next") for at, name in enumerate(made.GATES)),
        (UNBUILT, 12, f"{GATE} build", "a semicolon is missing"),
        ((*UNBUILT, made.gate("build", 20, passed=False)), 33, "kernelgate bisect --build GOOD", "for 32 minutes"),
        (made.passed(0.4), 12, f"{GATE} profile", "at once"),
        (made.passed(0.9), 12, f"{GATE} profile", "before anything is changed"),
        (TUNED, 12, TRY, "dram"),
        ((*TUNED, made.tried(1, -30)), 12, f"{SESSION} keep", ""),
        ((*TUNED, made.tried(1, 2, advised="revert")), 12, f"{SESSION} revert", ""),
        ((*TUNED, *KEPT), 12, f"{GATE} performance", "the target of 1.5x is reached"),
        ((*TUNED, *KEPT, made.measured(1.8, 13)), 14, f"{SESSION} close", "the target of 1.5x is reached"),
    ],
)
def test_what_comes_next_and_why(events: tuple[Event, ...], minute: float, command: str, why: str) -> None:
    found = state(*events, minute=minute, target=1.5).next
    assert found.command == command
    assert why in found.why


def test_of_what_is_recommended_the_first_that_was_not_tried_since_a_change_was_kept() -> None:
    def action(*tries: Event) -> tuple[str | None, str | None]:
        at_hand = AdviceAtHand("kernelgate recommend r", "l2", ("swizzle", "multicast"))
        found = state_of((made.opened(), *TUNED, *tries), Policy(), made.clock(30), at_hand).next
        assert (found.recommend, "(l2)" in found.why) == ("kernelgate recommend r", True)
        assert found.command == (f"{TRY} --action {found.action}" if found.action else TRY)
        return found.action, "was tried since" if "was tried since" in found.why else None

    reverted = (made.tried(1, 3, action="swizzle"), made.decided(1, False))
    crashed = (made.tried(1, 3, action="swizzle", failed="measurement"), made.decided(1, False))
    both = (*reverted, made.tried(2, 3, action="multicast"), made.decided(2, False))
    kept = (*reverted, made.tried(2, -30, action="multicast"), made.decided(2, True))
    assert action() == action(*crashed) == action(*kept) == ("swizzle", None)
    assert action(*reverted) == ("multicast", None)
    assert action(*both) == (None, "was tried since")


@pytest.mark.parametrize(
    ("minute", "fields", "stop"),
    [
        (61, {}, "gate"),
        (59, {"minutes": 30.0}, "time"),
        (5, {"usd": 0.5}, "cost"),
    ],
)
def test_it_stops_at_its_limits(minute: float, fields: dict[str, object], stop: str | None) -> None:
    found = state(SessionCost(at=made.clock(1), of="assistant", usd=0.7), minute=minute, **fields)
    assert found.stop == stop
    assert (found.next.command or "").endswith(f"close --why {stop}") is (stop is not None)


def test_a_try_is_blind_only_where_a_profile_could_have_been_made() -> None:
    tried = (*made.passed(0.8), made.tried(1, -50), made.tried(2, -20, bottleneck="dram"))
    assert state(*tried, gpu="NVIDIA H200").figures.blind == 1
    assert state(*tried, gpu="cpu").figures.blind == 0
    assert state(made.gate("profile", 5, skipped="no ncu"), *tried, gpu="NVIDIA H200").figures.blind == 0


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


def test_what_a_document_says_was_paid_is_not_counted_twice() -> None:
    price = {"hour": 0.68, "day": "2025-10-14", "source": "a price list"}
    priced = Policy.model_validate({"costs": {"gpu_hour": {"NVIDIA L4": price}}})
    used, paid = PatternUse(pattern="baseline-first", how="applied"), SessionCost(at=made.clock(3), of="gpu", usd=0.6)
    for source, usd in (("recorded", 0.6), ("measured", 0.6 + 2 * 0.68)):
        events = (made.opened(gpu="NVIDIA L4", source=source), made.gate("build", 2, seconds=7200.0), paid, used)
        said = "\n".join(metrics.lines([summary(events, priced, made.clock(600))]))
        assert f", 1 pattern applied, {usd:.2f} USD GPU" in said


def test_over_enough_sessions_each_figure_has_its_number_and_interval() -> None:
    found = {one.name: one for one in metrics.overall([row(round(180 * 0.8**number)) for number in range(6)])}
    learning = found["change of a session's time from one to the next"]
    assert learning.value == pytest.approx(-20, abs=1)
    assert learning.interval[0] < -20 < learning.interval[1]
    assert found["time to a working build"].value == 2
    assert found["mistakes repeated a session"].value == pytest.approx(5 / 6)
    assert found["gap to the expert's time"].interval == (59 - 120, 180 - 120), "the least and the largest of six"
    assert found["sessions to convergence"].said == "2 of 6; each later one took at most 120 min"
    assert found["assistant's cost of a session"].said == "not measured"
    assert learning.said.endswith("6 sessions; the goal is -30 %)"), "as the founding documents hope"


def test_a_search_of_a_script_is_shown_and_says_nothing_of_a_sessions_time() -> None:
    gate = made.gate("profile", 0, seconds=None, bottleneck="memory")
    search = summary((made.opened(), gate, Closed(at=made.clock(14), why="done", said="")), Policy(), made.clock(9))
    assert search.figures.minutes_to_bottleneck is None, "its log was written when it was over"
    assert {one.said for one in metrics.overall([search] * 9)} == {"not measured"}
    assert [*metrics.lines([search] * 9)][2].startswith("  9 searches of scripts with 0 changes tried, not counted")


def test_a_speed_up_has_the_interval_of_its_gate_and_of_what_was_kept_since() -> None:
    sure = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}
    gate = made.gate("performance", 4, figures=sure)
    found = state(gate, *KEPT).figures
    assert found.speedup == pytest.approx(4)
    assert found.speedup_interval == pytest.approx((3.78, 4.22), abs=0.02)
    assert state(gate).figures.speedup_interval == pytest.approx((1.9, 2.1))
    assert state(made.measured(2.0), *KEPT).figures.speedup_interval is None, "half of one would be too narrow"


def test_the_recorded_speed_of_a_document_that_gives_two_times(
    monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """Of 0.0251 ms against 0.7295 ms, by `session metrics` on the kept logs."""
    monkeypatch.chdir(ROOT)
    said = ends_with(0, "session", "metrics").out
    assert "recorded-n-plus-4: 30 min, 0.0344x the reference" in said
    assert "sessions that reached their target: 4 of 7" in said
    lines = {name: one for one in said.splitlines() for name in re.findall(r"^  ([\w-]+): \d+ min", one)}
    told = {name: "which is not certain" in one for name, one in lines.items()}
    assert sorted(name for name, said in told.items() if said) == ["recorded-n-plus-2"]
    assert "1.11x as fast as recorded-n, which is not certain" in lines["recorded-n-plus-2"]


def test_a_session_is_faster_than_the_last_one_of_the_same_kernel_where_that_is_certain() -> None:
    def of(name: str, speedup: float, **fields: object) -> SessionSummary:
        figures = {"speedup": speedup, "speedup_low": 0.98 * speedup, "speedup_high": 1.02 * speedup}
        gate = made.gate("performance", 4, figures=figures)
        closed = Closed(at=made.clock(30), why="done", said="so")
        return summary((made.opened(name=name, target=2.0, **fields), gate, closed), Policy(), made.clock(600))

    rows = [of("first", 1.0), of("other", 3.0, card="another"), of("large", 5.0, cases=["n64"])]
    rows += [of("second", 1.2), of("third", 1.19), of("fourth", 0.9)]
    lines = {one.split(":")[0].strip(): one for one in metrics.lines(rows)}
    assert not [one for one in ("first", "other", "large") if " than " in lines[one] or "as fast" in lines[one]]
    assert "certainly faster than first" in lines["second"]
    assert "0.992x as fast as second, which is not certain" in lines["third"]
    assert "certainly slower than third" in lines["fourth"]
    found = {
        one.name: (one.n, one.said) for one in metrics.overall([*rows, *(of(f"f{at}", 1.5**at) for at in range(3))])
    }
    assert found["sessions faster than the one before on the same kernel"] == (6, "4 of 6")
    assert found["sessions that reached their target"] == (9, "3 of 9")
