"""An issue of the bot, one for each subject.

It is found again by its label, its author and its last line, never by GitHub's search, which lags. What the line says
of its state is what the bot did last: where the issue is in another state, a person decided, and it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from github.Issue import Issue

from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.client import Bot, GitHubError, until_done
from kernelgate.ci.github.stamp import Posted, same_text

MAX_TITLE = 200
IssueState = Literal["open", "closed"]


@dataclass(frozen=True)
class WantedIssue:
    label: str
    subject: str
    """Finds it again, such as "culprit commit=…"; of the bot's own making, never untrusted text."""
    title: str
    body: str
    """All but the last line."""
    state: IssueState = "open"
    reason: str = "reopened"
    """GitHub's word for why it is in this state."""
    news: str = ""
    """What is said where its state changes."""


@dataclass(frozen=True)
class OwnIssue:
    """An issue of the bot, and what its last line says."""

    issue: Issue
    state: str
    """As the bot left it."""

    @property
    def left_to_people(self) -> bool:
        return str(self.issue.state) != self.state


def last_line(subject: str, state: IssueState) -> str:
    return f"<!-- kernelgate-{subject} state={state} -->"


def put(bot: Bot, wanted: WantedIssue) -> Posted:
    """There is one issue on the subject, as it is wanted. None is begun for what is over, and nobody is assigned."""
    body = f"{wanted.body}\n{last_line(wanted.subject, wanted.state)}"
    begun = False

    def step() -> Posted | None:
        nonlocal begun
        found = _own(bot, wanted)
        if not found:
            if wanted.state == "closed":
                return Posted("nobody was told of it, and it is over")
            _create(bot, wanted, body)
            begun = True
            return None
        first, *later = found
        if later:
            _close_duplicate(later[-1].issue, first.issue.number)
            return None
        number = first.issue.number
        if first.left_to_people:
            return Posted(f"issue {number} is left alone: a person has {first.issue.state} it", left=True, issue=number)
        if first.state == wanted.state and same_text(first.issue.body, body):
            return Posted(f"issue {number} {'created' if begun else 'is as it was'}", issue=number)
        if first.state != wanted.state:
            _say(bot, first.issue, wanted.news)
        first.issue.edit(body=body, state=wanted.state, state_reason=wanted.reason)
        return None

    return until_done("issue", step, bot)


def _own(bot: Bot, wanted: WantedIssue) -> list[OwnIssue]:
    """The bot's issues on the subject, the oldest first; anybody can copy a last line."""
    last = re.compile(rf"<!-- kernelgate-{re.escape(wanted.subject)} state=(open|closed) -->")
    found = []
    for issue in bot.repository.get_issues(state="all", labels=[wanted.label]):
        said = last.fullmatch((issue.body or "").rstrip().rsplit("\n", 1)[-1].strip())
        if said and issue.user is not None and issue.user.login == bot.login:
            found.append(OwnIssue(issue, said[1]))
    return sorted(found, key=lambda one: one.issue.number)


def _create(bot: Bot, wanted: WantedIssue, body: str) -> None:
    title = visible(wanted.title, MAX_TITLE)
    created = bot.repository.create_issue(title=title, body=body, labels=[wanted.label])
    why = None
    if created.user.login != bot.login:
        why = f"the token posts as {visible(created.user.login)}, not as {bot.login}: set KERNELGATE_BOT to it"
    elif wanted.label not in {label.name for label in created.labels}:
        # GitHub drops the labels of those who may not set them.
        why = f"the token may not set the label {wanted.label!r}, by which the issue is found again"
    if why is not None:
        # It would not be found again, and each time would add another.
        created.edit(body="Posted by mistake.", state="closed", state_reason="not_planned")
        raise GitHubError(f"issue: {why}")


def _close_duplicate(issue: Issue, number: int) -> None:
    """Two runs began one at the same time. Without its last line it is nobody's any more."""
    issue.edit(body=f"The same as #{number}.", state="closed", state_reason="not_planned")


def _say(bot: Bot, issue: Issue, text: str) -> None:
    """Unless it is the last thing that the bot said: a step may be repeated."""
    comments: Sequence[Any] = list(issue.get_comments())
    own = [one.body for one in comments if one.user is not None and one.user.login == bot.login]
    if not own or not same_text(own[-1], text):
        issue.create_comment(text)
