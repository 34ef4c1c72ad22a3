"""The bot's comments on a pull request: one of each topic, found again by its last line and its author, then edited."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from github import GithubException
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.client import Bot, GitHubError, until_done
from kernelgate.ci.github.stamp import Posted, Stamp, outdated, same_text

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in one comment."""

_TOPIC = re.compile(r"[a-z][a-z-]{0,29}")
_STATE = re.compile(
    r"<!-- kernelgate-state topic=(?P<topic>[a-z-]{1,30}) "
    r"head=(?P<head>[0-9a-f]{40,64}) run=(?P<run>\d{1,18}) attempt=(?P<attempt>\d{1,6}) -->"
)


def state_line(topic: str, stamp: Stamp) -> str:
    """The hidden last line that finds the comment again and says whose result it holds."""
    line = (
        f"<!-- kernelgate-state topic={topic} head={stamp.head_sha} run={stamp.run_id} attempt={stamp.run_attempt} -->"
    )
    if not _TOPIC.fullmatch(topic) or not _STATE.fullmatch(line):
        raise UsageError(f"not a comment's topic, commit and run: {visible(line)}")
    return line


def stated(body: str, topic: str) -> Stamp | None:
    """The stamp in a comment's last line; None where it is not the bot's comment on this topic."""
    found = _STATE.fullmatch(body.rstrip().rsplit("\n", 1)[-1].strip())
    if found is None or found["topic"] != topic:
        return None
    return Stamp(found["head"], int(found["run"]), int(found["attempt"]))


def shown_stamp(bot: Bot, number: int, topic: str = "verdict") -> Stamp | None:
    """Whose result the bot's comment on the pull request holds; None where it has none."""
    stamps = [stamp for _, stamp in _own(bot, bot.repository.get_pull(number).get_issue_comments(), topic)]
    return max(stamps, key=lambda stamp: stamp.order, default=None)


def put_comment(
    bot: Bot, number: int, texts: Sequence[str], stamp: Stamp, topic: str = "verdict", begin: bool = True
) -> Posted:
    """The pull request has one comment of the bot on this topic, and it holds `texts[0]`, or the result of a newer run.

    `texts`: the same, ever shorter; a shorter one is used where GitHub finds the longer one too long. `begin`: else a
    comment that is there is edited, and none is begun.
    """
    step = comment_step(bot, number, texts, stamp, topic, begin)
    done = until_done("comment", step, bot)
    if done.comments is not None:
        # Another report may have begun one at the same time.
        until_done("comment", step, bot)
    return done


def comment_step(
    bot: Bot, number: int, texts: Sequence[str], stamp: Stamp, topic: str = "verdict", begin: bool = True
) -> Callable[[], Posted | None]:
    """The step of put_comment. After it began a comment, `comments` says how many there are unless somebody else began
    one at the same time; then another look removes the later one."""
    last = state_line(topic, stamp)
    bodies = [f"{text.rstrip()}\n{last}" for text in texts if len(text) + len(last) < COMMENT_LIMIT]
    if not bodies:
        raise GitHubError(f"comment: even the shortest text is over {COMMENT_LIMIT} characters")
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        pull = bot.repository.get_pull(number)
        if (late := outdated(pull, stamp)) is not None:
            return late
        everybodys = list(pull.get_issue_comments())
        found = sorted(_own(bot, everybodys, topic), key=lambda pair: pair[0].id)
        if any(other.head_sha == stamp.head_sha and other.order > stamp.order for _, other in found):
            return Posted("left alone: it holds the result of a newer run of the same commit", left=True)
        if not found and not begin:
            return Posted("left alone: there is none to correct", left=True)
        body = bodies[0]
        try:
            if not found:
                outcome = "created"
                _create(bot, pull, body)
                return Posted(outcome, comments=len(everybodys) + 1)
            if not same_text(found[0][0].body, body):
                outcome = "created" if outcome == "created" else "edited"
                found[0][0].edit(body)
            elif len(found) > 1:
                found[-1][0].delete()
                return None
        except GithubException as error:
            if found and error.status == 404:
                bot.step.log("comment: it was deleted in between; looking again")
            elif error.status == 422 and len(bodies) > 1:
                bot.step.log(f"comment: {len(body)} characters are too long for GitHub; using the shorter text")
                bodies.pop(0)
            else:
                raise
            return None
        return Posted(outcome) if len(found) == 1 else None

    return step


def _own(bot: Bot, comments: Iterable[IssueComment], topic: str) -> Iterator[tuple[IssueComment, Stamp]]:
    """The bot's comments: by the marker and by the author, since anybody can copy a marker."""
    for comment in comments:
        stamp = stated(comment.body or "", topic)
        if stamp is not None and comment.user is not None and comment.user.login == bot.login:
            yield comment, stamp


def _create(bot: Bot, pull: PullRequest, body: str) -> None:
    created = pull.create_issue_comment(body)
    if created.user.login != bot.login:
        # It would not be found again, and each run would add another.
        created.delete()
        raise GitHubError(
            f"comment: the token posts as {visible(created.user.login)}, not as {bot.login}: set KERNELGATE_BOT to it"
        )
