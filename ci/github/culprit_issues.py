"""One issue for each commit that made a case slower, as `kernelgate history culprits` tells of them.

An issue is found again by its label, its author and its last line, never by GitHub's search, which lags. What the line
says of its state is what the bot did last: where the issue is in another state, a person decided, and it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from github.Issue import Issue
from pydantic import Field, TypeAdapter, ValidationError

from kernelgate.bench.errors import UsageError, faults
from kernelgate.bench.record import Model
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import culprit_words
from kernelgate.ci.github.client import Bot, GitHubError, patiently, until_done
from kernelgate.ci.github.culprit_words import KnownCulprit
from kernelgate.ci.github.stamp import Posted, same_text
from kernelgate.ci.judge.policy import Policy

LABEL = "kernelgate: culprit"
SCHEMA = "kernelgate.culprits/1"
FILE = "culprits.json"
MAX_TITLE = 200
IssueState = Literal["open", "closed"]
_LAST = re.compile(r"<!-- kernelgate-culprit commit=(?P<commit>[0-9a-f]{40}) state=(?P<state>open|closed) -->")


class CulpritFile(Model):
    """What `kernelgate history culprits --json` prints."""

    schema_: Literal["kernelgate.culprits/1"] = Field(alias="schema")
    culprits: tuple[KnownCulprit, ...]
    searches: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class OwnIssue:
    """An issue of the bot, and what its last line says."""

    issue: Issue
    commit: str
    state: str
    """As the bot left it."""

    @property
    def left_to_people(self) -> bool:
        return str(self.issue.state) != self.state


def read(folder: Path) -> tuple[KnownCulprit, ...]:
    """The culprits in a folder of `kernelgate history culprits -o`. Raises UsageError."""
    path = folder / FILE
    try:
        return TypeAdapter(CulpritFile).validate_json(path.read_bytes()).culprits
    except ValidationError as error:
        raise UsageError(f"{path} is not what `kernelgate history culprits` writes: {faults(error)}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def put(bot: Bot, folder: Path, rules: Policy) -> dict[str, str]:
    """Each culprit of this repository has one issue, which is open while a case of it is slower; what was done, by
    commit. Nothing is begun for what is over already, and nobody is assigned."""
    own = bot.step.repository or ""
    mine = [one for one in read(folder) if one.repository in ("", own)]
    done = {one.commit: _put(bot, one, culprit_words.comparison(one, folder, rules)) for one in mine}
    for commit, what in done.items():
        bot.step.log(f"{commit[:12]}: {what}")
    return done


def last_line(commit: str, state: IssueState) -> str:
    return f"<!-- kernelgate-culprit commit={commit} state={state} -->"


def _put(bot: Bot, culprit: KnownCulprit, comparison: str) -> str:
    wanted: IssueState = "open" if culprit.is_slower else "closed"
    pull = patiently("pull request", lambda: _pull_of(bot, culprit.commit), bot)
    about = culprit_words.body(culprit, pull, comparison, bot.step)
    body = f"{about}\n{last_line(culprit.commit, wanted)}"
    title = visible(culprit_words.title(culprit), MAX_TITLE)
    begun = False

    def step() -> Posted | None:
        nonlocal begun
        found = _own(bot, culprit.commit)
        if not found:
            if wanted == "closed":
                return Posted("nobody was told of it, and it is over")
            _create(bot, title, body)
            begun = True
            return None
        first, *later = found
        if later:
            _close_duplicate(later[-1].issue, first.issue.number)
            return None
        if first.left_to_people:
            return Posted(f"issue {first.issue.number} is left alone: a person has {first.issue.state} it", left=True)
        if first.state == wanted and same_text(first.issue.body, body):
            return Posted(f"issue {first.issue.number} {'created' if begun else 'is as it was'}")
        if first.state != wanted:
            _say(bot, first.issue, culprit_words.news(culprit, bot.step))
        first.issue.edit(body=body, state=wanted, state_reason=_reason(culprit, wanted))
        return None

    return until_done("issue", step, bot).outcome


def _reason(culprit: KnownCulprit, wanted: IssueState) -> str:
    if wanted == "closed":
        return "completed" if any(case.state == "fixed" for case in culprit.cases) else "not_planned"
    return "reopened"


def _own(bot: Bot, commit: str) -> list[OwnIssue]:
    """The bot's issues of this commit, the oldest first; anybody can copy a last line."""
    found = []
    for issue in bot.repository.get_issues(state="all", labels=[LABEL]):
        last = _LAST.fullmatch((issue.body or "").rstrip().rsplit("\n", 1)[-1].strip())
        if last and last["commit"] == commit and issue.user is not None and issue.user.login == bot.login:
            found.append(OwnIssue(issue, last["commit"], last["state"]))
    return sorted(found, key=lambda one: one.issue.number)


def _create(bot: Bot, title: str, body: str) -> None:
    created = bot.repository.create_issue(title=title, body=body, labels=[LABEL])
    if created.user.login != bot.login:
        # It would not be found again, and each night would add another.
        created.edit(body="Posted by mistake.", state="closed", state_reason="not_planned")
        said = visible(created.user.login)
        raise GitHubError(f"issue: the token posts as {said}, not as {bot.login}: set KERNELGATE_BOT to it")


def _close_duplicate(issue: Issue, number: int) -> None:
    """Two runs began one at the same time. Without its last line it is nobody's any more."""
    issue.edit(body=f"The same as #{number}.", state="closed", state_reason="not_planned")


def _say(bot: Bot, issue: Issue, text: str) -> None:
    """Unless it is the last thing that the bot said: a step may be repeated."""
    comments: Sequence[Any] = list(issue.get_comments())
    own = [one.body for one in comments if one.user is not None and one.user.login == bot.login]
    if not own or not same_text(own[-1], text):
        issue.create_comment(text)


def _pull_of(bot: Bot, commit: str) -> int | None:
    """The merged pull request that brought the commit."""
    # PyGithub would ask for the commit first.
    _, pulls = bot.repository.requester.requestJsonAndCheck("GET", f"{bot.repository.url}/commits/{commit}/pulls")
    merged = [one["number"] for one in pulls if one.get("merged_at")]
    return merged[0] if merged else None
