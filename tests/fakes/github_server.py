"""A GitHub that lives in this process: it keeps comments, checks, labels and pulls, and has bad days on request.

Every request that is taken and its answer are held against GitHub's own OpenAPI description
(`github_openapi.json.gz`, see `cut_descriptions.py`), which answers start from. What does not fit is collected in
`FakeGitHub.problems`, and leaving its block with one raises. A fault that answers for GitHub is not checked.
"""

from __future__ import annotations

import base64
import copy
import functools
import gzip
import hashlib
import io
import json
import pickle
import re
import stat
import sys
import threading
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.testing import MockRequest, MockResponse

HERE = Path(__file__).parent
PREFIX = "/repos/{owner}/{repo}"
BOT = "github-actions[bot]"
MAX_COMMENT = 65_536
"""Characters of a comment; GitHub's description does not say it, GitHub refuses more."""
MAX_COMPARED = 300
"""Files of a comparison."""
ALL_PERMISSIONS = {"actions": "read"} | dict.fromkeys(("checks", "contents", "issues", "pull-requests"), "write")
DENIED = {"message": "Resource not accessible by integration", "documentation_url": "https://docs.github.com/rest"}
NOT_FOUND = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}

Json = dict[str, Any]


@functools.cache
def description() -> Json:
    loaded: Json = json.loads(gzip.decompress((HERE / "github_openapi.json.gz").read_bytes()))
    return loaded


@functools.cache
def specification() -> OpenAPI:
    return OpenAPI.from_dict(description(), config=Config(spec_validator_cls=None))  # GitHub's own is taken as it is


def example(name: str) -> Any:
    """A fresh copy of one of GitHub's examples."""
    return pickle.loads(_pickled(name))  # noqa: S301 (our own; ten times as fast as a deep copy)


@functools.cache
def _pickled(name: str) -> bytes:
    return pickle.dumps(description()["components"]["examples"][name]["value"])


def event(name: str) -> Json:
    """A fresh copy of one of GitHub's example payloads, such as "issue_comment.created"."""
    published = json.loads(gzip.decompress((HERE / "webhook_examples.json.gz").read_bytes()))
    payload: Json = published["events"][name]
    return payload


@dataclass
class Pull:
    number: int
    head_sha: str
    base_sha: str
    head_ref: str = "faster-softmax"
    base_ref: str = "main"
    head_repository: str | None = None
    """A fork's full name, the repository's own, or None for a fork that was deleted."""
    state: str = "open"
    locked: bool = False
    draft: bool = False
    title: str = "Widen the loads"
    body: str | None = ""
    author: str = "octocat"
    author_type: str = "User"
    pushed_at: str = "2026-11-20T09:00:00Z"
    """When the repository of the head last had a push."""
    labels: list[str] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    changed_files: int | None = None
    """What GitHub says the number of changed files is; default: as many as there are."""
    merged_at: str | None = None
    merge_commit_sha: str | None = None


@dataclass
class InjectedFault:
    """What goes wrong, how often; `skip` requests pass before it begins."""

    method: str
    path: str
    times: int = 1
    skip: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "Server Error"
    body: str | None = None
    """Sent as it is, with 200 where no `status` is given. Headers alone are sent with the true answer."""
    drop: str | None = None
    """"before": the connection closes and nothing was done; "after": it was done, and the answer is lost."""
    hold_s: float = 0.0
    before: Callable[[], None] | None = None
    """Runs before the request is handled, as if somebody else had been quicker."""
    after: Callable[[], None] | None = None


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class Answer:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


FITS: set[Any] = set()
"""The forms of requests and answers that were held against GitHub's description, which takes long, and fit."""


def _form(value: Any) -> Any:
    """What decides whether it fits: keys, types and short words, such as a state; not how many there are."""
    if isinstance(value, dict):
        return tuple((key, _form(one)) for key, one in value.items())
    if isinstance(value, list):
        return frozenset(map(_form, value))
    return value if isinstance(value, str) and len(value) < 20 and value.isidentifier() else type(value)


def _unfitting(validate: Callable[[], None]) -> str | None:
    try:
        validate()
    except Exception as error:
        faults = getattr(error.__cause__ or error, "schema_errors", ()) or [error.__cause__ or error]
        return "; ".join(f"{getattr(one, 'json_path', '')} {getattr(one, 'message', one)}"[-300:] for one in faults)
    return None


Handler = Callable[..., Any]
ELSEWHERE = ("/orgs/", "/user")
"""How the paths begin that lie in no repository."""
ROUTES: list[tuple[str, str, re.Pattern[str], str, Handler]] = []


def route(method: str, path: str, needs: str) -> Callable[[Handler], Handler]:
    """`needs`: the permission, such as "checks: write"; "|" where one of several is enough."""

    whole = path if path.startswith(ELSEWHERE) else PREFIX + path

    def register(handler: Handler) -> Handler:
        names = re.findall(r"\{(\w+)\}", whole)
        pattern = re.escape(whole)
        for name in names:
            wide = name in ("path", "ref") and path.endswith(f"{{{name}}}")
            kind = r"\d+" if name.endswith(("_number", "_id")) else ".+" if wide else "[^/]+"
            pattern = pattern.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{kind})")
        ROUTES.append((method, path, re.compile(pattern), needs, handler))
        return handler

    return register


class FakeGitHub:
    """See the module. Everything it keeps is public and may be changed by a test at any time."""

    def __init__(self, repository: str = "octo-org/kernels") -> None:
        self.repository = repository
        self.default_branch = "main"
        self.login = BOT
        self.token = "ghs_" + "t0ken" * 8
        self.permissions = dict(ALL_PERMISSIONS)
        self.pulls: dict[int, Pull] = {}
        self.comments: dict[int, Json] = {}
        """By id; each as GitHub shows it, with `issue_number` beside."""
        self.issues: dict[int, Json] = {}
        """By number; pull requests are apart."""
        self.checks: dict[int, Json] = {}
        """By id; `annotations` holds those that were sent."""
        self.reactions: list[tuple[int, str]] = []
        self.repository_labels: dict[str, Json] = {}
        self.collaborators: dict[str, str] = {}
        """Login to admin, write, read or none; triage and maintain are role names of read and write."""
        self.runs: dict[int, Json] = {}
        self.jobs: dict[int, list[Json]] = {}
        self.approvals: dict[int, dict[str, str]] = {}
        """Run to {environment: who approved it}."""
        self.owner_type, self.admin = "Organization", False
        """Whose the repository is, and whether the token's owner administers it."""
        self.settings: dict[str, Json] = {}
        """Path to what stands there; see github_settings.py."""
        self.dispatches: list[tuple[str, Json]] = []
        """Workflow, and what was sent."""
        self.reruns: list[int] = []
        """The runs that were started again."""
        self.artifacts: dict[int, Json] = {}
        self.blobs: dict[int, bytes] = {}
        self.now = "2026-11-20T09:59:00Z"
        """When a check run ends that ends now."""
        self.refs: dict[str, str] = {"heads/main": "b" * 40}
        self.files: dict[tuple[str, str], bytes] = {}
        """(branch, path) to content."""
        self.merge_bases: dict[tuple[str, str], str] = {}
        self.compared: dict[tuple[str, str], list[str]] = {}
        """(base, head) to the files that differ, where no pull request lies between them."""
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.faults: list[InjectedFault] = []
        self._last_id = 1000
        self._lock = threading.RLock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> FakeGitHub:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if kind is None and self.problems:
            raise AssertionError("GitHub would not have taken this:\n" + "\n".join(self.problems))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a runner gives to a step."""
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.url,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_TOKEN": self.token,
        }

    # What a test sets up -------------------------------------------------------------------------

    def open_pull(self, **facts: Any) -> Pull:
        number = facts.pop("number", 0) or max(self.pulls, default=0) + 1
        pull = Pull(number, facts.pop("head_sha", "a" * 40), facts.pop("base_sha", "b" * 40), **facts)
        if "head_repository" not in facts:
            pull.head_repository = self.repository
        self.pulls[number] = pull
        return pull

    def add_run(self, pull: Pull | None = None, **facts: Any) -> Json:
        """A completed workflow run; of a fork's pull request unless the head lies in the repository."""
        run = example("workflow-run")
        run |= {"id": self.next_id(), "event": "pull_request", "status": "completed", "conclusion": "success"}
        run |= {"run_attempt": 1, "path": ".github/workflows/performance.yml", "pull_requests": []}
        run["repository"] = self._repository_reference(run["repository"], self.repository)
        run["head_repository"] = self._repository_reference(run["head_repository"], self.repository)
        if pull is not None:
            run |= {"head_sha": pull.head_sha, "head_branch": pull.head_ref}
            name = pull.head_repository or "ghost/kernels"
            run["head_repository"] = self._repository_reference(run["head_repository"], name)
        run |= facts
        run["url"] = f"{self.url}/repos/{self.repository}/actions/runs/{run['id']}"
        run |= {"artifacts_url": f"{run['url']}/artifacts", "jobs_url": f"{run['url']}/jobs"}
        run["html_url"] = f"https://github.com/{self.repository}/actions/runs/{run['id']}"
        self.runs[run["id"]] = run
        self.jobs[run["id"]] = []
        return run

    def add_job(self, run: Json, name: str, conclusion: str, *steps: tuple[str, str]) -> None:
        job = example("job-paginated")["jobs"][0]
        job |= {"id": self.next_id(), "run_id": run["id"], "name": name, "conclusion": conclusion}
        job["run_attempt"] = run["run_attempt"]
        job["created_at"] = job["started_at"]  # GitHub's own example lacks a required key here
        job["steps"] = [
            job["steps"][0] | {"name": step, "conclusion": ended, "number": number}
            for number, (step, ended) in enumerate(steps, 1)
        ]
        self.jobs[run["id"]].append(job)

    def add_artifact(self, run: Json, name: str, content: bytes | dict[str, bytes], **facts: Any) -> Json:
        """An artifact of a run: its bytes, or the members of a well-formed zip file."""
        data = content if isinstance(content, bytes) else zipped(content)
        artifact = example("artifact-paginated")["artifacts"][0]
        artifact |= {"id": self.next_id(), "name": name, "size_in_bytes": len(data), "expired": False}
        artifact["digest"] = "sha256:" + hashlib.sha256(data).hexdigest()
        artifact["workflow_run"] |= {"id": run["id"], "head_sha": run["head_sha"]}
        artifact["archive_download_url"] = f"{self.url}/repos/{self.repository}/actions/artifacts/{artifact['id']}/zip"
        artifact |= facts
        self.artifacts[artifact["id"]] = artifact
        self.blobs[artifact["id"]] = data
        return artifact

    def fault(self, method: str, path: str, **what: Any) -> InjectedFault:
        """Something goes wrong with requests whose method and path (below the repository) match."""
        fault = InjectedFault(method, path, **what)
        self.faults.append(fault)
        return fault

    def rate_limit(self, method: str, path: str, secondary: bool = False, wait_s: int = 7) -> InjectedFault:
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + wait_s)}
        message = "API rate limit exceeded for installation ID 1234."
        if secondary:
            headers = {"Retry-After": str(wait_s)}
            message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        return self.fault(method, path, status=403, message=message, headers=headers)

    def add_check(self, **facts: Any) -> Json:
        check: Json = example("check-run-example-of-completed-conclusion") | {"id": self.next_id(), "annotations": []}
        check |= {"conclusion": None, "completed_at": None}
        check["app"] = check["app"] | {"slug": self.login.removesuffix("[bot]")}
        check["output"] = dict.fromkeys(("title", "summary", "text"))
        check["output"] |= {"annotations_count": 0, "annotations_url": "https://x.test"}
        check["url"] = f"{self.url}/repos/{self.repository}/check-runs/{check['id']}"
        self.checks[check["id"]] = check | facts
        return self.checks[check["id"]]

    # What a test looks at ------------------------------------------------------------------------

    def comment(self, issue: int, body: str, author: str | None = None, author_type: str | None = None) -> Json:
        """A new comment, by the bot unless `author` says otherwise."""
        comment = example("issue-comment") | {"id": self.next_id(), "body": body, "issue_number": issue}
        comment["user"] = self._user(author or self.login, author_type or ("User" if author else "Bot"))
        comment["html_url"] = f"https://github.com/{self.repository}/pull/{issue}#issuecomment-{comment['id']}"
        comment["url"] = f"{self.url}/repos/{self.repository}/issues/comments/{comment['id']}"
        self.comments[comment["id"]] = comment
        return comment

    def bodies(self, issue: int) -> list[str]:
        return [comment["body"] for comment in self.comments.values() if comment["issue_number"] == issue]

    def writes(self) -> list[str]:
        """Method and path of every request that may change something."""
        start = len(f"/repos/{self.repository}")
        return [f"{said.method} {said.path[start:]}" for said in self.requests if said.method != "GET"]

    def next_id(self) -> int:
        with self._lock:
            self._last_id += 1
            return self._last_id

    # What GitHub does ----------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """The answer to a request that no fault caught."""
        if request.path.startswith("/blob/"):
            return self._blob(request)
        if request.headers.get("authorization") != f"token {self.token}":
            return Answer(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
        for method, path, pattern, needs, handler in ROUTES:
            found = pattern.fullmatch(request.path)
            if method != request.method or found is None:
                continue
            values = {name: unquote(value) for name, value in found.groupdict().items()}
            owner, _, name = self.repository.partition("/")
            same = values.pop("owner", owner) == values.pop("org", owner) == owner and values.pop("repo", name) == name
            with self._lock:
                if not same:
                    answer = Answer(404, NOT_FOUND)
                elif not self._allowed(needs):
                    answer = Answer(403, DENIED)
                else:
                    typed = {key: int(one) if key.endswith(("_number", "_id")) else one for key, one in values.items()}
                    made = handler(self, request, **typed)
                    made = Answer(404, NOT_FOUND) if made is None else made
                    answer = made if isinstance(made, Answer) else Answer(200, made)
            self._check(request, path, values, answer)
            return answer
        self.problems.append(f"{request.method} {request.path}: the fake knows no such request")
        return Answer(404, NOT_FOUND)

    def _allowed(self, needs: str) -> bool:
        asked = (need.strip().split(": ") for need in needs.split("|"))
        return any(self.permissions.get(name) in (level, "write") for name, level in asked)

    def _check(self, request: Request, path: str, values: dict[str, str], answer: Answer) -> None:
        """Holds both against the description; a refusal says nothing of the request's form."""
        forms = _form([request.query, request.body]), answer.status, _form(answer.body)
        if answer.status >= 400 or (request.method, path, *forms) in FITS:
            return
        address = path if path.startswith(ELSEWHERE) else f"/repos/{self.repository}" + path
        for name, value in {**values, "org": self.repository.partition("/")[0]}.items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        sent = b"" if request.body is None else json.dumps(request.body).encode()
        asked = MockRequest("https://api.github.com", request.method.lower(), address, args=request.query, data=sent)
        problem = _unfitting(lambda: specification().validate_request(asked))
        if problem is None and answer.status < 300 and answer.body is not None:
            came = MockResponse(json.dumps(answer.body).encode(), answer.status)
            problem = _unfitting(lambda: specification().validate_response(asked, came))
        if problem is None:
            FITS.add((request.method, path, *forms))
        else:
            self.problems.append(f"{request.method} {request.path}: {problem}")

    def _page(self, request: Request, items: list[Any], wrap: str | None = None) -> Answer:
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        shown = items[(page - 1) * size : page * size]
        query, headers = urlencode(request.query | {"page": page + 1}), {}
        if len(items) > page * size:
            headers["Link"] = f'<{self.url}{request.path}?{query}>; rel="next"'
        return Answer(200, shown if wrap is None else {"total_count": len(items), wrap: shown}, headers)

    def _blob(self, request: Request) -> Answer:
        if "authorization" in request.headers:
            self.problems.append("the token was sent to the host that stores artifacts")
        return Answer(200, self.blobs[int(request.path.split("/")[2])], {"Content-Type": "application/zip"})

    def _user(self, login: str, kind: str = "User") -> Json:
        user: Json = example("issue-comment")["user"]
        return user | {"login": login, "type": kind}

    def _repository_reference(self, like: Json, full_name: str) -> Json:
        owner, name = full_name.split("/")
        number = int(hashlib.sha256(full_name.encode()).hexdigest()[:6], 16)
        like = copy.deepcopy(like) | {"full_name": full_name, "name": name, "id": number}
        like["owner"] = like["owner"] | {"login": owner}
        like["url"] = f"{self.url}/repos/{full_name}"
        return like

    def show_pull(self, pull: Pull, whole: bool) -> Json:
        """A pull request as GitHub shows it, alone or (not `whole`) in a list."""
        shown: Json = example("pull-request") if whole else example("pull-request-simple-items")[0]
        shown |= {
            "number": pull.number,
            "state": pull.state,
            "draft": pull.draft,
            "locked": pull.locked,
            "title": pull.title,
            "body": pull.body,
            "user": self._user(pull.author, pull.author_type),
            "labels": [self._label(name) for name in pull.labels],
            "merged_at": pull.merged_at,
            "merge_commit_sha": pull.merge_commit_sha,
            "html_url": f"https://github.com/{self.repository}/pull/{pull.number}",
            "url": f"{self.url}/repos/{self.repository}/pulls/{pull.number}",
            "issue_url": f"{self.url}/repos/{self.repository}/issues/{pull.number}",
        }
        if "requested_teams" in shown:
            shown["requested_teams"] = []  # GitHub's own example lacks a required key here
        if whole:
            shown["changed_files"] = len(pull.files) if pull.changed_files is None else pull.changed_files
            shown["comments"] = len(self.bodies(pull.number))
        for end, ref, sha, name in (
            ("head", pull.head_ref, pull.head_sha, pull.head_repository),
            ("base", pull.base_ref, pull.base_sha, self.repository),
        ):
            owner = (name or "ghost/").split("/")[0]
            shown[end] |= {"ref": ref, "sha": sha, "label": f"{owner}:{ref}"}
            shown[end]["repo"] = self._repository_reference(shown["base"]["repo"], name) if name else None
            if name:
                shown[end]["repo"]["pushed_at"] = pull.pushed_at
        return shown

    def _compared_files(self, base: str, head: str) -> list[Json]:
        """What a comparison lists: the files of the pull request between these commits, and never more than 300."""
        like = example("diff-entry-items")[0]
        pull = next((one for one in self.pulls.values() if (one.base_sha, one.head_sha) == (base, head)), None)
        if pull is None:
            return [like | {"filename": name} for name in self.compared.get((base, head), ())]
        unlisted = max(0, (pull.changed_files or 0) - len(pull.files))
        others = [{"filename": f"zzz/{number}"} for number in range(min(unlisted, MAX_COMPARED))]
        return [like | file for file in [*pull.files, *others]][:MAX_COMPARED]

    def _label(self, name: str) -> Json:
        known = self.repository_labels.get(name, {})
        return example("label-2") | {"name": name} | known


def zipped(members: dict[str, bytes], mode: int = stat.S_IFREG | 0o644) -> bytes:
    """A well-formed zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, (2026, 11, 20, 10, 0, 0))
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return buffer.getvalue()


# The requests --------------------------------------------------------------------------------------------------------
#
# Each answers 200 with what it returns, 404 with nothing, or an Answer.


SEE_TALK, TALK = "issues: read | pull-requests: read", "issues: write | pull-requests: write"
SEE_PULLS, SEE_CHECKS, SEE_RUNS, SEE_FILES = "pull-requests: read", "checks: read", "actions: read", "contents: read"


def _of(every: dict[int, Json], key: str, value: Any) -> list[Json]:
    return sorted((_bare(one) for one in every.values() if one[key] == value), key=lambda one: int(one["id"]))


def _pulls_of(github: FakeGitHub, commit: str) -> list[Json]:
    found = (pull for pull in github.pulls.values() if commit in (pull.head_sha, pull.merge_commit_sha))
    return [github.show_pull(pull, whole=False) for pull in found]


def _runs(github: FakeGitHub, query: dict[str, str]) -> list[Json]:
    names = {"head_sha": "head_sha", "event": "event", "branch": "head_branch"}
    asked = {names[key]: value for key, value in query.items() if key in names}
    return [run for run in github.runs.values() if asked.items() <= run.items()]


def _issue(github: FakeGitHub, number: int) -> Json:
    address = f"{github.url}/repos/{github.repository}/issues/{number}"
    return github.issues.get(number) or example("issue") | {"number": number, "url": address}


ONE: dict[str, tuple[str, Callable[[FakeGitHub, Any], Any]]] = {
    "/pulls/{pull_number}": (SEE_PULLS, lambda hub, n: hub.pulls.get(n) and hub.show_pull(hub.pulls[n], whole=True)),
    "/issues/{issue_number}": (SEE_TALK, _issue),
    "/issues/comments/{comment_id}": (SEE_TALK, lambda hub, n: _bare(hub.comments.get(n))),
    "/check-runs/{check_run_id}": (SEE_CHECKS, lambda hub, n: _bare(hub.checks.get(n))),
    "/actions/runs/{run_id}": (SEE_RUNS, lambda hub, n: hub.runs.get(n)),
    "/git/ref/{ref}": (SEE_FILES, lambda hub, ref: _ref(hub, ref) if ref in hub.refs else None),
}
"""What is read by its number or name."""
LISTS: dict[str, tuple[str, str | None, Callable[[FakeGitHub, Request, Any], list[Json]]]] = {
    "/pulls/{pull_number}/files": (
        SEE_PULLS,
        None,
        lambda hub, _, n: [example("diff-entry-items")[0] | file for file in hub.pulls[n].files],
    ),
    "/issues/{issue_number}/comments": (SEE_TALK, None, lambda hub, _, n: _of(hub.comments, "issue_number", n)),
    "/commits/{commit_sha}/pulls": (SEE_PULLS, None, lambda hub, _, sha: _pulls_of(hub, sha)),
    "/actions/runs": (SEE_RUNS, "workflow_runs", lambda hub, asked, _: _runs(hub, asked.query)),
    "/actions/runs/{run_id}/jobs": (SEE_RUNS, "jobs", lambda hub, _, n: hub.jobs.get(n, [])),
    "/actions/runs/{run_id}/artifacts": (
        SEE_RUNS,
        "artifacts",
        lambda hub, _, n: [one for one in hub.artifacts.values() if one["workflow_run"]["id"] == n],
    ),
}
"""What comes in pages, and under which key."""


for _path, (_needs, _one) in ONE.items():
    route("GET", _path, _needs)(lambda hub, _, one=_one, **names: one(hub, *names.values()))
for _path, (_needs, _wrap, _every) in LISTS.items():
    route("GET", _path, _needs)(
        lambda hub, asked, every=_every, wrap=_wrap, **names: hub._page(
            asked, every(hub, asked, next(iter(names.values()), None)), wrap
        )
    )


route("DELETE", "/issues/comments/{comment_id}", TALK)(
    lambda hub, _, comment_id: Answer(204) if hub.comments.pop(comment_id, None) else None
)
route("DELETE", "/git/refs/{ref}", "contents: write")(
    lambda hub, _, ref: Answer(204) if hub.refs.pop(ref, None) else _invalid(message="Reference does not exist")
)


@route("GET", "", "contents: read | pull-requests: read")
def _repository(github: FakeGitHub, _: Request) -> Any:
    shown = example("full-repository-default-response") | {"language": None}
    for key in ("source", "parent", "template_repository"):
        shown.pop(key, None)  # GitHub's own example lacks required keys in them
    shown = github._repository_reference(shown, github.repository) | {"default_branch": github.default_branch}
    shown["owner"] |= {"type": github.owner_type}
    return shown | {"permissions": {"admin": github.admin, "push": True, "pull": True}}


@route("GET", "/pulls", SEE_PULLS)
def _list_pulls(github: FakeGitHub, request: Request) -> Any:
    wanted, (owner, _, ref) = request.query.get("state", "open"), request.query.get("head", "").partition(":")
    base = request.query.get("base")
    every = (pull for pull in reversed(github.pulls.values()) if wanted in ("all", pull.state))
    every = (pull for pull in every if base in (None, pull.base_ref) and ref in ("", pull.head_ref))
    of_owner = (pull for pull in every if not ref or (pull.head_repository or "").split("/")[0] == owner)
    return github._page(request, [github.show_pull(pull, whole=False) for pull in of_owner])


@route("POST", "/pulls", "pull-requests: write")
def _create_pull(github: FakeGitHub, request: Request) -> Any:
    said = request.body
    if any(pull.head_ref == said["head"] and pull.state == "open" for pull in github.pulls.values()):
        return _invalid(resource="PullRequest", code="custom", message="A pull request already exists")
    refs = {"head_ref": said["head"], "base_ref": said["base"], "head_sha": github.refs[f"heads/{said['head']}"]}
    words = {"title": said["title"], "body": said.get("body"), "author": github.login, "author_type": "Bot"}
    pull = github.open_pull(**refs, **words)
    return Answer(201, github.show_pull(pull, whole=True))


@route("PATCH", "/pulls/{pull_number}", "pull-requests: write")
def _edit_pull(github: FakeGitHub, request: Request, pull_number: int) -> Any:
    pull = github.pulls[pull_number]
    pull.title = request.body.get("title", pull.title)
    pull.body = request.body.get("body", pull.body)
    pull.state = request.body.get("state", pull.state)
    return github.show_pull(pull, whole=True)


@route("POST", "/issues/{issue_number}/comments", TALK)
def _create_comment(github: FakeGitHub, request: Request, issue_number: int) -> Any:
    pull = github.pulls.get(issue_number)
    if pull is None and issue_number not in github.issues:
        return None
    if pull is not None and pull.locked:
        return Answer(403, {"message": "Unable to create comment because issue is locked."})
    return _too_long(request) or Answer(201, _bare(github.comment(issue_number, request.body["body"])))


@route("PATCH", "/issues/comments/{comment_id}", TALK)
def _edit_comment(github: FakeGitHub, request: Request, comment_id: int) -> Any:
    if (comment := github.comments.get(comment_id)) is None or (long := _too_long(request)):
        return comment and long
    comment["body"] = request.body["body"]
    return _bare(comment)


@route("POST", "/issues/comments/{comment_id}/reactions", TALK)
def _react(github: FakeGitHub, request: Request, comment_id: int) -> Any:
    if comment_id not in github.comments:
        return None
    reaction = (comment_id, request.body["content"])
    old = reaction in github.reactions
    github.reactions += [] if old else [reaction]
    return Answer(200 if old else 201, example("reaction") | {"content": reaction[1]})


@route("GET", "/issues", "issues: read")
def _list_issues(github: FakeGitHub, request: Request) -> Any:
    state = request.query.get("state", "open")
    asked = {name for name in request.query.get("labels", "").split(",") if name}
    every = [one for _, one in sorted(github.issues.items(), reverse=True) if state in ("all", one["state"])]
    return github._page(request, [one for one in every if asked <= {label["name"] for label in one["labels"]}])


@route("POST", "/issues", "issues: write")
def _create_issue(github: FakeGitHub, request: Request) -> Any:
    number = 1 + max((*github.issues, *github.pulls), default=0)
    made = example("issue") | {"number": number, "id": github.next_id(), "state": "open", "state_reason": None}
    made |= {"title": request.body["title"], "body": request.body["body"], "assignee": None, "assignees": []}
    made |= {"labels": [github._label(name) for name in request.body.get("labels", ())], "closed_by": None}
    made["user"] = github._user(github.login, "Bot")
    made["url"] = f"{github.url}/repos/{github.repository}/issues/{number}"
    made["comments_url"] = f"{made['url']}/comments"
    del made["pull_request"]
    if long := _too_long(request):
        return long
    github.issues[number] = made
    return Answer(201, made)


@route("PATCH", "/issues/{issue_number}", "issues: write")
def _edit_issue(github: FakeGitHub, request: Request, issue_number: int) -> Any:
    found = github.issues[issue_number]
    found |= {key: request.body[key] for key in ("title", "body", "state", "state_reason") if key in request.body}
    return found


@route("POST", "/issues/{issue_number}/labels", TALK)
def _add_labels(github: FakeGitHub, request: Request, issue_number: int) -> Any:
    pull = github.pulls[issue_number]
    pull.labels += [name for name in request.body["labels"] if name not in pull.labels]
    for name in request.body["labels"]:
        # A label that the repository does not have is made, without a meaning.
        github.repository_labels.setdefault(name, {"name": name, "color": "ededed", "description": ""})
    return [github._label(name) for name in pull.labels]


@route("DELETE", "/issues/{issue_number}/labels/{name}", TALK)
def _remove_label(github: FakeGitHub, _: Request, issue_number: int, name: str) -> Any:
    pull = github.pulls[issue_number]
    if name not in pull.labels:
        return None
    pull.labels.remove(name)
    return [github._label(left) for left in pull.labels]


@route("PATCH", "/labels/{name}", TALK)
def _edit_label(github: FakeGitHub, request: Request, name: str) -> Any:
    if name not in github.repository_labels:
        return None
    github.repository_labels[name] |= request.body
    return github._label(name)


@route("POST", "/check-runs", "checks: write")
def _create_check(github: FakeGitHub, request: Request) -> Any:
    return Answer(201, _change_check(github, github.add_check(), request.body))


@route("PATCH", "/check-runs/{check_run_id}", "checks: write")
def _edit_check(github: FakeGitHub, request: Request, check_run_id: int) -> Any:
    found = github.checks.get(check_run_id)
    return _change_check(github, found, request.body) if found else None


@route("GET", "/commits/{ref}/check-runs", SEE_CHECKS)
def _list_checks(github: FakeGitHub, request: Request, ref: str) -> Any:
    name = request.query.get("check_name")
    found = [one for one in github.checks.values() if one["head_sha"] == ref and name in (None, one["name"])]
    return github._page(request, [_bare(check) for check in reversed(found)], "check_runs")


@route("GET", "/commits/{ref}", SEE_FILES)
def _get_commit(github: FakeGitHub, _: Request, ref: str) -> Any:
    known = [github.refs.get(f"{kind}/{ref}") for kind in ("heads", "tags")]
    head = github.refs[f"heads/{github.default_branch}"] if ref == "HEAD" else None
    sha = next((found for found in (*known, head) if found), ref if re.fullmatch("[0-9a-f]{40}", ref) else None)
    if sha is None:
        return Answer(422, {"message": f"No commit found for SHA: {ref}"})
    return example("commit") | {"sha": sha, "files": []}


@route("GET", "/compare/{basehead}", SEE_FILES)
def _compare(github: FakeGitHub, _: Request, basehead: str) -> Any:
    base, _dots, head = basehead.partition("...")
    shown: Json = example("commit-comparison")
    shown["merge_base_commit"]["sha"] = github.merge_bases.get((base, head)) or github.refs.get(f"heads/{base}", base)
    shown["files"] = github._compared_files(base, head)
    return shown


@route("GET", "/collaborators/{username}/permission", SEE_FILES)
def _permission(github: FakeGitHub, _: Request, username: str) -> Any:
    held = github.collaborators.get(username, "none")
    shown: Json = example("repository-collaborator-permission-response-if-user-has-admin-permissions")
    legacy = {"maintain": "write", "triage": "read"}.get(held, held)
    shown["user"] |= {"login": username, "role_name": held}  # GitHub's own example lacks a required key here
    return shown | {"permission": legacy, "role_name": held}


@route("GET", "/actions/runs/{run_id}/approvals", SEE_RUNS)
def _list_approvals(github: FakeGitHub, _: Request, run_id: int) -> Any:
    [review] = example("environment-approvals-items")
    [environment] = review["environments"]
    given = [(github._user(login), name) for name, login in github.approvals.get(run_id, {}).items()]
    return [review | {"user": user, "environments": [environment | {"name": name}]} for user, name in given]


@route("POST", "/actions/runs/{run_id}/rerun", "actions: write")
def _rerun(github: FakeGitHub, _: Request, run_id: int) -> Any:
    github.reruns.append(run_id)
    return Answer(201, {})


@route("GET", "/actions/artifacts/{artifact_id}/{archive_format}", SEE_RUNS)
def _download(github: FakeGitHub, _: Request, artifact_id: int, archive_format: str) -> Any:
    artifact = github.artifacts.get(artifact_id)
    if artifact is None or archive_format != "zip":
        return None
    if artifact["expired"]:
        return Answer(410, {"message": "Artifact has expired", "documentation_url": "https://docs.github.com/rest"})
    # Another host than the API's, as with GitHub: the token must not follow.
    other = f"http://localhost:{urlsplit(github.url).port}/blob/{artifact_id}?sig=s3cret"
    return Answer(302, None, {"Location": other})


@route("POST", "/git/refs", "contents: write")
def _create_ref(github: FakeGitHub, request: Request) -> Any:
    name = request.body["ref"].removeprefix("refs/")
    if name in github.refs:
        return _invalid(resource="Reference", code="already_exists", field="ref")
    return Answer(201, _move_ref(github, request, name))


@route("PATCH", "/git/refs/{ref}", "contents: write")
def _move_ref(github: FakeGitHub, request: Request, ref: str) -> Any:
    """The ref names this commit, and its branch has the files of the branch there, or of the default one."""
    sha, branch = request.body["sha"], ref.removeprefix("heads/")
    there = [known.removeprefix("heads/") for known, tip in github.refs.items() if tip == sha and known != ref]
    source = next(iter(there), github.default_branch)
    for (known, path), data in list(github.files.items()):
        if known == source:
            github.files[branch, path] = data
    github.refs[ref] = sha
    return _ref(github, ref)


@route("POST", "/actions/workflows/{workflow}/dispatches", "actions: write")
def _dispatch(github: FakeGitHub, request: Request, workflow: str) -> Any:
    github.dispatches.append((workflow, request.body))
    return Answer(204)


@route("GET", "/contents/{path}", SEE_FILES)
def _get_file(github: FakeGitHub, request: Request, path: str) -> Any:
    ref = request.query.get("ref", github.default_branch)
    named = next((name.removeprefix("heads/") for name, tip in github.refs.items() if tip == ref), ref)
    data = github.files.get((named, path))
    if data is None:
        return None
    shown: Json = example("content-file-response-if-content-is-a-file")
    content = base64.b64encode(data).decode()
    return shown | {"path": path, "content": content, "sha": _blob_sha(data), "size": len(data)}


@route("PUT", "/contents/{path}", "contents: write")
def _put_file(github: FakeGitHub, request: Request, path: str) -> Any:
    said = request.body
    old = github.files.get((said["branch"], path))
    if old is not None and said.get("sha") != _blob_sha(old):
        return Answer(409, {"message": f"{path} does not match", "documentation_url": "https://docs.github.com/rest"})
    data = base64.b64decode(said["content"])
    github.files[said["branch"], path] = data
    github.refs[f"heads/{said['branch']}"] = hashlib.sha1(data).hexdigest()  # noqa: S324 (a name, no secret)
    shown = example("file-commit-example-for-updating-a-file")
    shown["content"] |= {"path": path, "sha": _blob_sha(data)}
    return Answer(201 if old is None else 200, shown)


def _bare(stored: Json | None) -> Any:
    return stored and {key: value for key, value in stored.items() if key not in ("issue_number", "annotations")}


def _change_check(github: FakeGitHub, check: Json, said: Json) -> Json:
    check |= {key: value for key, value in said.items() if key != "output"}
    if "conclusion" in said:
        check["completed_at"] = github.now
    output = said.get("output", {})
    # As GitHub does it: annotations are added to those that are there, whatever is sent.
    check["annotations"] += output.get("annotations", [])
    check["output"] |= {key: output[key] for key in ("title", "summary", "text") if key in output}
    check["output"]["annotations_count"] = len(check["annotations"])
    shown: Json = _bare(check)
    return shown


def _invalid(**error: str) -> Answer:
    more = {"errors": [error], "documentation_url": "https://docs.github.com/rest"}
    return Answer(422, {"message": "Validation Failed"} | more)


def _too_long(request: Request) -> Answer | None:
    if len(request.body["body"]) <= MAX_COMMENT:
        return None
    return _invalid(resource="IssueComment", code="unprocessable", field="data", message="Body is too long")


def _ref(github: FakeGitHub, name: str) -> Json:
    shown: Json = example("git-ref") | {"ref": f"refs/{name}"}
    shown["url"] = f"{github.url}/repos/{github.repository}/git/refs/{name}"
    shown["object"]["sha"] = github.refs[name]
    return shown


def _blob_sha(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324 (git's own name for it)


# The wire ------------------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github
        super().__init__(("127.0.0.1", 0), _Wire)

    def handle_error(self, *_: Any) -> None:
        """A client that went away is none of ours; anything else is a fault of the fake, and the test must fail."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self.github.problems.append("".join(traceback.format_exception(error)))


class _Wire(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024  # header and body leave together: two writes would wait for each other's acknowledgement

    def handle_any(self) -> None:
        github = self.server.github
        request = self._read()
        github.requests.append(request)
        if (fault := self._fault(request)) is None:
            self._send(github.answer(request))
            return
        if fault.before:
            fault.before()
        if fault.hold_s:
            time.sleep(fault.hold_s)
        if fault.drop == "before":
            self._hang_up()
            return
        if fault.body is not None or fault.status is not None:
            body = {"message": fault.message} if fault.body is None else fault.body.encode()
            self._send(Answer(fault.status or 200, body, fault.headers))
            return
        answer = github.answer(request)
        answer.headers |= fault.headers
        if fault.after:
            fault.after()
        if fault.drop == "after":
            self._hang_up()
            return
        self._send(answer)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815 (http.server's names)

    def _read(self) -> Request:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        split = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, split.path, query, json.loads(data) if data else None, headers)

    def _fault(self, request: Request) -> InjectedFault | None:
        github = self.server.github
        with github._lock:
            for fault in github.faults:
                path = request.path.removeprefix(f"/repos/{github.repository}")
                if fault.method != request.method or not re.fullmatch(fault.path, path) or fault.times == 0:
                    continue
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def _send(self, answer: Answer) -> None:
        raw = isinstance(answer.body, bytes)
        data = answer.body if raw else b"" if answer.body is None else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (http.server's name)
        """Tests look at `requests` instead."""
