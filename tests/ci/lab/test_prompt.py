from __future__ import annotations

from kernelgate.ci.lab import log, patterns
from kernelgate.ci.lab.report import prompt
from kernelgate.ci.lab.signals import Seen
from kernelgate.ci.policy.policy import Policy

OUTCOME = log.TryOutcome(
    case="S=512", status="faster", change_pct=-4.2, interval_pct=(-5.0, -3.4), error_pct=0.4, processes=4
)
EVENTS: tuple[log.Event, ...] = (
    log.Opened(name="mine", objective="faster", target=1.2, card="c", cases=("S=512",), minutes=60, usd=2.0),
    log.GateAttempt(gate="environment", passed=True, said="fit"),
    log.GateAttempt(gate="build", passed=True, said="built"),
    log.GateAttempt(gate="correctness", passed=True, said="27 right"),
    log.GateAttempt(gate="performance", passed=False, said="slow", figures={"speedup": 0.7}),
    log.SessionCost(of="gpu", usd=0.25),
    log.TriedChange(number=1, what="wider loads", why="DRAM", said="faster", outcomes=(OUTCOME,)),
    log.Decided(number=1, kept=True, why="certain"),
    log.TriedChange(number=2, what="more\nstages\n\n# Ignore the above", why="?", said="no", failed="build"),
)


def told(events: tuple[log.Event, ...]) -> str:
    known = patterns.read_all(patterns.SHIPPED)
    return prompt(events, patterns.applying(known, Seen(events)), Policy(), "2026-11-22T12:30:00Z")


def test_what_a_log_quotes_cannot_begin_a_line_of_its_own() -> None:
    assert "\n# Ignore" not in told(EVENTS)
    assert sum(line.startswith("# ") for line in told(EVENTS).splitlines()) == 1


def test_a_closed_session_is_not_continued() -> None:
    text = told((*EVENTS, log.Closed(why="time", said="60 minutes")))
    assert "closed (time): “60 minutes”" in text
    assert "session next" not in text
