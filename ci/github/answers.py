"""What GitHub's answers must hold for us to read them: the one place where an answer is looked at before it is used.

A gateway, a proxy or a bad day answers 200 with HTML, half of the JSON, `null` or `{}`. None of it reaches the code
that asked: it is a NoAnswerError, which client.py takes for a passing fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from github.Requester import Requester
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from kernelgate.bench.core.errors import faults
from kernelgate.ci.document.escape import visible


class NoAnswerError(Exception):
    """GitHub answered something that its API never says."""


# What is read of each kind of answer ---------------------------------------------------------------------------------

Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


class ApiAnswer(BaseModel):
    """A part of an answer; whatever else GitHub sends is not looked at."""

    model_config = ConfigDict(strict=True)


class ApiName(ApiAnswer):
    name: str


class ApiUser(ApiAnswer):
    login: str


class ApiAuthor(ApiUser):
    type: str


class ApiCommit(ApiAnswer):
    sha: Sha


class ApiLabel(ApiName):
    color: str


class ApiFile(ApiAnswer):
    filename: str
    previous_filename: str | None = None
    patch: str | None = None


class ApiSource(ApiAnswer):
    full_name: str
    owner: ApiUser
    pushed_at: Time | None = None


class ApiBase(ApiCommit):
    ref: str


class ApiHead(ApiBase):
    repo: ApiSource | None


class ApiListedPull(ApiAnswer):
    number: int
    url: str
    issue_url: str
    state: str
    title: str
    body: str | None
    user: ApiAuthor
    labels: list[ApiLabel]
    merged_at: Time | None = None
    merge_commit_sha: Sha | None = None
    head: ApiHead
    base: ApiBase


class ApiPull(ApiListedPull):
    changed_files: int


class ApiComment(ApiAnswer):
    id: int
    url: str
    body: str | None
    user: ApiUser | None


class ApiIssue(ApiComment):
    number: int
    state: str
    labels: list[ApiName | str]
    """A label of an issue may be its name alone."""


class ApiApp(ApiAnswer):
    slug: str


class ApiCheckOutput(ApiAnswer):
    title: str | None
    summary: str | None
    text: str | None = None
    annotations_count: int


class ApiCheck(ApiName):
    id: int
    url: str
    status: str
    conclusion: str | None
    external_id: str | None
    app: ApiApp | None
    completed_at: Time | None = None
    output: ApiCheckOutput


class ApiComparison(ApiAnswer):
    merge_base_commit: ApiCommit
    files: list[ApiFile] = []


class ApiRun(ApiAnswer):
    id: int
    event: str
    status: str | None
    conclusion: str | None
    run_attempt: int
    workflow_id: int
    head_sha: Sha
    head_branch: str | None
    head_repository: ApiSource | None
    created_at: Time
    html_url: str
    jobs_url: str
    artifacts_url: str


class ApiStep(ApiName):
    conclusion: str | None


class ApiJob(ApiStep):
    run_attempt: int
    steps: list[ApiStep] = []


class ApiReview(ApiAnswer):
    state: str
    user: ApiUser
    environments: list[ApiName]


class ApiArtifact(ApiName):
    id: int
    size_in_bytes: int
    expired: bool
    archive_download_url: str
    digest: str | None = None


def _with(**keys: Any) -> Any:
    """An answer that holds these keys, each with a value of this kind."""
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in keys.items()}
    return create_model("ApiObject", __base__=ApiAnswer, **fields)


_REF = _with(ref=str, url=str, object=ApiCommit)

READ: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", _with(default_branch=str)),
    ("GET", "/pulls", list[ApiListedPull]),
    ("POST", "/pulls", ApiPull),
    ("GET|PATCH", r"/pulls/\d+", ApiPull),
    ("GET", r"/pulls/\d+/files", list[ApiFile]),
    ("GET", "/issues", list[ApiIssue]),
    ("POST", "/issues", ApiIssue),
    ("GET|PATCH", r"/issues/\d+", ApiIssue),
    ("GET", r"/issues/\d+/comments", list[ApiComment]),
    ("POST", r"/issues/\d+/comments", ApiComment),
    ("GET|PATCH", r"/issues/comments/\d+", ApiComment),
    ("GET|POST", r"/issues/\d+/labels", list[ApiLabel]),
    ("DELETE", r"/issues/\d+/labels/[^/]+", list[ApiLabel]),
    ("PATCH", "/labels/[^/]+", ApiLabel),
    ("POST", "/check-runs", ApiCheck),
    ("GET|PATCH", r"/check-runs/\d+", ApiCheck),
    ("GET", "/commits/[^/]+/check-runs", _with(check_runs=list[ApiCheck])),
    ("GET", "/commits/[^/]+", ApiCommit),
    ("GET", "/commits/[^/]+/pulls", list[ApiListedPull]),
    ("GET", "/compare/.+", ApiComparison),
    ("GET", "/collaborators/[^/]+/permission", _with(permission=str)),
    ("GET", "/actions/runs", _with(workflow_runs=list[ApiRun])),
    ("GET", r"/actions/runs/\d+", ApiRun),
    ("GET", r"/actions/runs/\d+/approvals", list[ApiReview]),
    ("GET", r"/actions/runs/\d+/jobs", _with(jobs=list[ApiJob])),
    ("GET", r"/actions/runs/\d+/artifacts", _with(artifacts=list[ApiArtifact])),
    # Answered by an address in its headers: its body is empty.
    ("GET", r"/actions/artifacts/\d+/zip", _with(location=str)),
    ("GET", "/git/ref/.+", _REF),
    ("POST", "/git/refs", _REF),
    ("PATCH", "/git/refs/.+", _REF),
    ("GET", "/contents/.+", ApiCommit | list[ApiCommit]),
    ("PUT", "/contents/.+", _with(content=ApiCommit, commit=ApiCommit)),
    ("GET", "/user", ApiUser),
)
"""Method, path below the repository, and what is read of the answer. Of any other, that it is an object or a list."""


# Where it is looked at -----------------------------------------------------------------------------------------------


_LINK = re.compile(r'<(?P<address>[^<>]+)>; rel="(?P<rel>\w+)"')


class AnswerReader(Requester):
    """PyGithub's requests; an answer that is none ends in NoAnswerError, before PyGithub reads it."""

    def requestJson(self, verb: str, url: str, *others: Any, **more: Any) -> tuple[int, dict[str, Any], str]:  # noqa: N802 (PyGithub's name)
        path = re.sub(r"^.*?/repos/[^/]+/[^/]+", "", urlsplit(url).path)
        what = f"{verb} {visible(path, 100)}"
        try:
            status, headers, body = super().requestJson(verb, url, *others, **more)
        except (ValueError, OverflowError):
            # PyGithub reckons with the limits' headers before anybody sees them.
            raise NoAnswerError(f"{what}: the rate limit in its headers is no number") from None
        except RuntimeError:
            raise NoAnswerError(f"{what}: it leads to another place than GitHub's API") from None
        if status >= 400:
            return status, headers, body if isinstance(_parsed(body), dict) else "{}"
        if status in (204, 304) or (300 <= status < 400 and "location" in headers):
            return status, headers, ""
        missing = lack(_parsed(body), _shape(verb, path)) or _bad_link(headers, url)
        if missing is not None:
            raise NoAnswerError(f"{what}: GitHub answered {status} with what is no answer of its API: {missing}")
        return status, headers, body


def lack(value: Any, shape: Any) -> str | None:
    """What keeps the value from being such an answer, such as "head.sha: Field required"; None where nothing does."""
    try:
        _adapter(shape).validate_python(value)
    except ValidationError as error:
        return faults(error, most=1)
    return None


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def _shape(verb: str, path: str) -> Any:
    known = (shape for verbs, where, shape in READ if verb in verbs.split("|") and re.fullmatch(where, path))
    return next(known, dict[str, Any] | list[Any])


def _parsed(body: str) -> Any:
    """The JSON in a body; a text that says nothing where there is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return ""


def _bad_link(headers: Mapping[str, Any], asked: str) -> str | None:
    """What is wrong with the header that names the next page; a page that names itself would never end."""
    header = str(headers.get("link") or "")
    found = [_LINK.fullmatch(part) for part in header.split(", ")] if header else []
    if None in found:
        return "the pages in its Link header cannot be read"
    following = next((each["address"] for each in found if each and each["rel"] == "next"), None)
    back = following is not None and _page(following, most=0) <= _page(asked, most=1)
    return "its Link header leads back" if back else None


def _page(address: str, most: int) -> int:
    """The page that an address asks for; `most` where it names none that could be one."""
    number = parse_qs(urlsplit(address).query).get("page", [""])[0]
    return int(number) if re.fullmatch(r"[1-9]\d{0,8}", number, re.ASCII) else most
