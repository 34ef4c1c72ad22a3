"""What sessions come to beside each other: how long, how fast, what it cost, and whether they get better.

Sessions that people recorded in documents are shown beside and never mixed into what was measured; so are searches that
a script logged when they were over, whose times are no session's. No figure is made of fewer than `FEW` sessions: then
it is said how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

import numpy as np
from scipy import stats

from kernelgate.ci.document import answer
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.lab import coming, figures
from kernelgate.ci.lab.log import Event, PatternUse, SessionNote, Source
from kernelgate.ci.lab.report import BLIND_TARGET, BOTTLENECK_TARGET, BUILD_TARGET
from kernelgate.ci.policy.policy import Policy

FEW = 6
"""Sessions below which nothing is said over them: of five, not even the least and the largest are a 95% interval of the
median."""
LEVEL = 0.95
EXPERT_MINUTES = 120
"""What the founding documents expect of an expert, 1.5 to 2 hours (002.md:131); elsewhere they say 4 (002.md:309).
Nobody measured it."""


@dataclass(frozen=True)
class SessionRow:
    """One session's figures; None is not known."""

    name: str
    objective: str
    source: Source
    at: str | None
    card: str | None
    gpu: str | None
    minutes: float
    minutes_to_build: float | None
    minutes_to_bottleneck: float | None
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    gain_kept_pct: float
    target: float | None
    tries: int
    kept: int
    blind: int
    several_variables: int
    mistakes: tuple[str, ...]
    patterns_applied: tuple[str, ...]
    patterns_learnt: tuple[str, ...]
    patterns_violated: tuple[str, ...]
    usd_gpu: float | None
    usd_assistant: float | None
    usd_other: float | None
    closed: str | None
    timed: bool
    """Whether the time of any gate is known. A search whose log a script wrote has none, and its minutes say nothing of
    how long a session takes."""

    @property
    def is_search(self) -> bool:
        return self.source == "measured" and not self.timed

    @property
    def counted(self) -> bool:
        """Whether figures over sessions are made of it."""
        return self.source == "measured" and self.closed is not None and self.timed


@dataclass(frozen=True)
class Overall:
    """One figure over the sessions that are counted and have it."""

    name: str
    n: int
    value: float | None
    """None where the sessions are too few."""
    interval: tuple[float, float] | None
    unit: str
    goal: float | None
    said: str


@dataclass(frozen=True)
class PatternCount:
    """In how many sessions a pattern was applied, learnt and violated."""

    pattern: str
    applied: int
    learnt: int
    violated: int


@dataclass(frozen=True)
class SessionsBeside:
    """What `session metrics --json` prints."""

    measured: tuple[SessionRow, ...]
    recorded: tuple[SessionRow, ...]
    patterns: dict[str, tuple[PatternCount, ...]]
    """Of each kind of sessions."""
    overall: tuple[Overall, ...]
    """Of those that are counted."""


def row(events: Sequence[Event], policy: Policy, now: str) -> SessionRow:
    """The figures of one session."""
    state, opened = coming.of(events, policy, now), figures.opened(events)
    found = state.figures
    uses = [event for event in events if isinstance(event, PatternUse)]
    return SessionRow(
        name=state.name,
        objective=opened.objective,
        source=opened.source,
        at=opened.at,
        card=opened.card,
        gpu=opened.gpu,
        minutes=state.minutes,
        minutes_to_build=found.minutes_to_build,
        minutes_to_bottleneck=found.minutes_to_bottleneck,
        speedup=found.speedup,
        speedup_interval=found.speedup_interval,
        gain_kept_pct=found.gain_kept_pct,
        target=opened.target,
        tries=found.tries,
        kept=found.kept,
        blind=found.blind,
        several_variables=found.several_variables,
        mistakes=tuple(event.said for event in events if isinstance(event, SessionNote) and event.kind == "mistake"),
        patterns_applied=_patterns(uses, "applied"),
        patterns_learnt=_patterns(uses, "learnt"),
        patterns_violated=_patterns(uses, "violated"),
        usd_gpu=found.usd_gpu,
        usd_assistant=found.usd_assistant,
        usd_other=found.usd_other,
        closed=state.closed,
        timed=any(map(figures.is_timed, events)),
    )


def _patterns(uses: Sequence[PatternUse], how: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(use.pattern for use in uses if use.how == how))


def overall(rows: Sequence[SessionRow]) -> tuple[Overall, ...]:
    """The figures over the sessions that are counted, in the order that they were begun."""
    done = [one for one in rows if one.counted]
    minutes = [one.minutes for one in done]
    return (
        _median("time to a working build", [one.minutes_to_build for one in done], "min", BUILD_TARGET),
        _median("time to a bottleneck", [one.minutes_to_bottleneck for one in done], "min", BOTTLENECK_TARGET),
        _mean("blind tries a session", [float(one.blind) for one in done], BLIND_TARGET),
        _mean("mistakes repeated a session", _repeated(done), 0),
        _median("GPU cost of a session", [one.usd_gpu for one in done], "USD", None),
        _median("assistant's cost of a session", [one.usd_assistant for one in done], "USD", None),
        _learning("change of a session's time from one to the next", minutes),
        _median("gap to the expert's time", [one - EXPERT_MINUTES for one in minutes], "min", 0),
        _converged("sessions to convergence", minutes),
        _median(
            "share of the target's speed",
            [one.speedup / one.target if one.speedup and one.target else None for one in done],
            "",
            1.0,
        ),
    )


def pattern_counts(rows: Sequence[SessionRow]) -> tuple[PatternCount, ...]:
    """Of all patterns that these sessions name, the most often violated first."""
    every = {name for one in rows for name in (*one.patterns_applied, *one.patterns_learnt, *one.patterns_violated)}
    found = (
        PatternCount(
            name,
            sum(name in one.patterns_applied for one in rows),
            sum(name in one.patterns_learnt for one in rows),
            sum(name in one.patterns_violated for one in rows),
        )
        for name in every
    )
    return tuple(sorted(found, key=lambda one: (-one.violated, -one.learnt, -one.applied, one.pattern)))


def _repeated(done: Sequence[SessionRow]) -> list[float]:
    """How many patterns each violates that one before it violated already."""
    seen: Counter[str] = Counter()
    found = []
    for one in done:
        found.append(float(sum(seen[name] > 0 for name in one.patterns_violated)))
        seen.update(one.patterns_violated)
    return found


def _few(name: str, n: int, unit: str, goal: float | None) -> Overall:
    said = f"{counted(n, 'session')}: too few to say" if n else "not measured"
    return Overall(name, n, None, None, unit, goal, said)


def _median(name: str, values: Sequence[float | None], unit: str, goal: float | None) -> Overall:
    """With an interval from order statistics, which holds for any distribution."""
    known = sorted(value for value in values if value is not None)
    n = len(known)
    if n < FEW:
        return _few(name, n, unit, goal)
    rank = int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))
    interval = (known[max(rank - 1, 0)], known[min(n - rank, n - 1)])
    return _stated(name, n, median(known), interval, (unit, goal))


def _mean(name: str, values: Sequence[float], goal: float | None) -> Overall:
    """Of counts, so that its interval (Student's t) ends at 0."""
    n = len(values)
    if n < FEW:
        return _few(name, n, "", goal)
    mean = fmean(values)
    error = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return _stated(name, n, mean, (max(0.0, mean - half), mean + half), ("", goal))


def _learning(name: str, minutes: Sequence[float]) -> Overall:
    """Percent by which the next session is shorter or longer: a line through the logarithms (least squares)."""
    known = [value for value in minutes if value > 0]
    n = len(known)
    if n < FEW:
        return _few(name, n, "%", None)
    line = stats.linregress(range(n), np.log(known))
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 2)) * line.stderr
    ends = (line.slope - half, line.slope + half)
    low, value, high = (100 * float(np.expm1(one)) for one in (ends[0], line.slope, ends[1]))
    return _stated(name, n, value, (low, high), ("%", None))


def _converged(name: str, minutes: Sequence[float]) -> Overall:
    """After how many sessions each of the others stayed within the expert's time."""
    n = len(minutes)
    if n < FEW:
        return _few(name, n, "", None)
    longer = [number for number, value in enumerate(minutes, 1) if value > EXPERT_MINUTES]
    after = longer[-1] if longer else 0
    if after == n:
        return Overall(
            name, n, None, None, "", None, f"not reached: the last of {n} took more than {EXPERT_MINUTES} min"
        )
    return Overall(name, n, after, None, "", None, f"{after} of {n}; each later one took at most {EXPERT_MINUTES} min")


def _stated(
    name: str, n: int, value: float, interval: tuple[float, float], unit_goal: tuple[str, float | None]
) -> Overall:
    unit, goal = unit_goal
    shown = f" {unit}" if unit else ""
    aim = "" if goal is None else f"; the goal is {goal:g}{shown}"
    said = f"{value:.3g}{shown} (95%: {interval[0]:.3g} to {interval[1]:.3g}, {n} sessions{aim})"
    return Overall(name, n, value, interval, unit, goal, said)


def to_json(rows: Sequence[SessionRow]) -> str:
    """`measured` and `recorded` sessions apart, the `patterns` of each, and `overall` of those that are counted."""
    apart = {source: tuple(one for one in rows if one.source == source) for source in ("measured", "recorded")}
    patterns = {source: tuple(pattern_counts(found)) for source, found in apart.items()}
    return answer.shown(SessionsBeside(apart["measured"], apart["recorded"], patterns, overall(rows)))


def to_text(rows: Sequence[SessionRow]) -> str:
    """For a person: each session in a line, then what can be said over them."""
    return "\n".join(_lines(rows))


def _lines(rows: Sequence[SessionRow]) -> Iterator[str]:
    for source, title in (("measured", "Measured"), ("recorded", "Recorded by people, and not measured by kernelgate")):
        listed = [one for one in rows if one.source == source]
        if listed:
            yield from (f"{title}:", *(f"  {_line(one)}" for one in listed))
            yield from (f"  pattern {_pattern_line(one)}" for one in pattern_counts(listed))
            yield ""
    yield "Over the measured sessions that are closed:"
    yield from (f"  {one.name}: {one.said}" for one in overall(rows))
    yield from (f"  {said}" for said in remarks(rows))


def remarks(rows: Sequence[SessionRow]) -> Iterator[str]:
    """What is not counted, and what figures rest on that nobody measured."""
    searches = sum(one.is_search for one in rows)
    if searches:
        those = "search of a script is" if searches == 1 else "searches of scripts are"
        yield f"{searches} {those} not counted: without a timed gate the minutes are not those of a session."
    if any(one.counted for one in rows):
        yield f"The expert's {EXPERT_MINUTES} min are the founding documents' expectation, and no measurement."


def _line(one: SessionRow) -> str:
    about = " (a search)" if one.is_search else ""
    tries = f", {one.tries} tries, {one.kept} kept, {one.blind} blind" if one.tries else ""
    facts = f"{minutes_words(one)} min, {speed_words(one)}{tries}, {usd_words(one)}, {one.closed or 'open'}"
    return f"{one.name}{about}: {facts}"


def minutes_words(one: SessionRow) -> str:
    """Whole minutes, and a part of one where it took no more."""
    return f"{one.minutes:.0f}" if one.minutes >= 1 or not one.minutes else f"{one.minutes:.1g}"


def speed_words(one: SessionRow) -> str:
    """Such as "6.09x the reference (95%: 6.02 to 6.15)"."""
    if one.speedup is None:
        return "no speed-up known"
    sure = one.speedup_interval
    return f"{one.speedup:.3g}x the reference{f' (95%: {sure[0]:.3g} to {sure[1]:.3g})' if sure else ''}"


def usd_words(one: SessionRow) -> str:
    """What it cost, by what is known: nobody's bill is zero because nobody logged it."""
    parts = (("GPU", one.usd_gpu), ("assistant", one.usd_assistant), ("other", one.usd_other))
    known = [f"{usd:.2f} USD {of}" for of, usd in parts if usd is not None]
    return " + ".join(known) or "cost not known"


def _pattern_line(one: PatternCount) -> str:
    parts = (("applied", one.applied), ("learnt", one.learnt), ("violated", one.violated))
    return f"{one.pattern}: {', '.join(f'{how} in {count}' for how, count in parts if count)}"
