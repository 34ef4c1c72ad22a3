"""The GitHub API with retries.

Every use is a *step*: a function that reads the current state, makes its changes, and says whether it is done. A step
that fails for a temporary reason (rate limits, 5xx, timeouts, lost connections, what is no answer of the API at all) is
repeated from its read after a wait. So steps are idempotent: a request whose answer was lost is found done, nothing is
written twice, and a second run changes nothing. PyGithub's own retries are off: they would repeat a POST without
reading first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import requests
from github import Auth, GithubException, RateLimitExceededException
from github.File import File
from github.PullRequest import PullRequest
from github.Repository import Repository

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.answers import AnswerReader, NoAnswerError

DEFAULT_LOGIN = "github-actions[bot]"
"""Who comments with a workflow's own token; KERNELGATE_BOT names another."""

TIMEOUT_S = 20
TRIES = 8
MAX_WAIT_S = 900.0
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
    requester = AnswerReader(
        auth=Auth.Token(step.token),
        base_url=step.api_url,
        timeout=TIMEOUT_S,
        user_agent="kernelgate",
        per_page=100,
        verify=True,
        retry=None,
        pool_size=None,
        seconds_between_requests=pause_s,
        seconds_between_writes=pause_s * 10,
        lazy=True,
    )
    login = step.environment.get("KERNELGATE_BOT") or DEFAULT_LOGIN
    return Bot(Repository(requester, url=f"/repos/{step.repository}"), login, step, sleep)


def as_its_owner(bot: Bot) -> Bot:
    """The bot by the name of who the token belongs to: outside of a workflow that is a person. Raises GitHubError."""
    if bot.step.in_workflow or bot.step.environment.get("KERNELGATE_BOT"):
        return bot
    try:
        _, user = patiently("user", lambda: bot.repository.requester.requestJsonAndCheck("GET", "/user"), bot)
    except DeniedError as error:
        raise GitHubError(f"{error}: set KERNELGATE_BOT to the name that the token posts as") from None
    return replace(bot, login=str(user["login"]))


# Retries -------------------------------------------------------------------------------------------------------------


def patiently(what: str, step: Callable[[], T], bot: Bot) -> T:
    """The step's result. Starts over, after a wait, whenever GitHub fails for a passing reason.

    Raises DeniedError where the token may not, GitHubError where waiting did not help or GitHub refused.
    """
    waited = 0.0
    for attempt in range(TRIES):
        try:
            return step()
        except (GithubException, NoAnswerError, requests.RequestException) as error:
            wait = _wait_s(error, attempt)
            if wait is None:
                status = error.status if isinstance(error, GithubException) else 0
                if status == 401:
                    raise GitHubError(f"{what}: the token is expired or not valid (HTTP 401)") from None
                if status == 403:
                    raise DeniedError(f"{what}: GitHub refused: {_described(error)}") from None
                raise GitHubError(f"{what}: {_described(error)}") from None
            if attempt == TRIES - 1 or waited + wait > MAX_WAIT_S:
                raise GitHubError(f"{what}: gave up after {attempt + 1} tries: {_described(error)}") from None
            bot.step.log(f"{what}: {_described(error)}; trying again in {wait:.0f} s")
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
        after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
        if after.isascii() and after.isdigit():
            return max(1.0, float(after))
        if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
            return max(1.0, float(reset) - time.time() + 1)
        return SECONDARY_WAIT_S
    return backoff if error.status >= 500 or error.status in (408, 409) else None


def _described(error: Exception) -> str:
    """The error without addresses: those of artifacts hold a signature."""
    if isinstance(error, GithubException):
        message = error.data.get("message", "") if isinstance(error.data, dict) else ""
        return f"HTTP {error.status} {visible(str(message), 300)}".strip()
    return str(error) if isinstance(error, NoAnswerError) else type(error).__name__


def changed_names(pull: PullRequest, files: Sequence[File]) -> list[str] | None:
    """Every path that the change touches, a renamed file's old one too; None where `files`, as GitHub lists them,
    are not all: it lists 3,000 at most, and anything may be behind them."""
    return None if pull.changed_files > len(files) else names_of(files)


def names_of(files: Sequence[File]) -> list[str]:
    """The paths of these files, a renamed one's old path too."""
    return [name for file in files for name in (file.filename, file.previous_filename) if name]
