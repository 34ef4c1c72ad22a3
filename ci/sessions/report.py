"""The report of a session, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import coming, figures, words
from kernelgate.ci.sessions.log import Event, SessionNote
from kernelgate.ci.sessions.state import SessionState

FILE = "report.md"


def of(events: Sequence[Event], policy: Policy, now: str) -> Mapping[str, str]:
    """The files of the report by name."""
    state = coming.of(events, policy, now)
    return {FILE: "\n".join(_lines(events, state)) + "\n"}


def _lines(events: Sequence[Event], state: SessionState) -> Iterator[str]:
    opened = figures.opened(events)
    yield f"# {state.objective}"
    yield ""
    yield from (f"- {event.said}" for event in events if isinstance(event, SessionNote))
    yield f"- hypothesis: {opened.hypothesis}" if opened.hypothesis else ""
    yield from (f"- {gate.name}: {gate.said or 'not tried'}" for gate in state.gates)
    yield from (f"- {words.try_line(one)}" for one in state.tries)
