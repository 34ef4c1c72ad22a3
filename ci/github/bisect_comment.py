"""The comment of a search for a commit: one for each run, begun where it was asked for and edited into the answer."""

from __future__ import annotations

import re
from pathlib import Path

from github.IssueComment import IssueComment

from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import bisect_answer, bisect_words
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.bisect_words import Searched
from kernelgate.ci.github.client import Bot, GitHubError, until_done
from kernelgate.ci.github.stamp import same_text
from kernelgate.ci.github.untrusted_artifact import FailureNote, RefusedError
from kernelgate.ci.report.links import Links

_LAST = re.compile(r"<!-- kernelgate-bisect run=(?P<run>\d{1,18}) -->")


def text_of(bot: Bot, folder: Path, asked: Searched) -> str:
    """What is said of the answer in a folder: also why it is none, and why it is refused."""
    try:
        found = bisect_answer.read(folder, asked.kind)
        if found is None:
            return bisect_words.failed(bisect_words.NO_ANSWER, asked)
        if isinstance(found, FailureNote):
            return bisect_words.failed(visible(found.message), asked)
        bisect_answer.hold(bot, found, (asked.good, asked.bad), asked.case)
    except RefusedError as error:
        return bisect_words.failed(str(error), asked)
    return bisect_words.answered(found, asked, _links(bot.step))


def put_search(bot: Bot, number: int, text: str, refused: bool = False) -> None:
    """The issue or pull request has one comment of this run, or of all that was refused, and it holds `text`.

    Where the bot may not comment, the log and the summary say it.
    """
    run = 0 if refused else int(bot.step.environment.get("GITHUB_RUN_ID") or 0)
    body = f"{text.rstrip()}\n<!-- kernelgate-bisect run={run} -->"

    def step() -> str | None:
        issue = bot.repository.get_issue(number)
        own = [one for one in issue.get_comments() if _run_of(bot, one) == run]
        if not own:
            if issue.create_comment(body).user.login == bot.login:
                return "created"
            # It would not be found again, and the answer would become another.
            raise GitHubError(f"the token does not post as {bot.login}: set KERNELGATE_BOT to who it posts as")
        if same_text(own[0].body, body):
            return "as it was"
        own[0].edit(body)
        return "edited"

    try:
        bot.step.log(f"comment: {until_done('comment', step, bot)}")
    except GitHubError as error:
        bot.step.warn(str(error))
    bot.step.summary(text)


def _run_of(bot: Bot, comment: IssueComment) -> int | None:
    """Which run's answer a comment of the bot holds; anybody can copy a last line."""
    last = _LAST.fullmatch((comment.body or "").rstrip().rsplit("\n", 1)[-1].strip())
    return int(last["run"]) if last and comment.user is not None and comment.user.login == bot.login else None


def _links(step: Step) -> Links:
    server = step.environment.get("GITHUB_SERVER_URL")
    return Links(repository=f"{server}/{step.repository}" if server and step.repository else None)
