"""Takes what the default branch has compiled already, so that a base is not compiled in every run.

A workflow's cache would not do: a pull request's runs restore, first of all, what earlier runs of the same pull request
saved, and its author decides what those save. An artifact belongs to its run, and GitHub says of a run what started it.
Those that a push to the default branch or a schedule started have run nothing but the default branch's code.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator, Mapping
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

ARTIFACT = "kernelgate-library-head"
"""As build.yml calls it."""
EVENTS = ("push", "schedule")
"""Others run a stranger's code on the default branch, too: a comment, and a dispatch that names a pull request."""
MAX_RUNS = 10
"""Of each event that are looked at, the newest; beside those of the base's own commit."""
MAX_TAKEN = 2
"""Artifacts: a library is found by its contents, so the newest mostly has what did not change."""
MAX_ARCHIVE = 128 * 1024 * 1024
MAX_UNPACKED = 512 * 1024 * 1024
MAX_FILES = 20_000


def fetch(bot: Bot, base_sha: str | None, folder: Path) -> list[Path]:
    """Folders of libraries below `folder`, each what a trusted run handed over. What cannot be used is said, and left.

    `base_sha`: whose run comes first. Raises GitHubError where the API cannot be used.
    """
    unpacked: list[Path] = []
    for one in islice(_artifacts(bot, base_sha), MAX_TAKEN):
        into = folder / str(one.id)
        try:
            _unpack(_content(bot, one), into)
        except RefusedError as error:
            bot.step.warn(f"what the default branch compiled is not used: {error}")
        else:
            unpacked.append(into)
    return unpacked


def _content(bot: Bot, one: Artifact) -> bytes:
    if one.size_in_bytes > MAX_ARCHIVE:
        raise RefusedError(f"artifact {one.name} has {one.size_in_bytes} bytes, more than {MAX_ARCHIVE}")
    return patiently("artifact", lambda: artifacts.download(bot, one, MAX_ARCHIVE), bot)


def _artifacts(bot: Bot, base_sha: str | None) -> Iterator[Artifact]:
    """Those that can be trusted: the base's own first, then the newest."""
    default: str = patiently("repository", lambda: bot.repository.default_branch, bot)
    seen: set[int] = set()
    for run in _runs(bot, base_sha, default):
        if run.id in seen or not is_trusted(bot, run, default):
            continue
        seen.add(run.id)
        mine = [one for one in _listed(bot, run) if one.name == ARTIFACT and not one.expired]
        yield from sorted(mine, key=lambda one: -one.id)[:1]


def _listed(bot: Bot, run: WorkflowRun) -> list[Artifact]:
    return patiently("artifacts", lambda: artifacts.listed_of(run), bot)


def _runs(bot: Bot, base_sha: str | None, default: str) -> Iterator[WorkflowRun]:
    asked = [{"head_sha": base_sha}] if base_sha else []
    for query in (*asked, *({"branch": default, "event": event} for event in EVENTS)):
        yield from patiently("runs", partial(_newest, bot, query), bot)


def _newest(bot: Bot, query: Mapping[str, str]) -> list[WorkflowRun]:
    address = f"{bot.repository.url}/actions/runs"
    pages = PaginatedList(WorkflowRun, bot.repository.requester, address, dict(query), list_item="workflow_runs")
    return list(islice(pages, MAX_RUNS))


def is_trusted(bot: Bot, run: WorkflowRun, default: str) -> bool:
    """Whether all code that ran in it is the default branch's. A tag may have the branch's name, and a fork's branch,
    so the commit must be one of the default branch."""
    if run.event not in EVENTS or run.head_branch != default or run.head_repository is None:
        return False
    if run.head_repository.full_name != bot.repository.full_name:
        return False
    compared = patiently("ancestors", lambda: bot.repository.compare(default, run.head_sha), bot)
    return bool(compared.merge_base_commit.sha == run.head_sha)


def _unpack(data: bytes, folder: Path) -> None:
    """Raises RefusedError for anything but plain files below the folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_UNPACKED:
                raise RefusedError(f"its archive unpacks to more than {MAX_FILES} files or {MAX_UNPACKED} bytes")
            for entry in entries:
                path = PurePosixPath(entry.orig_filename)
                kind = stat.S_IFMT(entry.external_attr >> 16)
                plain = kind in (0, stat.S_IFREG) and not entry.is_dir()
                if not plain or path.is_absolute() or ".." in path.parts or "\\" in str(path) or "\0" in str(path):
                    raise RefusedError(f"its archive holds {visible(entry.orig_filename, 80)!r}")
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as file:
                    (folder / path).write_bytes(file.read(entry.file_size))
    except UNREADABLE as error:
        raise RefusedError(f"its archive cannot be read ({type(error).__name__})") from None
