"""The index's database: SQLite in one file, or Postgres by URL, brought to this version's tables when it is opened.

It is an index: whatever happens to it, `kernelgate history rebuild` makes it again from the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from kernelgate.bench.core.errors import KernelgateError, UsageError, first_line

REVISION = "0006"
"""The newest step of `migrations/versions/`."""
VERSION_TABLE = "kernelgate_history"
"""Where Alembic keeps which step was the last: its usual name may be another project's in a shared database."""
WAIT_S = 60.0
"""For another writer of a SQLite file."""
WRITING = 7_026_011
"""Names the lock of a Postgres database's writer. One at a time, as in SQLite, so that no two wait for each other."""


class HistoryIndexError(KernelgateError):
    """The index cannot be opened, read or written."""


@dataclass(frozen=True)
class Database:
    """`name` is how people know it, without a password."""

    name: str
    engine: sa.Engine


def at(where: str | Path) -> Database:
    """The database of a SQLite file's path or a postgresql:// URL. Raises HistoryIndexError where that is none."""
    url = _url(where)
    name = url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        with suppress(OSError):  # SQLite says what is wrong
            Path(name).parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(url, connect_args={"timeout": WAIT_S})
        sa.event.listen(engine, "connect", _quick_and_safe)
        sa.event.listen(engine, "begin", _begin)
    else:
        engine = sa.create_engine(url)
    found = Database(name, engine)
    try:
        _migrate(found)
    except BaseException:
        engine.dispose()
        raise
    return found


def existing(where: str | Path) -> Database:
    """As `at`, to be read alone: nothing is made or changed there. Raises HistoryIndexError where it is not there, or
    is another version's."""
    url = _url(where)
    name = url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        if not Path(name).is_file():
            raise HistoryIndexError(f"there is no history at {name}")
        file = f"file:{quote(str(Path(name).absolute()))}"
        url = url.set(database=file, query={"mode": "ro", "uri": "true"})
    found = Database(name, sa.create_engine(url, poolclass=sa.NullPool))
    with reading(found) as connection:
        if _revision(connection) != REVISION:
            raise HistoryIndexError(f"{name} was written by another kernelgate: `kernelgate history rebuild` renews it")
    return found


@contextmanager
def reading(database: Database) -> Iterator[sa.Connection]:
    """One consistent state of the index, whatever others write meanwhile."""
    with _faults(database), database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(database: Database) -> Iterator[sa.Connection]:
    """A transaction: all of it is in the index once the block ends, or nothing. One process writes at a time."""
    with _faults(database), database.engine.connect() as connection:
        connection.execution_options(kernelgate_writes=True)
        with connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITING)))
            yield connection


def _url(where: str | Path) -> URL:
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(where))
    try:
        url = make_url(where)
    except exc.ArgumentError:
        url = URL.create("unknown")
    if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise UsageError("--database takes a file's path, or postgresql://USER@HOST/NAME")
    return url.set(drivername="postgresql+psycopg")


def _quick_and_safe(connection: Any, _: object) -> None:
    """With a write-ahead log readers never wait. NORMAL: a power cut may undo what was added last, never half of it."""
    connection.isolation_level = None  # Python would begin transactions at moments of its own
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: sa.Connection) -> None:
    """Two transactions that begin as readers and then write would refuse each other at once, without waiting."""
    writes = connection.get_execution_options().get("kernelgate_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608
    return found


def _migrate(database: Database) -> None:
    """Alembic alone takes 0.2 s to load, so it is only asked where something is missing."""
    with reading(database) as connection:
        before = _revision(connection)
    if before == REVISION:
        return
    if before is not None and before > REVISION:
        later = f"{database.name} was written by a later kernelgate"
        raise HistoryIndexError(f"{later}: update this one, or name another database")
    with writing(database) as connection:
        if _revision(connection) != REVISION:  # another process may have been faster
            upgrade(connection)


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Runs the steps that the connection's database lacks, in its transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


@contextmanager
def _faults(database: Database) -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        raise HistoryIndexError(f"the index {database.name}: {_said(error)}") from None


def _said(error: exc.DBAPIError) -> str:
    first = first_line(error.orig) if error.orig else first_line(error)
    if "database is locked" in first:
        return f"another process has been writing for {WAIT_S:g} s: try again"
    if "not a database" in first or "malformed" in first:
        return f"{first}: move the file away, and run `kernelgate history rebuild`"
    return first
