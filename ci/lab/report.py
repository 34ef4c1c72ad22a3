"""The report of a session, as Markdown: what was believed, what was measured, what was learnt, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.ci.document import escape
from kernelgate.ci.explain.diagnosis import Bottleneck
from kernelgate.ci.lab import coming, drawings, figures, times
from kernelgate.ci.lab import session_words as words
from kernelgate.ci.lab.log import Closed, Event, PatternUse, SessionNote, TriedChange
from kernelgate.ci.lab.state import SessionFigures, SessionState, TryState
from kernelgate.ci.policy.policy import Policy

FILE = "report.md"
GAINS, PHASES = "gains.svg", "phases.svg"
BUILD_TARGET, BOTTLENECK_TARGET, BLIND_TARGET = 30, 15, 0
"""Minutes to a working build and to a named bottleneck, and blind tries: the goals of the founding documents."""
MAX_FOR_REVIEW = 60_000
"""Characters, of the 65,536 that GitHub takes; links and the bot's last line need some, too."""
ROWS = (1000, 100, 30, 10, 3)
"""Of a section of what is posted: as many as fit."""


@dataclass(frozen=True)
class SessionForReview:
    """What experts are given."""

    name: str
    """Of its folder."""
    objective: str
    report: str
    """As `for_review` writes it."""
    commit: str
    """The checkout's."""
    files: Mapping[str, bytes]
    """Log and drawings, by their path in the checkout."""


@dataclass(frozen=True)
class _Paper:
    """How texts of the log are written down, and how many of them in one section."""

    line: Callable[[str], str]
    cell: Callable[[str], str]
    """In a table."""
    rows: int | None = None
    """All."""


def of(events: Sequence[Event], policy: Policy, now: str) -> Mapping[str, str]:
    """The files of the report by name."""
    state = coming.of(events, policy, now)
    drawn = {GAINS: drawings.gains(state.tries), PHASES: drawings.phases(state)}
    made = {name: drawings.file(one) for name, one in drawn.items() if one is not None}
    paper = _Paper(_one_line, lambda text: _one_line(text).replace("|", "\\|"))
    return {FILE: "\n".join(_lines(events, state, tuple(made), paper)) + "\n", **made}


def for_review(name: str, events: Sequence[Event], policy: Policy, now: str) -> str:
    """The report for a comment, without drawings: with what is asked, and how it is answered.

    `name`: the session's folder. Texts of the log do nothing there; what is too much for a comment is counted.
    """
    state = coming.of(events, policy, now)
    text = ""
    for rows in ROWS:
        text = _with_questions(name, events, state, rows)
        if len(text) <= MAX_FOR_REVIEW:
            break
    return text


def _with_questions(name: str, events: Sequence[Event], state: SessionState, rows: int) -> str:
    paper = _Paper(escape.prose, lambda text: escape.cell(escape.prose(text)), rows)
    asked = _notes(events, "question") or [
        "Is what limits each try named rightly? Which pattern would have saved time?"
    ]
    forms = (
        "/kernelgate pattern NAME: what to do, and when",
        f"/kernelgate correct {name}/TRY action=NAME bottleneck=NAME: why",
    )
    lines = [
        *_lines(events, state, (), paper),
        "",
        *_section("Questions", asked, paper),
        *_section("Labels of the tries", _labels(state), paper),
        "Answer by a comment of one of these forms; each becomes a pull request that names you. A label can be "
        "corrected once the session's log is on the default branch; bottlenecks are called "
        f"{', '.join(map(escape.code, Bottleneck))}, actions as `kernelgate recommend` does.",
        "",
        escape.fence(forms, "text"),
    ]
    return "\n".join(lines) + "\n"


def _labels(state: SessionState) -> Iterator[str]:
    """What advice learns each try as."""
    for one in state.tries:
        yield f"try {one.number}: action {one.action or 'not named'}, bottleneck {one.bottleneck or 'not named'}"


def _lines(events: Sequence[Event], state: SessionState, drawn: Sequence[str], paper: _Paper) -> Iterator[str]:
    opened = figures.opened(events)
    yield from (f"# {paper.line(state.objective)}", "")
    about = ", ".join(filter(None, (opened.card, *opened.cases, opened.gpu)))
    closed = next((event for event in events if isinstance(event, Closed)), None)
    ended = f"; closed ({closed.why}): {paper.line(closed.said)}" if closed else "; still open"
    yield from (f"{paper.line(about)}; {state.minutes:.0f} minutes{ended}", "")
    yield from _section("What was believed", _believed(opened.hypothesis, events), paper)
    yield from _section("What was measured", _measured(state), paper)
    if GAINS in drawn:
        yield from (f"![Gain of each try over what stood before it, with 95% intervals]({GAINS})", "")
    yield from _section("What was learnt", _learnt(events), paper)
    yield from _section("What it took", _took(state.figures, state), paper)
    if PHASES in drawn:
        yield from (f"![Time by phase]({PHASES})", "")
    yield from _gates(state, paper)


def _section(title: str, lines: Iterable[str], paper: _Paper) -> Iterator[str]:
    yield from (f"## {title}", "")
    listed = list(lines)
    shown = listed[: paper.rows]
    yield from (f"- {paper.line(line)}" for line in shown)
    left = len(listed) - len(shown)
    yield from ([f"- and {left} more, which the log has"] if left else [])
    yield from (["Nothing was said.", ""] if not listed else [""])


def _believed(hypothesis: str | None, events: Sequence[Event]) -> Iterator[str]:
    if hypothesis:
        yield hypothesis
    yield from _notes(events, "believed")
    yield from (f"try {one.number}, {one.what}: {one.why}" for one in events if isinstance(one, TriedChange))


def _measured(state: SessionState) -> Iterator[str]:
    numbers = state.figures
    if numbers.speedup_before is not None:
        yield f"at the beginning {numbers.speedup_before:.3g}x the reference"
    yield from (_of_try(one) for one in state.tries)
    if numbers.speedup is not None and numbers.kept:
        now = f"at the end {numbers.speedup:.3g}x the reference, {numbers.gain_kept_pct:.3g}% less time"
        target = f"; the target was {state.target:g}x" if state.target else ""
        yield f"{now} than at the beginning, by what was kept{target}"


def _of_try(one: TryState) -> str:
    said = f": {one.said}" if one.failed else ""
    return f"{words.try_line(one)}{said}"


def _learnt(events: Sequence[Event]) -> Iterator[str]:
    yield from _notes(events, "learnt")
    yield from (f"mistake: {said}" for said in _notes(events, "mistake"))
    yield from (f"question: {said}" for said in _notes(events, "question"))
    for event in events:
        if isinstance(event, PatternUse):
            yield f"pattern {event.pattern}, {event.how}{f': {event.said}' if event.said else ''}"
        if isinstance(event, TriedChange) and event.cause:
            yield f"try {event.number}: {event.cause}"


def _notes(events: Sequence[Event], kind: str) -> list[str]:
    return [event.said for event in events if isinstance(event, SessionNote) and event.kind == kind]


def _took(numbers: SessionFigures, state: SessionState) -> Iterator[str]:
    yield _after("a working build", numbers.minutes_to_build, BUILD_TARGET)
    yield _after("a named bottleneck", numbers.minutes_to_bottleneck, BOTTLENECK_TARGET)
    yield f"tries: {numbers.tries}, {numbers.kept} kept, {numbers.blind} blind (goal: {BLIND_TARGET})"
    if numbers.several_variables:
        yield f"{numbers.several_variables} changed more than one thing at once"
    if numbers.gpu_seconds:
        yield f"{numbers.gpu_seconds:.0f} s on the GPU's machine"
    yield from words.budget_lines(state)
    yield from state.remarks


def _after(what: str, minutes: float | None, goal: float) -> str:
    reached = "not reached" if minutes is None else f"after {times.in_words(minutes)}"
    return f"{what}: {reached} (goal: {goal:g} min)"


def _gates(state: SessionState, paper: _Paper) -> Iterator[str]:
    yield from ("## Gates", "", "| gate | | minutes | what was seen |", "| --- | --- | --- | --- |")
    for gate in state.gates:
        said = paper.cell(gate.said or "")
        yield f"| {gate.name} | {gate.status} | {gate.minutes:.1f} of {gate.limit_minutes:g} | {said} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())
