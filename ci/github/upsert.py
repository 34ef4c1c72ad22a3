"""What the bot keeps on a pull request or issue: comments, labels and a block of the description.

Each is found again by its author and its hidden last line, then edited in place; anybody can copy a last line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from github import GithubException
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest

from kernelgate.bench.record import Run
from kernelgate.ci.document import render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.client import Bot, GitHubError, request, until_done
from kernelgate.ci.github.description import filled
from kernelgate.ci.judge.gate import Label

VERDICTS = (Label.IMPROVED, Label.REGRESSED, Label.UNCHANGED)

_UPLOADED = re.compile(r"/actions/runs/\d{1,18}/artifacts/\d{1,18}\b")
Written = TypeVar("Written", Issue, IssueComment)


@dataclass(frozen=True)
class Stamp:
    head_sha: str
    run_id: int
    run_attempt: int

    @classmethod
    def of(cls, run: Run) -> Stamp:
        """Of a run that GitHub names; it has all three."""
        return cls(run.head_sha or "", run.run_id or 0, run.run_attempt or 1)

    @property
    def order(self) -> tuple[int, int]:
        return self.run_id, self.run_attempt


@dataclass(frozen=True)
class Posted:
    """What a step found or did."""

    outcome: str
    left: bool = False
    """This result was not to change anything, …"""
    outdated: bool = False
    """… since it is of another commit, or the pull request is closed."""
    error: GitHubError | None = None
    """Why nothing was done."""


def outdated(pull: PullRequest, stamp: Stamp) -> Posted | None:
    """Why this result may not change what the pull request shows; None where it may."""
    if pull.state != "open":
        return Posted("left alone: the pull request is closed", left=True, outdated=True)
    if pull.head.sha != stamp.head_sha:
        why = f"the result is for {stamp.head_sha[:7]}, and the head is {pull.head.sha[:7]} by now"
        return Posted(f"left alone: {why}", left=True, outdated=True)
    return None


def same_text(old: str | None, new: str) -> bool:
    """Equal but for line ends and space around, which GitHub may change, and for which attempt uploaded the page."""
    old, new = (_UPLOADED.sub("", text.replace("\r\n", "\n").strip()) for text in (old or "", new))
    return old == new


def own(bot: Bot, every: Iterable[Written], last: re.Pattern[str]) -> list[tuple[Written, re.Match[str]]]:
    """Those of the bot with such a last line, the oldest first, each with its match."""
    mine = [each for each in every if each.user is not None and each.user.login == bot.login]
    lines = [(each, (each.body or "").rstrip().rsplit("\n", 1)[-1].strip()) for each in mine]
    found = [(each, match) for each, line in lines if (match := last.fullmatch(line))]
    return sorted(found, key=lambda pair: pair[0].id)


def of_another_author(bot: Bot, created: Issue | IssueComment) -> str | None:
    """Why what was just created would not be found again, so that each run would add another."""
    if created.user.login == bot.login:
        return None
    return f"the token posts as {visible(created.user.login)}, not as {bot.login}: set KERNELGATE_BOT to it"


def _state(topic: str) -> re.Pattern[str]:
    return re.compile(
        rf"<!-- kernelgate-state topic={topic} "
        r"head=(?P<head>[0-9a-f]{40,64}) run=(?P<run>\d{1,18}) attempt=(?P<attempt>\d{1,6}) -->"
    )


def state_line(topic: str, stamp: Stamp) -> str:
    """The hidden last line that finds a comment on a run's result again and says whose result it holds."""
    run = f"run={stamp.run_id} attempt={stamp.run_attempt}"
    return f"<!-- kernelgate-state topic={topic} head={stamp.head_sha} {run} -->"


def _stamp(found: re.Match[str]) -> Stamp:
    return Stamp(found["head"], int(found["run"]), int(found["attempt"]))


def shown(bot: Bot, number: int, topic: str = "verdict") -> tuple[Stamp, str] | None:
    """Whose result the bot's comment on the pull request holds, and its text; None where it has none."""
    found = own(bot, bot.repository.get_issue(number).get_comments(), _state(topic))
    told = ((_stamp(match), one.body or "") for one, match in found)
    return max(told, key=lambda one: one[0].order, default=None)


def shown_stamp(bot: Bot, number: int) -> Stamp | None:
    found = shown(bot, number)
    return found and found[0]


def put_comment(
    bot: Bot,
    number: int,
    texts: Sequence[str],
    stamp: Stamp | None,
    topic: str = "verdict",
    begin: bool = True,
    line: str = "",
) -> Posted:
    """The pull request has one comment of the bot on this topic, and it holds `texts[0]`, or the result of a newer run.
    `texts`: the same, ever shorter, for where GitHub finds one too long. `begin`: else only a comment that is there is
    edited. `line`: the last line of one that holds no run's result, and has no `stamp`; an issue may have it, too."""
    last = state_line(topic, stamp) if stamp is not None else line
    like = _state(topic) if stamp is not None else re.compile(re.escape(line))
    bodies = [f"{text.rstrip()}\n{last}" for text in texts if len(text) + len(last) < render.COMMENT_LIMIT]
    if not bodies:
        raise GitHubError(f"comment: even the shortest text is over {render.COMMENT_LIMIT} characters")
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        if stamp is not None and (late := outdated(bot.repository.get_pull(number), stamp)) is not None:
            return late
        issue = bot.repository.get_issue(number)
        found = own(bot, issue.get_comments(), like)
        others = [_stamp(match) for _, match in found] if stamp is not None else []
        if stamp and any(other.head_sha == stamp.head_sha and other.order > stamp.order for other in others):
            return Posted("left alone: it holds the result of a newer run of the same commit", left=True)
        if not found and not begin:
            return Posted("left alone: there is none to correct", left=True)
        try:
            if not found:
                outcome = "created"
                created = issue.create_comment(bodies[0])
                if (why := of_another_author(bot, created)) is not None:
                    created.delete()
                    raise GitHubError(f"comment: {why}")
                # Somebody else may have begun one at the same time: another look removes the later one.
                return None
            if not same_text(found[0][0].body, bodies[0]):
                outcome = "created" if outcome == "created" else "edited"
                found[0][0].edit(bodies[0])
            elif len(found) > 1:
                found[-1][0].delete()
                return None
        except GithubException as error:
            if found and error.status == 404:
                bot.step.log("comment: it was deleted in between; looking again")
            elif error.status == 422 and len(bodies) > 1:
                bot.step.log(f"comment: {len(bodies[0])} characters are too long for GitHub; using the shorter text")
                bodies.pop(0)
            else:
                raise
            return None
        return Posted(outcome) if len(found) == 1 else None

    return until_done("comment", step, bot)


def say(bot: Bot, text: str, put: Callable[[], Posted]) -> None:
    """Puts the text into a comment. Where the bot may not comment, the log says so; the summary has it in any case."""
    try:
        bot.step.log(f"comment: {put().outcome}")
    except GitHubError as error:
        bot.step.warn(str(error))
    bot.step.summary(text)


def put_labels(
    bot: Bot, number: int, labels: Collection[Label], stamp: Stamp, among: Collection[Label] = tuple(Label)
) -> Posted:
    """Of the labels `among` ours the pull request carries `labels` alone."""
    done: list[str] = []

    def step() -> Posted | None:
        pull = bot.repository.get_pull(number)
        if (late := outdated(pull, stamp)) is not None:
            return late
        there = {found.name for found in pull.labels}
        stale = [other for other in among if other not in labels and other in there]
        if stale:
            done.append(f"removed {stale[0].value!r}")
            try:
                pull.remove_from_labels(stale[0].value)
            except GithubException as error:
                if error.status != 404:
                    raise
                bot.step.log("label: it was removed in between; looking again")
            return None
        new = [label.value for label in among if label in labels and label not in there]
        if new:
            done.extend(f"added {label!r}" for label in new)
            # PyGithub sends a bare list here, which GitHub's description does not allow.
            answer = request(bot, "POST", f"{pull.issue_url}/labels", {"labels": new})
            there = {found["name"] for found in answer}
        if any(other in there for other in among if other not in labels):
            return None
        return Posted(", ".join(dict.fromkeys(done)) or "unchanged")

    return until_done("label", step, bot)


def put_results(bot: Bot, number: int, text: str, stamp: Stamp) -> Posted:
    """The block in the description holds `text`, unless its author wrote there, or the result is of an older commit. It
    is read right before each write, since authors edit; and written once, since an edit may start workflows."""
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        pull = bot.repository.get_pull(number)
        if (late := outdated(pull, stamp)) is not None:
            return late
        made = filled(pull.body or "", text)
        if made is None:
            return Posted("left alone: it has no place for results, or somebody else's words in it", left=True)
        if made == pull.body:
            return Posted(outcome)
        outcome = "results filled in"
        pull.edit(body=made)
        return None

    return until_done("description", step, bot)
