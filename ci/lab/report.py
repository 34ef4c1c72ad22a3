"""A session in words: its state for a terminal, its report as Markdown, and what experts are asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.ci.document import escape
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.lab import coming, drawings, variables
from kernelgate.ci.lab.log import Event, PatternUse, TriedChange, duration, notes
from kernelgate.ci.lab.state import (
    BLIND_TARGET,
    BOTTLENECK_TARGET,
    BUILD_TARGET,
    NextCommand,
    SessionBudget,
    SessionState,
    closed_of,
)
from kernelgate.ci.policy.policy import Policy

FILE, REVIEW = "report.md", "review.md"
GAINS, PHASES = "gains.svg", "phases.svg"
MAX_POSTED = 60_000
"""Characters, of the 65,536 that GitHub takes; links and the bot's last line need some, too."""
ROWS = (1000, 100, 30, 10, 3)
"""Of a section of what is posted: as many as fit."""
MARKS = {"passed": "x", "skipped": "-", "failed": "!", "open": " "}


# ---- for a terminal --------------------------------------------------------------------------------------------------


def status_lines(state: SessionState) -> Iterator[str]:
    """The state for a person."""
    opened = state.opened
    about = ", ".join(filter(None, (opened.card, *opened.cases, opened.gpu)))
    yield f"{opened.name}: {opened.objective}{f' ({about})' if about else ''}"
    yield from budget_lines(state)
    yield ""
    for gate in state.gates:
        took = f"{gate.minutes:.1f} of {gate.limit_minutes:g} min" if gate.minutes else f"{gate.limit_minutes:g} min"
        yield f"[{MARKS[gate.status]}] {gate.name:12} {took:>17}  {gate.said or gate.passes}"
    if state.tries:
        yield ""
    yield from map(try_line, state.tries)
    if state.figures.speedup is not None:
        yield ""
        target = f", the target is {opened.target:g}x" if opened.target else ""
        yield f"{state.figures.speedup:.3g}x the reference{target}"
    yield from state.remarks
    yield ""
    if state.closed:
        yield f"closed: {state.closed}"
    else:
        yield f"Next, because {state.next.why}:"
        yield from (f"  {command}" for command in commands(state.next))


def commands(coming_next: NextCommand) -> tuple[str, ...]:
    """What comes next, a command a line: before a change, what says what to try."""
    return tuple(one for one in (coming_next.recommend, coming_next.command) if one is not None)


def budget_lines(state: SessionState) -> Iterator[str]:
    """Of what has a limit or was spent: a cost that nobody logged is not 0."""
    return (budget_line(one) for one in state.budgets if one.limit is not None or one.spent)


def budget_line(one: SessionBudget) -> str:
    """What is spent of what may be."""
    digits = 0 if one.of == "time" else 2
    of = f" of {one.limit:.{digits}f}" if one.limit is not None else ""
    return f"{one.of}: {one.spent:.{digits}f}{of} {one.unit}"


def try_line(one: TriedChange) -> str:
    """A try in a line: what, how much, and what became of it."""
    return f"try {one.number}: {one.what}: {gain_words(one)}; {one.decision or 'undecided'}"


def gain_words(one: TriedChange) -> str:
    """Such as "7.1% faster (95%: 6.8% to 7.4%)"."""
    if one.failed:
        return {"build": "does not compile", "correctness": "wrong", "measurement": "not measured"}[one.failed]
    if one.gain is None:
        return one.said
    gain, (low, high) = one.gain
    if low <= 0 <= high:
        return f"no certain change (95%: {-low:.2g}% slower to {high:.2g}% faster)"
    near, far = sorted((abs(low), abs(high)))
    return f"{abs(gain):.3g}% {'faster' if low > 0 else 'slower'} (95%: {near:.3g}% to {far:.3g}%)"


def try_lines(event: TriedChange) -> Iterator[str]:
    """What a try showed, and what it speaks for."""
    yield f"try {event.number}: {event.said}"
    for case in event.outcomes:
        low, high = case.interval_pct
        yield f"  {case.case}: {case.change_pct:+.2f}% time (95%: {low:+.2f}% to {high:+.2f}%)"
    if event.fuzz_trials:
        yield f"  fuzz: {event.fuzz_trials - (event.fuzz_failed or 0)} of {counted(event.fuzz_trials, 'trial')}"
    if event.cause:
        yield f"  because: {event.cause}"
    if warned := variables.warning(event.variables):
        yield f"  warning: {warned}"
    faster = bool(event.outcomes) and all(case.status in ("faster", "improved") for case in event.outcomes)
    why = ""
    if event.advised != "keep" and not event.failed and faster:  # a reader would look for a mistake
        why = ", for a kernel that is not known to be as fast as its reference needs a larger gain (KEEP_FROM)"
    yield f"By default: `kernelgate session {event.advised or 'revert'}`{why}"


# ---- the report ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Paper:
    """How texts of the log are written down, and how many of them in one section."""

    line: Callable[[str], str]
    cell: Callable[[str], str]
    """In a table."""
    rows: int | None = None
    """All."""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_FILE = _Paper(_one_line, lambda text: _one_line(text).replace("|", "\\|"))


def of(events: Sequence[Event], policy: Policy, now: str) -> Mapping[str, str]:
    """The files of the report by name."""
    state = coming.of(events, policy, now)
    drawn = {GAINS: drawings.gains(state.tries), PHASES: drawings.phases(state)}
    made = {name: drawings.file([one]) for name, one in drawn.items() if one is not None}
    return {FILE: "\n".join(_lines(events, state, tuple(made), _FILE)) + "\n", **made}


def for_review(events: Sequence[Event], policy: Policy, now: str) -> str:
    """The report with what experts are asked, and room for their answers."""
    state = coming.of(events, policy, now)
    lines = [
        *_asked(events, state, _FILE),
        "## Review",
        "",
        "Fill this in, and commit it beside the log. Reviewer and day:",
        "",
        "| try | action | bottleneck | right? If not: what it was |",
        "| --- | --- | --- | --- |",
        *(f"| {one.number} | {one.action or 'none'} | {one.bottleneck or 'none'} | |" for one in state.tries),
        "",
        "Answers to the questions:",
        "",
        "What should be tried next, and why:",
        "",
        "A pattern that would have saved time, of [docs/patterns](../../../docs/patterns/index.md) or a new one there "
        "(when it applies, what to do):",
    ]
    return "\n".join(lines) + "\n"


def posted(events: Sequence[Event], policy: Policy, now: str) -> str:
    """The report with what experts are asked, for a comment, and how to answer there.

    Texts of the log do nothing there; what is too much for a comment is counted.
    """
    state = coming.of(events, policy, now)
    labels = [
        f"try {one.number}: {one.action or 'no action'}, {one.bottleneck or 'no bottleneck'}" for one in state.tries
    ]
    text = ""
    for rows in ROWS:
        paper = _Paper(escape.prose, lambda text: escape.cell(escape.prose(text)), rows)
        lines = [
            *_asked(events, state, paper),
            *_section("Actions and bottlenecks of the tries", labels, paper),
            "Answer by a comment of this form; it becomes a pull request that names you.",
            "",
            escape.fence(("/kernelgate pattern NAME: what to do, and when",), "text"),
        ]
        text = "\n".join(lines) + "\n"
        if len(text) <= MAX_POSTED:
            break
    return text


def _asked(events: Sequence[Event], state: SessionState, paper: _Paper) -> Iterator[str]:
    """The report without drawings, and the questions below it."""
    yield from (*_lines(events, state, (), paper), "")
    usual = "Is what limits each try named rightly? Which pattern would have saved time?"
    yield from _section("Questions", notes(events, "question") or [usual], paper)


def _lines(events: Sequence[Event], state: SessionState, drawn: Sequence[str], paper: _Paper) -> Iterator[str]:
    opened, closed = state.opened, closed_of(events)
    yield from (f"# {paper.line(opened.objective)}", "")
    about = ", ".join(filter(None, (opened.card, *opened.cases, opened.gpu)))
    ended = f"; closed ({closed.why}): {paper.line(closed.said)}" if closed else "; still open"
    yield from (f"{paper.line(about)}; {state.minutes:.0f} minutes{ended}", "")
    believed = [*([opened.hypothesis] if opened.hypothesis else []), *notes(events, "believed")]
    believed += [f"try {one.number}, {one.what}: {one.why}" for one in state.tries]
    yield from _section("What was believed", believed, paper)
    yield from _section("What was measured", _measured(state), paper)
    if GAINS in drawn:
        yield from (f"![Gain of each try over what stood before it, with 95% intervals]({GAINS})", "")
    yield from _section("What was learnt", _learnt(events), paper)
    yield from _section("What it took", _took(state), paper)
    if PHASES in drawn:
        yield from (f"![Time by phase]({PHASES})", "")
    yield from ("## Gates", "", "| gate | | minutes | what was seen |", "| --- | --- | --- | --- |")
    for gate in state.gates:
        said = paper.cell(gate.said or "")
        yield f"| {gate.name} | {gate.status} | {gate.minutes:.1f} of {gate.limit_minutes:g} | {said} |"


def _section(title: str, lines: Iterable[str], paper: _Paper) -> Iterator[str]:
    listed = list(lines)
    yield from (f"## {title}", "", *(f"- {paper.line(line)}" for line in listed[: paper.rows]))
    if paper.rows is not None and len(listed) > paper.rows:
        yield f"- and {len(listed) - paper.rows} more, which the log has"
    yield from ([""] if listed else ["Nothing was said.", ""])


def _measured(state: SessionState) -> Iterator[str]:
    numbers, target = state.figures, state.opened.target
    if numbers.speedup_before is not None:
        yield f"at the beginning {numbers.speedup_before:.3g}x the reference"
    for one in state.tries:
        yield f"{try_line(one)}{f': {one.said}' if one.failed else ''}"
    if numbers.speedup is not None and numbers.kept:
        now = f"at the end {numbers.speedup:.3g}x the reference, {numbers.gain_kept_pct:.3g}% less time"
        yield f"{now} than at the beginning, by what was kept{f'; the target was {target:g}x' if target else ''}"


def _learnt(events: Sequence[Event]) -> Iterator[str]:
    yield from notes(events, "learnt")
    yield from (f"mistake: {said}" for said in notes(events, "mistake"))
    yield from (f"question: {said}" for said in notes(events, "question"))
    for event in events:
        if isinstance(event, PatternUse):
            yield f"pattern {event.pattern}, {event.how}{f': {event.said}' if event.said else ''}"
        if isinstance(event, TriedChange) and event.cause:
            yield f"try {event.number}: {event.cause}"


def _took(state: SessionState) -> Iterator[str]:
    numbers = state.figures
    for what, minutes, goal in (
        ("a working build", numbers.minutes_to_build, BUILD_TARGET),
        ("a named bottleneck", numbers.minutes_to_bottleneck, BOTTLENECK_TARGET),
    ):
        yield f"{what}: {'not reached' if minutes is None else f'after {duration(minutes)}'} (goal: {goal:g} min)"
    yield f"tries: {numbers.tries}, {numbers.kept} kept, {numbers.blind} blind (goal: {BLIND_TARGET})"
    if numbers.several_variables:
        yield f"{numbers.several_variables} changed more than one thing at once"
    if numbers.gpu_seconds:
        yield f"{numbers.gpu_seconds:.0f} s on the GPU's machine"
    yield from budget_lines(state)
    yield from state.remarks
