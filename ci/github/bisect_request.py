"""What `/kernelgate bisect GOOD [BAD]`, or a dispatch, asks for, and which commits that may be.

Every commit between the two is compiled and run, so both are commits of the default branch or, on a pull request, of
its history: what somebody with write access has merged or has looked at. GitHub finds a commit of any fork by its name;
it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import plan
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.policy.pull_request_rules import Measure, RunnerGpu

BISECT = "bisect"
USAGE = "/kernelgate bisect GOOD [BAD] [--case CARD/ID] [--fuzz] [--build] [--gpu LABEL]"
SearchKind = Literal["time", "fuzz", "build"]
KINDS: tuple[SearchKind, ...] = get_args(SearchKind)


@dataclass(frozen=True)
class BisectRequest:
    """Untrusted words."""

    good: str
    bad: str = ""
    """Empty for the pull request's head, or the default branch's."""
    case: str = ""
    kind: SearchKind = "time"
    gpu: str = ""
    """Its label in the policy; empty for the first one there."""


@dataclass(frozen=True)
class SearchEnds:
    """Commits in full that may be searched, and where."""

    good: str
    bad: str
    gpu: RunnerGpu


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
    if asked.case and not plan.CASE.fullmatch(asked.case):
        return f"not a case id: {visible(asked.case, 60)}"
    if asked.kind == "build" and asked.case:
        return "--build asks whether commits compile, of all cards: leave out --case"
    return None


def ends(bot: Bot, asked: BisectRequest, number: int | None, rules: Measure) -> SearchEnds:
    """The commits that are meant. `number`: of the issue or pull request where it was asked, if any.

    Raises UsageError where they are not to be searched, with the reason.
    """
    if (fault := wrong(asked)) is not None:
        raise UsageError(fault)
    gpu = plan.one_gpu(rules, asked.gpu)
    head = patiently("issue", lambda: _head(bot, number), bot) if number is not None else None
    default = plan.commit(bot, "HEAD")
    good = plan.commit(bot, asked.good)
    bad = plan.commit(bot, asked.bad) if asked.bad else head or default
    for name, sha in ((asked.good, good), (asked.bad, bad)):
        if not any(plan.merge_base(bot, sha, tip) == sha for tip in (default, head) if tip):
            where = "the default branch, nor of this pull request" if head else "the default branch"
            raise UsageError(f"{visible(name or bad, 60)} ({sha[:12]}) is refused: it is no commit of {where}")
    if good == bad:
        raise UsageError(f"GOOD and BAD are the same commit, {good[:12]}: there is nothing between them")
    if plan.merge_base(bot, good, bad) != good:
        raise UsageError(f"{good[:12]} is no ancestor of {bad[:12]}: name a good commit that the bad one came from")
    return SearchEnds(good, bad, gpu)


def _head(bot: Bot, number: int) -> str | None:
    """Of the pull request of this number; None where it is an issue."""
    issue = bot.repository.get_issue(number)
    if "pull_request" not in issue.raw_data:
        return None
    return str(bot.repository.get_pull(number).raw_data["head"]["sha"])
