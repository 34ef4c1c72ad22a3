"""Stands in for gh where docs/install.md is tried out, and holds a request to the API against GitHub's description.

    repo fork OWNER/NAME --org ORG --clone
    repo clone OWNER/NAME
    pr create --repo OWNER/NAME --head BRANCH --title TEXT --body TEXT
    workflow run NAME --repo OWNER/NAME
    auth refresh --scopes SCOPES
    auth token

A request must fit the description, and name no field that is not in there: GitHub takes no notice of those, so that a
typing error would set nothing. Its answer is GitHub's own example. Repositories are bare ones below $GH_ORIGINS, and
$GH_REQUESTS is a file to which each command adds a line of JSON with what it did.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openapi_core import OpenAPI

DESCRIPTION = Path(__file__).parents[1] / "fakes/github_openapi.json.gz"
Json = dict[str, Any]


class GhRefusedError(Exception):
    """What gh, or GitHub, would not take."""


def main(words: list[str]) -> int:
    try:
        done, said = COMMANDS[" ".join(words[:2])](words[2:])
    except GhRefusedError as refused:
        print(f"gh: {refused}", file=sys.stderr)
        return 1
    with Path(os.environ["GH_REQUESTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(done) + "\n")
    print(said)
    return 0


def options(words: list[str], *required: str, **optional: Any) -> argparse.Namespace:
    """The words of a command as options; another one than those named ends it with exit code 2."""
    taken = argparse.ArgumentParser(prog="gh", allow_abbrev=False)
    for name in required:
        taken.add_argument(name, **({"required": True} if name.startswith("-") else {}))
    for name, how in optional.items():
        taken.add_argument(f"--{name.replace('_', '-')}", **how)
    return taken.parse_args(words)


# The API -------------------------------------------------------------------------------------------------------------


def asked(method: str, path: str, body: Any) -> Any:
    """GitHub's answer to a request; raises GhRefusedError where the request does not fit."""
    from openapi_core.testing import MockRequest  # here: the other commands need not wait for it

    data = b"" if body is None else json.dumps(body).encode()
    request = MockRequest("https://api.github.com", method, path, data=data)
    try:
        specification().validate_request(request)
    except Exception as error:
        cause = error.__cause__ or error
        faults = getattr(cause, "schema_errors", None) or [cause]
        raise GhRefusedError(
            "; ".join(f"{getattr(one, 'json_path', '')} {one}".splitlines()[0] for one in faults)
        ) from None
    return _example(method, path)


@functools.cache
def description() -> Json:
    loaded: Json = json.loads(gzip.decompress(DESCRIPTION.read_bytes()))
    return loaded


@functools.cache
def specification() -> OpenAPI:
    from openapi_core import OpenAPI

    return OpenAPI.from_dict(_closed(description()))


def _closed(value: Any) -> Any:
    """A schema, and every one inside it, that takes no other keys than those it names."""
    if isinstance(value, list):
        return [_closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    closed = {key: _closed(each) for key, each in value.items()}
    if value.get("type") == "object" and "properties" in value:
        closed.setdefault("additionalProperties", False)
    return closed


def _example(method: str, path: str) -> Any:
    """GitHub's own example of the answer; None where it has no body."""
    patterns = {re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(known)): known for known in description()["paths"]}
    known = next(known for pattern, known in patterns.items() if re.fullmatch(pattern, path))
    answers = description()["paths"][known][method]["responses"]
    answer = _followed(next(answer for status, answer in answers.items() if status.startswith("2")))
    if "content" not in answer:
        return None
    return _followed(next(iter(answer["content"]["application/json"]["examples"].values())))["value"]


def _followed(entry: Json) -> Json:
    """What an entry of the description stands for, where it refers to another one."""
    if "$ref" not in entry:
        return entry
    _, components, kind, name = entry["$ref"].split("/")
    found: Json = description()[components][kind][name]
    return found


# Repositories --------------------------------------------------------------------------------------------------------


def fork(words: list[str]) -> tuple[Json, str]:
    given = options(words, "repository", "--org", clone={"action": "store_true", "required": True})
    copy = f"{given.org}/{given.repository.split('/')[1]}"
    shutil.copytree(origin(given.repository), origin(copy))
    return clone([copy])


def clone(words: list[str]) -> tuple[Json, str]:
    given = options(words, "repository")
    subprocess.run(["git", "clone", "--quiet", origin(given.repository)], check=True)
    return {"clone": given.repository}, ""


def open_pull(words: list[str]) -> tuple[Json, str]:
    given = options(words, "--repo", "--head", "--title", "--body")
    if git(given.repo, "rev-parse", "--verify", f"refs/heads/{given.head}"):
        raise GhRefusedError(f"{given.repo} has no branch {given.head}")
    return {"pull": vars(given)}, f"https://github.com/{given.repo}/pull/1"


def dispatch(words: list[str]) -> tuple[Json, str]:
    given = options(words, "name", "--repo")
    if git(given.repo, "grep", f"^name: {given.name}$", "HEAD", "--", ".github/workflows"):
        raise GhRefusedError(f"{given.repo} has no workflow {given.name}")
    return {"dispatch": vars(given)}, ""


def refresh(words: list[str]) -> tuple[Json, str]:
    return {"scopes": options(words, "--scopes").scopes.split(",")}, ""


def token(words: list[str]) -> tuple[Json, str]:
    options(words)
    return {"token": True}, os.environ["GH_TOKEN_TO_SHOW"]


def git(repository: str, *words: str) -> int:
    return subprocess.run(["git", "-C", origin(repository), *words], capture_output=True, check=False).returncode


def origin(repository: str) -> Path:
    return Path(os.environ["GH_ORIGINS"]) / f"{repository}.git"


COMMANDS: dict[str, Callable[[list[str]], tuple[Json, str]]] = {
    "repo fork": fork,
    "repo clone": clone,
    "pr create": open_pull,
    "workflow run": dispatch,
    "auth refresh": refresh,
    "auth token": token,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
