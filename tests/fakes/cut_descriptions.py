"""Cuts GitHub's published descriptions down to what the bot uses, so that the tests can carry them.

    npm pack @octokit/openapi@23.0.2 @octokit/webhooks-examples@7.6.1     (then unpack each into a folder)
    python -m tests.fakes.cut_descriptions OPENAPI_FOLDER EXAMPLES_FOLDER

writes `github_openapi.json.gz` and `webhook_examples.json.gz` beside this file, each with its package's version inside.
What the fake answers is kept: after a new route, the script is run again.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import tests.fakes.github_settings  # noqa: F401 (its routes)
from tests.fakes.github_server import ELSEWHERE, PREFIX, ROUTES

HERE = Path(__file__).parent
RUNNER = ("/repos/{owner}/{repo}/actions/runners/generate-jitconfig", "/orgs/{org}/actions/runners/generate-jitconfig")
"""What .ci/runner asks for, by POST, beside what the fake answers."""
EVENTS = {
    "pull_request": ("opened", "synchronize", "labeled", "closed", "converted_to_draft"),
    "workflow_run": ("completed", "requested"),
    "issue_comment": ("created",),
    "merge_group": ("checks_requested",),
    "push": (None,),
    "workflow_dispatch": (None,),
}
REFERENCE = re.compile(r'"\$ref":\s*"#/([^"]+)"')


def main(openapi: Path, examples: Path) -> None:
    write("github_openapi.json.gz", cut_openapi(openapi))
    write("webhook_examples.json.gz", cut_examples(examples))


def cut_openapi(package: Path) -> dict[str, Any]:
    """The operations above with every component that they refer to, directly or not."""
    whole = load(package / "generated" / "api.github.com.json")
    kept = {*((path, "post") for path in RUNNER), *((described(route[1]), route[0].lower()) for route in ROUTES)}
    paths = {
        path: {key: one for key, one in whole["paths"][path].items() if key == "parameters" or (path, key) in kept}
        for path, _ in sorted(kept)
    }
    cut = {
        "openapi": whole["openapi"],
        "info": {"title": whole["info"]["title"], "version": version(package)},
        "servers": whole["servers"],
        "paths": without_prose(paths),
        "components": {},
    }
    waiting, taken = [paths], set()
    while waiting:
        for reference in set(REFERENCE.findall(json.dumps(waiting.pop()))) - taken:
            taken.add(reference)
            _, kind, name = reference.split("/")
            component = without_prose(whole["components"][kind][name])
            cut["components"].setdefault(kind, {})[name] = component
            waiting.append(component)
    return cut


def described(path: str) -> str:
    """A route's path as GitHub writes it."""
    whole = path if path.startswith(ELSEWHERE) else PREFIX + path
    return whole.replace("{workflow}", "{workflow_id}")


def cut_examples(package: Path) -> dict[str, Any]:
    """The first example of every event and action that a workflow listens to."""
    published = {event["name"]: event["examples"] for event in load(package / "api.github.com" / "index.json")}
    events = {
        f"{name}.{action}" if action else name: next(e for e in published[name] if e.get("action") == action)
        for name, actions in EVENTS.items()
        for action in actions
    }
    return {"source": version(package), "events": events}


def without_prose(value: Any, named: bool = False) -> Any:
    """`value` without the texts for people; `named`: its keys are names of things, none of them a keyword."""
    if isinstance(value, list):
        return [without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("nullable") is True and None not in value.get("enum", [None]):
        # Such as a check run's conclusion, which is null until it has one: the list of values would forbid it.
        value = value | {"enum": [*value["enum"], None]}
    return {
        key: item if key in ("example", "examples", "value") and not named else without_prose(item, key in NAMING)
        for key, item in value.items()
        if named or not (key in PROSE or key.startswith("x-")) or (key == "description" and "content" in value)
    }


PROSE = ("summary", "externalDocs", "tags", "operationId")
NAMING = ("properties", "schemas", "headers", "responses", "paths", "examples", "content")


def version(package: Path) -> str:
    described = load(package / "package.json")
    return f"{described['name']} {described['version']}"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(name: str, content: dict[str, Any]) -> None:
    """The same content always makes the same bytes."""
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    (HERE / name).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
