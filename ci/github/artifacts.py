"""Takes in what a run left behind: the records and failure notes among its artifacts, each checked and written anew."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import requests
from github.Artifact import Artifact
from github.PaginatedList import PaginatedList
from github.WorkflowRun import WorkflowRun

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.record import Run, RunRecord
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import untrusted_artifact
from kernelgate.ci.github.client import TIMEOUT_S, Bot, GitHubError, patiently
from kernelgate.ci.github.run_info import Job, gpus_of
from kernelgate.ci.github.untrusted_artifact import FailureNote, RefusedError

PREFIX = "kernelgate-record-"
_LABEL = re.compile(rf"{PREFIX}([a-z0-9][a-z0-9.-]{{0,30}})")
MAX_ARTIFACTS = 16
"""Records of one run: as many GPU labels as any matrix has, and the build job's note."""
MAX_ATTEMPTS = 4
"""Artifacts of one label that are looked at: the first, and the newest."""
MAX_LISTED = 2000
"""Artifacts of one run that are looked at; GitHub lets a job have 500."""


def take_in(bot: Bot, run: WorkflowRun, jobs: Iterable[Job], known: Run, into: Path) -> tuple[str, ...]:
    """Writes what can be used into the folder; returns why the rest cannot."""
    refused: list[str] = []
    listed = patiently("artifacts", lambda: listed_of(run), bot)
    if len(listed) >= MAX_LISTED:
        refused.append(f"artifacts beyond {MAX_LISTED} are refused: a run has no use for so many")
    for label, alike in _records(listed, gpus_of(jobs), refused):
        contents, broken = [], []
        for one in alike:
            try:
                contents.append(_content(bot, one, label, known))
            except RefusedError as error:
                broken.append(str(error))
        chosen = _chosen(contents, label, refused) if contents else None
        if chosen is not None and chosen.record:
            record.write(chosen.record, into / f"{label}.run.json")
        if chosen is not None and chosen.note:
            files.write(into / f"{label}.failure.json", chosen.note.model_dump_json(by_alias=True))
        # A newer attempt makes up for what an older one left.
        if chosen is None or chosen.attempt < max(known.run_attempt or 0, 2):
            refused.extend(broken)
    for why in refused:
        bot.step.warn(why)
    return tuple(refused)


def listed_of(run: WorkflowRun) -> list[Artifact]:
    # As many a page as GitHub gives: there may be hundreds that are none of ours.
    pages = PaginatedList(Artifact, run.requester, run.artifacts_url, {"per_page": 100}, list_item="artifacts")
    return list(islice(pages, MAX_LISTED))


def _records(
    listed: Iterable[Artifact], measured: Collection[str], refused: list[str]
) -> list[tuple[str, list[Artifact]]]:
    """The artifacts that are meant for us, by their label; others (pages, libraries, reports) are none of ours.

    First come those of the GPUs that jobs `measured`, so that no number of others takes their place. A run that was
    started again has one of each attempt.
    """
    found: dict[str, list[Artifact]] = {}
    for one in sorted(listed, key=lambda one: one.id):
        if not one.name.startswith(PREFIX):
            continue
        name = _LABEL.fullmatch(one.name)
        if name is None:
            refused.append(f"artifact {visible(one.name, 80)!r} is refused: no GPU label looks like that")
        else:
            found.setdefault(name[1], []).append(one)
    wanted = sorted(found, key=lambda label: (label not in measured, -found[label][-1].id))
    if len(wanted) > MAX_ARTIFACTS:
        more = f"{len(wanted) - MAX_ARTIFACTS} more labels, such as {wanted[MAX_ARTIFACTS]},"
        refused.append(f"the artifacts of {more} are refused: a run has records of at most {MAX_ARTIFACTS}")
    crowded = [label for label in wanted[:MAX_ARTIFACTS] if len(found[label]) > MAX_ATTEMPTS]
    refused.extend(f"artifacts {PREFIX}{label} beyond {MAX_ATTEMPTS} are refused" for label in crowded)
    return sorted((label, [found[label][0], *found[label][1:][1 - MAX_ATTEMPTS :]]) for label in wanted[:MAX_ARTIFACTS])


@dataclass(frozen=True)
class ArtifactContent:
    """What one artifact holds, checked."""

    record: RunRecord | None
    note: FailureNote | None

    @property
    def attempt(self) -> int:
        """Of the run; 0 where the artifact does not say."""
        stated = self.record.run.run_attempt if self.record else None
        return stated or (self.note.run_attempt if self.note else None) or 0


def _chosen(contents: Sequence[ArtifactContent], label: str, refused: list[str]) -> ArtifactContent:
    """What counts of the artifacts of one label, the oldest first: that of the newest attempt. Each has one.

    Of several that say the same attempt, the first may be an honest one, so it is judged; but nothing passes.
    """
    newest = max(content.attempt for content in contents)
    first, *others = [content for content in contents if content.attempt == newest]
    if others:
        several = f"{len(others) + 1} artifacts {PREFIX}{label} are of one attempt"
        refused.append(f"{several}: the first is judged, and the others are refused")
    return first


def _content(bot: Bot, one: Artifact, label: str, known: Run) -> ArtifactContent:
    """Raises RefusedError."""
    name = f"artifact {one.name}"
    if one.expired:
        raise RefusedError(f"{name} has expired")
    if one.size_in_bytes > untrusted_artifact.MAX_ARCHIVE:
        raise RefusedError(
            f"{name} is refused: it has {one.size_in_bytes} bytes, more than {untrusted_artifact.MAX_ARCHIVE}"
        )
    found = untrusted_artifact.members(
        patiently(name, lambda: download(bot, one, untrusted_artifact.MAX_ARCHIVE), bot), name
    )
    record_, note = found.get(untrusted_artifact.RECORD), found.get(untrusted_artifact.FAILURE)
    bot.step.log(f"{name}: {', '.join(sorted(found)) or 'empty'}")
    return ArtifactContent(
        untrusted_artifact.checked_record(record_, known.model_copy(update={"gpu": label}), name) if record_ else None,
        untrusted_artifact.checked_failure(note, name) if note else None,
    )


def download(bot: Bot, one: Artifact, most: int) -> bytes:
    """The zip file, of at most so many bytes; raises RefusedError for a larger one.

    GitHub answers with an address elsewhere, which is asked without the token.
    """
    headers, _ = one.requester.requestJsonAndCheck("GET", one.archive_download_url)
    address = str(headers.get("location") or "")
    secure = urlsplit(bot.step.api_url).scheme
    if urlsplit(address).scheme not in ("https", secure):
        raise GitHubError(f"artifact {one.name}: GitHub named no address that it could be read from")
    with requests.get(address, stream=True, timeout=TIMEOUT_S) as response:
        response.raise_for_status()
        data = bytearray()
        for chunk in response.iter_content(64 * 1024):
            data += chunk
            if len(data) > most:
                raise RefusedError(f"artifact {one.name} is refused: more than {most} bytes came")
    if one.digest and one.digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
        raise requests.exceptions.ContentDecodingError("the bytes are not those that were uploaded")
    return bytes(data)
