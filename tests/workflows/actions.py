"""GitHub's own actions, each reduced to what these workflows ask of it; an input that it does not know is an error.

The executor (runner.py) and act (tests/engine) share them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.workflows.documents import ROOT

INSTALLED = Path(sys.executable).parent
TOOLS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/cuda/bin"]
"""PATH of a runner: none of kernelgate's tools, until a step puts them there."""
HOSTED_TOOLS = Path(__file__).parent / "hosted"
"""What GitHub's own image has besides."""
KNOWN = {
    "checkout": {"repository", "ref", "path", "persist-credentials", "fetch-depth", "sparse-checkout"},
    "setup-python": {"python-version"},
    "upload-artifact": {"name", "path", "if-no-files-found", "retention-days", "archive"},
    "download-artifact": {"name", "pattern", "path"},
    "upload-pages-artifact": {"path"},
    "deploy-pages": set(),
}
"""The inputs of each action that its stand-in understands."""


class UnknownInputError(Exception):
    """A step gives an action an input that its stand-in would have ignored."""


@dataclass(frozen=True)
class Done:
    """How a step ended, before `continue-on-error`."""

    passed: bool
    log: str
    outputs: dict[str, str] = field(default_factory=dict)


def refuse_unknown(action: str, given: Collection[str]) -> None:
    if unknown := sorted(set(given) - KNOWN[action]):
        raise UnknownInputError(f"the stand-in for actions/{action} does not know {', '.join(unknown)}")


# Checkout -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a job runs: its repository, its commit and its workspace."""

    repository: str
    sha: str
    workspace: Path


@dataclass(frozen=True)
class Machine:
    """What a runner reaches: bare repositories by name, and the program that answers some verbs for a GPU."""

    origins: Mapping[str, Path]
    gpu_verbs: Path | None = None
    stood_in: tuple[str, ...] = ()


def checkout(place: Place, machine: Machine, given: Mapping[str, Any]) -> Done:
    """`ref` is a commit, a branch or a full ref; `sparse-checkout` names folders, beside the files at the top.

    As the action does it: one commit without its history, unless `fetch-depth` is 0, and never other pull requests. A
    folder that has a checkout already keeps the commits of that one.
    """
    refuse_unknown("checkout", given)
    assert str(given["persist-credentials"]).lower() == "false"
    depth = str(given.get("fetch-depth", 1))
    assert depth in ("0", "1"), depth
    repository = given.get("repository") or place.repository
    ref = given.get("ref") or (place.sha if repository == place.repository else "HEAD")
    origin, folder = str(machine.origins[repository]), place.workspace / (given.get("path") or "")
    found = _git("-C", origin, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode:
        return Done(False, found.stderr)
    sha = found.stdout.strip()
    here, sparse = ("-C", str(folder)), (given.get("sparse-checkout") or "").split()
    fetched = {"0": ("--tags", "origin", sha, "+refs/heads/*:refs/remotes/origin/*"), "1": ("--depth=1", "origin", sha)}
    begun = (("init", "--quiet", str(folder)), (*here, "remote", "add", "origin", f"file://{origin}"))
    for words in (
        *(() if (folder / ".git").exists() else begun),
        (*here, "fetch", "--quiet", *fetched[depth]),
        *([(*here, "sparse-checkout", "set", "--cone", *sparse)] if sparse else []),
        (*here, "checkout", "--quiet", "--detach", sha),
    ):
        done = _git(*words)
        if done.returncode:
            return Done(False, done.stderr)
    if (folder / "ci/commands/cli.py").is_file() and not (folder / ".venv").exists():
        plant_environment(folder, machine)
    return Done(True, f"{repository} at {sha}", {"ref": ref, "commit": sha})


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], capture_output=True, text=True)


def plant_environment(checkout: Path, machine: Machine) -> None:
    """What make and npm would install: the tests' own tools, which find this checkout's code."""
    folder = checkout / ".venv/bin"
    folder.mkdir(parents=True)
    found = [f"export PYTHONPATH={checkout}"]
    for tool in ("clang-format", "mkdocs", "mypy", "pytest", "ruff"):
        _script(folder / tool, [*found, f'exec {INSTALLED / tool} "$@"'])
    _script(folder / "python", [*found, f'exec {sys.executable} -P "$@"'])
    stand_in = []
    if machine.gpu_verbs and machine.stood_in:
        verbs = "|".join(machine.stood_in)
        stand_in.append(f'case "$1" in {verbs}) exec {sys.executable} -P {machine.gpu_verbs} "$@";; esac')
    _script(folder / "kernelgate", [*found, *stand_in, f'exec {sys.executable} -P -m kernelgate.ci.commands.cli "$@"'])
    for at in ("tests/workflows/node_modules", "ci/report/node_modules"):
        (checkout / at).mkdir()
        for package in (ROOT / at).glob("[!.]*"):
            (checkout / at / package.name).symlink_to(package)
        (checkout / at / ".ready").write_text("", "utf-8")
    for marker in (".venv/.ready", ".venv/.judging"):
        (checkout / marker).write_text("", "utf-8")


def _script(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", "utf-8")
    path.chmod(0o755)


# Artifacts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collected:
    """What a step hands over: files by their paths in the artifact."""

    name: str
    files: dict[str, bytes]
    archive: bool


def collected(workspace: Path, given: Mapping[str, Any]) -> Collected | Done:
    """Files and folders, below their least common ancestor, as upload-artifact lays them out; or how the step ends."""
    refuse_unknown("upload-artifact", given)
    asked = [workspace / line.strip() for line in given["path"].splitlines() if line.strip()]
    roots = [path for path in asked if path.exists()]
    found = [
        file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*"))) if file.is_file()
    ]
    if not found:
        return Done(given["if-no-files-found"] != "error", "no files were found")
    archive = str(given.get("archive", True)).lower() != "false"
    if not archive and len(found) > 1:
        return Done(False, f"archive: false takes one file, not {len(found)}")
    top = Path(os.path.commonpath([root.parent if root.is_file() else root for root in roots]))
    name = given["name"] if archive else found[0].name
    files = {str(file.relative_to(top if archive else file.parent)): file.read_bytes() for file in found}
    return Collected(name, files, archive)


def uploaded(repository: str, run_id: int, found: Collected, number: int | None) -> Done:
    """`number`: the artifact's; None where the run had one of that name already."""
    if number is None:
        return Done(False, f"this run has an artifact {found.name} already")
    page = f"https://github.com/{repository}/actions/runs/{run_id}/artifacts/{number}"
    return Done(True, f"{found.name}: {len(found.files)} files", {"artifact-id": str(number), "artifact-url": page})


def wanted(given: Mapping[str, Any], kept: Collection[str]) -> dict[str, str]:
    """Artifact to folder: one into `path`, or those that match `pattern` each into a folder of its name."""
    refuse_unknown("download-artifact", given)
    if given.get("name"):
        return {given["name"]: given["path"]} if given["name"] in kept else {}
    pattern = re.compile(given["pattern"].replace("*", ".*"))
    return {name: f"{given['path']}/{name}" for name in kept if pattern.fullmatch(name)}


def downloaded(given: Mapping[str, Any], chosen: Collection[str]) -> Done:
    if given.get("name") and not chosen:
        return Done(False, f"there is no artifact {given['name']}")
    return Done(True, ", ".join(chosen))
