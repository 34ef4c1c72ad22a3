"""What cost time twice, and so deserves a pattern, or the one that there is. Pure, over the events of sessions.

Two failures are the same thing where one pattern answers to both, or where their sentences are alike: they share most
of their words, numbers and commands left out, and most of what they quote. That two sentences tell the same in other
words altogether, no program sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.bench.core.errors import one_line
from kernelgate.ci.document import formatting
from kernelgate.ci.lab import log
from kernelgate.ci.lab.apply import applying
from kernelgate.ci.lab.pattern import Pattern
from kernelgate.ci.lab.seen import Seen, Thresholds

PLACE = re.compile(r"\S+(?:\(\d+\)|:\d+(?::\d+)?): ")
WORD = re.compile(r"[a-z_][a-z0-9_]*")
QUOTED = re.compile(r"""["'`‘“]([^"'`’”]+)["'`’”]""")
MAX_SAID = 200
"""Characters of a sentence that a proposal quotes."""


@dataclass(frozen=True)
class Lost:
    """One time that something cost."""

    what: str
    """What it has in common with others: a gate that failed, a kind of failed try, an action that did not help, a
    pattern that was violated."""
    session: str
    said: str
    minutes: float
    pattern: str | None
    """The known pattern that answers to it."""
    is_told: bool = False
    """Whether only what was said tells it from others of its kind."""

    def same(self, other: Lost, shared: float) -> bool:
        kind = (self.what, self.pattern) == (other.what, other.pattern)
        return kind and (not self.is_told or alike(self.said, other.said, shared))


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
        if self.pattern:
            return f"{lost}: apply {self.pattern}"
        last = next((one for one in reversed(self.said) if one), None)
        told = f"; the last time: {one_line(last)[:MAX_SAID]}" if last else ""
        return f"{lost}: no pattern answers to it yet; write one{told}"


@dataclass(frozen=True)
class Repetition:
    """From when on something is proposed; the policy's."""

    times: int
    minutes: float
    """In all: what costs less is no loss worth a rule."""
    shared: float
    """Of the words of two sentences on failures that are the same thing, from 0 to 1."""


def proposed(
    sessions: Mapping[str, Sequence[log.Event]], known: Sequence[Pattern], limits: Thresholds, asked: Repetition
) -> tuple[ProposedPattern, ...]:
    """What cost time at least so often, the most minutes first. Of what took no known time nothing is proposed."""
    groups: list[list[Lost]] = []
    for name, events in sessions.items():
        for one in _lost(name, events, known, limits):
            group = next((group for group in groups if one.same(group[0], asked.shared)), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
    made = [_proposal(group) for group in groups if len(group) >= asked.times]
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
        """The first pattern that this alone makes apply, of those that look at what failed.

        None of the environment's gate: that doctor looks is what its patterns ask for, and it did.
        """
        if isinstance(event, log.GateAttempt) and event.gate == "environment":
            return None
        fired = applying(known, Seen(events=(*opened, event)), limits)
        return next((one.pattern.name for one in fired if _names_the_failure(event, one.why)), None)

    reverted = {one.number for one in events if isinstance(one, log.Decided) and not one.kept}
    for event in events:
        lost = _of_event(session, event, answer, reverted)
        if lost is not None and lost.minutes > 0:
            yield lost


def _of_event(
    session: str, event: log.Event, answer: Callable[[log.Event], str | None], reverted: Collection[int]
) -> Lost | None:
    minutes = (event.seconds or 0) / 60 if isinstance(event, log.GateAttempt | log.TriedChange) else 0.0
    if isinstance(event, log.GateAttempt) and not event.passed:
        return _failed(f"the gate {event.gate}, failed,", session, event.said, minutes, answer(event))
    if isinstance(event, log.TriedChange) and event.failed:
        return _failed(f"a try that failed at {event.failed}", session, event.said, minutes, answer(event))
    if isinstance(event, log.TriedChange) and event.action and event.advised == "revert" and event.number in reverted:
        against = f" against {event.bottleneck}" if event.bottleneck else ""
        return Lost(f"{event.action}{against}, tried in vain,", session, event.said, minutes, None)
    if isinstance(event, log.PatternUse) and event.how == "violated":
        what = f"{event.pattern}, violated,"
        return Lost(what, session, event.said, event.minutes or 0.0, event.pattern)
    return None


def _failed(what: str, session: str, said: str, minutes: float, pattern: str | None) -> Lost:
    return Lost(what, session, said, minutes, pattern, is_told=pattern is None)


def alike(one: str, other: str, shared: float) -> bool:
    """Whether two sentences on failures most likely tell of the same: they have this share of their words in common."""
    told = [_told(text) for text in (one, other)]
    quoted = [" ".join(QUOTED.findall(text)) for text in told]
    return _shared(*told) >= shared and (not all(quoted) or _shared(*quoted) >= shared)


def _told(said: str) -> str:
    """Without the place in the sources before it, the command that repeats it, and numbers."""
    return re.sub(r"\b\d+", "", PLACE.split(said.partition("; repeat: ")[0])[-1].lower())


def _shared(one: str, other: str) -> float:
    """The share of words in common, from 0 to 1."""
    first, second = set(WORD.findall(one)), set(WORD.findall(other))
    return len(first & second) / len(first | second) if first | second else float(one == other)


def _names_the_failure(event: log.Event, why: Sequence[str]) -> bool:
    said = event.said if isinstance(event, log.GateAttempt | log.TriedChange) else ""
    return any(said and said in one for one in why)
