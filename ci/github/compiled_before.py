"""Takes what the default branch has compiled already, so that a base is not compiled in every run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from github.Artifact import Artifact
from github.WorkflowRun import WorkflowRun

from kernelgate.ci.github import trusted_runs
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.trusted_runs import EVENTS
from kernelgate.ci.github.untrusted_artifact import RefusedError

ARTIFACT = "kernelgate-library-head"
"""As build.yml calls it."""
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
            trusted_runs.unpack(trusted_runs.content(bot, one, MAX_ARCHIVE), into, MAX_FILES, MAX_UNPACKED)
        except RefusedError as error:
            bot.step.warn(f"what the default branch compiled is not used: {error}")
        else:
            unpacked.append(into)
    return unpacked


def _artifacts(bot: Bot, base_sha: str | None) -> Iterator[Artifact]:
    """Those that can be trusted: the base's own first, then the newest."""
    default = trusted_runs.default_branch(bot)
    seen: set[int] = set()
    for run in _runs(bot, base_sha, default):
        if run.id in seen or not trusted_runs.is_trusted(bot, run, default):
            continue
        seen.add(run.id)
        found = trusted_runs.artifact(bot, run, ARTIFACT)
        if found is not None:
            yield found


def _runs(bot: Bot, base_sha: str | None, default: str) -> Iterator[WorkflowRun]:
    asked = [{"head_sha": base_sha}] if base_sha else []
    for query in (*asked, *({"branch": default, "event": event} for event in EVENTS)):
        yield from trusted_runs.newest(bot, query, MAX_RUNS)
