"""What a session does next, and when it stops: the gates in order, then one change after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kernelgate.ci.explain.next_step import PROFILE_BELOW
from kernelgate.ci.lab import state
from kernelgate.ci.lab.log import (
    Event,
    GateAttempt,
    GateName,
    Opened,
    TriedChange,
    clock_jumps,
    gates,
    minutes_between,
    tries,
)
from kernelgate.ci.lab.state import (
    AdviceAtHand,
    GateState,
    NextCommand,
    SessionBudget,
    SessionFigures,
    SessionState,
    SessionSummary,
    Stop,
)
from kernelgate.ci.policy.policy import Policy

TRY = 'kernelgate session try "WHAT I CHANGE" "WHY"'


@dataclass(frozen=True)
class _Situation:
    """What the next step goes by."""

    events: tuple[Event, ...]
    gates: tuple[GateState, ...]
    tries: tuple[TriedChange, ...]
    figures: SessionFigures
    until: str
    at_hand: AdviceAtHand | None


def summary(events: Sequence[Event], policy: Policy, now: str) -> SessionSummary:
    """A session in a list of them, at the time `now` (ISO 8601)."""
    opened, closed = state.opened_of(events), state.closed_of(events)
    minutes = closed.minutes if closed else None
    if minutes is None:
        minutes = minutes_between(opened.at, (closed.at if closed else None) or now) or 0.0
    why = closed.why if closed else None
    return SessionSummary(opened=opened, closed=why, minutes=minutes, figures=state.figures(events, policy))


def of(events: Sequence[Event], policy: Policy, now: str, at_hand: AdviceAtHand | None = None) -> SessionState:
    """The state of a session with these events at the time `now` (ISO 8601).

    `at_hand`: what is recommended, where somebody looked.
    """
    known, closed = summary(events, policy, now), state.closed_of(events)
    opened, until = known.opened, (closed.at if closed else None) or now
    at = _Situation(tuple(events), state.gate_states(events), tries(events), known.figures, until, at_hand)
    box = state.BASELINE_MINUTES if opened.template == "baseline" else state.OPTIMISE_MINUTES
    budgets = (
        SessionBudget("time", known.minutes, opened.minutes or box, "min"),
        SessionBudget("cost", known.figures.usd or 0.0, opened.usd, "USD"),
    )
    stop = None if closed else _stop(at, budgets)
    return SessionState(
        **vars(known),
        stop=stop[0] if stop else None,
        stop_reason=stop[1] if stop else None,
        gates=at.gates,
        tries=at.tries,
        budgets=budgets,
        next=NextCommand(None, "it is closed") if closed else _next(at, stop, policy),
        remarks=(*clock_jumps(events, until), *_without_price(opened, policy)),
    )


def _without_price(opened: Opened, policy: Policy) -> Iterator[str]:
    if state.is_on_gpu((opened,)) and opened.source == "measured" and opened.gpu not in policy.costs.gpu_hour:
        yield f"the policy has no price of {opened.gpu} (costs.gpu_hour): what it costs is not counted"


def is_tuning(speedup: float | None) -> bool:
    """Whether any certain gain is kept: once the kernel is as fast as the reference."""
    return speedup is not None and speedup >= PROFILE_BELOW


def _stop(at: _Situation, budgets: Sequence[SessionBudget]) -> tuple[Stop, str] | None:
    for budget in budgets:
        if budget.limit is not None and budget.spent >= budget.limit:
            return budget.of, f"{_amount(budget.spent, budget)} of {_amount(budget.limit, budget)} are spent"
    waiting = due(at.gates, at.figures.speedup_before)
    if waiting is None or at.tries:
        return None
    passed = [event.at for event in at.events if isinstance(event, GateAttempt) and event.passed]
    without = minutes_between(passed[-1] if passed else at.events[0].at, at.until) or 0.0
    most = state.WITHOUT_GATE_MINUTES
    if without < most:
        return None
    return "gate", f"{without:.0f} minutes without a passed gate, and {most:g} are the limit: {waiting} is next"


def _amount(value: float, budget: SessionBudget) -> str:
    return f"{value:.0f} {budget.unit}" if budget.of == "time" else f"{value:.2f} {budget.unit}"


def _next(at: _Situation, stop: tuple[Stop, str] | None, policy: Policy) -> NextCommand:
    opened = state.opened_of(at.events)
    if stop:
        return NextCommand(f"kernelgate session close --why {stop[0]}", f"stop: {stop[1]}")
    name = due(at.gates, at.figures.speedup_before)
    if name is not None:
        return _at_gate(next(gate for gate in at.gates if gate.name == name), at, policy)
    if opened.template == "baseline":
        return NextCommand("kernelgate session close", "all is measured that a baseline asks for")
    if at.tries and at.tries[-1].decision is None:
        last = at.tries[-1]
        if last.advised == "keep":
            return NextCommand("kernelgate session keep", f"try {last.number} is certainly faster, by enough")
        why = "it failed" if last.failed else "it is not certainly faster, or not by enough"
        return NextCommand("kernelgate session revert", f"try {last.number}: {why}")
    return _change_or_end(at, opened)


def due(found: Sequence[GateState], speedup: float | None) -> GateName | None:
    """The gate that is next; a profile is not needed of a kernel that is as fast as the reference."""
    waiting = (gate.name for gate in found if gate.name != "document" and gate.status in ("open", "failed"))
    return next((name for name in waiting if name != "profile" or not is_tuning(speedup)), None)


def _at_gate(gate: GateState, at: _Situation, policy: Policy) -> NextCommand:
    command = f"kernelgate session gate {gate.name}"
    failing = state.failing_build_minutes(at.events, at.until)
    if gate.name == "build" and failing >= state.BISECT_AFTER_MINUTES:
        since = f"it has not compiled for {failing:.0f} minutes"
        return NextCommand(
            "kernelgate bisect --build GOOD", f"{since}: find the last commit that did, and start from it"
        )
    if gate.status == "failed":
        return NextCommand(command, f"{gate.name} failed: {gate.said}; {gate.on_failure}")
    if gate.name == "profile" and at.figures.speedup_before is not None:
        speedup = at.figures.speedup_before
        at_once = "at once" if speedup < policy.gates.reference_min else "before anything is changed"
        why = f"{speedup:.3g}x the reference: a profile {at_once}, so that no change is blind"
        return NextCommand(command, why)
    return NextCommand(command, f"{gate.name} is next, within {gate.limit_minutes:g} minutes: {gate.passes}")


def _change_or_end(at: _Situation, opened: Opened) -> NextCommand:
    box = state.CHANGE_MINUTES
    first = next((event for event in at.events if isinstance(event, TriedChange)), None)
    spent = ((first.seconds or 0.0) / 60 + (minutes_between(first.at, at.until) or 0.0)) if first else 0.0
    reached = opened.target is not None and (at.figures.speedup or 0.0) >= opened.target
    if spent < box and not reached:
        return _change(at, box - spent)
    why = f"the target of {opened.target:g}x is reached" if reached else f"the {box:g} minutes for changes are over"
    measured = gates(at.events, "performance")
    if measured and not state.kept_since(at.events, measured[-1]):
        return NextCommand("kernelgate session close", why)
    return NextCommand("kernelgate session gate performance", f"{why}: measure against the reference again")


def _change(at: _Situation, left: float) -> NextCommand:
    """The next try: with what is recommended against what holds the kernel back, where that is known."""
    named = at.at_hand.bottleneck if at.at_hand else None
    bottleneck = named or next(
        (event.bottleneck for event in reversed(at.events) if isinstance(event, GateAttempt) and event.bottleneck), None
    )
    against = f" against what holds it back ({bottleneck})" if bottleneck else ""
    why = f"change one thing{against}, then measure it; {left:.0f} minutes are left for changes"
    if at.at_hand is None:
        return NextCommand(TRY, why)
    action = untried(at.at_hand.actions, at.tries)
    if action is not None:
        return NextCommand(f"{TRY} --action {action}", why, at.at_hand.command, action)
    over = "; all that is recommended was tried since" if at.at_hand.actions else ""
    return NextCommand(TRY, f"{why}{over}", at.at_hand.command)


def untried(actions: Sequence[str], tried: Sequence[TriedChange]) -> str | None:
    """The first of what is recommended that was not tried since the last change that was kept.

    A try that could not be measured told nothing.
    """
    since = takewhile(lambda one: one.decision != "kept", reversed(tried))
    done = {one.action for one in since if one.failed != "measurement"}
    return next((one for one in actions if one not in done), None)
