"""What a search has found, in words and as an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from kernelgate.ci.bisect.facts import (
    ChangeOf,
    CompiledAnswer,
    CompiledInside,
    FailingAnswer,
    FailingInside,
    NotSearched,
    TimedAnswer,
    TimedInside,
)
from kernelgate.ci.bisect.first_failing import FailingStanding
from kernelgate.ci.bisect.posterior import SHORT, Search, SearchStanding
from kernelgate.ci.document import formatting

NORMAL_95 = 1.959964
"""Standard deviations to either side that hold 95% of a normal distribution."""
Result = TypeVar("Result", "SearchResult", "FailingResult", "BuiltResult")


@dataclass(frozen=True)
class SearchResult:
    """A search for the commit that changed a time, which has ended."""

    shas: tuple[str, ...]
    subjects: Mapping[str, str]
    standing: SearchStanding
    search: Search
    case: str
    submodule: str = ""
    """The path of the one whose commits these are."""
    inside: SearchResult | str | None = None
    """The same of the submodule that the culprit moves; else why it was not searched."""

    @property
    def exit_code(self) -> int:
        """0 found, 2 the ends do not differ, 3 it could not be told."""
        return {"found": 0, "several": 0, "none": 2, "open": 3}[self.standing.kind]


@dataclass(frozen=True)
class FailingResult:
    """A search for the first commit at which a trial fails, which has ended."""

    shas: tuple[str, ...]
    subjects: Sequence[str]
    """Of the culprits."""
    standing: FailingStanding
    case: str
    seed: int
    repeat: str
    """The command that runs the trial again."""
    submodule: str = ""
    inside: FailingResult | str | None = None

    @property
    def exit_code(self) -> int:
        """0 found, 2 it does not fail at the bad end, 3 it could not be told."""
        return {"found": 0, "none": 2, "open": 3}[self.standing.kind]


@dataclass(frozen=True)
class BuiltResult:
    """The last commit that compiles, and the next one, which does not."""

    last: str
    broken: str
    subject: str
    why: str
    submodule: str = ""
    inside: BuiltResult | str | None = None


def progress(now: SearchStanding, shas: Sequence[str]) -> str:
    """What a round has left open."""
    if now.kind == "none":
        return "the ends do not differ"
    if now.kind == "several" or not now.culprits:
        return "more than one commit changed the time"
    first, last = shas[now.culprits[0]][:SHORT], shas[now.culprits[-1]][:SHORT]
    where = first if first == last else f"one of {len(now.culprits)} from {first} to {last}"
    return f"{formatting.chance(now.chance)} that it is {where}, {change(now.effect, now.error)}"


def change(effect: float, error: float) -> str:
    """Such as "1.02% slower (0.91 to 1.13%)"."""
    low, high = sorted(abs(100 * math.expm1(effect + side * NORMAL_95 * error)) for side in (-1, 1))
    amount = abs(100 * math.expm1(effect))
    digits = 2 if amount < 10 else 0
    direction = "slower" if effect > 0 else "faster"
    return f"{amount:.{digits}f}% {direction} ({low:.{digits}f} to {high:.{digits}f}%)"


def _percent(effect: float) -> str:
    return formatting.percent(100 * math.expm1(effect), 2, sign=True)


def _with_inside(lines: list[str], inside: Result | str | None, to_text: Callable[[Result], str]) -> str:
    """And what was found in the submodule that the culprit moves."""
    if isinstance(inside, str):
        lines.append(f"Which commit of a submodule it was is not known: {inside}")
    elif inside is not None:
        lines.append(f"It moves the submodule {inside.submodule}:")
        lines += [f"  {line}" for line in to_text(inside).split("\n")]
    return "\n".join(lines)


def _inside(form: type[BaseModel], inside: Result | str | None, to_answer: Callable[[Result], BaseModel]) -> Any:
    """Our own answers are not held to the bounds within which one is read again."""
    if inside is None or isinstance(inside, str):
        return inside and NotSearched.model_construct(why=inside)
    return form.model_construct(submodule=inside.submodule, **dict(to_answer(inside)))


# ---- a time ----------------------------------------------------------------------------------------------------------


def timed_text(result: SearchResult) -> str:
    """The answer first; then what it rests on."""
    search, shas = result.search, result.shas
    measured = {place for process in search.processes for place in process}
    lines = _timed(result)
    if measured:
        lines.append(f"Measured {len(measured)} of {len(shas)} commits, {len(search.processes)} times side by side.")
    else:
        lines.append("Nothing had to be measured.")
    named = set(result.standing.culprits)
    skipped = sorted(search.unmeasurable.items())
    lines += [f"Stepped over {shas[place][:SHORT]}: {why}" for place, why in skipped if place not in named]
    return _with_inside(lines, result.inside, timed_text)


def _timed(result: SearchResult) -> list[str]:
    now, shas = result.standing, result.shas
    if now.kind == "none":
        low, high = (_percent(now.effect + side * NORMAL_95 * now.error) for side in (-1, 1))
        measured = f" ({low} to {high})" if result.search.processes else ": what is built is the same at both"
        return [f"{result.case}: {shas[0][:SHORT]} and {shas[-1][:SHORT]} take the same time{measured}"]
    if now.kind == "several" and now.two:
        lines = [f"{result.case}: more than one commit changed the time ({formatting.chance(now.chance)})"]
        seen = sorted({0, *(place for process in result.search.processes for place in process)})
        for place, effect in zip(now.two.places, now.two.effects, strict=True):
            before = max(one for one in seen if one < place)
            lines.append(f"  {_percent(effect)} between {shas[before][:SHORT]} and {shas[place][:SHORT]}")
        return [*lines, "Search each part by itself."]
    if now.kind == "open":
        return [f"{result.case}: not found; {progress(now, shas)}"]
    lines = [f"{result.case}: {change(now.effect, now.error)}, {formatting.chance(now.chance)}"]
    for place in now.culprits:
        why = result.search.unmeasurable.get(place)
        note = f" (stepped over: {why})" if why else ""
        lines.append(f"  {shas[place][:SHORT]} {result.subjects.get(shas[place], '')}{note}")
    if len(now.culprits) > 1:
        lines.append("These cannot be told apart: nothing between them can be measured.")
    return lines


def timed_answer(result: SearchResult) -> TimedAnswer:
    now, shas = result.standing, result.shas
    low, high = (100 * math.expm1(now.effect + side * NORMAL_95 * now.error) for side in (-1, 1))
    two = zip(now.two.places, now.two.effects, strict=True) if now.two else ()
    return TimedAnswer.model_construct(
        case=result.case,
        found=now.kind,
        culprits=tuple(shas[place] for place in now.culprits),
        chance=min(1.0, now.chance),  # sums of floats may exceed it
        change_pct=100 * math.expm1(now.effect),
        interval_pct=(low, high),
        several=tuple(
            ChangeOf.model_construct(commit=shas[place], change_pct=100 * math.expm1(effect)) for place, effect in two
        ),
        stepped_over={shas[place]: why for place, why in sorted(result.search.unmeasurable.items())},
        processes=len(result.search.processes),
        inside=_inside(TimedInside, result.inside, timed_answer),
    )


# ---- a failing trial, and a compile ----------------------------------------------------------------------------------


def failing_text(result: FailingResult) -> str:
    """The answer first; then what it rests on."""
    now, shas = result.standing, result.shas
    lines = _failing(result)
    if now.kind != "none":
        often = f"It fails in {now.failed} of {now.runs} runs at {shas[-1][:SHORT]}"
        tried = f"Tried {now.tried} of {len(shas)} commits."
        lines.append(f"{often}; a commit was called good after {now.times} that passed. {tried}")
        skipped = sorted(now.stepped_over.items())
        lines += [f"Stepped over {shas[at][:SHORT]}: {why}" for at, why in skipped if at not in now.culprits]
    return _with_inside(lines, result.inside, failing_text)


def _failing(result: FailingResult) -> list[str]:
    now, shas = result.standing, result.shas
    about = f"{result.case} (seed {result.seed})"
    if now.kind == "none":
        return [f"{about}: passes in {now.runs} of {now.runs} runs at {shas[-1][:SHORT]}"]
    if not now.culprits:
        return [f"{about}: not found; no commit touches what the kernel is built from"]
    answer = "fails since" if now.kind == "found" else "not found; most likely fails since"
    lines = [f"{about}: {answer}, {formatting.chance(now.chance)}"]
    for place, subject in zip(now.culprits, result.subjects, strict=True):
        why = now.stepped_over.get(place)
        lines.append(f"  {shas[place][:SHORT]} {subject}{f' (stepped over: {why})' if why else ''}")
    if len(now.culprits) > 1:
        lines.append("These cannot be told apart: nothing between them can be tried.")
    return [*lines, f"  {now.fault}", f"  repeat: {result.repeat}"]


def failing_answer(result: FailingResult) -> FailingAnswer:
    now, shas = result.standing, result.shas
    return FailingAnswer.model_construct(
        case=result.case,
        seed=result.seed,
        found=now.kind,
        culprits=tuple(shas[place] for place in now.culprits),
        chance=now.chance,
        fault=now.fault or "",
        repeat=result.repeat,
        failed=now.failed,
        runs=now.runs,
        passes=now.times,
        stepped_over={shas[place]: why for place, why in sorted(now.stepped_over.items())},
        inside=_inside(FailingInside, result.inside, failing_answer),
    )


def built_text(found: BuiltResult) -> str:
    head = f"{found.last[:SHORT]} compiles, {found.broken[:SHORT]} {found.subject} does not:"
    return _with_inside([head, f"  {found.why}"], found.inside, built_text)


def built_answer(found: BuiltResult) -> CompiledAnswer:
    inside = _inside(CompiledInside, found.inside, built_answer)
    return CompiledAnswer.model_construct(
        last_that_compiles=found.last, culprits=(found.broken,), why=found.why, inside=inside
    )
