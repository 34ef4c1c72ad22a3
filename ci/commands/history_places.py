"""Where a checkout's history is, and how the verbs of `kernelgate history` open it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError

if TYPE_CHECKING:
    from kernelgate.ci.history.database import Database
    from kernelgate.ci.history.keep import Archive
    from kernelgate.ci.history.sessions import KeptSession
    from kernelgate.ci.history.store import Store

EXTRA = {"alembic", "fsspec", "psycopg", "sqlalchemy", "zstandard"}
FOLDER = ".kernelgate/history"
"""In the checkout; git is told to ignore it."""


@dataclass(frozen=True)
class Places:
    """Where the user has the history; None stands for the default."""

    store: str | None
    database: str | None
    policy: Path | None


class HistoryGroup(click.Group):
    """Names the extra where what it brings is missing."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRA:
                raise
            needed = f"the history needs {error.name}, which is not installed"
            raise KernelgateError(f"{needed}: pip install 'kernelgate[history]'") from None


def archive(places: Places) -> Archive:
    """To be written to."""
    from kernelgate.ci.history.keep import Archive
    from kernelgate.ci.policy import policy

    rules, store = policy.load(places.policy), store_of(places)
    if places.store is None and store.folder:
        _ignored_by_git(store.folder.parent)
    return Archive(store, opened(_index(places, store)), rules)


def existing(places: Places) -> Database:
    """To be read; a history that nobody has begun is not begun by looking at it."""
    index = _index(places, store_of(places))
    if isinstance(index, Path) and not index.exists():
        again = "`kernelgate history rebuild` makes it from the store, `kernelgate history add RECORD` begins one"
        raise KernelgateError(f"there is no history at {index}: {again}")
    return opened(index)


def opened(index: Path | str) -> Database:
    """Until the verb has ended."""
    from kernelgate.ci.history import database

    found = database.at(index)
    click.get_current_context().call_on_close(found.engine.dispose)
    return found


def add_sessions(archive: Archive) -> None:
    """The history has the checkout's sessions beside its records; a log that is broken is said."""
    keep_sessions(archive, _of_checkout())


def keep_sessions(archive: Archive, found: Iterable[KeptSession]) -> int:
    """How many of them are new to the history, or went on."""
    from kernelgate.bench.system import progress
    from kernelgate.ci.history import sessions
    from kernelgate.ci.lab import session_entries

    return sessions.keep(archive, found, lambda one: session_entries.entry(one, archive.policy), progress.say)


def rebuild_sessions(archive: Archive) -> None:
    """The index has the store's sessions and the checkout's."""
    from kernelgate.bench.system import progress
    from kernelgate.ci.history import sessions
    from kernelgate.ci.lab import session_entries

    here = _of_checkout()
    sessions.rebuild(archive, here, lambda one: session_entries.entry(one, archive.policy), progress.say)


def _of_checkout() -> list[KeptSession]:
    import os

    from kernelgate.bench.system import git, progress
    from kernelgate.ci.lab import session_entries

    return session_entries.of_checkout(git.root(Path.cwd()), os.environ.get("GITHUB_REPOSITORY", ""), progress.say)


def store_of(places: Places) -> Store:
    from kernelgate.bench.system import git
    from kernelgate.ci.history import store

    return store.at(places.store or str(git.root(Path.cwd()) / FOLDER))


def _index(places: Places, store: Store) -> Path | str:
    from kernelgate.ci.pipeline import prior

    if places.database is not None:
        return places.database if "://" in places.database else Path(places.database)
    if store.folder is None:
        raise UsageError(f"the store {store.url} is no folder: name a file or a Postgres database with --database")
    return store.folder / prior.INDEX


def _ignored_by_git(folder: Path) -> None:
    from kernelgate.bench.core import files

    if not (folder / ".gitignore").exists():
        files.write(folder / ".gitignore", "*\n")


def place_commits(database: Database) -> None:
    """The checkout knows in which order commits came to the default branch."""
    from kernelgate.bench.system import git
    from kernelgate.ci.history import database as databases
    from kernelgate.ci.history import index

    with databases.reading(database) as connection:
        asked = index.unplaced(connection)
    line = git.default_branch_line(Path.cwd()) if asked else None
    if line:
        with databases.writing(database) as connection:
            index.place(connection, line)
