"""The index's database: SQLite in one file, or Postgres by its URL, both through SQLAlchemy.

It is an index: whatever happens to it, `kernelgate history rebuild` makes it again from the store. An index of another
version is made again in the same way; nothing is migrated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from kernelgate.bench.core.errors import KernelgateError, UsageError, first_line
from kernelgate.ci.history.tables import METADATA, REMOVED, REVISION, VERSION

WAIT_S = 60
"""For another writer of a SQLite file."""


class HistoryIndexError(KernelgateError):
    """The index cannot be opened, read or written."""


@dataclass(frozen=True)
class Database:
    """`name` is how people know it, without a password."""

    name: str
    engine: sa.Engine


def at(where: str | Path, renew: bool = False) -> Database:
    """The index at a SQLite file's path or a postgresql:// URL, made where there is none. Raises HistoryIndexError.

    `renew`: an index of another version is emptied and gets this version's tables.
    """
    found = _opened(where, make=True)
    try:
        with reading(found) as connection:
            revision = _revision(connection)
        if revision is None or (renew and revision != REVISION):
            _make(found)
        else:
            _require(found, revision)
    except BaseException:
        found.engine.dispose()
        raise
    return found


def existing(where: str | Path) -> Database:
    """As `at`, to be read alone: nothing is made or changed there. Raises HistoryIndexError where it is not there."""
    found = _opened(where, make=False)
    with reading(found) as connection:
        _require(found, _revision(connection))
    return found


def is_there(where: str | Path) -> bool:
    """Whether there is an index of this version."""
    try:
        existing(where).engine.dispose()
    except HistoryIndexError:
        return False
    return True


@contextmanager
def reading(database: Database) -> Iterator[sa.Connection]:
    """One consistent state of the index, whatever others write meanwhile."""
    with _faults(database), database.engine.connect() as connection:
        connection.execution_options(isolation_level="SERIALIZABLE")
        with connection.begin():
            yield connection


@contextmanager
def writing(database: Database) -> Iterator[sa.Connection]:
    """A transaction: all of it is in the index once the block ends, or nothing. One process writes at a time."""
    with _faults(database), database.engine.begin() as connection:
        _lock(connection)
        yield connection


def _lock(connection: sa.Connection) -> None:
    """Whoever has written this row is the only writer until it commits, in any database."""
    connection.execute(sa.update(VERSION).values(version_num=VERSION.c.version_num))


def _opened(where: str | Path, make: bool) -> Database:
    if isinstance(where, Path) or "://" not in where:
        if make:
            with suppress(OSError):  # SQLite says what is wrong
                Path(where).parent.mkdir(parents=True, exist_ok=True)
        elif not Path(where).is_file():
            raise HistoryIndexError(f"there is no history at {where}")
        # SQLAlchemy's recipe for transactions that hold for reads as well; readers do not wait for the writer.
        engine = sa.create_engine(URL.create("sqlite", database=str(where)), connect_args={"timeout": WAIT_S})
        if make:
            sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA journal_mode=WAL").close())
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return Database(str(where), engine)
    try:
        url = make_url(where)
    except exc.ArgumentError:
        url = URL.create("unknown")
    if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise UsageError("--database takes a file's path, or postgresql://USER@HOST/NAME")
    name = url.render_as_string(hide_password=True)
    return Database(name, sa.create_engine(url.set(drivername="postgresql+psycopg")))


def _revision(connection: sa.Connection) -> str | None:
    """Of the index's tables; None where there are none."""
    if not sa.inspect(connection).has_table(VERSION.name):
        return None
    found: str | None = connection.execute(sa.select(VERSION.c.version_num)).scalar()
    return found


def _require(database: Database, revision: str | None) -> None:
    if revision != REVISION:
        why = "is of another version of kernelgate: `kernelgate history rebuild` makes it again from the store"
        raise HistoryIndexError(f"{database.name} {why}")


def _make(database: Database) -> None:
    """Gives the database this version's tables, all of them empty."""
    try:
        with _faults(database), database.engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(VERSION, if_not_exists=True))
            _lock(connection)
            if _revision(connection) == REVISION:
                return  # another process was faster
            old = sa.MetaData()
            names = {*METADATA.tables, *REMOVED}
            old.reflect(connection, only=lambda name, _: name in names)
            old.drop_all(connection)
            METADATA.create_all(connection)
            connection.execute(sa.insert(VERSION).values(version_num=REVISION))
    except HistoryIndexError:
        with reading(database) as connection:
            if _revision(connection) != REVISION:  # as where another process has made them meanwhile
                raise


@contextmanager
def _faults(database: Database) -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        reason = first_line(error.orig or error)
        if "database is locked" in reason:
            reason = f"another process has been writing for {WAIT_S} s: try again"
        elif "not a database" in reason or "malformed" in reason:
            reason += ": move the file away, and run `kernelgate history rebuild`"
        raise HistoryIndexError(f"the index {database.name}: {reason}") from None
