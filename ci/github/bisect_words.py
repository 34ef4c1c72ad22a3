"""What a comment says of a search for a commit: which, how much, how sure, what was stepped over, how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Paragraph, Piece, Strong, Verbatim
from kernelgate.ci.github.bisect_answer import (
    MAX_SHOWN,
    CompiledAnswer,
    FailingAnswer,
    Found,
    NothingFails,
    NotSearched,
    TimedAnswer,
    levels,
)
from kernelgate.ci.github.bisect_request import SearchKind
from kernelgate.ci.report import links
from kernelgate.ci.report.links import Links

SHORT = 12
NO_ANSWER = (
    "The search ended without an answer, and left no reason: it was cancelled, ran out of time, or the machine was "
    "lost. The log of its run may say more."
)


@dataclass(frozen=True)
class Searched:
    """What was asked for."""

    good: str
    bad: str
    kind: SearchKind
    case: str
    """Empty where none was named."""


def answered(found: Found, asked: Searched, on_github: Links) -> str:
    """Markdown. All that the answer says stands in it as text."""
    every = levels(found)
    parts: list[Block] = _level(found, on_github)
    for inner in every[1:]:
        moved = getattr(inner, "submodule", "")
        parts += [Paragraph((Strong("Inside"), " the submodule ", Code(moved), ", which it moves:"))]
        parts += _level(inner, Links())
    if isinstance(last := getattr(every[-1], "inside", None), NotSearched):
        parts.append(Paragraph(("Which commit of a submodule it was is not known: ", Code(last.why, 300))))
    return render.blocks((*parts, *_repeat(found, asked)))


def failed(why: str, asked: Searched) -> str:
    """Markdown: why there is no answer."""
    return render.blocks((Paragraph((Strong("No answer:"), " ", why)), *_repeat(None, asked)))


def _level(found: Found, on_github: Links) -> list[Block]:
    if isinstance(found, NothingFails):
        return [Paragraph((Strong("Nothing to find:"), " no fuzz case fails at the bad end. ", Code(found.why, 300)))]
    if isinstance(found, CompiledAnswer):
        last, broken = (links.commit(sha, "", on_github) for sha in (found.last_that_compiles, found.culprits[0]))
        line: Line = (Strong("Does not compile"), " since ", *broken, "; the last commit that compiles is ", *last, ".")
        return [Paragraph(line), Paragraph((Code(found.why, 300),))]
    head = _timed(found, on_github) if isinstance(found, TimedAnswer) else _failing(found, on_github)
    return [*head, *_stepped_over(found.stepped_over)]


def _timed(found: TimedAnswer, on_github: Links) -> list[Block]:
    about: Line = (Code(found.case), ": ")
    change = (Strong(_change(found)), f" {_between(found)}")
    if found.found == "none":
        measured = f" ({_between(found)})" if found.processes else ": what is built is the same at both"
        return [Paragraph((*about, Strong("no change:"), f" both ends take the same time{measured}."))]
    basis = Paragraph((f"Timed side by side {found.processes} times; the interval holds 95%.",))
    if found.found == "several":
        each = tuple(
            (*links.commit(one.commit, "", on_github), f" {formatting.percent(one.change_pct, 2, sign=True)}")
            for one in found.several
        )
        said: Line = (
            Strong("more than one commit"),
            f" changed the time, {formatting.chance(found.chance)}: by these.",
        )
        return [
            Paragraph((*about, *said)),
            Bullets(each),
            Paragraph(("Search the part before each by itself.",)),
            basis,
        ]
    if found.found == "open":
        likely = (" Likeliest: ", *_commits(found.culprits, on_github), f", {formatting.chance(found.chance)}.")
        return [Paragraph((*about, Strong("not found."), *(likely if found.culprits else ()))), basis]
    return [Paragraph((*about, *change, *_since(found.culprits, found.chance, on_github))), basis]


def _failing(found: FailingAnswer, on_github: Links) -> list[Block]:
    about: Line = (Code(found.case), f" (seed {found.seed}): ")
    if found.found == "none":
        return [Paragraph((*about, Strong("passes"), f" in {found.runs} of {found.runs} runs at the bad end."))]
    if found.found == "open":
        likely = (" Likeliest: ", *_commits(found.culprits, on_github), f", {formatting.chance(found.chance)}.")
        first: Line = (*about, Strong("not found."), *(likely if found.culprits else ()))
    else:
        first = (*about, Strong("fails"), *_since(found.culprits, found.chance, on_github))
    often = f"It fails in {found.failed} of {found.runs} runs at the bad end; a commit was called good after "
    return [Paragraph(first), Paragraph((f"{often}{found.passes} that passed. ", Code(found.fault, 300)))]


def _since(culprits: Sequence[str], sure: float, on_github: Links) -> Line:
    if len(culprits) == 1:
        return (" since ", *_commits(culprits, on_github), f", {formatting.chance(sure)}.")
    told = ". They cannot be told apart: nothing between them can be measured."
    return (" since one of ", *_commits(culprits, on_github), f", {formatting.chance(sure)}{told}")


def _commits(culprits: Sequence[str], on_github: Links) -> Line:
    shown: list[Piece] = []
    for sha in culprits[:MAX_SHOWN]:
        shown += [", " if shown else "", *links.commit(sha, "", on_github)]
    left = len(culprits) - MAX_SHOWN
    return (*shown, f" and {left} more") if left > 0 else tuple(shown)


def _change(found: TimedAnswer) -> str:
    return f"{formatting.percent(abs(found.change_pct), 2)} {'slower' if found.change_pct > 0 else 'faster'}"


def _between(found: TimedAnswer) -> str:
    low, high = (formatting.percent(bound, 2, sign=True) for bound in sorted(found.interval_pct))
    return f"({low} to {high})" if found.found != "none" else f"{low} to {high}"


def _stepped_over(reasons: Mapping[str, str]) -> list[Block]:
    if not reasons:
        return []
    lines: list[Line] = [(Code(sha[:SHORT]), ": ", Code(why, 160)) for sha, why in list(reasons.items())[:MAX_SHOWN]]
    if (left := len(reasons) - len(lines)) > 0:
        lines.append((f"and {left} more",))
    stepped = formatting.counted(len(reasons), "commit")
    return [Paragraph((Strong("Stepped over"), f" {stepped}, which could not be measured:")), Bullets(tuple(lines))]


def _repeat(found: Found | None, asked: Searched) -> list[Block]:
    # What the answer says of its case and seed is held to its form; no other word of it becomes a command.
    words = ["kernelgate", "bisect", asked.good, asked.bad]
    words += ["--build"] if asked.kind == "build" else ["--fuzz"] if asked.kind == "fuzz" else []
    case = getattr(found, "case", "") or asked.case
    words += ["--case", case] if case else []
    words += ["--seed", str(found.seed)] if isinstance(found, FailingAnswer) else []
    where = "with its compilers" if asked.kind == "build" else "on such a machine"
    return [Paragraph((Strong("Repeat it"), f" {where}:")), Verbatim((escape.shell(*words),))]
