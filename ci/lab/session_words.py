"""A session in words, for a terminal, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.ci.document import answer
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.lab import variables
from kernelgate.ci.lab.log import TriedChange
from kernelgate.ci.lab.state import NextCommand, SessionBudget, SessionState, TryState

MARKS = {"passed": "x", "skipped": "-", "failed": "!", "open": " "}


def to_json(state: SessionState) -> str:
    """Everything that `status` knows."""
    return answer.shown(state)


def to_text(state: SessionState) -> str:
    """The state for a person."""
    return "\n".join(_lines(state))


def _lines(state: SessionState) -> Iterator[str]:
    about = ", ".join(filter(None, (state.card, *state.cases, state.gpu)))
    yield f"{state.name}: {state.objective}{f' ({about})' if about else ''}"
    yield from budget_lines(state)
    yield ""
    for gate in state.gates:
        took = f"{gate.minutes:.1f} of {gate.limit_minutes:g} min" if gate.minutes else f"{gate.limit_minutes:g} min"
        yield f"[{MARKS[gate.status]}] {gate.name:12} {took:>17}  {gate.said or gate.passes}"
    if state.tries:
        yield ""
    yield from (try_line(one) for one in state.tries)
    figures = state.figures
    if figures.speedup is not None:
        yield ""
        target = f", the target is {state.target:g}x" if state.target else ""
        yield f"{figures.speedup:.3g}x the reference{target}"
    yield from state.remarks
    yield ""
    if state.closed:
        yield f"closed: {state.closed}"
    else:
        yield f"Next, because {state.next.why}:"
        yield from (f"  {command}" for command in commands(state.next))


def commands(coming: NextCommand) -> tuple[str, ...]:
    """What comes next, a command a line: before a change, what says what to try."""
    return tuple(one for one in (coming.recommend, coming.command) if one is not None)


def budget_lines(state: SessionState) -> Iterator[str]:
    """Of what has a limit or was spent: a cost that nobody logged is not 0."""
    return (budget_line(one) for one in state.budgets if one.limit is not None or one.spent)


def budget_line(one: SessionBudget) -> str:
    """What is spent of what may be."""
    if one.of == "cost" and not one.spent and one.limit is None:
        return "cost: none is logged"
    digits = 0 if one.of == "time" else 2
    of = f" of {one.limit:.{digits}f}" if one.limit is not None else ""
    return f"{one.of}: {one.spent:.{digits}f}{of} {one.unit}"


def try_line(one: TryState) -> str:
    """A try in a line: what, how much, and what became of it."""
    return f"try {one.number}: {one.what}: {gain_words(one)}; {one.decision or 'undecided'}"


def gain_words(one: TryState) -> str:
    """Such as "7.1% faster (95%: 6.8% to 7.4%)"."""
    if one.failed:
        return {"build": "does not compile", "correctness": "wrong", "measurement": "not measured"}[one.failed]
    if one.gain_pct is None or one.interval_pct is None:
        return one.said
    low, high = one.interval_pct
    if low <= 0 <= high:
        return f"no certain change (95%: {-low:.2g}% slower to {high:.2g}% faster)"
    near, far = sorted(map(abs, one.interval_pct))
    return f"{abs(one.gain_pct):.3g}% {'faster' if low > 0 else 'slower'} (95%: {near:.3g}% to {far:.3g}%)"


def of_try(event: TriedChange) -> str:
    """What a try showed, and what it speaks for."""
    lines = [f"try {event.number}: {event.said}"]
    warned = variables.warning(event.variables)
    lines += [f"  {case.case}: {_outcome(case.change_pct, case.interval_pct)}" for case in event.outcomes]
    if event.fuzz_trials:
        lines.append(f"  fuzz: {event.fuzz_trials - (event.fuzz_failed or 0)} of {counted(event.fuzz_trials, 'trial')}")
    lines += [f"  because: {event.cause}"] if event.cause else []
    lines += [f"  warning: {warned}"] if warned else []
    lines.append(f"By default: `kernelgate session {event.advised or 'revert'}`{_why_not_kept(event)}")
    return "\n".join(lines)


def _why_not_kept(event: TriedChange) -> str:
    """Of a change that is certainly faster and to be reverted all the same: a reader would look for a mistake."""
    faster = bool(event.outcomes) and all(case.status in ("faster", "improved") for case in event.outcomes)
    if event.advised == "keep" or event.failed or not faster:
        return ""
    return ", for a kernel that is not known to be as fast as its reference needs a larger gain (guidance.keep_from)"


def _outcome(change: float, interval: tuple[float, float]) -> str:
    return f"{change:+.2f}% time (95%: {interval[0]:+.2f}% to {interval[1]:+.2f}%)"
