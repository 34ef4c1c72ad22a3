"""A search for a commit that somebody asked for: which commits that may be, and the comment that answers it.

Every commit between the two ends is compiled and run, so both are commits of the default branch or, on a pull request,
of its history: what somebody with write access has merged or has looked at. GitHub finds a commit of any fork by its
name; it is refused. Each run has one comment, begun where it was asked for and edited into the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.ci.bisect.answers import (
    BisectAnswer,
    CompiledAnswer,
    FailingAnswer,
    NothingFails,
    NotSearched,
    TimedAnswer,
)
from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Paragraph, Strong, Verbatim
from kernelgate.ci.github import plan, untrusted_artifact, upsert
from kernelgate.ci.github.client import Bot, merge_base, patiently, read_pull
from kernelgate.ci.github.untrusted_artifact import FailureNote, RefusedError
from kernelgate.ci.policy.policy import Measure, RunnerGpu
from kernelgate.ci.report import links
from kernelgate.ci.report.links import Links

BISECT = "bisect"
USAGE = "/kernelgate bisect GOOD [BAD] [--case CARD/ID] [--fuzz] [--build] [--gpu LABEL]"
SearchKind = Literal["time", "fuzz", "build"]
KINDS: tuple[SearchKind, ...] = get_args(SearchKind)
ANSWER, FAILURE = "answer.json", "failure.json"
MAX_BYTES = 1024 * 1024
MAX_SHOWN = 8
"""Commits that are named in a list; those alone are asked for on GitHub."""
MAX_DEPTH = 4
"""Of submodules in submodules."""
SHORT = 12
NO_ANSWER = (
    "The search ended without an answer, and left no reason: it was cancelled, ran out of time, or the machine was "
    "lost. The log of its run may say more."
)


@dataclass(frozen=True)
class BisectRequest:
    good: str
    bad: str = ""
    """Empty for the pull request's head, or the default branch's."""
    case: str = ""
    kind: SearchKind = "time"
    gpu: str = ""
    """Its label in the policy; empty for the first one there."""


def parsed(words: Sequence[str]) -> BisectRequest | str:
    """What the words after `bisect` ask for; else what is wrong with them."""
    names, options, left = list[str](), dict[str, str](), list(words)
    while left:
        word, equals, value = left.pop(0).partition("=")
        if word in ("--case", "--gpu"):
            value = value if equals or not left else left.pop(0)
            if not value:
                return f"{word} lacks its value: {USAGE}"
        elif word.startswith("-") and (word not in ("--fuzz", "--build") or equals):
            return f"no option of bisect: {visible(word, 60)}; write {USAGE}"
        if word.startswith("-"):
            if word in options:
                return f"{word} is given twice"
            options[word] = value
        else:
            names.append(word + equals + value)
    if not 1 <= len(names) <= 2:
        return f"name one or two commits, branches or tags, not {len(names)}: {USAGE}"
    good, bad = (*names, "")[:2]
    asked = BisectRequest(good, bad, options.get("--case", ""), gpu=options.get("--gpu", ""))
    kinds = [kind for kind in KINDS if f"--{kind}" in options]
    if len(kinds) > 1:
        return "--fuzz and --build are two searches: ask for one of them"
    asked = replace(asked, kind=kinds[0]) if kinds else asked
    return wrong(asked) or asked


def wrong(asked: BisectRequest) -> str | None:
    """What is wrong with a request before anything is asked of GitHub; None where nothing is."""
    if asked.case and (fault := plan.case_fault([asked.case])):
        return fault
    if asked.kind == "build" and asked.case:
        return "--build asks whether commits compile, of all cards: leave out --case"
    return None


def ends(bot: Bot, asked: BisectRequest, number: int | None, rules: Measure) -> tuple[str, str, RunnerGpu]:
    """The commits that are meant, in full, and where they may be searched.

    `number`: of the issue or pull request where it was asked, if any. Raises UsageError where
    they are not to be searched, with the reason.
    """
    if (fault := wrong(asked)) is not None:
        raise UsageError(fault)
    gpu = plan.one_gpu(rules, asked.gpu)
    head = None
    issue = patiently("issue", lambda: bot.repository.get_issue(number).raw_data, bot) if number is not None else {}
    if number is not None and "pull_request" in issue:
        head = read_pull(bot, number).head.sha
    default = plan.commit(bot, "HEAD")
    good = plan.commit(bot, asked.good)
    bad = plan.commit(bot, asked.bad) if asked.bad else head or default
    for name, sha in ((asked.good, good), (asked.bad, bad)):
        if not any(merge_base(bot, sha, tip) == sha for tip in (default, head) if tip):
            where = "the default branch, nor of this pull request" if head else "the default branch"
            raise UsageError(f"{visible(name or bad, 60)} ({sha[:12]}) is refused: it is no commit of {where}")
    if good == bad:
        raise UsageError(f"GOOD and BAD are the same commit, {good[:12]}: there is nothing between them")
    if merge_base(bot, good, bad) != good:
        raise UsageError(f"{good[:12]} is no ancestor of {bad[:12]}: name a good commit that the bad one came from")
    return good, bad, gpu


# The answer -----------------------------------------------------------------------------------------------------------


def text_of(bot: Bot, folder: Path, asked: BisectRequest) -> str:
    """What is said of the answer in a folder: also why it is none, and why it is refused."""
    try:
        found = read(folder, asked.kind)
        if found is None:
            return failed(NO_ANSWER, asked)
        if isinstance(found, FailureNote):
            return failed(visible(found.message), asked)
        hold(bot, found, (asked.good, asked.bad), asked.case)
    except RefusedError as error:
        return failed(str(error), asked)
    return answered(found, asked, Links(bot.step.repository_url))


def put_search(bot: Bot, number: int, text: str, refused: bool = False) -> None:
    """The issue or pull request has one comment of this run, or of all that was refused, and it holds `text`.

    Where the bot may not comment, the log and the summary say it.
    """
    run = 0 if refused else int(bot.step.environment.get("GITHUB_RUN_ID") or 0)
    upsert.say(bot, number, text, f"<!-- kernelgate-bisect run={run} -->")


_FORMS: dict[SearchKind, Any] = {
    "time": TypeAdapter(TimedAnswer),
    "fuzz": TypeAdapter(FailingAnswer | NothingFails),
    "build": TypeAdapter(CompiledAnswer),
}


def read(folder: Path, kind: SearchKind) -> BisectAnswer | FailureNote | None:
    """The answer in a folder, else why there is none; None where not even that is there. Raises RefusedError."""
    if (data := untrusted_artifact.read_file(folder / ANSWER, MAX_BYTES)) is not None:
        untrusted_artifact.plain_json(data, ANSWER)
        try:
            found: BisectAnswer = _FORMS[kind].validate_json(data)
        except ValidationError as error:
            raise RefusedError(f"the answer is refused: it does not fit its schema: {visible(faults(error))}") from None
        if len(levels(found)) > MAX_DEPTH:
            raise RefusedError(f"the answer is refused: submodules lie more than {MAX_DEPTH - 1} deep in it")
        return found
    note = untrusted_artifact.read_file(folder / FAILURE, MAX_BYTES)
    return untrusted_artifact.checked_failure(note, "the search's note") if note is not None else None


def levels(found: BisectAnswer) -> list[BisectAnswer]:
    every: list[BisectAnswer] = [found]
    while isinstance(inner := getattr(every[-1], "inside", None), TimedAnswer | FailingAnswer | CompiledAnswer):
        every.append(inner)
    return every


def shown(found: BisectAnswer) -> list[str]:
    several = [one.commit for one in found.several] if isinstance(found, TimedAnswer) else []
    last = [found.last_that_compiles] if isinstance(found, CompiledAnswer) else []
    return list(dict.fromkeys([*found.culprits[:MAX_SHOWN], *several, *last]))


def hold(bot: Bot, found: BisectAnswer, ends: tuple[str, str], case: str) -> None:
    """Raises RefusedError where it is about another case, or names no commit, or one that is not in the range."""
    own = getattr(found, "case", "")
    if case and own and own != case and not own.endswith(f"/{case}"):
        raise RefusedError(f"the answer is refused: it is about {visible(own, 80)}, and {case} was asked for")
    if getattr(found, "found", "") == "found" and not getattr(found, "culprits", ()):
        raise RefusedError("the answer is refused: it names no commit that was found")
    good, bad = ends
    for sha in shown(found):
        if isinstance(found, CompiledAnswer) and sha == found.last_that_compiles == good:
            continue
        if sha == good or not plan.is_of(bot, sha, bad) or merge_base(bot, good, sha) != good:
            raise RefusedError(f"the answer is refused: {sha[:12]} is no commit after {good[:12]} up to {bad[:12]}")


def answered(found: BisectAnswer, asked: BisectRequest, on_github: Links) -> str:
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


def failed(why: str, asked: BisectRequest) -> str:
    return render.blocks((Paragraph((Strong("No answer:"), " ", why)), *_repeat(None, asked)))


def _level(found: BisectAnswer, on_github: Links) -> list[Block]:
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
    change = (Strong(formatting.moved(found.change_pct, 2)), f" {_between(found)}")
    if found.found == "none":
        measured = f" ({_between(found)})" if found.processes else ": what is built is the same at both"
        return [Paragraph((*about, Strong("no change:"), f" both ends take the same time{measured}."))]
    basis = Paragraph((f"Timed side by side {found.processes} times; the interval holds 95%.",))
    if found.found == "several":
        each = tuple(
            (*links.commit(one.commit, "", on_github), f" {formatting.percent(one.change_pct, 2, sign=True)}")
            for one in found.several
        )
        by = f" changed the time, {formatting.chance(found.chance)}: by these."
        return [
            Paragraph((*about, Strong("more than one commit"), by)),
            Bullets(each),
            Paragraph(("Search the part before each by itself.",)),
            basis,
        ]
    if found.found == "open":
        return [Paragraph((*about, Strong("not found."), *_likeliest(found, on_github))), basis]
    return [Paragraph((*about, *change, *_since(found.culprits, found.chance, on_github))), basis]


def _failing(found: FailingAnswer, on_github: Links) -> list[Block]:
    about: Line = (Code(found.case), f" (seed {found.seed}): ")
    if found.found == "none":
        return [Paragraph((*about, Strong("passes"), f" in {found.runs} of {found.runs} runs at the bad end."))]
    if found.found == "open":
        first: Line = (*about, Strong("not found."), *_likeliest(found, on_github))
    else:
        first = (*about, Strong("fails"), *_since(found.culprits, found.chance, on_github))
    often = f"It fails in {found.failed} of {found.runs} runs at the bad end; a commit was called good after "
    return [Paragraph(first), Paragraph((f"{often}{found.passes} that passed. ", Code(found.fault, 300)))]


def _likeliest(found: TimedAnswer | FailingAnswer, on_github: Links) -> Line:
    if not found.culprits:
        return ()
    return (" Likeliest: ", *_commits(found.culprits, on_github), f", {formatting.chance(found.chance)}.")


def _since(culprits: Sequence[str], sure: float, on_github: Links) -> Line:
    if len(culprits) == 1:
        return (" since ", *_commits(culprits, on_github), f", {formatting.chance(sure)}.")
    told = ". They cannot be told apart: nothing between them can be measured."
    return (" since one of ", *_commits(culprits, on_github), f", {formatting.chance(sure)}{told}")


def _commits(culprits: Sequence[str], on_github: Links) -> Line:
    shown = formatting.separated(links.commit(sha, "", on_github) for sha in culprits[:MAX_SHOWN])
    left = len(culprits) - MAX_SHOWN
    return (*shown, f" and {left} more") if left > 0 else shown


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


def _repeat(found: BisectAnswer | None, asked: BisectRequest) -> list[Block]:
    # What the answer says of its case and seed is held to its form; no other word of it becomes a command.
    words = ["kernelgate", "bisect", asked.good, asked.bad]
    words += ["--build"] if asked.kind == "build" else ["--fuzz"] if asked.kind == "fuzz" else []
    case = getattr(found, "case", "") or asked.case
    words += ["--case", case] if case else []
    words += ["--seed", str(found.seed)] if isinstance(found, FailingAnswer) else []
    where = "with its compilers" if asked.kind == "build" else "on such a machine"
    return [Paragraph((Strong("Repeat it"), f" {where}:")), Verbatim((escape.shell(*words),))]
