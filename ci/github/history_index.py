"""Takes the history's index from the newest run of the default branch that left one: what a report judges by."""

from __future__ import annotations

import io
import tempfile
from itertools import islice
from pathlib import Path

from github.Artifact import Artifact

from kernelgate.ci.github import trusted_runs
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.untrusted_artifact import RefusedError

ARTIFACT = "kernelgate-history-index"
"""As refresh-baseline.yml calls it."""
FILE = "index.sqlite"
"""The only file in it."""
MAGIC = b"SQLite format 3\0"
MAX_RUNS = 30
"""Of each event that are looked at, the newest: every workflow of the default branch has runs there."""
NEIGHBOURS = 3
"""Runs with an index that may have waited for each other."""
MAX_ARCHIVE = 512 * 1024 * 1024
MAX_UNPACKED = 2 * 1024 * 1024 * 1024


def fetch(bot: Bot, into: Path) -> bool:
    """Puts the index into the file `into`; False where there is none that can be used, which is said.

    Raises GitHubError where the API cannot be used.
    """
    found = _newest(bot)
    if found is None:
        bot.step.log("no run of the default branch has left an index of the history")
        return False
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        try:
            data = trusted_runs.content(bot, found, MAX_ARCHIVE)
            trusted_runs.unpack(data, Path(folder), 1, MAX_UNPACKED)
            if not _is_database(Path(folder) / FILE):
                raise RefusedError(f"its archive holds no {FILE} that is a SQLite database")
        except RefusedError as error:
            bot.step.warn(f"the history's index is not used: {error}")
            return False
        (Path(folder) / FILE).replace(into)
    return True


def _is_database(file: Path) -> bool:
    with file.open("rb") if file.exists() else io.BytesIO() as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _newest(bot: Bot) -> Artifact | None:
    """Of those that can be trusted: it holds what is in those before it, though its run may have begun earlier."""
    default = trusted_runs.default_branch(bot)
    asked = ({"branch": default, "event": event} for event in trusted_runs.EVENTS)
    runs = [run for query in asked for run in trusted_runs.newest(bot, query, MAX_RUNS)]
    newest_first = sorted(runs, key=lambda one: -one.id)
    left = ((run, trusted_runs.artifact(bot, run, ARTIFACT)) for run in newest_first)
    trusted = (one for run, one in left if one is not None and trusted_runs.is_trusted(bot, run, default))
    return max(islice(trusted, NEIGHBOURS), key=lambda one: one.id, default=None)
