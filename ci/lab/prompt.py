"""The text that a session begins with, for an agent or an engineer: pure, of the session's events and what applies now.

Sentences of the log were written by others, so they stand there as quotations, each in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from kernelgate.bench.core.errors import one_line
from kernelgate.ci.document import formatting
from kernelgate.ci.explain.next_step import KEEP_FROM, PROFILE_BELOW
from kernelgate.ci.lab import log
from kernelgate.ci.lab.patterns import Applies
from kernelgate.ci.lab.state import closed_of, opened_of
from kernelgate.ci.policy.policy import Policy

LAST_TRIES = 5
LAST_NOTES = 5
MAX_SAID = 300
"""Characters of a quoted sentence."""


def prompt(events: Sequence[log.Event], found: Sequence[Applies], policy: Policy) -> str:
    """As Markdown."""
    opened = opened_of(events)
    parts = (
        _objective(opened),
        _section("State", _state(events)),
        _section("Constraints", _constraints(opened, events, policy)),
        _section("Patterns that apply now", _patterns(found)),
        _section("Last results", _results(events)),
        _section("Begin", _begin(opened, events)),
    )
    return "\n\n".join(parts) + "\n"


def _objective(opened: log.Opened) -> str:
    rows = [
        ("Hypothesis", _quoted(opened.hypothesis)),
        ("Target", f"{opened.target:g}× as fast as the reference" if opened.target else None),
        ("Kernel", f"the card {opened.card}" if opened.card else None),
        ("Cases", ", ".join(opened.cases) or None),
        ("Device", opened.gpu),
        ("Began at", f"commit {opened.base[:12]}" if opened.base else None),
        ("Recorded", f"told of by {opened.origin}, not measured" if opened.source == "recorded" else None),
    ]
    lines = [f"- {name}: {said}" for name, said in rows if said]
    return "\n".join(
        [f"# Session {opened.name}", "", f"Objective: {_quoted(opened.objective)}", *(["", *lines] if lines else [])]
    )


def _state(events: Sequence[log.Event]) -> Iterator[str]:
    for name in get_args(log.GateName):
        attempts = log.gates(events, name)
        if attempts:
            last = attempts[-1]
            figures = ", ".join(f"{key} {value:g}" for key, value in last.figures.items())
            seen = f"{_quoted(last.said)}{f' ({figures})' if figures else ''}"
            count = "first attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
            yield f"gate {name}: {'passed' if last.passed else 'failed'}, {count}: {seen}"
        else:
            yield f"gate {name}: open"
    if tried := log.tries(events):
        kept = sum(one.decision == "kept" for one in tried)
        yield f"{formatting.counted(len(tried), 'change')} tried, {kept} kept"
    closed = closed_of(events)
    if closed is not None:
        yield f"closed ({closed.why}): {_quoted(closed.said)}"


def _constraints(opened: log.Opened, events: Sequence[log.Event], policy: Policy) -> Iterator[str]:
    yield "change one variable at a time; two at once cannot be told apart"
    stop_below = policy.gates.reference_min
    yield f"below {PROFILE_BELOW:g}× the reference profile before changing; below {stop_below:g}×, at once"
    yield f"a fix is kept from {KEEP_FROM:g}× as fast as before on, or where it is tuning and certainly faster"
    yield "a result that is wrong has no speed: fuzz before timing"
    yield "leave the card, the policy (.ci/kernelgate.toml) and the tests as they are: they judge the change"
    spent = sum(one.usd for one in events if isinstance(one, log.SessionCost))
    if opened.minutes is not None:
        yield f"the session has {opened.minutes:g} minutes; at their end it stops, with what is known"
    if opened.usd is not None:
        yield f"it has ${opened.usd:.2f}, of which ${spent:.2f} are spent"


def _patterns(found: Sequence[Applies]) -> Iterator[str]:
    for one in found:
        yield f"{one.pattern.name} ({'; '.join(map(_clean, one.why))}): {one.pattern.do} `{one.pattern.command}`"
    if not found:
        yield "none, by this session's log"


def _results(events: Sequence[log.Event]) -> Iterator[str]:
    tries = log.tries(events)
    for tried in tries[-LAST_TRIES:]:
        yield f"try {tried.number}, {_quoted(tried.what)}: {_effect(tried)}; {tried.decision or 'not decided yet'}"
    notes = [one for one in events if isinstance(one, log.SessionNote) and one.kind in ("learnt", "mistake")]
    yield from (f"{one.kind}: {_quoted(one.said)}" for one in notes[-LAST_NOTES:])
    if not tries and not notes:
        yield "nothing was tried yet"


def _effect(tried: log.TriedChange) -> str:
    if tried.failed:
        return f"failed at {tried.failed}, {_quoted(tried.said)}"
    if not tried.outcomes:
        return str(_quoted(tried.said))
    return "; ".join(
        f"{one.case} {one.change_pct:+.2f}% of time, error {one.error_pct:.2g}, {one.status}" for one in tried.outcomes
    )


def _begin(opened: log.Opened, events: Sequence[log.Event]) -> Iterator[str]:
    if closed_of(events):
        yield "this session is closed: what is new begins another one, `kernelgate session new`"
        return
    yield f"`kernelgate patterns --session {opened.name}`"
    yield "`kernelgate session status` says which gate is next and why; `kernelgate session next` prints its command"
    yield (
        "before a change `next` names `kernelgate recommend`, where there is a profile; name what you try, "
        "`kernelgate session try … --action NAME`: from named tries advice is learnt"
    )


def _section(title: str, lines: Iterator[str]) -> str:
    return "\n".join([f"## {title}", "", *(f"- {line}" for line in lines)])


def _quoted(said: str | None) -> str | None:
    return None if said is None else f"“{_clean(said)}”"


def _clean(said: str) -> str:
    text = one_line(said).strip()
    return text if len(text) <= MAX_SAID else f"{text[:MAX_SAID]}…"
