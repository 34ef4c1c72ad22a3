"""GitHub's own actions, each reduced to what these workflows ask of it: python -m tests.engine.stand_in ACTION

Its inputs are JSON in $INPUTS, and $ENGINE is a file with what GitHub knows of the run. The tests' process keeps the
artifacts; it answers at the address that the file names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from filecmp import cmpfiles
from importlib.util import cache_from_source
from itertools import chain
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.executable).parent
TOOLS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/cuda/bin"]
"""PATH of a runner: none of kernelgate's tools, until a step puts them there."""
HOSTED_TOOLS = Path(__file__).parent / "hosted"
"""What GitHub's own image has besides."""
KNOWN = {
    "checkout": {"repository", "ref", "path", "persist-credentials", "fetch-depth", "fetch-tags", "sparse-checkout"},
    "setup-python": {"python-version"},
    "upload-artifact": {"name", "path", "if-no-files-found", "retention-days", "archive", "overwrite"},
    "download-artifact": {"name", "pattern", "path"},
    "upload-pages-artifact": {"path"},
    "deploy-pages": set(),
    "environment": {"name"},
}
"""The inputs of each action that its stand-in understands."""

Json = dict[str, Any]


def main(action: str) -> None:
    known: Json = json.loads(Path(os.environ["ENGINE"]).read_text("utf-8"))
    given = {name: value for name, value in json.loads(os.environ["INPUTS"]).items() if value != ""}
    outputs = ACTIONS[action](known, Path(os.environ["GITHUB_WORKSPACE"]), given) or {}
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())


# Checkout -------------------------------------------------------------------------------------------------------------


def checkout(known: Json, workspace: Path, given: Json) -> Json:
    """`ref` is a commit, a branch or a full ref; `sparse-checkout` names folders, beside the files at the top.

    As the action does it: one commit without its history, unless `fetch-depth` is 0, and never other pull requests. A
    folder that has a checkout already keeps the commits of that one.
    """
    assert given["persist-credentials"] == "false"
    repository = given.get("repository", known["repository"])
    ref = given.get("ref") or (known["sha"] if repository == known["repository"] else "HEAD")
    origin, folder = known["origins"][repository], workspace / given.get("path", "")
    sha = git("-C", origin, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    here = ("-C", str(folder))
    if not (folder / ".git").exists():
        git("init", "--quiet", str(folder))
        git(*here, "remote", "add", "origin", f"file://{origin}")
    fetched = {
        "0": ("--tags", "origin", sha, "+refs/heads/*:refs/remotes/origin/*"),
        "1": ("--no-tags", "--depth=1", "origin", sha),
    }
    pushed = known["ref"] if sha == known["sha"] and known["ref"].startswith("refs/tags/") else ""
    tags = "refs/tags/*" if given.get("fetch-tags") == "true" else pushed
    sparse = given.get("sparse-checkout", "").split()
    lazy = ["--filter=blob:none"] if sparse else []
    git(*here, "fetch", "--quiet", *lazy, *fetched[given.get("fetch-depth", "1")], *[f"+{tags}:{tags}"][: len(tags)])
    if sparse:
        git(*here, "sparse-checkout", "set", "--cone", *sparse)
    git(*here, "checkout", "--quiet", "--detach", sha)
    if folder == workspace and (folder / "ci/commands/cli.py").is_file() and not (folder / ".venv").exists():
        hosted = os.environ["RUNNER_ENVIRONMENT"] == "github-hosted"
        plant_environment(folder, known["starter"], [] if hosted else known["stood_in"])
    return {"ref": ref, "commit": sha}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def started_by(starter: str) -> str:
    """What a program's file, or -m and its module, are put behind."""
    if starter:
        return f"{sys.executable} -I -S {Path(__file__).with_name('ask_starter.py')} {starter}"
    return f"{sys.executable} -P"


def plant_environment(checkout: Path, starter: str, stood_in: list[str]) -> None:
    """What make and npm would install: the tests' own tools, which find this checkout's code.

    `stood_in`: the verbs that gpu.py answers.
    """
    folder = checkout / ".venv/bin"
    folder.mkdir(parents=True)
    started = started_by(starter if is_ours(checkout) else "")
    made_up, real = f"{started} {Path(__file__).with_name('gpu.py')}", f"{started} -m kernelgate.ci.commands.cli"
    verbs = "|".join(stood_in or ["none"])
    programs = {
        "kernelgate": f'case "$1" in {verbs}) exec {made_up} "$@";; esac\nexec {real} "$@"',
        "mkdocs": f'exec {INSTALLED / "mkdocs"} "$@"',
        "python": f'exec {sys.executable} -P "$@"',
    }
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\nexport PYTHONPATH={checkout}\n{script}\n", "utf-8")
        (folder / name).chmod(0o755)
    packages = checkout / "ci/report/node_modules"
    packages.mkdir()
    for package in (ROOT / "ci/report/node_modules").glob("[!.]*"):
        (packages / package.name).symlink_to(package)
    (packages / ".ready").touch()
    for marker in (".venv/.core", ".venv/.ready", ".venv/.judging"):
        (checkout / marker).touch()
    if started == started_by(""):
        plant_bytecode(checkout)


def is_ours(checkout: Path) -> bool:
    """Whether its kernelgate is the tests' own, in every file."""
    own, its = (sorted(kernelgate_of(folder)) for folder in (ROOT, checkout))
    return own == its == cmpfiles(ROOT, checkout, own, shallow=False)[0]


def kernelgate_of(checkout: Path) -> Iterator[str]:
    for folder, folders, names in chain.from_iterable(os.walk(checkout / one) for one in ("kernelgate", "bench", "ci")):
        folders[:] = [name for name in folders if name not in ("__pycache__", "node_modules")]
        yield from (os.path.relpath(Path(folder, name), checkout) for name in names)


def plant_bytecode(checkout: Path) -> None:
    """What Python has compiled already of the files that are the same here: each job would take a second for it."""
    for source in (file for name in ("bench", "ci") for file in (checkout / name).rglob("*.py")):
        own = ROOT / source.relative_to(checkout)
        made, wanted = (Path(cache_from_source(str(file))) for file in (own, source))
        if made.exists() and own.read_bytes() == source.read_bytes():
            os.utime(source, ns=(own.stat().st_atime_ns, own.stat().st_mtime_ns))  # by which Python knows it
            wanted.parent.mkdir(exist_ok=True)
            shutil.copyfile(made, wanted)


# Artifacts ------------------------------------------------------------------------------------------------------------


def upload(known: Json, workspace: Path, given: Json) -> Json:
    """Files and folders, below their least common ancestor, as upload-artifact lays them out."""
    asked = [workspace / line.strip() for line in given["path"].splitlines() if line.strip()]
    roots = [path for path in asked if path.exists()]
    found = [file for root in roots for file in (root, *sorted(root.rglob("*"))) if file.is_file()]
    if not found:
        assert given["if-no-files-found"] != "error", "no files were found"
        return {}
    archive = given.get("archive") != "false"
    assert archive or len(found) == 1, f"archive: false takes one file, not {len(found)}"
    top = Path(os.path.commonpath([root.parent if root.is_file() else root for root in roots]))
    name = given["name"] if archive else found[0].name
    files = {str(file.relative_to(top)): file.read_bytes() for file in found}
    number = asked_of(known, "keep", name, files, archive, given.get("overwrite") == "true")
    assert number is not None, f"this run has an artifact {name} already"
    page = f"https://github.com/{known['repository']}/actions/runs/{known['run_id']}/artifacts/{number}"
    return {"artifact-id": number, "artifact-url": page}


def download(known: Json, workspace: Path, given: Json) -> None:
    """One artifact into `path`, or those that match `pattern` each into a folder of its name."""
    kept: dict[str, Path] = asked_of(known, "kept")
    if "name" in given:
        shutil.copytree(kept[given["name"]], workspace / given["path"], dirs_exist_ok=True)
        return
    pattern = re.compile(given["pattern"].replace("*", ".*"))
    for name in filter(pattern.fullmatch, kept):
        shutil.copytree(kept[name], workspace / given["path"] / name, dirs_exist_ok=True)


def asked_of(known: Json, *question: object) -> Any:
    with Client(known["desk"], authkey=known["key"].encode()) as connection:
        connection.send(question)
        return connection.recv()


# Others ---------------------------------------------------------------------------------------------------------------


def environment(known: Json, _: Path, given: Json) -> None:
    assert given["name"] not in known["held"], f"{given['name']} waits for an approval"


def nothing(*_: object) -> None:
    pass


ACTIONS: dict[str, Callable[[Json, Path, Json], Json | None]] = {
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
    main(sys.argv[1])
