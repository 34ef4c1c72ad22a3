"""The figures of a session, from its events: its gates, its tries and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from math import exp, log, log1p, sqrt
from typing import cast

from kernelgate.ci.lab import gates, labels, times
from kernelgate.ci.lab.log import Closed, Decided, Event, GateAttempt, Opened, SessionCost, TriedChange, TryOutcome
from kernelgate.ci.lab.state import GateState, GateStatus, SessionFigures, TryState
from kernelgate.ci.lab.variables import several
from kernelgate.ci.policy.policy import Policy

HOUR_S = 3600.0


def opened(events: Sequence[Event]) -> Opened:
    """The first event, which folder.read holds to be this."""
    return cast(Opened, events[0])


def gate_states(events: Sequence[Event], policy: Policy) -> tuple[GateState, ...]:
    """All gates of the session's template, in their order."""
    return tuple(_gate(gate, events) for gate in gates.of(opened(events).template, policy))


def _gate(gate: gates.Gate, events: Sequence[Event]) -> GateState:
    attempts = [event for event in events if isinstance(event, GateAttempt) and event.gate == gate.name]
    passed = next((one for one in attempts if one.passed), None)
    last = attempts[-1] if attempts else None
    return GateState(
        name=gate.name,
        status=_status(gate, last, events),
        minutes=sum(one.seconds or 0.0 for one in attempts) / 60,
        limit_minutes=gate.minutes,
        passes=gate.passes,
        on_failure=gate.on_failure,
        said=last.said if last else None,
        at=passed.at if passed else None,
    )


def _status(gate: gates.Gate, last: GateAttempt | None, events: Sequence[Event]) -> GateStatus:
    if gate.name == "document" and any(isinstance(event, Closed) for event in events):
        return "passed"
    if last is None:
        return "open"
    return ("skipped" if last.skipped else "passed") if last.passed else "failed"


def try_states(events: Sequence[Event]) -> tuple[TryState, ...]:
    """The tries in their order, as reviewers corrected them."""
    decided = {event.number: event for event in events if isinstance(event, Decided)}
    return tuple(_try(tried, decided.get(tried.number)) for tried in labels.corrected(events))


def _try(event: TriedChange, decided: Decided | None) -> TryState:
    gain = gain_of(event.outcomes)
    return TryState(
        number=event.number,
        what=event.what,
        why=event.why,
        said=event.said,
        gain_pct=gain[0] if gain else None,
        interval_pct=gain[1] if gain else None,
        decision=None if decided is None else "kept" if decided.kept else "reverted",
        advised=event.advised,
        failed=event.failed,
        variables=event.variables,
        action=event.action,
        bottleneck=event.bottleneck,
        seconds=event.seconds,
    )


def gain_of(outcomes: Sequence[TryOutcome]) -> tuple[float, tuple[float, float]] | None:
    """How much faster over all cases (the geometric mean), in percent of the time before, and the 95% interval.

    Cases are taken as independent; None without any.
    """
    if not outcomes:
        return None
    center = sum(log1p(one.change_pct / 100) for one in outcomes) / len(outcomes)
    low, high = (
        sqrt(sum((log1p(one.interval_pct[end] / 100) - log1p(one.change_pct / 100)) ** 2 for one in outcomes))
        / len(outcomes)
        for end in (0, 1)
    )
    return _gain(center), (_gain(center + high), _gain(center - low))


def _gain(log_change: float) -> float:
    return 100 * (1 - exp(log_change))


def of(events: Sequence[Event], policy: Policy) -> SessionFigures:
    """Everything that is counted of a session."""
    begun, tried = opened(events), [event for event in events if isinstance(event, TriedChange)]
    states = try_states(events)
    measured = [event for event in events if isinstance(event, GateAttempt) and "speedup" in event.figures]
    kept = [one for one in states if one.decision == "kept" and one.gain_pct is not None]
    last = measured[-1] if measured else None
    since = _kept_after(events, last) if last else []
    gpu_s = gpu_seconds(events)
    return SessionFigures(
        minutes_to_build=_first_passed(events, "build"),
        minutes_to_bottleneck=_first_passed(events, "profile"),
        tries=len(tried),
        kept=len([one for one in states if one.decision == "kept"]),
        blind=blind(events),
        several_variables=sum(several(one.variables) for one in tried),
        reference_ms=last.figures.get("reference_ms") if last else None,
        ours_ms=last.figures.get("ours_ms") if last else None,
        speedup_before=measured[0].figures["speedup"] if measured else None,
        speedup=last.figures["speedup"] * _times(since) if last else None,
        speedup_interval=_speedup_interval(last, since),
        gain_kept_pct=100 * (1 - 1 / _times(kept)),
        gpu_seconds=gpu_s,
        usd_gpu=_usd_gpu(events, gpu_s, policy.costs.gpu_hour.get(begun.gpu or "")),
        usd_assistant=_usd(events, "assistant"),
        usd_other=_usd(events, "other"),
    )


def kept_since(events: Sequence[Event], attempt: GateAttempt) -> float:
    """How many times as fast what was kept since makes the kernel that a gate looked at."""
    return _times(_kept_after(events, attempt))


def _kept_after(events: Sequence[Event], attempt: GateAttempt) -> list[TryState]:
    kept = (one for one in try_states(events) if one.decision == "kept" and one.gain_pct is not None)
    return [one for one in kept if _comes_after(events, one.number, attempt)]


def failing_build_minutes(events: Sequence[Event], until: str | None) -> float:
    """For how long the build gate has failed, from the first attempt since it was passed last; 0 where it was passed.

    Where the log has no times: the minutes of the attempts alone.
    """
    built = [event for event in events if isinstance(event, GateAttempt) and event.gate == "build"]
    failing = list(takewhile(lambda one: not one.passed, reversed(built)))
    if not failing:
        return 0.0
    since = times.minutes_between(failing[-1].at, until)
    if since is None:
        return sum(one.seconds or 0.0 for one in failing) / 60
    return since + (failing[-1].seconds or 0.0) / 60


def blind(events: Sequence[Event]) -> int:
    """Tries without a named bottleneck, where a profile could have been made."""
    return sum(one.bottleneck is None for one in try_states(events)) if _can_profile(events) else 0


def is_on_gpu(events: Sequence[Event]) -> bool:
    return opened(events).gpu not in (None, "cpu")


def gpu_seconds(events: Sequence[Event]) -> float:
    """That gates and tries held the machine, where the session is about a GPU: it costs, whatever it does."""
    if not is_on_gpu(events):
        return 0.0
    return sum(event.seconds or 0.0 for event in events if isinstance(event, GateAttempt | TriedChange))


def _times(kept: Iterable[TryState]) -> float:
    """How many times as fast these make the kernel together."""
    product = 1.0
    for one in kept:
        product /= 1 - (one.gain_pct or 0.0) / 100
    return product


def _speedup_interval(last: GateAttempt | None, since: Sequence[TryState]) -> tuple[float, float] | None:
    """Of the measurement against the reference and of what was kept since, as if they were independent."""
    if last is None or not {"speedup_low", "speedup_high"} <= last.figures.keys():
        return None
    center = log(last.figures["speedup"]) + log(_times(since))
    reaches = []
    for end, name in enumerate(("speedup_low", "speedup_high")):
        parts = [log(last.figures[name] / last.figures["speedup"])]
        parts += [
            log((1 - (one.gain_pct or 0) / 100) / (1 - one.interval_pct[end] / 100))
            for one in since
            if one.interval_pct
        ]
        reaches.append(sqrt(sum(part**2 for part in parts)))
    return exp(center - reaches[0]), exp(center + reaches[1])


def _comes_after(events: Sequence[Event], number: int, attempt: GateAttempt) -> bool:
    place = next(at for at, event in enumerate(events) if isinstance(event, TriedChange) and event.number == number)
    return place > next(at for at, event in enumerate(events) if event is attempt)


def is_timed(event: Event) -> bool:
    """Whether a gate was tried, and how long that took is known; a search that is logged afterwards has none."""
    return isinstance(event, GateAttempt) and not event.skipped and event.seconds is not None


def _first_passed(events: Sequence[Event], gate: str) -> float | None:
    """Minutes from the opening to the gate, where it was passed by being tried."""
    for event in events:
        if isinstance(event, GateAttempt) and event.gate == gate and event.passed and is_timed(event):
            return times.minutes_between(opened(events).at, event.at)
    return None


def _can_profile(events: Sequence[Event]) -> bool:
    skipped = any(isinstance(one, GateAttempt) and one.gate == "profile" and one.skipped for one in events)
    return is_on_gpu(events) and not skipped


def _usd_gpu(events: Sequence[Event], seconds: float, price: float | None) -> float | None:
    """A session on a CPU costs no GPU; what one on a GPU without a price cost is only known where it was logged."""
    paid = _usd(events, "gpu")
    if opened(events).gpu == "cpu":
        return paid or 0.0
    return paid if price is None else (paid or 0.0) + seconds / HOUR_S * price


def _usd(events: Sequence[Event], of_what: str) -> float | None:
    paid = [event.usd for event in events if isinstance(event, SessionCost) and event.of == of_what]
    return sum(paid) if paid else None
