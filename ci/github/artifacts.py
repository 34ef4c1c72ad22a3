"""Takes in what runs left behind: of a measurement its records and failure notes, each checked and written anew; of the
default branch's own runs the history's index.

A workflow's cache would not do for that: the author of a pull request decides what its runs save there. Of an artifact
GitHub says which run left it and what started that: a push to the default branch or a schedule runs its code alone.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from github.Artifact import Artifact
from github.WorkflowRun import WorkflowRun

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.record import Run, RunRecord
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import untrusted_artifact
from kernelgate.ci.github.client import TIMEOUT_S, Bot, GitHubError, default_branch, merge_base, patiently
from kernelgate.ci.github.untrusted_artifact import FAILURE, RECORD, UNREADABLE, FailureNote, RefusedError
from kernelgate.ci.history.facts import ComparedPair

PREFIX = "kernelgate-record-"
BUILD = "build"
"""The label of the build job's note."""
_LABEL = re.compile(rf"{PREFIX}([a-z0-9][a-z0-9.-]{{0,33}})")
MAX_ARTIFACTS = 16
"""Records of one run: as many GPU labels as any matrix has, and the build job's note."""
MAX_ATTEMPTS = 4
"""Artifacts of one label that are looked at: the first, and the newest."""
MAX_LISTED = 2000
"""Artifacts of one run that are looked at; GitHub lets a job have 500."""

EVENTS = ("push", "schedule")
"""Others run a stranger's code on the default branch, too: a comment, and a dispatch that names a pull request."""
INDEX = "kernelgate-history-index"
INDEX_FILE = "index.sqlite"
MAGIC = b"SQLite format 3\0"
INDEX_RUNS = 30
"""Of each event that are looked at, the newest: every workflow of the default branch has runs there."""
NEIGHBOURS = 3
INDEX_PACKED = 512 * 1024 * 1024
INDEX_UNPACKED = 2 * 1024 * 1024 * 1024


def listed_of(bot: Bot, run: WorkflowRun) -> list[Artifact]:
    return patiently("artifacts", lambda: list(islice(run.get_artifacts(), MAX_LISTED)), bot)


def download(bot: Bot, one: Artifact, most: int) -> bytes:
    """The zip file, of at most so many bytes, which are those that were uploaded. Raises RefusedError. GitHub answers
    with an address elsewhere, which is asked without the token."""
    name = f"artifact {one.name}"
    if one.expired:
        raise RefusedError(f"{name} has expired")
    if one.size_in_bytes > most:
        raise RefusedError(f"{name} is refused: it has {one.size_in_bytes} bytes, more than {most}")

    def step() -> bytes:
        headers, _ = one.requester.requestJsonAndCheck("GET", one.archive_download_url)
        address = str(headers.get("location") or "")
        if urlsplit(address).scheme not in ("https", urlsplit(bot.step.api_url).scheme):
            raise GitHubError(f"{name}: GitHub named no address that it could be read from")
        data = bytearray()
        with requests.get(address, stream=True, timeout=TIMEOUT_S) as response:
            response.raise_for_status()
            for chunk in response.iter_content(64 * 1024):
                data += chunk
                if len(data) > most:
                    raise RefusedError(f"{name} is refused: more than {most} bytes came")
        if one.digest and one.digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
            raise requests.exceptions.ContentDecodingError("the bytes are not those that were uploaded")
        return bytes(data)

    return patiently(name, step, bot)


def take_in(
    bot: Bot, run: WorkflowRun, gpus: Collection[str], known: Run, into: Path, pairs: Sequence[ComparedPair] = ()
) -> tuple[str, ...]:
    """Writes what can be used into the folder; returns why the rest cannot. `gpus`: labels that jobs measured. `pairs`:
    what the run compared, where that is several pairs of commits."""
    of_pairs = {
        f"{of}{one.name}": {"gpu": one.gpu, "base_sha": one.base_sha, "head_sha": one.head_sha}
        for one in pairs
        for of in (one.gpu, BUILD)
    }
    refused: list[str] = []
    listed = listed_of(bot, run)
    if len(listed) >= MAX_LISTED:
        refused.append(f"artifacts beyond {MAX_LISTED} are refused: a run has no use for so many")
    for label, alike in _records(listed, gpus, refused):
        contents, broken = [], []
        wanted = known.model_copy(update=of_pairs.get(label, {"gpu": label}))
        for one in alike:
            try:
                contents.append(_content(bot, one, wanted))
            except RefusedError as error:
                broken.append(str(error))
        newest = max((attempt for attempt, _, _ in contents), default=0)
        latest = [content for content in contents if content[0] == newest]
        if len(latest) > 1:
            # The first may be an honest one, so it is judged; but nothing passes.
            several = f"{len(latest)} artifacts {PREFIX}{label} are of one attempt"
            refused.append(f"{several}: the first is judged, and the others are refused")
        for _, measured, note in latest[:1]:
            alone = (
                note.fault in ("build", "output") if note else measured is not None and measured.run.base_sha is None
            )
            if alone and label in of_pairs:
                # As where one commit does not compile: the history then compares the two no more.
                made = datetime.now(UTC).isoformat(timespec="seconds")
                measured = RunRecord(run=wanted.model_copy(update={"created_at": made}))
            if measured:
                record.write(measured, into / f"{label}.run.json")
            if note:
                files.write(into / f"{label}.failure.json", note.model_dump_json(by_alias=True))
        # A newer attempt makes up for what an older one left.
        if not latest or newest < max(known.run_attempt or 0, 2):
            refused.extend(broken)
    for why in refused:
        bot.step.warn(why)
    return tuple(refused)


def _records(
    listed: Iterable[Artifact], measured: Collection[str], refused: list[str]
) -> list[tuple[str, list[Artifact]]]:
    """The records, by their label. First come those of the GPUs that jobs `measured`, so that no number of others takes
    their place. A run that was started again has one of each attempt."""
    found: dict[str, list[Artifact]] = {}
    for one in sorted(listed, key=lambda one: one.id):
        if name := _LABEL.fullmatch(one.name):
            found.setdefault(name[1], []).append(one)
        elif one.name.startswith(PREFIX):
            refused.append(f"artifact {visible(one.name, 80)!r} is refused: no GPU label looks like that")
    wanted = sorted(found, key=lambda label: (label not in measured, -found[label][-1].id))
    if len(wanted) > MAX_ARTIFACTS:
        more = f"{len(wanted) - MAX_ARTIFACTS} more labels, such as {wanted[MAX_ARTIFACTS]},"
        refused.append(f"the artifacts of {more} are refused: a run has records of at most {MAX_ARTIFACTS}")
    crowded = [label for label in wanted[:MAX_ARTIFACTS] if len(found[label]) > MAX_ATTEMPTS]
    refused.extend(f"artifacts {PREFIX}{label} beyond {MAX_ATTEMPTS} are refused" for label in crowded)
    return sorted((label, [found[label][0], *found[label][1:][1 - MAX_ATTEMPTS :]]) for label in wanted[:MAX_ARTIFACTS])


def _content(bot: Bot, one: Artifact, known: Run) -> tuple[int, RunRecord | None, FailureNote | None]:
    """What an artifact holds, checked: the attempt, 0 where it does not say, record and note. Raises RefusedError."""
    name = f"artifact {one.name}"
    found = untrusted_artifact.members(download(bot, one, untrusted_artifact.MAX_ARCHIVE), name)
    bot.step.log(f"{name}: {', '.join(sorted(found)) or 'empty'}")
    measured = untrusted_artifact.checked_record(found[RECORD], known, name) if found.get(RECORD) else None
    note = untrusted_artifact.checked_failure(found[FAILURE], name) if found.get(FAILURE) else None
    return (measured.run.run_attempt if measured else None) or (note.run_attempt if note else None) or 0, measured, note


def fetch_index(bot: Bot, into: Path) -> bool:
    """Puts the history's index into the file `into`; False where there is none that can be used, which is said. Raises
    GitHubError where the API cannot be used."""
    # The newest index holds what is in those before it, though its run may have begun earlier.
    found = max(islice(_trusted(bot), NEIGHBOURS), key=lambda artifact: artifact.id, default=None)
    if found is None:
        bot.step.log("no run of the default branch has left an index of the history")
        return False
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        file = Path(folder) / INDEX_FILE
        try:
            _unpack(download(bot, found, INDEX_PACKED), file)
        except RefusedError as error:
            bot.step.warn(f"the history's index is not used: {error}")
            return False
        file.replace(into)
    return True


def _trusted(bot: Bot) -> Iterator[Artifact]:
    """The newest index of each run that ran the default branch's code alone, of the newest run first. A tag or a fork's
    branch may have its name, so the commit must be one of it."""
    default = default_branch(bot)
    for run in sorted((run for event in EVENTS for run in _newest(bot, default, event)), key=lambda run: -run.id):
        source = run.head_repository.full_name if run.head_repository is not None else None
        if (source, run.head_branch) != (bot.repository.full_name, default) or run.event not in EVENTS:
            continue
        left = [one for one in listed_of(bot, run) if one.name == INDEX and not one.expired]
        if left and merge_base(bot, default, run.head_sha) == run.head_sha:
            yield max(left, key=lambda one: one.id)


def _newest(bot: Bot, branch: str, event: str) -> list[WorkflowRun]:
    """The runs that GitHub finds, the newest first. Nothing says yet that they can be trusted."""
    query: dict[str, Any] = {"branch": branch, "event": event}
    return patiently("runs", lambda: list(islice(bot.repository.get_workflow_runs(**query), INDEX_RUNS)), bot)


def _unpack(data: bytes, file: Path) -> None:
    """Writes the one file that the archive holds. Raises RefusedError where that is no SQLite database."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if [entry.orig_filename for entry in entries] != [INDEX_FILE]:
                raise RefusedError(f"its archive holds something else than {INDEX_FILE}")
            if entries[0].file_size > INDEX_UNPACKED:
                raise RefusedError(f"its archive unpacks to more than {INDEX_UNPACKED} bytes")
            with archive.open(entries[0]) as packed, file.open("wb") as made:
                shutil.copyfileobj(packed, made)
    except UNREADABLE as error:
        raise RefusedError(f"its archive cannot be read ({type(error).__name__})") from None
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise RefusedError(f"its archive holds no {INDEX_FILE} that is a SQLite database")
