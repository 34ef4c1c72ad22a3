"""What the default branch's own runs left behind, and nothing that anybody else's did.

A workflow's cache would not do: a pull request's runs restore, first of all, what earlier runs of the same pull request
saved, and its author decides what those save. An artifact belongs to its run, and GitHub says of a run what started it.
Those that a push to the default branch or a schedule started have run nothing but the default branch's code.
"""

from __future__ import annotations

import io
import shutil
import stat
import zipfile
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from github.Artifact import Artifact
from github.PaginatedList import PaginatedList
from github.WorkflowRun import WorkflowRun

from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import artifacts
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.github.untrusted_artifact import UNREADABLE, RefusedError

EVENTS = ("push", "schedule")
"""Others run a stranger's code on the default branch, too: a comment, and a dispatch that names a pull request."""


def default_branch(bot: Bot) -> str:
    found: str = patiently("repository", lambda: bot.repository.default_branch, bot)
    return found


def newest(bot: Bot, query: Mapping[str, str], most: int) -> list[WorkflowRun]:
    """The runs that GitHub finds, the newest first. Nothing says yet that they can be trusted."""
    return patiently("runs", partial(_listed, bot, query, most), bot)


def _listed(bot: Bot, query: Mapping[str, str], most: int) -> list[WorkflowRun]:
    address = f"{bot.repository.url}/actions/runs"
    pages = PaginatedList(WorkflowRun, bot.repository.requester, address, dict(query), list_item="workflow_runs")
    return list(islice(pages, most))


def is_trusted(bot: Bot, run: WorkflowRun, default: str) -> bool:
    """Whether all code that ran in it is the default branch's. A tag may have the branch's name, and a fork's branch,
    so the commit must be one of the default branch."""
    if run.event not in EVENTS or run.head_branch != default or run.head_repository is None:
        return False
    if run.head_repository.full_name != bot.repository.full_name:
        return False
    compared = patiently("ancestors", lambda: bot.repository.compare(default, run.head_sha), bot)
    return bool(compared.merge_base_commit.sha == run.head_sha)


def artifact(bot: Bot, run: WorkflowRun, name: str) -> Artifact | None:
    """The newest one of this name that the run left; None where there is none any more."""
    listed = patiently("artifacts", lambda: artifacts.listed_of(run), bot)
    mine = [one for one in listed if one.name == name and not one.expired]
    return max(mine, key=lambda one: one.id, default=None)


def content(bot: Bot, one: Artifact, most: int) -> bytes:
    """Its zip file, of at most so many bytes, which are those that were uploaded. Raises RefusedError."""
    if one.size_in_bytes > most:
        raise RefusedError(f"artifact {one.name} has {one.size_in_bytes} bytes, more than {most}")
    return patiently("artifact", lambda: artifacts.download(bot, one, most), bot)


def unpack(data: bytes, folder: Path, most_files: int, most_bytes: int) -> None:
    """Raises RefusedError for anything but plain files below the folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > most_files or sum(entry.file_size for entry in entries) > most_bytes:
                raise RefusedError(f"its archive unpacks to more than {most_files} files or {most_bytes} bytes")
            for entry in entries:
                path = PurePosixPath(entry.orig_filename)
                kind = stat.S_IFMT(entry.external_attr >> 16)
                plain = kind in (0, stat.S_IFREG) and not entry.is_dir()
                if not plain or path.is_absolute() or ".." in path.parts or "\\" in str(path) or "\0" in str(path):
                    raise RefusedError(f"its archive holds {visible(entry.orig_filename, 80)!r}")
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, (folder / path).open("wb") as file:
                    shutil.copyfileobj(packed, file)
    except UNREADABLE as error:
        raise RefusedError(f"its archive cannot be read ({type(error).__name__})") from None
