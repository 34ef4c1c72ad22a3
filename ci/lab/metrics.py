"""What sessions come to beside each other: how long, how fast, what it cost, and whether they get better.

Sessions that people recorded in documents are shown beside and never mixed into what was measured; so are searches that
a script logged when they were over, whose times are no session's. No figure is made of fewer than `FEW` sessions: then
it is said how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from statistics import fmean, linear_regression, median, stdev

import scipy

from kernelgate.ci.document.formatting import as_percent, counted
from kernelgate.ci.judge.stats import student_half_width
from kernelgate.ci.lab import state
from kernelgate.ci.lab.drawings import minutes_words
from kernelgate.ci.lab.state import SessionSummary

FEW = 6
"""Sessions below which nothing is said over them: of five, not even the least and the largest are a 95% interval of the
median."""
TAIL = 0.025
"""Of a 95% interval, on either side."""
EXPERT_MINUTES = 120
"""What the founding document "CUDA Kernel Learning System" expects of an expert in one place, 1.5 to 2 hours; it says 4
in another. Nobody measured it."""
SOURCES = {"measured": "Measured", "recorded": "Recorded by people, and not measured by kernelgate"}

Estimate = Callable[[Sequence[float]], tuple[float, tuple[float, float]]]
"""A figure over values, and its 95% interval."""


@dataclass(frozen=True)
class Overall:
    """One figure over the `n` sessions that are counted and have it; no value where they are too few."""

    name: str
    n: int
    value: float | None
    interval: tuple[float, float] | None
    unit: str
    goal: float | None
    said: str


@dataclass(frozen=True)
class SessionsBeside:
    """What `session metrics --json` prints; `overall` is of the sessions that are counted."""

    measured: tuple[SessionSummary, ...]
    recorded: tuple[SessionSummary, ...]
    overall: tuple[Overall, ...]


def overall(rows: Sequence[SessionSummary]) -> tuple[Overall, ...]:
    """The figures over the sessions that are counted, in the order that they were begun."""
    done = [one for one in rows if one.counted]
    numbers, minutes = [one.figures for one in done], [one.minutes for one in done]
    reached = [
        one.figures.speedup / one.opened.target for one in done if one.figures.speedup and one.opened.target is not None
    ]
    violated = [set(one.figures.patterns["violated"]) for one in done]
    repeated = [float(len(names & set().union(*violated[:at]))) for at, names in enumerate(violated)]
    learning = "change of a session's time from one to the next"
    faster = [said.startswith("certainly faster") for one in done if (said := against_before(one, done))]
    return (
        _figure("time to a working build", [one.minutes_to_build for one in numbers], "min", state.BUILD_TARGET),
        _figure("time to a bottleneck", [one.minutes_to_bottleneck for one in numbers], "min", state.BOTTLENECK_TARGET),
        _figure("blind tries a session", [one.blind for one in numbers], "", state.BLIND_TARGET, _mean),
        _figure("mistakes repeated a session", repeated, "", 0, _mean),
        _figure("patterns applied a session", [len(one.patterns["applied"]) for one in numbers], "", None, _mean),
        _figure("patterns learnt a session", [len(one.patterns["learnt"]) for one in numbers], "", None, _mean),
        _figure("time lost on wrong paths", [one.minutes_lost for one in numbers], "min"),
        _figure("GPU cost of a session", [one.usd_gpu for one in numbers], "USD", state.GPU_USD_TARGET),
        _figure("assistant's cost of a session", [one.usd_assistant for one in numbers], "USD"),
        _figure(learning, [one or None for one in minutes], "%", state.LEARNING_TARGET_PCT, _learning),
        _figure("gap to the expert's time", [one - EXPERT_MINUTES for one in minutes], "min", 0),
        _converged(minutes),
        _figure("share of the target's speed", reached, "", 1.0),
        _count("sessions that reached their target", [one >= 1 for one in reached]),
        _count("sessions faster than the one before on the same kernel", faster),
    )


def _median(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """With an interval from order statistics, which holds for any distribution."""
    known, n = sorted(values), len(values)
    rank = next(k for k in range(n) if scipy.special.bdtr(k, n, 0.5) >= TAIL)
    return median(known), (known[max(rank - 1, 0)], known[min(n - rank, n - 1)])


def _mean(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Of counts, so that its interval (Student's t) ends at 0."""
    n, mean = len(values), fmean(values)
    half = student_half_width(n - 1) * stdev(values) / sqrt(n)
    return mean, (max(0.0, mean - half), mean + half)


def _learning(minutes: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Percent by which the next session is shorter or longer: a line through the logarithms (least squares)."""
    logs, n = list(map(log, minutes)), len(minutes)
    slope, begin = linear_regression(range(n), logs)
    left = sum((one - begin - slope * at) ** 2 for at, one in enumerate(logs))
    half = student_half_width(n - 2) * sqrt(left / (n - 2) / (n * (n * n - 1) / 12))
    return as_percent(slope), (as_percent(slope - half), as_percent(slope + half))


def _figure(
    name: str, values: Sequence[float | None], unit: str, goal: float | None = None, estimate: Estimate = _median
) -> Overall:
    known = [value for value in values if value is not None]
    n = len(known)
    if n < FEW:
        few = f"{counted(n, 'session')}: too few to say" if n else "not measured"
        return Overall(name, n, None, None, unit, goal, few)
    value, interval = estimate(known)
    shown = f" {unit}" if unit else ""
    aim = "" if goal is None else f"; the goal is {goal:g}{shown}"
    said = f"{value:.3g}{shown} (95%: {interval[0]:.3g} to {interval[1]:.3g}, {n} sessions{aim})"
    return Overall(name, n, value, interval, unit, goal, said)


def _count(name: str, found: Sequence[bool]) -> Overall:
    share = _figure(name, found, "", None, _mean)
    return share if share.value is None else replace(share, interval=None, said=f"{sum(found)} of {share.n}")


def against_before(one: SessionSummary, rows: Sequence[SessionSummary]) -> str | None:
    """Such as "certainly faster than NAME", the last one before it of the same kernel, cases and device."""
    key = [(each.opened.source, each.opened.card, each.opened.cases, each.opened.gpu) for each in rows]
    at, mine = rows.index(one), one.figures
    last = next((rows[i] for i in range(at - 1, -1, -1) if key[i] == key[at] and rows[i].figures.speedup), None)
    if last is None or not mine.speedup or not last.figures.speedup:
        return None
    now, then = mine.speedup_interval, last.figures.speedup_interval
    if now and then and (now[0] > then[1] or now[1] < then[0]):
        return f"certainly {'faster' if now[0] > then[1] else 'slower'} than {last.opened.name}"
    return f"{mine.speedup / last.figures.speedup:.3g}x as fast as {last.opened.name}, which is not certain"


def _converged(minutes: Sequence[float]) -> Overall:
    """After how many sessions each of the others stayed within the expert's time."""
    found = _figure("sessions to convergence", minutes, "")
    if found.value is None:
        return found
    after = max((number for number, value in enumerate(minutes, 1) if value > EXPERT_MINUTES), default=0)
    said = f"{after} of {found.n}; each later one took at most {EXPERT_MINUTES} min"
    if after == found.n:
        said = f"not reached: the last of {found.n} took more than {EXPERT_MINUTES} min"
    return replace(found, value=None if after == found.n else after, interval=None, said=said)


def beside(rows: Sequence[SessionSummary]) -> SessionsBeside:
    apart = {source: tuple(one for one in rows if one.opened.source == source) for source in SOURCES}
    return SessionsBeside(**apart, overall=overall(rows))


def lines(rows: Sequence[SessionSummary]) -> Iterator[str]:
    """For a person: what was measured over sessions, then each in a line. Figures of too few sessions are one line."""
    found = overall(rows)
    yield "Over the measured sessions that are closed:"
    yield from (f"  {one.name}: {one.said}" for one in found if one.n >= FEW)
    if any(one.n < FEW for one in found):
        yield f"  Figures of fewer than {FEW} sessions are not said."
    yield from (f"  {said}" for said in remarks(rows))
    yield ""
    for source, title in SOURCES.items():
        listed = [one for one in rows if one.opened.source == source and not one.is_search]
        yield from [f"{title}:"] if listed else ()
        for one in listed:
            numbers = one.figures
            facts = [f"{minutes_words(one.minutes)} min", speed_words(one)]
            facts += [said] if (said := against_before(one, rows)) else []
            facts += [f"{numbers.tries} tries, {numbers.kept} kept, {numbers.blind} blind"] if numbers.tries else []
            facts += [f"{counted(len(names), 'pattern')} {how}" for how, names in numbers.patterns.items() if names]
            facts += [f"{numbers.minutes_lost:g} min lost"] if numbers.minutes_lost else []
            yield f"  {one.opened.name}: {', '.join([*facts, usd_words(one), one.closed or 'open'])}"
        yield from [""] if listed else ()


def remarks(rows: Sequence[SessionSummary]) -> Iterator[str]:
    """What is not counted, and what figures rest on that nobody measured."""
    if searches := [one for one in rows if one.is_search]:
        those = "search of a script" if len(searches) == 1 else "searches of scripts"
        tries = f"{len(searches)} {those} with {counted(sum(one.figures.tries for one in searches), 'change')} tried"
        yield f"{tries}, not counted: without a timed gate the minutes are not those of a session."
    if any(one.counted for one in rows):
        yield f"The expert's {EXPERT_MINUTES} min are the founding documents' expectation, and no measurement."


def speed_words(one: SessionSummary) -> str:
    """Such as "6.09x the reference (95%: 6.02 to 6.15)"."""
    if one.figures.speedup is None:
        return "no speed-up known"
    sure = one.figures.speedup_interval
    return f"{one.figures.speedup:.3g}x the reference{f' (95%: {sure[0]:.3g} to {sure[1]:.3g})' if sure else ''}"


def usd_words(one: SessionSummary) -> str:
    """What it cost, by what is known: nobody's bill is zero because nobody logged it."""
    parts = (("GPU", one.figures.usd_gpu), ("assistant", one.figures.usd_assistant), ("other", one.figures.usd_other))
    return " + ".join(f"{usd:.2f} USD {of}" for of, usd in parts if usd is not None) or "cost not known"
