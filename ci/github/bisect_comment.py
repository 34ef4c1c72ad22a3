"""The comment of a search for a commit: one for each run, begun where it was asked for and edited into the answer."""

from __future__ import annotations

from pathlib import Path

from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import bisect_answer, bisect_words, upsert
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.bisect_words import Searched
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.untrusted_artifact import FailureNote, RefusedError
from kernelgate.ci.report.links import Links


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
    upsert.say(bot, number, text, f"<!-- kernelgate-bisect run={run} -->")


def _links(step: Step) -> Links:
    server = step.environment.get("GITHUB_SERVER_URL")
    return Links(repository=f"{server}/{step.repository}" if server and step.repository else None)
