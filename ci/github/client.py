"""The GitHub API with retries, and what its answers must hold for us to read them.

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
from functools import cache
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import requests
from github import Auth, GithubException, RateLimitExceededException, UnknownObjectException
from github.File import File
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.Requester import Requester
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model

from kernelgate.bench.core.errors import KernelgateError, UsageError, faults
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
Sleep = Callable[[float], None]


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
    sleep: Sleep = time.sleep


def connect(step: Step, sleep: Sleep = time.sleep, pause_s: float = 0.1) -> Bot:
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


def _with(**keys: Any) -> Any:
    """An object that holds these keys, each with a value of this kind; whatever else GitHub sends is not looked at."""
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in keys.items()}
    return create_model("ApiObject", __config__=ConfigDict(strict=True, defer_build=True), **fields)


def _many(kind: Any) -> Any:
    return list[kind]


_ADAPTER: Any = cache(TypeAdapter)
_SHA = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
_NAME, _USER, _COMMIT = _with(name=str), _with(login=str), _with(sha=_SHA)
_PULL = _with(number=int, state=str, head=_COMMIT, base=_COMMIT)
_ISSUE, _COMMENT = _with(id=int, number=int, state=str), _with(id=int, body=str | None)
_CHECK = _with(name=str, id=int, status=str, output=_with(annotations_count=int))
_RUN = _with(id=int, status=str | None, run_attempt=int, head_sha=_SHA, repository=_with(full_name=str))
_JOB, _REVIEW = _with(name=str, run_attempt=int), _with(state=str, user=_USER, environments=_many(_NAME))
_ARTIFACT = _with(name=str, id=int, size_in_bytes=int, expired=bool, archive_download_url=str)

READ: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", _with(default_branch=str)),
    ("GET", "/pulls|/commits/[^/]+/pulls", _many(_PULL)),
    ("GET|POST|PATCH", r"/pulls(/\d+)?", _PULL),
    ("GET", r"/pulls/\d+/files", _many(_with(filename=str))),
    ("GET", "/issues", _many(_ISSUE)),
    ("GET|POST|PATCH", r"/issues(/\d+)?", _ISSUE),
    ("GET", r"/issues/\d+/comments", _many(_COMMENT)),
    ("GET|POST|PATCH", r"/issues/(\d+/comments|comments/\d+)", _COMMENT),
    ("GET|POST|DELETE", r"/issues/\d+/labels(/[^/]+)?", _many(_NAME)),
    ("GET|POST|PATCH", r"/check-runs(/\d+)?", _CHECK),
    ("GET", "/commits/[^/]+/check-runs", _with(check_runs=_many(_CHECK))),
    ("GET", "/commits/[^/]+", _COMMIT),
    ("GET", "/compare/.+", _with(merge_base_commit=_COMMIT)),
    ("GET", "/collaborators/[^/]+/permission", _with(permission=str)),
    ("GET", "/actions/runs", _with(workflow_runs=_many(_RUN))),
    ("GET", r"/actions/runs/\d+", _RUN),
    ("GET", r"/actions/runs/\d+/approvals", _many(_REVIEW)),
    ("GET", r"/actions/runs/\d+/jobs", _with(jobs=_many(_JOB))),
    ("GET", r"/actions/runs/\d+/artifacts", _with(artifacts=_many(_ARTIFACT))),
    # Answered by an address in its headers: its body is empty.
    ("GET", r"/actions/artifacts/\d+/zip", _with(location=str)),
    ("GET|POST|PATCH", "/git/refs?(/.+)?", _with(ref=str, object=_COMMIT)),
    ("GET", "/contents/.+", _COMMIT | _many(_COMMIT)),
    ("PUT", "/contents/.+", _with(content=_COMMIT)),
)
"""Method, path below the repository, and by which keys such an answer is known: what is none of the API has not even
these, and PyGithub reads the others. Of any other, that it is an object or a list."""


class AnswerReader(Requester):
    """PyGithub's requests; an answer that is none ends in NoAnswerError, before PyGithub reads it."""

    def requestJson(self, verb: str, url: str, *others: Any, **more: Any) -> tuple[int, dict[str, Any], str]:  # noqa: N802 (PyGithub's name)
        path = re.sub(r"^.*?/repos/[^/]+/[^/]+", "", urlsplit(url).path)
        what = f"{verb} {visible(path, 100)}"
        try:
            status, headers, body = super().requestJson(verb, url, *others, **more)
        except requests.RequestException:  # some are ValueErrors, too
            raise
        except (ValueError, OverflowError):
            # PyGithub reckons with the limits' headers before anybody sees them.
            raise NoAnswerError(f"{what}: the rate limit in its headers is no number") from None
        except RuntimeError:
            raise NoAnswerError(f"{what}: it leads to another place than GitHub's API") from None
        if status >= 400:
            return status, headers, body if isinstance(_parsed(body), dict) else "{}"
        known = (shape for verbs, where, shape in READ if verb in verbs.split("|") and re.fullmatch(where, path))
        shape = next(known, None)
        if (status in (204, 304) and shape is None) or (300 <= status < 400 and "location" in headers):
            return status, headers, ""
        missing = lack(_parsed(body), shape or dict[str, Any] | list[Any])
        if missing is not None:
            raise NoAnswerError(f"{what}: GitHub answered {status} with what is no answer of its API: {missing}")
        return status, headers, body


def lack(value: Any, shape: Any) -> str | None:
    """What keeps the value from being such an answer, such as "head.sha: Field required"; None where nothing does."""
    try:
        _ADAPTER(shape).validate_python(value)
    except ValidationError as error:
        return faults(error, most=1)
    return None


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return ""
