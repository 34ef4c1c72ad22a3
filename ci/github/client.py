"""The GitHub API with retries.

Every use is a *step*: a function that reads the current state, makes its changes, and says whether it is done. A step
that fails for a temporary reason is repeated from its read after a wait, and is idempotent: a request whose answer was
lost is found done. PyGithub's own retries are off: they would repeat a POST without reading first. What is no answer of
the API, such as 200 with HTML or `{}` from a gateway, is a NoAnswerError, which passes, too.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from github import Auth, GithubException, RateLimitExceededException, UnknownObjectException
from github.File import File
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.Requester import Requester

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.actions import Step

DEFAULT_LOGIN = "github-actions[bot]"
"""Who comments with a workflow's own token; KERNELGATE_BOT names another."""

ADDRESS = re.compile(r"https?://([\w.-]+|\[[\da-f:]+\])(:[1-6]?\d{1,4})?(/\S*)?", re.ASCII | re.IGNORECASE)
TIMEOUT_S = 20
TRIES = 8
MAX_WAIT_S = 900.0
"""Of waiting for GitHub in one step: beyond it the job is better run again."""
SECONDARY_WAIT_S = 60.0
"""GitHub asks for a minute where a secondary rate limit does not name its time."""
ROUNDS = 60
"""Looks of one step: far more than two runs that disagree, or 50 × 50 annotations, ever need."""

T = TypeVar("T")


class GitHubError(KernelgateError):
    """GitHub could not be used, or refused."""


class DeniedError(GitHubError):
    """The token may not do this."""


class NoAnswerError(Exception):
    """GitHub answered something that its API never says."""


@dataclass(frozen=True)
class Bot:
    repository: Repository
    login: str
    step: Step
    sleep: Callable[[float], None] = time.sleep


def connect(step: Step, sleep: Callable[[float], None] = time.sleep, pause_s: float = 0.1) -> Bot:
    """The bot of the repository and token in the environment. Nothing is asked of GitHub yet. `pause_s`: between two
    requests, as GitHub asks of bots. Raises UsageError where repository or token are missing."""
    if not step.token:
        raise UsageError("GITHUB_TOKEN is not set: posting and reading runs needs a token")
    if not step.repository or not re.fullmatch(r"[\w.-]+/[\w.-]+", step.repository, re.ASCII):
        raise UsageError("GITHUB_REPOSITORY is not set to owner/name")
    if not re.fullmatch("[!-~]+", step.token):
        raise UsageError("GITHUB_TOKEN holds what no token does, such as the end of a line: set it again")
    if not ADDRESS.fullmatch(step.api_url):
        raise UsageError(f"GITHUB_API_URL={step.api_url[:80]!r} is no address of an API: it begins with https://")
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


def patiently(what: str, step: Callable[[], T], bot: Bot) -> T:
    """The step's result. Starts over, after a wait, whenever GitHub fails for a passing reason. Raises DeniedError
    where the token may not, GitHubError where waiting did not help or GitHub refused."""
    waited = 0.0
    for attempt in range(TRIES):
        try:
            return step()
        except (GithubException, NoAnswerError, requests.RequestException) as error:
            wait, said = _wait_s(error, attempt), _described(error)
            status = error.status if isinstance(error, GithubException) else 0
            if wait is None and status == 403:
                raise DeniedError(f"{what}: GitHub refused: {said}") from None
            if wait is None:
                expired = "the token is expired or not valid (HTTP 401)"
                raise GitHubError(f"{what}: {expired if status == 401 else said}") from None
            if attempt == TRIES - 1 or waited + wait > MAX_WAIT_S:
                raise GitHubError(f"{what}: gave up after {attempt + 1} tries: {said}") from None
            bot.step.log(f"{what}: {said}; trying again in {wait:.0f} s")
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


def unless_gone(what: str, step: Callable[[], T], bot: Bot) -> T | None:
    """The same; None where GitHub has no such thing, or has it no more."""

    def look() -> T | None:
        with suppress(UnknownObjectException):
            return step()
        return None

    return patiently(what, look, bot)


def request(bot: Bot, verb: str, address: str, body: dict[str, Any] | None = None) -> Any:
    """What GitHub answers, where PyGithub has no method or another form."""
    return bot.repository.requester.requestJsonAndCheck(verb, address, input=body)[1]


def default_branch(bot: Bot) -> str:
    return patiently("repository", lambda: bot.repository.default_branch, bot)


def read_pull(bot: Bot, number: int) -> PullRequest:
    def look() -> PullRequest:
        pull = bot.repository.get_pull(number)
        pull.update()
        return pull

    return patiently("pull request", look, bot)


def merge_base(bot: Bot, base: str, head: str) -> str:
    """The commit that a change started from: what it is compared with."""
    return patiently("merge base", lambda: bot.repository.compare(base, head).merge_base_commit.sha, bot)


MAX_COMPARED = 300
"""Files that GitHub lists of a comparison."""


def compared(bot: Bot, base: str, head: str) -> tuple[str, list[File] | None]:
    """The merge base, and every file that `head` changes since; None where they are too many for GitHub's list."""

    def look() -> tuple[str, list[File] | None]:
        found = bot.repository.compare(base, head)
        return found.merge_base_commit.sha, None if len(found.files) >= MAX_COMPARED else list(found.files)

    return patiently("changes", look, bot)


def changed_names(pull: PullRequest, files: Sequence[File] | None = None) -> tuple[str, ...] | None:
    """Every path that the change touches; None where GitHub does not list them all: it lists 3,000 files at most."""
    files = list(pull.get_files()) if files is None else files
    return None if pull.changed_files > len(files) else names_of(files)


def names_of(files: Sequence[File] | None) -> tuple[str, ...] | None:
    """With the old path of a renamed file; None where they are not known."""
    if files is None:
        return None
    return tuple(name for file in files for name in (file.filename, file.previous_filename) if name)


def touches(names: Sequence[str] | None, paths: Iterable[str]) -> bool:
    """What is not known counts as changed."""
    return names is None or any(name.startswith(tuple(paths)) for name in names)


KEYS = {"url", "id", "total_count", "permission", "content", "default_workflow_permissions", "approval_policy"}
"""Each object that is asked of the API has one of these; what a gateway answers for it has none."""


class AnswerReader(Requester):
    """PyGithub's requests; an answer that is none ends in NoAnswerError, before PyGithub reads it."""

    def requestJson(self, verb: str, url: str, *others: Any, **more: Any) -> tuple[int, dict[str, Any], str]:  # noqa: N802 (PyGithub's name)
        path = urlsplit(url).path
        what = f"{verb} {visible(re.sub('^.*?/repos/[^/]+/[^/]+', '', path), 100)}"
        try:
            status, headers, body = super().requestJson(verb, url, *others, **more)
        except requests.RequestException:  # some are ValueErrors, too
            raise
        except (ValueError, OverflowError):
            # PyGithub reckons with the limits' headers before anybody sees them.
            raise NoAnswerError(f"{what}: the rate limit in its headers is no number") from None
        except RuntimeError:
            raise NoAnswerError(f"{what}: it leads to another place than GitHub's API") from None
        if (status == 204 and _may_be_empty(verb, path)) or (300 <= status < 400 and "location" in headers):
            return status, headers, ""
        found = _parsed(body)
        if status >= 400:
            return status, headers, body if isinstance(found, dict) else "{}"
        if not isinstance(found, list) and not (isinstance(found, dict) and found.keys() & KEYS):
            raise NoAnswerError(f"{what}: GitHub answered {status} with what is no answer of its API")
        return status, headers, body


def _may_be_empty(verb: str, path: str) -> bool:
    """Such as what was deleted; of an issue's labels GitHub lists those that are left."""
    labels = re.search(r"/issues/\d+/labels/", path)
    return verb == "PUT" or path.endswith("/dispatches") or (verb == "DELETE" and not labels)


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
