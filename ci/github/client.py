"""The bot: one comment, one check run and one label, put in place whatever GitHub's day is like.

Everything it does is a *step*: a function that looks at what is there, makes at most one change, and says whether it is
done. A step that GitHub fails for a passing reason (rate limits, 5xx, timeouts, lost connections) starts over, after a
wait, from its look. So a request whose answer was lost is found done, nothing is written twice, and running the bot a
second time changes nothing. PyGithub's own retries are off: they would repeat a POST without looking.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import requests
from github import Auth, Github, GithubException, RateLimitExceededException
from github.File import File
from github.GithubObject import NotSet
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from kernelgate.bench.errors import KernelgateError, UsageError
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.shown import LABELS, Annotation, CheckRun, Label

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in one comment."""
CHECK_LIMIT = 65_535
"""Characters of a check run's summary and of its text."""
ANNOTATIONS_A_REQUEST = 50
CHECK_NAME = "kernelgate verdict"
DEFAULT_LOGIN = "github-actions[bot]"
"""Who comments with a workflow's own token; KERNELGATE_BOT names another."""

TIMEOUT_S = 20
TRIES = 8
MOST_WAIT_S = 900.0
"""Of waiting for GitHub in one step: beyond it the job is better run again."""
SECONDARY_WAIT_S = 60.0
"""GitHub asks for a minute where a secondary rate limit does not name its time."""
ROUNDS = 60
"""Looks of one step: far more than two runs that disagree, or 50 × 50 annotations, ever need."""

T = TypeVar("T")
Sleep = Callable[[float], None]


class GitHubError(KernelgateError):
    """GitHub could not be used, or refused."""


class DeniedError(GitHubError):
    """The token may not do this."""


@dataclass(frozen=True)
class Bot:
    """The repository with the token, and who the token is."""

    repository: Repository
    login: str
    step: Step
    sleep: Sleep = time.sleep


def connect(step: Step, sleep: Sleep = time.sleep, pause_s: float = 0.1) -> Bot:
    """The bot of the repository and token in the environment. Nothing is asked of GitHub yet.

    `pause_s`: between two requests, as GitHub asks of bots. Raises UsageError where repository or token are missing.
    """
    if not step.token:
        raise UsageError("GITHUB_TOKEN is not set: posting and reading runs needs a token")
    if not step.repository or not re.fullmatch(r"[\w.-]+/[\w.-]+", step.repository, re.ASCII):
        raise UsageError("GITHUB_REPOSITORY is not set to owner/name")
    client = Github(
        base_url=step.api_url,
        auth=Auth.Token(step.token),
        timeout=TIMEOUT_S,
        per_page=100,
        retry=None,
        seconds_between_requests=pause_s,
        seconds_between_writes=pause_s * 10,
        lazy=True,
    )
    login = step.environment.get("KERNELGATE_BOT") or DEFAULT_LOGIN
    return Bot(client.get_repo(step.repository), login, step, sleep)


# Patience ------------------------------------------------------------------------------------------------------------


def patiently(what: str, step: Callable[[], T], bot: Bot) -> T:
    """The step's result. Starts over, after a wait, whenever GitHub fails for a passing reason.

    Raises DeniedError where the token may not, GitHubError where waiting did not help or GitHub refused.
    """
    waited = 0.0
    for attempt in range(TRIES):
        try:
            return step()
        except (GithubException, requests.RequestException) as error:
            wait = _wait_s(error, attempt)
            if wait is None:
                raise _refusal(what, error) from None
            if attempt == TRIES - 1 or waited + wait > MOST_WAIT_S:
                raise GitHubError(f"{what}: gave up after {attempt + 1} tries: {_said(error)}") from None
            bot.step.log(f"{what}: {_said(error)}; trying again in {wait:.0f} s")
            bot.sleep(wait)
            waited += wait
    raise AssertionError("the last try returns or raises")


def until_done(what: str, step: Callable[[], T | None], bot: Bot) -> T:
    """Repeats a step until it says that it is done: None asks for another look."""
    for _ in range(ROUNDS):
        done = patiently(what, step, bot)
        if done is not None:
            return done
    raise GitHubError(f"{what}: something else keeps changing it; left as it is after {ROUNDS} looks")


def _wait_s(error: Exception, attempt: int) -> float | None:
    """How long to wait before the next try; None where trying again cannot help."""
    backoff = 2.0**attempt
    if not isinstance(error, GithubException):
        return backoff
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    limited = isinstance(error, RateLimitExceededException) or error.status == 429 or "retry-after" in headers
    if limited and error.status in (403, 429):
        return max(1.0, _limit_wait_s(headers))
    return backoff if error.status >= 500 or error.status in (408, 409) else None


def _limit_wait_s(headers: dict[str, str]) -> float:
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isascii() and after.isdigit():
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return float(reset) - time.time() + 1
    return SECONDARY_WAIT_S


def _refusal(what: str, error: Exception) -> GitHubError:
    status = error.status if isinstance(error, GithubException) else 0
    if status in (401, 403):
        return DeniedError(f"{what}: GitHub refused: {_said(error)}")
    return GitHubError(f"{what}: {_said(error)}")


def _said(error: Exception) -> str:
    """The error without addresses: those of artifacts hold a signature."""
    if isinstance(error, GithubException):
        message = error.data.get("message", "") if isinstance(error.data, dict) else ""
        return f"HTTP {error.status} {visible(str(message), 300)}".strip()
    return type(error).__name__


def changed_names(pull: PullRequest, files: Sequence[File]) -> list[str] | None:
    """Every path that the change touches, a renamed file's old one too; None where `files`, as GitHub lists them,
    are not all: it lists 3,000 at most, and anything may be behind them."""
    if pull.changed_files > len(files):
        return None
    return [name for file in files for name in (file.filename, file.previous_filename) if name]


# What is said, and where ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stamp:
    """Which commit a result belongs to, and which run made it."""

    head_sha: str
    run_id: int
    run_attempt: int

    @property
    def order(self) -> tuple[int, int]:
        return self.run_id, self.run_attempt


@dataclass(frozen=True)
class Posted:
    """What a step found or did; `left`: nothing was to be changed by this result, and why."""

    said: str
    left: bool = False


# The comment ---------------------------------------------------------------------------------------------------------


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
    stamps = [stamp for _, stamp in _own(bot, bot.repository.get_pull(number), topic)]
    return max(stamps, key=lambda stamp: stamp.order, default=None)


def put_comment(
    bot: Bot, number: int, texts: Sequence[str], stamp: Stamp, topic: str = "verdict", begin: bool = True
) -> Posted:
    """The pull request has one comment of the bot on this topic, and it holds `texts[0]`, or the result of a newer run.

    `texts`: the same, ever shorter; a shorter one is used where GitHub finds the longer one too long. `begin`: else a
    comment that is there is edited, and none is begun.
    """
    last = state_line(topic, stamp)
    bodies = [f"{text.rstrip()}\n{last}" for text in texts if len(text) + len(last) < COMMENT_LIMIT]
    if not bodies:
        raise GitHubError(f"comment: even the shortest text is over {COMMENT_LIMIT} characters")
    said = "unchanged"

    def step() -> Posted | None:
        nonlocal said
        pull = bot.repository.get_pull(number)
        if (why := outdated(pull, stamp)) is not None:
            return Posted(f"left alone: {why}", left=True)
        found = sorted(_own(bot, pull, topic), key=lambda pair: pair[0].id)
        if any(other.head_sha == stamp.head_sha and other.order > stamp.order for _, other in found):
            return Posted("left alone: it holds the result of a newer run of the same commit", left=True)
        if not found and not begin:
            return Posted("left alone: there is none to correct", left=True)
        body = bodies[0]
        try:
            if not found:
                said = "created"
                _create(bot, pull, body)
            elif not _same(found[0][0].body, body):
                said = "created" if said == "created" else "edited"
                found[0][0].edit(body)
            elif len(found) > 1:
                found[-1][0].delete()
            else:
                return Posted(said)
        except GithubException as error:
            if found and error.status == 404:
                bot.step.log("comment: it was deleted in between; looking again")
            elif error.status == 422 and len(bodies) > 1:
                bot.step.log(f"comment: {len(body)} characters are too long for GitHub; using the shorter text")
                bodies.pop(0)
            else:
                raise
        return None

    return until_done("comment", step, bot)


def outdated(pull: PullRequest, stamp: Stamp) -> str | None:
    """Why this result may not change what the pull request shows; None where it may."""
    if pull.state != "open":
        return "the pull request is closed"
    if pull.head.sha != stamp.head_sha:
        return f"the result is for {stamp.head_sha[:7]}, and the head is {pull.head.sha[:7]} by now"
    return None


def _own(bot: Bot, pull: PullRequest, topic: str) -> Iterator[tuple[IssueComment, Stamp]]:
    """The bot's comments: by the marker and by the author, since anybody can copy a marker."""
    for comment in pull.get_issue_comments():
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


_UPLOADED = re.compile(r"/actions/runs/\d{1,18}/artifacts/\d{1,18}\b")


def _same(one: str | None, other: str) -> bool:
    """Equal as far as GitHub keeps what it is given: it may change line ends and the space around.

    The page that an earlier attempt uploaded is as good as the one of this attempt.
    """
    kept, new = (_UPLOADED.sub("", text.replace("\r\n", "\n").strip()) for text in (one or "", other))
    return kept == new


# The check run -------------------------------------------------------------------------------------------------------


_EXTERNAL = re.compile(r"kernelgate:(\d{1,18})\.(\d{1,6})")


def put_check(bot: Bot, check: CheckRun, stamp: Stamp) -> Posted:
    """The commit has one check run of this run with the verdict and every annotation, none of them twice."""
    external = f"kernelgate:{stamp.run_id}.{stamp.run_attempt}"
    summary = check.summary if len(check.summary) <= CHECK_LIMIT else check.summary[: CHECK_LIMIT - 1] + "…"
    output: dict[str, Any] = {"title": visible(check.title, 200), "summary": summary}
    notes = [_annotation(note) for note in check.annotations]
    said = "unchanged"

    def step() -> Posted | None:
        nonlocal said
        runs = list(bot.repository.get_commit(stamp.head_sha).get_check_runs(check_name=CHECK_NAME, filter="all"))
        shown = {
            (int(m[1]), int(m[2])): run.conclusion for run in runs if (m := _EXTERNAL.fullmatch(run.external_id or ""))
        }
        if any(order > stamp.order for order in shown):
            return Posted("left alone: a newer run of the same commit has its own", left=True)
        if check.conclusion == "neutral" and _stands(shown, check, stamp):
            return Posted("left alone: what an earlier run of the same commit found blocks still", left=True)
        own = min((run for run in runs if run.external_id == external), key=lambda run: run.id, default=None)
        if own is None:
            said = "created"
            bot.repository.create_check_run(
                CHECK_NAME,
                stamp.head_sha,
                external_id=external,
                status="completed",
                conclusion=check.conclusion,
                output=output | {"annotations": notes[:ANNOTATIONS_A_REQUEST]},
                details_url=check.details_url if check.details_url else NotSet,
            )
            return None
        has = (own.status, own.conclusion, own.output.title)
        sent = own.output.annotations_count
        if has != ("completed", check.conclusion, output["title"]) or not _same(own.output.summary, summary):
            said = said if said == "created" else "edited"
            own.edit(status="completed", conclusion=check.conclusion, output=output)
        elif sent < len(notes):
            # Annotations are added to those that are there: how many GitHub has says where to go on.
            said = said if said == "created" else "edited"
            own.edit(output=output | {"annotations": notes[sent : sent + ANNOTATIONS_A_REQUEST]})
        else:
            return Posted(said)
        return None

    return until_done("check run", step, bot)


def _stands(shown: Mapping[tuple[int, int], str | None], check: CheckRun, stamp: Stamp) -> bool:
    """Whether the latest of these check runs is a failure that `check`, which passes a required check, may not hide.

    A measurement can always be made to end without a verdict: by closing and opening the pull request again, by another
    base, by a kernel that hangs the second time.
    """
    earlier = [order for order in shown if order < stamp.order or not check.judged]
    return bool(earlier) and shown[max(earlier)] == "failure"


def _annotation(note: Annotation) -> dict[str, str | int]:
    return {
        "path": note.path,
        "start_line": note.start_line,
        "end_line": note.end_line,
        "annotation_level": note.level,
        "title": visible(note.title, 200),
        "message": visible(note.message, 2000),
    }


# Labels --------------------------------------------------------------------------------------------------------------


def put_label(bot: Bot, number: int, label: Label | None, stamp: Stamp) -> Posted:
    """Of the three labels the pull request carries `label` alone; None: none of them."""
    said: list[str] = []

    def step() -> Posted | None:
        pull = bot.repository.get_pull(number)
        if (why := outdated(pull, stamp)) is not None:
            return Posted(f"left alone: {why}", left=True)
        there = {found.name for found in pull.get_labels()}
        stale = next((other for other in Label if other in there and other is not label), None)
        try:
            if stale is not None:
                pull.remove_from_labels(stale.value)
                said.append(f"removed {stale.value!r}")
            elif label is not None and label not in there:
                _known_label(bot, label)
                # PyGithub sends a bare list here, which GitHub's description does not allow.
                address = f"{pull.issue_url}/labels"
                bot.repository.requester.requestJsonAndCheck("POST", address, input={"labels": [label.value]})
                said.append(f"added {label.value!r}")
            else:
                return Posted(", ".join(dict.fromkeys(said)) or "unchanged")
        except GithubException as error:
            if stale is None or error.status != 404:
                raise
            bot.step.log("label: it was removed in between; looking again")
        return None

    return until_done("label", step, bot)


def _known_label(bot: Bot, label: Label) -> None:
    """The repository has the label, in a colour that fits."""
    colour, meaning = LABELS[label]
    try:
        bot.repository.create_label(label.value, colour, meaning)
    except GithubException as error:
        # 422: it is there already.
        if error.status != 422:
            raise
