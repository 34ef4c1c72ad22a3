"""A search for a commit that somebody asked for: which commits that may be, and the comment that answers it.

Every commit between the two ends is compiled and run, so both are commits of the default branch or, on a pull request,
of its history: what somebody with write access has merged or has looked at. GitHub finds a commit of any fork by its
name; it is refused. Each run has one comment, begun where it was asked for and edited into the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import click
from pydantic import TypeAdapter, ValidationError

from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.ci.bisect import answers
from kernelgate.ci.bisect.answers import BisectAnswer, CompiledAnswer, FailingAnswer, Found, NothingFails, TimedAnswer
from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Block, Paragraph, Strong, Verbatim
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
ANSWER = "answer.json"
MAX_BYTES = 1024 * 1024
MAX_SHOWN = 8
"""Commits that are named in a list; those alone are asked for on GitHub."""
MAX_DEPTH = 4
"""Of submodules in submodules."""
MAX_LINES, MAX_LINE = 40, 300
"""Of the answer's own words: lines, and characters of one."""
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


_WORDS = click.Command(
    "bisect",
    params=[
        click.Argument(["good"]),
        click.Argument(["bad"], required=False, default=""),
        *(click.Option([name], default="") for name in ("--case", "--gpu")),
        *(click.Option([f"--{kind}"], is_flag=True) for kind in KINDS[1:]),
    ],
    add_help_option=False,
)


def parsed(words: Sequence[str]) -> BisectRequest | str:
    """What the words after `bisect` ask for; else what is wrong with them."""
    try:
        given = _WORDS.make_context("bisect", list(words)).params
    except click.UsageError as error:
        return f"{visible(error.format_message(), 100)} Write {USAGE}"
    kinds = [kind for kind in KINDS[1:] if given.pop(kind)]
    if len(kinds) > 1:
        return "--fuzz and --build are two searches: ask for one of them"
    asked = BisectRequest(**given, kind=kinds[0] if kinds else "time")
    return wrong(asked) or asked


def wrong(asked: BisectRequest) -> str | None:
    """What is wrong with a request before anything is asked of GitHub; None where nothing is."""
    if asked.case and (fault := plan.case_fault([asked.case])):
        return fault
    if asked.kind == "build" and asked.case:
        return "--build asks whether commits compile, of all cards: leave out --case"
    return None


def ends(bot: Bot, asked: BisectRequest, number: int | None, rules: Measure) -> tuple[str, str, RunnerGpu]:
    """The commits that are meant, in full, and where they may be searched. `number`: of the issue or pull request where
    it was asked, if any. Raises UsageError where they are not to be searched."""
    if (fault := wrong(asked)) is not None:
        raise UsageError(fault)
    gpu, head = plan.gpus(rules, asked.gpu)[0], None
    if number is not None:
        issue = patiently("issue", lambda: bot.repository.get_issue(number).raw_data, bot)
        head = read_pull(bot, number).head.sha if "pull_request" in issue else None
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


def text_of(bot: Bot, folder: Path, asked: BisectRequest) -> str:
    """What is said of the answer in a folder: also why it is none, and why it is refused."""
    try:
        found = read(folder, asked.kind)
        if found is None or isinstance(found, FailureNote):
            return failed(visible(found.message) if found else NO_ANSWER, asked)
        _hold(bot, found, asked)
    except RefusedError as error:
        return failed(str(error), asked)
    return answered(found, asked, Links(bot.step.repository_url))


def put_search(bot: Bot, number: int, text: str, refused: bool = False) -> None:
    """The issue or pull request, open or closed, has one comment of this run, or of all that was refused: `text`."""
    line = f"<!-- kernelgate-bisect run={0 if refused else bot.step.run_id} -->"
    upsert.say(bot, text, lambda: upsert.put_comment(bot, number, (text,), None, line=line))


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
        if depth(found) > MAX_DEPTH:
            raise RefusedError(f"the answer is refused: submodules lie more than {MAX_DEPTH - 1} deep in it")
        return found
    note = untrusted_artifact.read_file(folder / untrusted_artifact.FAILURE, MAX_BYTES)
    return untrusted_artifact.checked_failure(note, "the search's note") if note is not None else None


def depth(found: BisectAnswer) -> int:
    inner = getattr(found, "inside", None)
    return 1 + (depth(inner) if isinstance(inner, TimedAnswer | FailingAnswer | CompiledAnswer) else 0)


def _hold(bot: Bot, found: BisectAnswer, asked: BisectRequest) -> None:
    """Raises RefusedError where it is about another case, or names no commit, or one that is not in the range."""
    own, good, bad = getattr(found, "case", ""), asked.good, asked.bad
    if asked.case and own and own != asked.case and not own.endswith(f"/{asked.case}"):
        raise RefusedError(f"the answer is refused: it is about {visible(own, 80)}, and {asked.case} was asked for")
    if getattr(found, "found", "") == "found" and not found.culprits:
        raise RefusedError("the answer is refused: it names no commit that was found")
    shown = [*found.culprits[:MAX_SHOWN], *_several(found)]
    if isinstance(found, CompiledAnswer) and found.last_that_compiles != good:
        shown.append(found.last_that_compiles)
    for sha in dict.fromkeys(shown):
        if sha == good or not plan.is_of(bot, sha, bad) or merge_base(bot, good, sha) != good:
            raise RefusedError(f"the answer is refused: {sha[:12]} is no commit after {good[:12]} up to {bad[:12]}")


def _several(found: BisectAnswer) -> list[str]:
    return [one.commit for one in found.several] if isinstance(found, TimedAnswer) else []


_TITLES = {
    "found": "Since",
    "several": "More than one commit changed the time:",
    "none": "Nothing to find: both ends do the same.",
    "open": "Not found.",
}


def answered(found: BisectAnswer, asked: BisectRequest, on_github: Links) -> str:
    """Markdown: the commits, and below them the answer in its own words, as a block of text that they cannot end."""
    title = "Does not compile since" if isinstance(found, CompiledAnswer) else _TITLES[found.found]
    commits = _several(found) or found.culprits[:MAX_SHOWN]
    named = formatting.separated(links.commit(sha, "", on_github) for sha in commits)
    command = _command(found, asked)
    said = found.why if isinstance(found, NothingFails) else answers.text(_bounded(found, command))
    lines = [escape.verbatim(line[:MAX_LINE]) for line in said.split("\n")]
    left = [f"and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    own = Verbatim((*lines[:MAX_LINES], *left), "text")
    likeliest = " Likeliest: " if title == _TITLES["open"] else " "
    first = Paragraph((Strong(title), *((likeliest, *named) if named else ())))
    return _repeatable((first, own), command, asked)


def _bounded(found: Found, command: str) -> Found:
    """With the command to repeat that is ours, and no commits but those that were held to the range."""
    change: dict[str, object] = {"culprits": found.culprits[:MAX_SHOWN]}
    if isinstance(found, FailingAnswer):
        change["repeat"] = command
    if isinstance(found.inside, TimedAnswer | FailingAnswer | CompiledAnswer):
        change["inside"] = _bounded(found.inside, command)
    return found.model_copy(update=change)


def failed(why: str, asked: BisectRequest) -> str:
    return _repeatable((Paragraph((Strong("No answer:"), " ", why)),), _command(None, asked), asked)


def _repeatable(said: tuple[Block, ...], command: str, asked: BisectRequest) -> str:
    where = "with its compilers" if asked.kind == "build" else "on such a machine"
    return render.blocks((*said, Paragraph((Strong("Repeat it"), f" {where}:")), Verbatim((command,))))


def _command(found: BisectAnswer | None, asked: BisectRequest) -> str:
    # What the answer says of its case and seed is held to its form; no other word of it becomes a command.
    words = ["kernelgate", "bisect", asked.good, asked.bad]
    words += [f"--{asked.kind}"] if asked.kind != "time" else []
    case = getattr(found, "case", "") or asked.case
    words += ["--case", case] if case else []
    words += ["--seed", str(found.seed)] if isinstance(found, FailingAnswer) else []
    return escape.shell(*words)
