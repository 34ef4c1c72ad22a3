"""The body of an action's stand-in, as act runs it: python -m tests.engine.stand_in ACTION

The action's inputs are JSON in $INPUTS, and $ENGINE is a file with what GitHub knows of the run. The tests' process
keeps the artifacts; it answers at the address that the file names.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from tests.workflows import actions
from tests.workflows.actions import Done, Machine, Place

Json = dict[str, Any]


def main(action: str) -> int:
    known: Json = json.loads(Path(os.environ["ENGINE"]).read_text("utf-8"))
    given = {name: value for name, value in json.loads(os.environ["INPUTS"]).items() if value != ""}
    done = ACTIONS[action](known, Path(os.environ["GITHUB_WORKSPACE"]), given)
    print(done.log)
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in done.outputs.items())
    return 0 if done.passed else 1


def checkout(known: Json, workspace: Path, given: Json) -> Done:
    hosted = os.environ["RUNNER_ENVIRONMENT"] == "github-hosted"
    origins = {name: Path(path) for name, path in known["origins"].items()}
    verbs = Path(known["gpu_verbs"]) if known["gpu_verbs"] and not hosted else None
    machine = Machine(origins, verbs, tuple(known["stood_in"]))
    return actions.checkout(Place(known["repository"], known["sha"], workspace), machine, given)


def upload(known: Json, workspace: Path, given: Json) -> Done:
    found = actions.collected(workspace, given)
    if isinstance(found, Done):
        return found
    number = asked(known, "keep", found.name, found.files, found.archive)
    return actions.uploaded(known["repository"], known["run_id"], found, number)


def download(known: Json, workspace: Path, given: Json) -> Done:
    kept: dict[str, Path] = asked(known, "kept")
    chosen = actions.wanted(given, kept)
    for name, folder in chosen.items():
        shutil.copytree(kept[name], workspace / folder, dirs_exist_ok=True)
    return actions.downloaded(given, chosen)


def environment(known: Json, _: Path, given: Json) -> Done:
    held = given["name"] in known["held"]
    return Done(not held, f"{given['name']} {'waits for an approval' if held else 'lets the job start'}")


def asked(known: Json, *question: object) -> Any:
    with Client(known["desk"], authkey=known["key"].encode()) as connection:
        connection.send(question)
        return connection.recv()


def nothing(_: Json, __: Path, given: Json) -> Done:
    return Done(True, str(given))


ACTIONS = {
    "checkout": checkout,
    "setup-python": nothing,
    "upload-artifact": upload,
    "download-artifact": download,
    "upload-pages-artifact": lambda known, workspace, given: upload(
        known, workspace, {**given, "name": "github-pages", "if-no-files-found": "error"}
    ),
    "deploy-pages": nothing,
    "environment": environment,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
