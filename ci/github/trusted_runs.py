"""What the default branch's own runs left behind: compiled libraries and the history's index, and nothing else's.

A workflow's cache would not do: a pull request's runs restore, first of all, what earlier runs of the same pull request
saved, and its author decides what those save. An artifact belongs to its run, and GitHub says of a run what started it.
Those that a push to the default branch or a schedule started have run nothing but the default branch's code.
"""

from __future__ import annotations

import io
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
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

LIBRARIES = "kernelgate-library-head"
"""The artifact's name in build.yml."""
LIBRARY_RUNS = 10
"""Of each event that are looked at, the newest; beside those of the base's own commit."""
MAX_TAKEN = 2
"""Artifacts: a library is found by its contents, so the newest mostly has what did not change."""
LIBRARIES_PACKED = 128 * 1024 * 1024
LIBRARIES_UNPACKED = 512 * 1024 * 1024
MAX_FILES = 20_000

INDEX = "kernelgate-history-index"
"""The artifact's name in refresh-baseline.yml."""
INDEX_FILE = "index.sqlite"
"""The only file in it."""
MAGIC = b"SQLite format 3\0"
INDEX_RUNS = 30
"""Of each event that are looked at, the newest: every workflow of the default branch has runs there."""
NEIGHBOURS = 3
"""Runs with an index that may have waited for each other."""
INDEX_PACKED = 512 * 1024 * 1024
INDEX_UNPACKED = 2 * 1024 * 1024 * 1024


def fetch_libraries(bot: Bot, base_sha: str | None, folder: Path) -> list[Path]:
    """Folders of libraries below `folder`, each what a trusted run handed over. What cannot be used is said, and left.

    `base_sha`: whose run comes first. Raises GitHubError where the API cannot be used.
    """
    unpacked: list[Path] = []
    for artifact in islice(_libraries(bot, base_sha), MAX_TAKEN):
        into = folder / str(artifact.id)
        try:
            _unpack(_content(bot, artifact, LIBRARIES_PACKED), into, MAX_FILES, LIBRARIES_UNPACKED)
        except RefusedError as error:
            bot.step.warn(f"what the default branch compiled is not used: {error}")
        else:
            unpacked.append(into)
    return unpacked


def _libraries(bot: Bot, base_sha: str | None) -> Iterator[Artifact]:
    """Those that can be trusted: the base's own first, then the newest."""
    default = _default_branch(bot)
    seen: set[int] = set()
    asked = [{"head_sha": base_sha}] if base_sha else []
    for query in (*asked, *_of_branch(default)):
        for run in _newest(bot, query, LIBRARY_RUNS):
            if run.id not in seen and is_trusted(bot, run, default):
                seen.add(run.id)
                if (artifact := _artifact(bot, run, LIBRARIES)) is not None:
                    yield artifact


def fetch_index(bot: Bot, into: Path) -> bool:
    """Puts the history's index into the file `into`; False where there is none that can be used, which is said.

    Of the newest trusted runs that left one: it holds what is in those before it, though its run may have begun
    earlier. Raises GitHubError where the API cannot be used.
    """
    default = _default_branch(bot)
    runs = [run for query in _of_branch(default) for run in _newest(bot, query, INDEX_RUNS)]
    left = ((run, _artifact(bot, run, INDEX)) for run in sorted(runs, key=lambda run: -run.id))
    trusted = (artifact for run, artifact in left if artifact is not None and is_trusted(bot, run, default))
    found = max(islice(trusted, NEIGHBOURS), key=lambda artifact: artifact.id, default=None)
    if found is None:
        bot.step.log("no run of the default branch has left an index of the history")
        return False
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        file = Path(folder) / INDEX_FILE
        try:
            _unpack(_content(bot, found, INDEX_PACKED), Path(folder), 1, INDEX_UNPACKED)
            with file.open("rb") if file.exists() else io.BytesIO() as opened:
                if opened.read(len(MAGIC)) != MAGIC:
                    raise RefusedError(f"its archive holds no {INDEX_FILE} that is a SQLite database")
        except RefusedError as error:
            bot.step.warn(f"the history's index is not used: {error}")
            return False
        file.replace(into)
    return True


def _default_branch(bot: Bot) -> str:
    name: str = patiently("repository", lambda: bot.repository.default_branch, bot)
    return name


def _of_branch(default: str) -> Iterator[dict[str, str]]:
    return ({"branch": default, "event": event} for event in EVENTS)


def _newest(bot: Bot, query: Mapping[str, str], most: int) -> list[WorkflowRun]:
    """The runs that GitHub finds, the newest first. Nothing says yet that they can be trusted."""

    def step() -> list[WorkflowRun]:
        address = f"{bot.repository.url}/actions/runs"
        pages = PaginatedList(WorkflowRun, bot.repository.requester, address, dict(query), list_item="workflow_runs")
        return list(islice(pages, most))

    return patiently("runs", step, bot)


def is_trusted(bot: Bot, run: WorkflowRun, default: str) -> bool:
    """Whether all code that ran in it is the default branch's. A tag may have the branch's name, and a fork's branch,
    so the commit must be one of the default branch."""
    if run.event not in EVENTS or run.head_branch != default or run.head_repository is None:
        return False
    if run.head_repository.full_name != bot.repository.full_name:
        return False
    compared = patiently("ancestors", lambda: bot.repository.compare(default, run.head_sha), bot)
    return bool(compared.merge_base_commit.sha == run.head_sha)


def _artifact(bot: Bot, run: WorkflowRun, name: str) -> Artifact | None:
    """The newest one of this name that the run left; None where there is none any more."""
    listed = patiently("artifacts", lambda: artifacts.listed_of(run), bot)
    mine = [artifact for artifact in listed if artifact.name == name and not artifact.expired]
    return max(mine, key=lambda artifact: artifact.id, default=None)


def _content(bot: Bot, artifact: Artifact, most: int) -> bytes:
    """Its zip file, of at most so many bytes, which are those that were uploaded. Raises RefusedError."""
    if artifact.size_in_bytes > most:
        raise RefusedError(f"artifact {artifact.name} has {artifact.size_in_bytes} bytes, more than {most}")
    return patiently("artifact", lambda: artifacts.download(bot, artifact, most), bot)


def _unpack(data: bytes, folder: Path, most_files: int, most_bytes: int) -> None:
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
