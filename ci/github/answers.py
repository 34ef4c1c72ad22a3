"""What GitHub's answers must hold for us to read them: the one place where an answer is looked at before it is used.

A gateway, a proxy or a bad day answers 200 with HTML, half of the JSON, `null` or `{}`. None of it reaches the code
that asked: it is a NoAnswerError, which client.py takes for a passing fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from github.Requester import Requester

from kernelgate.ci.document.escape import visible


class NoAnswerError(Exception):
    """GitHub answered something that its API never says."""


# What is read -------------------------------------------------------------------------------------------------------
# A type; a pattern that a text matches; a tuple, of which one fits; [what every entry is]; {key: value}, where a key
# with "?" may be missing.

TEXT = (str, None)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
LABEL = {"name": str, "color": str}
FILE = {"filename": str, "previous_filename?": TEXT, "patch?": TEXT}
SOURCE = {"full_name": str, "owner": {"login": str}, "pushed_at?": (TIME, None)}
LISTED_PULL = {
    "number": int,
    "url": str,
    "issue_url": str,
    "state": str,
    "title": str,
    "body": TEXT,
    "user": {"login": str, "type": str},
    "labels": [LABEL],
    "merged_at?": (TIME, None),
    "merge_commit_sha?": (SHA, None),
    "head": {"sha": SHA, "ref": str, "repo": (SOURCE, None)},
    "base": {"sha": SHA, "ref": str},
}
PULL = LISTED_PULL | {"changed_files": int}
COMMENT = {"id": int, "url": str, "body": TEXT, "user": ({"login": str}, None)}
CHECK = {
    "id": int,
    "url": str,
    "name": str,
    "status": str,
    "conclusion": TEXT,
    "external_id": TEXT,
    "app": ({"slug": str}, None),
    "completed_at?": (TIME, None),
    "output": {"title": TEXT, "summary": TEXT, "text?": TEXT, "annotations_count": int},
}
RUN = {
    "id": int,
    "event": str,
    "status": TEXT,
    "conclusion": TEXT,
    "run_attempt": int,
    "workflow_id": int,
    "head_sha": SHA,
    "head_branch": TEXT,
    "head_repository": (SOURCE, None),
    "created_at": TIME,
    "html_url": str,
    "jobs_url": str,
    "artifacts_url": str,
}
JOB = {"name": str, "conclusion": TEXT, "run_attempt": int, "steps?": [{"name": str, "conclusion": TEXT}]}
ARTIFACT = {
    "id": int,
    "name": str,
    "size_in_bytes": int,
    "expired": bool,
    "archive_download_url": str,
    "digest?": TEXT,
}
REF = {"ref": str, "url": str, "object": {"sha": SHA}}
CONTENT = {"sha": SHA}
REVIEW = {"state": str, "user": {"login": str}, "environments": [{"name": str}]}

ISSUE = {
    "number": int,
    "url": str,
    "state": str,
    "body": TEXT,
    "user": ({"login": str}, None),
    # A label of an issue may be its name alone.
    "labels": [({"name": str}, str)],
}

READ: tuple[tuple[str, str, Any], ...] = (
    ("GET", "", {"default_branch": str}),
    ("GET", "/pulls", [LISTED_PULL]),
    ("POST", "/pulls", PULL),
    ("GET|PATCH", r"/pulls/\d+", PULL),
    ("GET", r"/pulls/\d+/files", [FILE]),
    ("GET", "/issues", [ISSUE]),
    ("POST", "/issues", ISSUE),
    ("GET|PATCH", r"/issues/\d+", ISSUE),
    ("GET", r"/issues/\d+/comments", [COMMENT]),
    ("POST", r"/issues/\d+/comments", COMMENT),
    ("GET|PATCH", r"/issues/comments/\d+", COMMENT),
    ("GET|POST", r"/issues/\d+/labels", [LABEL]),
    ("DELETE", r"/issues/\d+/labels/[^/]+", [LABEL]),
    ("PATCH", "/labels/[^/]+", LABEL),
    ("POST", "/check-runs", CHECK),
    ("GET|PATCH", r"/check-runs/\d+", CHECK),
    ("GET", "/commits/[^/]+/check-runs", {"check_runs": [CHECK]}),
    ("GET", "/commits/[^/]+", {"sha": SHA}),
    ("GET", "/commits/[^/]+/pulls", [LISTED_PULL]),
    ("GET", "/compare/.+", {"merge_base_commit": {"sha": SHA}, "files?": [FILE]}),
    ("GET", "/collaborators/[^/]+/permission", {"permission": str}),
    ("GET", "/actions/runs", {"workflow_runs": [RUN]}),
    ("GET", r"/actions/runs/\d+", RUN),
    ("GET", r"/actions/runs/\d+/approvals", [REVIEW]),
    ("GET", r"/actions/runs/\d+/jobs", {"jobs": [JOB]}),
    ("GET", r"/actions/runs/\d+/artifacts", {"artifacts": [ARTIFACT]}),
    # Answered by an address in its headers, which is no answer's body.
    ("GET", r"/actions/artifacts/\d+/zip", {"location": str}),
    ("GET", "/git/ref/.+", REF),
    ("POST", "/git/refs", REF),
    ("PATCH", "/git/refs/.+", REF),
    ("GET", "/contents/.+", (CONTENT, [CONTENT])),
    ("PUT", "/contents/.+", {"content": CONTENT, "commit": {"sha": str}}),
    ("GET", "/user", {"login": str}),
)
"""Method, path below the repository, and what is read of the answer. Of any other, that it is an object or a list."""


def lack(value: Any, shape: Any, where: str = "it") -> str | None:
    """What keeps the value from fitting the shape, such as "head.sha is missing"; None where it fits."""
    if shape is None:
        return None if value is None else f"{where} is not null"
    if isinstance(shape, type):
        fits = isinstance(value, shape) and (shape is not int or not isinstance(value, bool))
        return None if fits else f"{where} is not {shape.__name__}"
    if isinstance(shape, re.Pattern):
        return None if isinstance(value, str) and shape.fullmatch(value) else f"{where} is not of its form"
    if isinstance(shape, tuple):
        found = [lack(value, one, where) for one in shape]
        return None if None in found else found[0]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is not a list"
        return next(filter(None, (lack(entry, shape[0], where) for entry in value)), None)
    return _object_lack(value, shape, where)


def _object_lack(value: Any, shape: Mapping[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where} is not an object"
    inside = f"{where}." if where != "it" else ""
    for key, wanted in shape.items():
        name = key.removesuffix("?")
        if name in value:
            found = lack(value[name], wanted, inside + name)
        else:
            found = None if key.endswith("?") else f"{inside}{name} is missing"
        if found is not None:
            return found
    return None


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


def _shape(verb: str, path: str) -> Any:
    known = (shape for verbs, where, shape in READ if verb in verbs.split("|") and re.fullmatch(where, path))
    return next(known, (dict, list))


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
