"""What a search has found, in words and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kernelgate.ci.bisect.choose import NORMAL_95, SearchStanding
from kernelgate.ci.bisect.search import Search
from kernelgate.ci.document import formatting

SHORT = 12
"""Digits of a commit."""


@dataclass(frozen=True)
class SearchResult:
    """A search that has ended."""

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


def progress(now: SearchStanding, shas: Sequence[str]) -> str:
    """What a round has left open."""
    if now.kind == "none":
        return "the ends do not differ"
    if now.kind == "several" or not now.culprits:
        return "more than one commit changed the time"
    first, last = shas[now.culprits[0]][:SHORT], shas[now.culprits[-1]][:SHORT]
    where = first if first == last else f"one of {len(now.culprits)} from {first} to {last}"
    return f"{formatting.chance(now.chance)} that it is {where}, {change(now.effect, now.error)}"


def to_text(result: SearchResult) -> str:
    """The answer first; then what it rests on."""
    return "\n".join([*_answer(result), *_basis(result), *inside_to_text(result.inside, to_text)])


class Inside(Protocol):
    """What a search in a submodule's commits found."""

    @property
    def submodule(self) -> str: ...


Result = TypeVar("Result", bound=Inside)


def inside_to_text(inside: Result | str | None, to_text: Callable[[Result], str]) -> list[str]:
    """Lines about the submodule that the culprit moves."""
    if inside is None:
        return []
    if isinstance(inside, str):
        return [f"Which commit of a submodule it was is not known: {inside}"]
    return [f"It moves the submodule {inside.submodule}:", *(f"  {line}" for line in to_text(inside).split("\n"))]


def inside_to_json(inside: Result | str | None, content: Callable[[Result], dict[str, object]]) -> object:
    """`submodule` and what a search in it found; `why` it was not searched; null where the culprit moves none."""
    if inside is None or isinstance(inside, str):
        return inside and {"why": inside}
    return {"submodule": inside.submodule, **content(inside)}


def _answer(result: SearchResult) -> list[str]:
    now, shas = result.standing, result.shas
    if now.kind == "none":
        low, high = (100 * math.expm1(now.effect + side * NORMAL_95 * now.error) for side in (-1, 1))
        between = f"{formatting.percent(low, 2, sign=True)} to {formatting.percent(high, 2, sign=True)}"
        measured = f" ({between})" if result.search.processes else ": what is built is the same at both"
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


def _basis(result: SearchResult) -> list[str]:
    search = result.search
    measured = {place for process in search.processes for place in process}
    lines = [f"Measured {len(measured)} of {len(result.shas)} commits, {len(search.processes)} times side by side."]
    if not measured:
        lines = ["Nothing had to be measured."]
    named = set(result.standing.culprits)
    lines += [
        f"Stepped over {result.shas[place][:SHORT]}: {why}"
        for place, why in sorted(search.unmeasurable.items())
        if place not in named
    ]
    return lines


def to_json(result: SearchResult) -> str:
    """One object; commits in full."""
    return json.dumps(_content(result), indent=2, ensure_ascii=False)


def _content(result: SearchResult) -> dict[str, object]:
    now, shas = result.standing, result.shas
    low, high = (100 * math.expm1(now.effect + side * NORMAL_95 * now.error) for side in (-1, 1))
    return {
        "case": result.case,
        "found": now.kind,
        "culprits": [shas[place] for place in now.culprits],
        "chance": now.chance,
        "change_pct": 100 * math.expm1(now.effect),
        "interval_pct": [low, high],
        "several": [
            {"commit": shas[place], "change_pct": 100 * math.expm1(effect)}
            for place, effect in (zip(now.two.places, now.two.effects, strict=True) if now.two else ())
        ],
        "stepped_over": {shas[place]: why for place, why in sorted(result.search.unmeasurable.items())},
        "processes": len(result.search.processes),
        "inside": inside_to_json(result.inside, _content),
    }


def change(effect: float, error: float) -> str:
    """Such as "1.02% slower (0.91 to 1.13%)"."""
    low, high = sorted(abs(100 * math.expm1(effect + side * NORMAL_95 * error)) for side in (-1, 1))
    amount = abs(100 * math.expm1(effect))
    direction = "slower" if effect > 0 else "faster"
    digits = 2 if amount < 10 else 0
    return f"{amount:.{digits}f}% {direction} ({low:.{digits}f} to {high:.{digits}f}%)"


def _percent(effect: float) -> str:
    return formatting.percent(100 * math.expm1(effect), 2, sign=True)
