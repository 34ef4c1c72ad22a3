"""A session in words: its state for a terminal, its metrics against their targets, its report as Markdown, what experts
are asked of it, and the text that an agent or an engineer begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain.next_step import KEEP_FROM, PROFILE_BELOW
from kernelgate.ci.lab import drawings, variables
from kernelgate.ci.lab.log import Event, PatternUse, SessionNote, TriedChange, closed_of, notes
from kernelgate.ci.lab.patterns import Applies
from kernelgate.ci.lab.state import BLIND_TARGET, BOTTLENECK_TARGET, BUILD_TARGET, SessionState, state_of
from kernelgate.ci.policy.policy import Policy

FILE, REVIEW = "report.md", "review.md"
GAINS = "gains.svg"
LAST = 5
"""Tries and notes in the text that a session begins with."""
MAX_SAID = 300
"""Characters of a quoted sentence."""
NONE = "–"
MARKS = {"passed": "x", "skipped": "-", "failed": "!", "open": " "}


# ---- for a terminal --------------------------------------------------------------------------------------------------


def status_lines(state: SessionState) -> Iterator[str]:
    opened, about = state.opened, about_words(state)
    yield f"{opened.name}: {opened.objective}{f' ({about})' if about else ''}"
    for one in state.budgets:
        if one.limit is not None or one.spent:  # a cost that nobody logged is not 0
            yield f"{one.of}: {one.shown(one.spent) if one.limit is None else one.shown(one.spent, one.limit)}"
    yield ""
    for gate in state.gates:
        took = f"{f'{gate.minutes:.1f} of ' if gate.minutes else ''}{gate.limit_minutes:g} min"
        yield f"[{MARKS[gate.status]}] {gate.name:12} {took:>17}  {gate.said or gate.passes}"
    yield from ("", *map(try_line, state.tries)) if state.tries else ()
    if state.figures.speedup is not None:
        target = f", the target is {opened.target:g}x" if opened.target else ""
        yield from ("", f"{state.figures.speedup:.3g}x the reference{target}")
    yield from (*state.remarks, "")
    if state.closed:
        yield f"closed: {state.closed}"
    else:
        yield f"Next, because {state.next.why}:"
        yield from (f"  {command}" for command in state.next.commands)


def about_words(state: SessionState) -> str:
    return ", ".join(filter(None, (state.opened.card, *state.opened.cases, state.opened.gpu)))


def try_line(one: TriedChange) -> str:
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


def of(events: Sequence[Event], policy: Policy, now: str) -> Mapping[str, str]:
    """The files of the report by name: its text, and a drawing where tries were timed."""
    state = state_of(events, policy, now)
    drawn = drawings.gains(state.tries)
    made = {FILE: "\n".join(_lines(events, state, drawn is not None)) + "\n"}
    return made | ({GAINS: drawings.file([drawn])} if drawn else {})


def for_review(events: Sequence[Event], policy: Policy, now: str) -> str:
    """The report with what experts are asked, and room for their answers."""
    state = state_of(events, policy, now)
    rows = "\n".join(f"| {one.number} | {one.action or 'none'} | {one.bottleneck or 'none'} | |" for one in state.tries)
    usual = "Is what limits each try named rightly? Which pattern would have saved time?"
    questions = _section("Questions", notes(events, "question") or [usual])
    report = "\n".join((*_lines(events, state, False), "", *questions))
    return f"""{report}
## Review

Fill this in, and commit it beside the log. Reviewer and day:

| try | action | bottleneck | right? If not: what it was |
| --- | --- | --- | --- |
{rows}

Answers to the questions:

What should be tried next, and why:

A pattern that would have saved time, of `kernelgate patterns --all` or a new one (when it applies, what to do):
"""


def _lines(events: Sequence[Event], state: SessionState, drawn: bool) -> Iterator[str]:
    opened, closed = state.opened, closed_of(events)
    yield from (f"# {opened.objective}", "")
    ended = f"; closed ({closed.why}): {closed.said}" if closed else "; still open"
    yield from (f"{about_words(state)}; {state.minutes:.0f} minutes{ended}", "")
    believed = [*([opened.hypothesis] if opened.hypothesis else []), *notes(events, "believed")]
    believed += [f"try {one.number}, {one.what}: {one.why}" for one in state.tries]
    yield from _section("What was believed", believed)
    yield from _section("What was measured", _measured(state))
    if drawn:
        yield from (f"![Gain of each try over what stood before it, with 95% intervals]({GAINS})", "")
    yield from _section("What was learnt", _learnt(events))
    yield from _section("What it took", _took(state))
    yield from ("## Gates", "", "| gate | | minutes | what was seen |", "| --- | --- | --- | --- |")
    for gate in state.gates:
        said = (gate.said or "").replace("|", "\\|")
        yield f"| {gate.name} | {gate.status} | {gate.minutes:.1f} of {gate.limit_minutes:g} | {said} |"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    yield from (f"## {title}", "", *(f"- {line}" for line in listed))
    yield from ([""] if listed else ["Nothing was said.", ""])


def _measured(state: SessionState) -> Iterator[str]:
    numbers, target = state.figures, state.opened.target
    if numbers.speedup_before is not None:
        yield f"at the beginning {numbers.speedup_before:.3g}x the reference"
    for one in state.tries:
        yield f"{try_line(one)}{f': {one.said}' if one.failed else ''}"
    if numbers.speedup is not None and numbers.kept:
        change = f"{abs(numbers.gain_kept_pct):.3g}% {'more' if numbers.gain_kept_pct < 0 else 'less'} time"
        now = f"at the end {numbers.speedup:.3g}x the reference, {change}"
        yield f"{now} than at the beginning, by what was kept{f'; the target was {target:g}x' if target else ''}"


def _learnt(events: Sequence[Event]) -> Iterator[str]:
    yield from notes(events, "learnt")
    yield from (f"{kind}: {said}" for kind in ("mistake", "question") for said in notes(events, kind))
    for event in events:
        if isinstance(event, PatternUse):
            took = f" ({event.minutes:g} min)" if event.minutes else ""
            yield f"pattern {event.pattern}, {event.how}{took}{f': {event.said}' if event.said else ''}"
        if isinstance(event, TriedChange) and event.cause:
            yield f"try {event.number}: {event.cause}"


def _took(state: SessionState) -> Iterator[str]:
    for name, now, target in _metrics(state):
        if target or now != NONE:
            yield f"{name}: {now}{f' (goal: {target})' if target else ''}"
    if state.figures.machine_seconds:
        held = f", {state.figures.gpu_seconds:.0f} s of them on the GPU" if state.figures.gpu_seconds else ""
        yield f"{state.figures.machine_seconds:.0f} s on the GPU's machine{held}"
    yield from state.remarks


def _metrics(state: SessionState) -> Iterator[tuple[str, str, str | None]]:
    """Each by its name, with what it is and what it is to be."""
    found, target = state.figures, state.opened.target

    def minutes(known: float | None, goal: float) -> tuple[str, str]:
        took = NONE if state.closed else "not yet"
        if known is not None:
            took = f"{60 * known:.0f} s" if known < 1 else f"{known:.3g} min"
        return took, f"≤ {goal:g} min"

    yield "time to a working build", *minutes(found.minutes_to_build, BUILD_TARGET)
    yield "time to a named bottleneck", *minutes(found.minutes_to_bottleneck, BOTTLENECK_TARGET)
    yield "blind tries", f"{found.blind} of {found.tries}", f"{BLIND_TARGET}"
    speed = NONE if found.speedup is None else f"{found.speedup:.3g}×"
    yield "speed against the reference", speed, None if target is None else f"≥ {target:g}×"
    yield "time saved by what was kept", f"{found.gain_kept_pct:.3g}%", None
    yield "tries kept", f"{found.kept} of {found.tries}", None
    if found.several_variables:
        yield "tries that change more than one thing", f"{found.several_variables}", None
    for one in state.budgets:
        limit = None if one.limit is None else f"≤ {one.shown(one.limit)}"
        yield f"{one.of} spent", one.shown(one.spent) if one.spent or limit else NONE, limit


# ---- what a session begins with --------------------------------------------------------------------------------------


def prompt(events: Sequence[Event], found: Sequence[Applies], policy: Policy, now: str) -> str:
    """The text that work on a session begins with, as Markdown. Sentences of the log, each of which is one line, were
    written by others, so they stand there as quotations."""
    state = state_of(events, policy, now)
    opened = state.opened
    about = {
        "Hypothesis": opened.hypothesis and _quoted(opened.hypothesis),
        "Target": opened.target and f"{opened.target:g}× as fast as the reference",
        "Kernel": opened.card and f"the card {_clean(opened.card)}",
        "Cases": ", ".join(map(_clean, opened.cases)),
        "Device": opened.gpu and _clean(opened.gpu),
        "Began at": opened.base and f"commit {opened.base[:12]}",
        "Recorded": opened.source == "recorded" and f"told of by {_clean(opened.origin or '')}, not measured",
    }
    lines = [f"# Session {_clean(opened.name)}", "", f"Objective: {_quoted(opened.objective)}", ""]
    lines += [f"- {name}: {said}" for name, said in about.items() if said]
    known = ((one.pattern, "; ".join(map(_clean, one.why))) for one in found)
    patterns = [f"{one.name} ({why}): {one.do} `{one.command}`" for one, why in known]
    for title, told in (
        ("State", _standing(events, state)),
        ("Constraints", _constraints(state, policy)),
        ("Patterns that apply now", patterns or ["none, by this session's log"]),
        ("Last results", _results(events, state)),
        ("Begin", _begin(state)),
    ):
        lines += ["", f"## {title}", "", *(f"- {line}" for line in told)]
    return "\n".join(lines) + "\n"


def _standing(events: Sequence[Event], state: SessionState) -> Iterator[str]:
    for gate in state.gates:
        yield f"gate {gate.name}: {gate.status}{f': {_quoted(gate.said)}' if gate.said else ''}"
    if state.figures.speedup is not None:
        yield f"{state.figures.speedup:.3g}× as fast as the reference"
    if state.tries:
        yield f"{counted(len(state.tries), 'change')} tried, {state.figures.kept} kept"
    if closed := closed_of(events):
        yield f"closed ({closed.why}): {_quoted(closed.said)}"


def _constraints(state: SessionState, policy: Policy) -> Iterator[str]:
    yield "change one variable at a time; two at once cannot be told apart"
    stop_below = policy.gates.reference_min
    yield f"below {PROFILE_BELOW:g}× the reference profile before changing; below {stop_below:g}×, at once"
    yield f"a fix is kept from {KEEP_FROM:g}× as fast as before on, or where it is tuning and certainly faster"
    yield "a result that is wrong has no speed: fuzz before timing"
    yield "leave the card, the policy (.ci/kernelgate.toml) and the tests as they are: they judge the change"
    for one in state.budgets:
        if one.limit is not None:
            yield f"{one.shown(one.spent, one.limit)} are spent; at the end it stops, with what is known"


def _results(events: Sequence[Event], state: SessionState) -> Iterator[str]:
    said = [one for one in events if isinstance(one, SessionNote) and one.kind in ("learnt", "mistake")]
    for one in state.tries[-LAST:]:
        yield f"try {one.number}, {_quoted(one.what)}: {_clean(gain_words(one))}; {one.decision or 'not decided yet'}"
    yield from (f"{note.kind}: {_quoted(note.said)}" for note in said[-LAST:])
    if not state.tries and not said:
        yield "nothing was tried yet"


def _begin(state: SessionState) -> Iterator[str]:
    if state.closed:
        yield "this session is closed: what is new begins another one, `kernelgate session new`"
        return
    yield f"`kernelgate patterns --session {state.opened.name}`"
    yield "`kernelgate session status` says which gate is next and why; `kernelgate session next` prints its command"
    yield (
        "before a change `next` names `kernelgate recommend`, where there is a profile; name what you try, "
        "`kernelgate session try … --action NAME`: from named tries advice is learnt"
    )


def _quoted(said: str) -> str:
    return f"“{_clean(said)}”"


def _clean(said: str) -> str:
    return said if len(said) <= MAX_SAID else f"{said[:MAX_SAID]}…"
