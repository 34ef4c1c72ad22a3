"""What is known of a session by its events: gates in order, budgets, figures, what comes next, and when it stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import exp, hypot, log, prod
from typing import Final, Literal

from kernelgate.ci.explain.next_step import PROFILE_BELOW
from kernelgate.ci.lab import log as logs
from kernelgate.ci.lab import variables
from kernelgate.ci.lab.log import Event, GateAttempt, GateName, Opened, TriedChange, closed_of, gates, opened_of, tries
from kernelgate.ci.policy.policy import Policy

GateStatus = Literal["passed", "failed", "skipped", "open"]
Stop = Literal["time", "cost", "gate"]
HOUR_S = 3600.0
BUILD_TARGET, BOTTLENECK_TARGET, BLIND_TARGET, GPU_USD_TARGET, LEARNING_TARGET_PCT = 30, 15, 0, 5, -30
"""Minutes to a working build and to a named bottleneck, blind tries, the GPU's cost, and by how much a session is
shorter than the one before: the goals of the founding documents."""


@dataclass(frozen=True)
class GateState:
    """One gate: what passes it, how long it may take, what to do when it fails, and how far it is."""

    name: GateName
    limit_minutes: float
    passes: str
    on_failure: str
    status: GateStatus
    minutes: float
    said: str | None


@dataclass(frozen=True)
class SessionBudget:
    """What was spent of what may be spent; None is unlimited."""

    of: Literal["time", "cost"]
    spent: float
    limit: float | None
    unit: str

    def shown(self, *amounts: float) -> str:
        """Such as "12 min", or "12 of 190 min"."""
        digits = 0 if self.of == "time" else 2
        return f"{' of '.join(f'{one:.{digits}f}' for one in amounts)} {self.unit}"

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


@dataclass(frozen=True)
class AdviceAtHand:
    """What is recommended for the last kept state: the command that says it, and names of actions, the best first."""

    command: str
    bottleneck: str | None
    actions: tuple[str, ...]
    done: str | None = None
    """Said where the kernel is at its roof."""


@dataclass(frozen=True)
class NextCommand:
    """What to do now."""

    command: str | None
    why: str
    recommend: str | None = None
    """Before a change: the command that says what to try, by the profile of the last kept state."""
    action: str | None = None
    """Of what that recommends the first that was not tried since; None where there is none."""

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(one for one in (self.recommend, self.command) if one is not None)


@dataclass(frozen=True, kw_only=True)
class SessionFigures:
    """What a session came to, so far. Minutes count from its opening; None is not known."""

    minutes_to_build: float | None
    minutes_to_bottleneck: float | None
    tries: int
    kept: int
    blind: int
    """Tries without a named bottleneck although a profile could have been made."""
    several_variables: int
    """Tries that changed more than one thing at once."""
    speedup_before: float | None
    """Times as fast as the reference, at the first performance gate."""
    speedup: float | None
    """The same now: as measured last, and by what was kept since."""
    speedup_interval: tuple[float, float] | None
    """Its 95%; None where the log has none of the measurement against the reference."""
    gain_kept_pct: float
    """How much faster what was kept is than the beginning, in percent of the time."""
    gpu_seconds: float
    """In which gates and tries held the GPU."""
    machine_seconds: float
    """That they took on its machine, which is what is paid for; without waiting for the GPU."""
    usd_gpu: float | None
    usd_assistant: float | None
    usd_other: float | None
    """What is known of its cost: logged, or by a price of the policy."""
    patterns: dict[str, tuple[str, ...]]
    """Names of those that were applied, learnt, violated."""
    minutes_lost: float | None
    """On wrong paths, as far as somebody logged it."""
    timed: bool
    """Whether the time of any gate is known. A search whose log a script wrote has none, and its minutes say nothing of
    how long a session takes."""

    @property
    def usd(self) -> float | None:
        """All that is known; None where nothing is."""
        known = [one for one in (self.usd_gpu, self.usd_assistant, self.usd_other) if one is not None]
        return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class SessionSummary:
    """One session in a list of them."""

    opened: Opened
    closed: str | None
    """Why it was closed; None while it is open."""
    minutes: float
    figures: SessionFigures

    @property
    def is_search(self) -> bool:
        """Of a script, which logged it when it was over: its times are no session's."""
        return self.opened.source == "measured" and self.closed is not None and not self.figures.timed

    @property
    def counted(self) -> bool:
        """Whether figures over sessions are made of it."""
        return self.opened.source == "measured" and self.closed is not None and not self.is_search


@dataclass(frozen=True, kw_only=True)
class SessionState(SessionSummary):
    stop: Stop | None
    stop_reason: str | None
    gates: tuple[GateState, ...]
    tries: tuple[TriedChange, ...]
    budgets: tuple[SessionBudget, ...]
    next: NextCommand
    remarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SessionAnswer:
    """What commands of a session print with --json; `status` prints the state, `metrics` all sessions."""

    session: str
    logged: tuple[Event, ...]
    """What the command added to the log."""
    files: tuple[str, ...]
    """That it wrote, below the checkout: the session's folder, a reverted patch, the report."""
    next: NextCommand
    stop: Stop | None
    """Why the session is to be closed, with exit code 4; null while it may go on."""


# ---- time boxes ------------------------------------------------------------------------------------------------------

BISECT_AFTER_MINUTES: Final = 30.0
"""A build that has failed for so long is not tried again: `kernelgate bisect --build` finds the last commit that
compiles, which took five minutes where an hour of repairing had led nowhere."""
CHANGE_MINUTES: Final = 90.0
DOCUMENT_MINUTES: Final = 20.0
OPTIMISE_MINUTES: Final = 190.0
"""Of a session that is given no other time: environment, measuring, profile, changes, measuring again, document."""
BASELINE_MINUTES: Final = 30.0
"""Of one that only measures."""
WITHOUT_GATE_MINUTES: Final = 60.0
"""So long without a passed gate, and the session stops with what is known. The recorded one that went on took three
hours and ended at 0.09x the reference."""

# ---- gates -----------------------------------------------------------------------------------------------------------

GATES: Mapping[GateName, tuple[float, str, str]] = {
    "environment": (
        10.0,
        "kernelgate doctor calls the machine fit",
        "do what doctor says of each failed check; build nothing before",
    ),
    "build": (
        20.0,
        "the kernel compiles",
        f"read the first error; after {BISECT_AFTER_MINUTES:g} minutes of failing, look for the last commit "
        "that compiles with `kernelgate bisect --build`",
    ),
    "correctness": (
        10.0,
        "every configuration agrees with the card's oracle, the small ones first",
        "repeat the smallest configuration that fails, with the command that it comes with",
    ),
    "performance": (
        15.0,
        "kernel and reference are timed beside each other",
        "end what else runs on the device, and try again",
    ),
    "profile": (
        30.0,
        f"a bottleneck is named; needed below {PROFILE_BELOW:g}x the reference",
        "see what the profiler said; without one, say so: `kernelgate session gate profile --skip REASON`",
    ),
    "document": (DOCUMENT_MINUTES, "the report is written", "kernelgate session close"),
}
"""In their order: how many minutes each may take, what passes it, and what to do when it fails. The minutes are those
that the recorded sessions' documents plan with; none was measured."""


def gate_states(events: Sequence[Event]) -> tuple[GateState, ...]:
    """All gates of the session's template, in their order."""
    baseline, found = opened_of(events).template == "baseline", []
    for name, (limit_minutes, passes, on_failure) in GATES.items():
        if baseline and name == "profile":
            continue
        attempts = gates(events, name)
        last = attempts[-1] if attempts else None
        status: GateStatus = "passed" if name == "document" and closed_of(events) else "open"
        if last is not None:
            status = "failed" if not last.passed else "skipped" if last.skipped else "passed"
        limit = 5.0 if baseline and name == "document" else limit_minutes
        minutes, said = seconds_of(attempts) / 60, last.said if last else None
        found.append(GateState(name, limit, passes, on_failure, status, minutes, said))
    return tuple(found)


def is_timed(event: Event) -> bool:
    """Whether a gate was tried, and how long that took is known; a search that is logged afterwards has none."""
    return isinstance(event, GateAttempt) and not event.skipped and event.seconds is not None


def failing_build_minutes(events: Sequence[Event], until: str | None) -> float:
    """For how long the build gate has failed, from the first attempt since it was passed last; 0 where it was passed.
    Where the log has no times: the minutes of the attempts alone."""
    failing = list(takewhile(lambda one: not one.passed, reversed(gates(events, "build"))))
    if not failing:
        return 0.0
    since = logs.minutes_between(failing[-1].at, until)
    return seconds_of(failing) / 60 if since is None else since + seconds_of(failing[-1:]) / 60


def seconds_of(events: Iterable[Event]) -> float:
    """That gates and tries took, as far as it was logged."""
    return sum(one.seconds or 0.0 for one in events if isinstance(one, GateAttempt | TriedChange))


# ---- figures ---------------------------------------------------------------------------------------------------------


def figures(events: Sequence[Event], policy: Policy) -> SessionFigures:
    tried = tries(events)
    measured = [event for event in gates(events, "performance") if event.speedup]
    kept = [one for one in tried if one.decision == "kept"]
    last = measured[-1] if measured else None
    since = kept_since(events, last) if last else []
    opened = opened_of(events)
    price = policy.costs.of(opened.gpu) if opened.source == "measured" else None  # a document tells what it paid
    machine_s = seconds_of(events) if opened.on_gpu else 0.0  # it costs, whatever a gate or try does there
    # A session on a CPU costs no GPU; what one on a GPU without a price cost is only known where it was logged.
    costs: list[tuple[str, float]] = [("gpu", 0.0)] if opened.gpu == "cpu" else []
    costs += [(event.of, event.usd) for event in events if isinstance(event, logs.SessionCost)]
    costs += [("gpu", machine_s / HOUR_S * price.hour)] if price is not None else []
    paid = {of: sum(usd for payer, usd in costs if payer == of) for of, _ in costs}
    uses = [event for event in events if isinstance(event, logs.PatternUse)]
    wrong = [one for one in events if isinstance(one, logs.SessionNote) or (one in uses and one.how == "violated")]
    return SessionFigures(
        minutes_to_build=_first_passed(events, "build"),
        minutes_to_bottleneck=_first_passed(events, "profile"),
        tries=len(tried),
        kept=len(kept),
        blind=blind(events),
        several_variables=sum(variables.warning(one.variables) is not None for one in tried),
        speedup_before=measured[0].speedup if measured else None,
        speedup=last.speedup * times_as_fast(since) if last and last.speedup else None,
        speedup_interval=_speedup_interval(last, since),
        gain_kept_pct=100 * (1 - 1 / times_as_fast(kept)),
        gpu_seconds=sum(one.gpu_seconds or 0.0 for one in events if isinstance(one, GateAttempt | TriedChange)),
        machine_seconds=machine_s,
        usd_gpu=paid.get("gpu"),
        usd_assistant=paid.get("assistant"),
        usd_other=paid.get("other"),
        patterns={
            how: tuple(dict.fromkeys(use.pattern for use in uses if use.how == how))
            for how in ("applied", "learnt", "violated")
        },
        minutes_lost=sum(one.minutes or 0.0 for one in wrong) or None,
        timed=any(map(is_timed, events)),
    )


def kept_since(events: Sequence[Event], attempt: GateAttempt) -> list[TriedChange]:
    place = next(at for at, event in enumerate(events) if event is attempt)
    later = {event.number for event in events[place:] if isinstance(event, TriedChange)}
    return [one for one in tries(events) if one.decision == "kept" and one.number in later]


def times_as_fast(kept: Iterable[TriedChange]) -> float:
    """How many times as fast these make the kernel, one after the other."""
    return 1 / prod(1 - (one.gain_pct or 0.0) / 100 for one in kept)


def blind(events: Sequence[Event]) -> int:
    """Tries without a named bottleneck, where a profile could have been made."""
    skipped = any(one.skipped for one in gates(events, "profile"))
    return sum(one.bottleneck is None for one in tries(events)) if opened_of(events).on_gpu and not skipped else 0


def _speedup_interval(last: GateAttempt | None, since: Sequence[TriedChange]) -> tuple[float, float] | None:
    """Of the measurement against the reference and of what was kept since, as if they were independent."""
    if last is None or not {"speedup_low", "speedup_high"} <= last.figures.keys():
        return None
    center = log(last.figures["speedup"]) + log(times_as_fast(since))
    reaches = []
    for end, name in enumerate(("speedup_low", "speedup_high")):
        gains = (one.gain for one in since if one.gain)
        kept = (log((1 - gain / 100) / (1 - ends[end] / 100)) for gain, ends in gains)
        reaches.append(hypot(log(last.figures[name] / last.figures["speedup"]), *kept))
    return exp(center - reaches[0]), exp(center + reaches[1])


def _first_passed(events: Sequence[Event], gate: GateName) -> float | None:
    """Minutes from the opening to the gate, where it was passed by being tried."""
    first = next((one for one in gates(events, gate) if one.passed and is_timed(one)), None)
    return logs.minutes_between(opened_of(events).at, first.at) if first else None


# ---- what comes next, and when it stops ------------------------------------------------------------------------------

TRY = 'kernelgate session try "WHAT I CHANGE" "WHY"'


def summary(events: Sequence[Event], policy: Policy, now: str) -> SessionSummary:
    """A session in a list of them, at the time `now` (ISO 8601)."""
    opened, closed = opened_of(events), closed_of(events)
    minutes = closed.minutes if closed else None
    if minutes is None:
        minutes = logs.minutes_between(opened.at, (closed.at if closed else None) or now) or 0.0
    why = closed.why if closed else None
    return SessionSummary(opened=opened, closed=why, minutes=minutes, figures=figures(events, policy))


def state_of(events: Sequence[Event], policy: Policy, now: str, at_hand: AdviceAtHand | None = None) -> SessionState:
    """The state of a session at the time `now` (ISO 8601). `at_hand`: what is recommended, where somebody looked."""
    known, closed = summary(events, policy, now), closed_of(events)
    opened, until = known.opened, (closed.at if closed else None) or now
    box = BASELINE_MINUTES if opened.template == "baseline" else OPTIMISE_MINUTES
    unpriced = opened.on_gpu and opened.source == "measured" and opened.gpu not in policy.costs.gpu_hour
    remark = f"the policy has no price of {opened.gpu} (costs.gpu_hour): what it costs is not counted"
    state = SessionState(
        **vars(known),
        stop=None,
        stop_reason=None,
        gates=gate_states(events),
        tries=tries(events),
        budgets=(
            SessionBudget("time", known.minutes, opened.minutes or box, "min"),
            SessionBudget("cost", known.figures.usd or 0.0, opened.usd, "USD"),
        ),
        next=NextCommand(None, "it is closed"),
        remarks=(remark,) if unpriced else (),
    )
    if closed:
        return state
    if stop := _stop(state, events, until):
        close = NextCommand(f"kernelgate session close --why {stop[0]}", f"stop: {stop[1]}")
        return replace(state, stop=stop[0], stop_reason=stop[1], next=close)
    return replace(state, next=_next(state, events, until, at_hand, policy))


def is_tuning(speedup: float | None) -> bool:
    """Whether any certain gain is kept: once the kernel is as fast as the reference."""
    return speedup is not None and speedup >= PROFILE_BELOW


def _stop(state: SessionState, events: Sequence[Event], until: str) -> tuple[Stop, str] | None:
    for one in state.budgets:
        if one.limit is not None and one.is_spent:
            return one.of, f"{one.shown(one.spent)} of {one.shown(one.limit)} are spent"
    waiting = due(state.gates, state.figures.speedup_before)
    passed = [event.at for event in events if isinstance(event, GateAttempt) and event.passed]
    without = logs.minutes_between(passed[-1] if passed else events[0].at, until) or 0.0
    if waiting is None or state.tries or without < WITHOUT_GATE_MINUTES:
        return None
    limit = f"{WITHOUT_GATE_MINUTES:g} are the limit"
    return "gate", f"{without:.0f} minutes without a passed gate, and {limit}: {waiting} is next"


def _next(
    state: SessionState, events: Sequence[Event], until: str, at_hand: AdviceAtHand | None, policy: Policy
) -> NextCommand:
    name = due(state.gates, state.figures.speedup_before)
    if name is not None:
        gate = next(gate for gate in state.gates if gate.name == name)
        failing = failing_build_minutes(events, until) if name == "build" else 0.0
        return _at_gate(gate, state.figures.speedup_before, failing, policy)
    if state.opened.template == "baseline":
        return NextCommand("kernelgate session close", "all is measured that a baseline asks for")
    if state.tries and state.tries[-1].decision is None:
        last = state.tries[-1]
        if last.advised == "keep":
            return NextCommand("kernelgate session keep", f"try {last.number} is certainly faster, by enough")
        why = "it failed" if last.failed else "it is not certainly faster, or not by enough"
        return NextCommand("kernelgate session revert", f"try {last.number}: {why}")
    first, target = state.tries[:1], state.opened.target
    left = CHANGE_MINUTES - sum(seconds_of(first) / 60 + (logs.minutes_between(one.at, until) or 0.0) for one in first)
    reached = target is not None and (state.figures.speedup or 0.0) >= target
    roof = at_hand.done if at_hand else None
    if left > 0 and not reached and roof is None:
        return _change(state, events, left, at_hand)
    over = f"the {CHANGE_MINUTES:g} minutes for changes are over"
    why = roof or (f"the target of {target:g}x is reached" if reached else over)
    measured = gates(events, "performance")
    if measured and not kept_since(events, measured[-1]):
        return NextCommand("kernelgate session close", why)
    return NextCommand("kernelgate session gate performance", f"{why}: measure against the reference again")


def due(found: Sequence[GateState], speedup: float | None) -> GateName | None:
    """The gate that is next; a profile is not needed of a kernel that is as fast as the reference."""
    over = ("document", "profile") if is_tuning(speedup) else ("document",)
    return next((gate.name for gate in found if gate.name not in over and gate.status in ("open", "failed")), None)


def _at_gate(gate: GateState, speedup: float | None, failing_minutes: float, policy: Policy) -> NextCommand:
    command = f"kernelgate session gate {gate.name}"
    if failing_minutes >= BISECT_AFTER_MINUTES:
        since = f"it has not compiled for {failing_minutes:.0f} minutes"
        return NextCommand("kernelgate bisect --build GOOD", f"{since}: find the last commit that did, and start there")
    if gate.status == "failed":
        return NextCommand(command, f"{gate.name} failed: {gate.said}; {gate.on_failure}")
    if gate.name == "profile" and speedup is not None:
        at_once = "at once" if speedup < policy.gates.reference_min else "before anything is changed"
        return NextCommand(command, f"{speedup:.3g}x the reference: a profile {at_once}, so that no change is blind")
    return NextCommand(command, f"{gate.name} is next, within {gate.limit_minutes:g} minutes: {gate.passes}")


def _change(state: SessionState, events: Sequence[Event], left: float, at_hand: AdviceAtHand | None) -> NextCommand:
    """The next try: with what is recommended against what holds the kernel back, where that is known."""
    profiled = [event.bottleneck for event in events if isinstance(event, GateAttempt) and event.bottleneck]
    bottleneck = (at_hand.bottleneck if at_hand else None) or (profiled[-1] if profiled else None)
    against = f" against what holds it back ({bottleneck})" if bottleneck else ""
    why = f"change one thing{against}, then measure it; {left:.0f} minutes are left for changes"
    if at_hand is None:
        return NextCommand(TRY, why)
    since = takewhile(lambda one: one.decision != "kept", reversed(state.tries))
    done = {one.action for one in since if one.failed != "measurement"}  # what could not be measured told nothing
    action = next((one for one in at_hand.actions if one not in done), None)
    if action is not None:
        return NextCommand(f"{TRY} --action {action}", why, at_hand.command, action)
    over = "; all that is recommended was tried since" if at_hand.actions else ""
    return NextCommand(TRY, f"{why}{over}", at_hand.command)
