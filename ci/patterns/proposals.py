"""What cost time twice, and so deserves a pattern, or the one that there is. Pure, over the events of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.ci.document import formatting
from kernelgate.ci.patterns.apply import applying
from kernelgate.ci.patterns.pattern import Pattern
from kernelgate.ci.patterns.seen import Seen, Thresholds
from kernelgate.ci.sessions import log


@dataclass(frozen=True)
class Lost:
    """One time that something cost."""

    what: str
    """What it has in common with others: a gate that failed, a kind of failed try, a pattern that was violated."""
    session: str
    said: str
    minutes: float
    pattern: str | None
    """The known pattern that answers to it."""


@dataclass(frozen=True)
class ProposedPattern:
    what: str
    times: int
    minutes: float
    """In all."""
    sessions: tuple[str, ...]
    said: tuple[str, ...]
    """What was seen each time."""
    pattern: str | None
    """Apply this one; None: there is none yet, and this proposes one."""

    def sentence(self) -> str:
        where = formatting.counted(len(self.sessions), "session")
        lost = f"{self.what} cost {self.minutes:.0f} min, {self.times} times in {where}"
        return f"{lost}: apply {self.pattern}" if self.pattern else f"{lost}: no pattern answers to it yet; write one"


@dataclass(frozen=True)
class Repetition:
    """From when on something is proposed; the policy's."""

    times: int
    minutes: float
    """In all: what costs less is no loss worth a rule."""


def proposed(
    sessions: Mapping[str, Sequence[log.Event]], known: Sequence[Pattern], limits: Thresholds, asked: Repetition
) -> tuple[ProposedPattern, ...]:
    """What cost time at least so often, the most minutes first. Of what took no known time nothing is proposed."""
    groups: dict[tuple[str, str | None], list[Lost]] = {}
    for name, events in sessions.items():
        for one in _lost(name, events, known, limits):
            groups.setdefault((one.what, one.pattern), []).append(one)
    made = [_proposal(group) for group in groups.values() if len(group) >= asked.times]
    return tuple(sorted((one for one in made if one.minutes >= asked.minutes), key=lambda one: -one.minutes))


def as_events(found: Sequence[ProposedPattern], at: str | None) -> tuple[log.PatternUse, ...]:
    """For the log of the session that is closed; a pattern that is not there yet is called `new`."""
    return tuple(
        log.PatternUse(at=at, pattern=one.pattern or "new", how="proposed", said=one.sentence(), minutes=one.minutes)
        for one in found
    )


def _proposal(group: Sequence[Lost]) -> ProposedPattern:
    return ProposedPattern(
        group[0].what,
        len(group),
        sum(one.minutes for one in group),
        tuple(dict.fromkeys(one.session for one in group)),
        tuple(one.said for one in group),
        group[0].pattern,
    )


def _lost(session: str, events: Sequence[log.Event], known: Sequence[Pattern], limits: Thresholds) -> Iterator[Lost]:
    opened = tuple(one for one in events if isinstance(one, log.Opened))

    def answer(event: log.Event) -> str | None:
        """The first pattern that this alone makes apply, of those that look at what failed."""
        fired = applying(known, Seen(events=(*opened, event)), limits)
        return next((one.pattern.name for one in fired if _names_the_failure(event, one.why)), None)

    for event in events:
        lost = _of_event(session, event, answer)
        if lost is not None and lost.minutes > 0:
            yield lost


def _of_event(session: str, event: log.Event, answer: Callable[[log.Event], str | None]) -> Lost | None:
    if isinstance(event, log.GateAttempt) and not event.passed:
        return Lost(f"the gate {event.gate}, failed,", session, event.said, (event.seconds or 0) / 60, answer(event))
    if isinstance(event, log.TriedChange) and event.failed:
        what = f"a try that failed at {event.failed}"
        return Lost(what, session, event.said, (event.seconds or 0) / 60, answer(event))
    if isinstance(event, log.PatternUse) and event.how == "violated":
        what = f"{event.pattern}, violated,"
        return Lost(what, session, event.said, event.minutes or 0.0, event.pattern)
    return None


def _names_the_failure(event: log.Event, why: Sequence[str]) -> bool:
    said = event.said if isinstance(event, log.GateAttempt | log.TriedChange) else ""
    return any(said and said in one for one in why)
