"""What sessions come to beside each other: how long, how fast, what it cost, and whether they get better.

Sessions that people recorded in documents are shown beside and never mixed into what was measured. No figure is made of
fewer than `FEW` sessions: then it is said how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean, median

import numpy as np
from scipy import stats

from kernelgate.ci.document import answer
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import coming, drawings, figures
from kernelgate.ci.sessions.log import Event, PatternUse, SessionNote, Source
from kernelgate.ci.sessions.report import BLIND_TARGET, BOTTLENECK_TARGET, BUILD_TARGET

FEW = 5
"""Sessions below which nothing is said over them: a line through four points has two degrees of freedom."""
LEVEL = 0.95


@dataclass(frozen=True)
class SessionRow:
    """One session's figures; None is not known."""

    name: str
    source: Source
    at: str | None
    card: str | None
    gpu: str | None
    minutes: float
    minutes_to_build: float | None
    minutes_to_bottleneck: float | None
    speedup: float | None
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
    usd_gpu: float
    usd_assistant: float
    usd_other: float
    closed: str | None


@dataclass(frozen=True)
class Overall:
    """One figure over the measured sessions that have it."""

    name: str
    n: int
    value: float | None
    """None where the sessions are too few."""
    interval: tuple[float, float] | None
    unit: str
    goal: float | None
    said: str


@dataclass(frozen=True)
class SessionsBeside:
    """What `session metrics --json` prints."""

    measured: tuple[SessionRow, ...]
    recorded: tuple[SessionRow, ...]
    overall: tuple[Overall, ...]


def row(events: Sequence[Event], policy: Policy, now: str) -> SessionRow:
    """The figures of one session."""
    state, opened = coming.of(events, policy, now), figures.opened(events)
    found = state.figures
    uses = [event for event in events if isinstance(event, PatternUse)]
    return SessionRow(
        name=state.name,
        source=opened.source,
        at=opened.at,
        card=opened.card,
        gpu=opened.gpu,
        minutes=state.minutes,
        minutes_to_build=found.minutes_to_build,
        minutes_to_bottleneck=found.minutes_to_bottleneck,
        speedup=found.speedup,
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
    )


def _patterns(uses: Sequence[PatternUse], how: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(use.pattern for use in uses if use.how == how))


def overall(rows: Sequence[SessionRow]) -> tuple[Overall, ...]:
    """The figures over the measured sessions that are closed, in the order that they were begun."""
    done = [one for one in rows if one.source == "measured" and one.closed is not None]
    return (
        _median("time to a working build", [one.minutes_to_build for one in done], "min", BUILD_TARGET),
        _median("time to a bottleneck", [one.minutes_to_bottleneck for one in done], "min", BOTTLENECK_TARGET),
        _mean("blind tries a session", [float(one.blind) for one in done], BLIND_TARGET),
        _mean("mistakes repeated a session", _repeated(done), 0),
        _median("cost of a session", [one.usd_gpu + one.usd_assistant + one.usd_other for one in done], "USD", None),
        _learning("change of a session's time from one to the next", [one.minutes for one in done]),
        _gap([one.speedup / one.target if one.speedup and one.target else None for one in done]),
    )


def _repeated(done: Sequence[SessionRow]) -> list[float]:
    """How many patterns each violates that one before it violated already."""
    seen: Counter[str] = Counter()
    found = []
    for one in done:
        found.append(float(sum(seen[name] > 0 for name in one.patterns_violated)))
        seen.update(one.patterns_violated)
    return found


def _few(name: str, n: int, unit: str, goal: float | None) -> Overall:
    return Overall(name, n, None, None, unit, goal, f"{n} session{'' if n == 1 else 's'}: too few to say")


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
    n = len(values)
    if n < FEW:
        return _few(name, n, "", goal)
    mean = fmean(values)
    error = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return _stated(name, n, mean, (mean - half, mean + half), ("", goal))


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


def _gap(shares: Sequence[float | None]) -> Overall:
    """The share of its target that a session reaches, and the first after which all reach it."""
    found = _median("share of the target's speed", shares, "", 1.0)
    known = [share for share in shares if share is not None]
    below = [number for number, share in enumerate(known, 1) if share < 1]
    if found.value is None or (below and below[-1] == len(known)):
        return found
    after = below[-1] if below else 0
    return Overall(**{**asdict(found), "said": f"{found.said}; from session {after + 1} on each reaches it"})


def _stated(
    name: str, n: int, value: float, interval: tuple[float, float], unit_goal: tuple[str, float | None]
) -> Overall:
    unit, goal = unit_goal
    shown = f" {unit}" if unit else ""
    aim = "" if goal is None else f"; the goal is {goal:g}{shown}"
    said = f"{value:.3g}{shown} (95%: {interval[0]:.3g} to {interval[1]:.3g}, {n} sessions{aim})"
    return Overall(name, n, value, interval, unit, goal, said)


def to_json(rows: Sequence[SessionRow]) -> str:
    """`measured` and `recorded` sessions apart, and `overall` of the measured ones."""
    measured, recorded = (tuple(one for one in rows if one.source == source) for source in ("measured", "recorded"))
    return answer.shown(SessionsBeside(measured, recorded, overall(rows)))


def to_text(rows: Sequence[SessionRow]) -> str:
    """For a person: each session in a line, then what can be said over them."""
    return "\n".join(_lines(rows))


def _lines(rows: Sequence[SessionRow]) -> Iterator[str]:
    for source, title in (("measured", "Measured"), ("recorded", "Recorded by people, and not measured by kernelgate")):
        listed = [one for one in rows if one.source == source]
        if listed:
            yield from (f"{title}:", *(f"  {_line(one)}" for one in listed), "")
    yield "Over the measured sessions that are closed:"
    yield from (f"  {one.name}: {one.said}" for one in overall(rows))


def _line(one: SessionRow) -> str:
    speed = f"{one.speedup:.3g}x the reference" if one.speedup is not None else "no speed-up known"
    usd = one.usd_gpu + one.usd_assistant + one.usd_other
    tries = f", {one.tries} tries, {one.kept} kept, {one.blind} blind" if one.tries else ""
    return f"{one.name}: {one.minutes:.0f} min, {speed}{tries}, {usd:.2f} USD, {one.closed or 'open'}"


def drawing(rows: Sequence[SessionRow]) -> str | None:
    """Minutes by session, recorded ones named so; None without sessions."""
    marks = {"measured": "", "recorded": " *"}
    listed = [(f"{one.name[-12:]}{marks[one.source]}", one.minutes) for one in rows]
    drawn = drawings.bars("Minutes by session, recorded ones with *", listed, "min")
    return drawings.file(drawn) if drawn else None
