"""The index's database: SQLite in one file, or Postgres by its URL, both through SQLAlchemy. Nothing is migrated:
`kernelgate history rebuild` makes an index again from the store."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, SmallInteger, Table, Text, exc
from sqlalchemy.engine import URL, make_url

from kernelgate.bench.core.errors import KernelgateError, OutputError, UsageError, first_line, why

WAIT_S = 60
"""For another writer."""
CONNECT_S, STATEMENT_S = 10, 600
"""For a database's server: to be reached, and for one of its answers."""

# ---- its tables: whoever changes them raises REVISION ----------------------------------------------------------------

KINDS = "CORRUPT NOTADB ERROR SCHEMA FORMAT MISMATCH CONSTRAINT"  # what this version writes fits its own tables
DAMAGE = tuple(f"SQLITE_{kind}" for kind in KINDS.split())
MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, exc.SQLAlchemyError)
"""Errors of whoever reads a value of another kind than this version writes, such as a blob: SQLite takes any."""
UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")
"""An index that is opened to be written to, by SQLite's names of errors."""
REVISION = "0012"
METADATA = MetaData()
NAMES = ("repository", "card", "case", "gpu")
"""Of a case on a kind of GPU."""
ENVIRONMENT = ("driver", "torch", "triton", "cuda", "clock_policy", "machine")
"""Of a series, beside the kind of GPU; the machine is known by the GPU's uuid, else by its host."""

VERSION = Table("kernelgate_history", METADATA, Column("version_num", Text, primary_key=True))
"""One row. Its name may stand in a database beside another project's."""
LOCK = sa.update(VERSION).values(version_num=VERSION.c.version_num)
"""Whoever has written that row is the only writer until it commits, in any database."""


def _columns(kind: type[sa.types.TypeEngine[Any]], *names: str, nullable: bool = True) -> Iterator[Column[Any]]:
    return (Column(name, kind, nullable=nullable) for name in names)


RECORD = Table(
    "record",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # sha256 of what was measured
    Column("made", Text),  # ISO 8601, UTC, as `entry.moment` writes it
    # By what rules it was judged; the kind of GPU; a JSON list of cards; the environment of its series.
    *_columns(Text, "rules", "repository", "event", "gpu", "cards", "environment", nullable=False),
    *_columns(Text, "base_sha", "head_sha", "outcome", "reason"),
    Column("condensed", Text),  # the name of what is kept in the record's place, once its samples are not
    Index("ix_record_made", "made"),
)

COMMIT = Table(
    "commit",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("sha", Text, nullable=False, unique=True),
    Column("place", Integer),  # in first-parent order of the default branch, from 0; null where it is not on it
)

SERIES = Table(
    "series",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),  # of all that follows: that may be too long for an index
    *_columns(Text, *NAMES, *ENVIRONMENT, nullable=False),
    Column("newest", Text, nullable=False),  # when its newest record was made, …
    Column("reference", Text),  # … and what that one's card calls its reference
    Column("environment", Text, nullable=False),  # names all but card and case, in short
    Index("ix_series_environment", "environment"),
)

# Both lie in the order of series, which is that of `show`; without rowids SQLite keeps them once instead of twice.
POINT = Table(
    "point",
    METADATA,
    Column("series_id", ForeignKey("series.id"), primary_key=True),
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("side", Text, primary_key=True),
    Column("commit_id", ForeignKey("commit.id")),
    Column("us", Double, nullable=False),
    Column("error", Double),  # of the logarithm
    Column("processes", Integer, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("finding", Text),
    # Of heads alone: their record's and their commit's, in the order of which `show` reads a few of very many.
    Column("made", Text),
    Column("place", Integer),
    sqlite_with_rowid=False,
)
IS_HEAD = POINT.c.side == sa.literal_column("'head'")
"""In sight, or no index of heads alone is used."""
HEADS: dict[str, Any] = {"sqlite_where": IS_HEAD, "postgresql_where": IS_HEAD}
Index("ix_point_head", POINT.c.series_id, POINT.c.place, POINT.c.made, **HEADS)
Index("ix_point_head_commit", POINT.c.commit_id, **HEADS)

# Heads of a series, on the default branch or elsewhere: to count 100,000 of them takes 40 ms.
DAY = Table(
    "day",
    METADATA,
    Column("series_id", ForeignKey("series.id"), primary_key=True),
    Column("day", Text, primary_key=True),
    Column("placed", Boolean, primary_key=True),
    Column("heads", Integer, nullable=False),
    sqlite_with_rowid=False,
)

COMPARISON = Table(
    "comparison",
    METADATA,
    Column("series_id", ForeignKey("series.id"), primary_key=True),
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("base_id", ForeignKey("commit.id"), primary_key=True),
    Column("number", SmallInteger, primary_key=True),  # a commit may be base and pinned at once
    Column("head_id", ForeignKey("commit.id")),
    Column("effect", Double, nullable=False),
    Column("processes", Integer, nullable=False),
    *_columns(Double, "error", "spread_pct", "noise_pct", "low_pct", "high_pct"),
    *_columns(Text, "status", "finding"),
    sqlite_with_rowid=False,
)

EVENT = Table(
    "event",
    METADATA,
    Column("name", Text, primary_key=True),  # sha256 of its file
    *_columns(Text, "made", "kind", "repository", "card", "case", "gpu", "sha", "who", "why", nullable=False),
)

COST = Table(
    "cost",
    METADATA,
    Column("record_id", ForeignKey("record.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("phase", Text, nullable=False),
    Column("gpu_seconds", Double, nullable=False),
    Column("retried", Boolean, nullable=False),
)

SESSION = Table(
    "session",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("log", Text, nullable=False),  # all of it, as it stands in the store
)


class HistoryIndexError(KernelgateError):
    """The index cannot be opened, read or written."""


class UnwritableIndexError(HistoryIndexError):
    """There is no room for the index where it is, or nothing may be written."""

    exit_code = OutputError.exit_code


class BrokenIndexError(HistoryIndexError):
    """What is there is no index, or a damaged one."""


@dataclass(frozen=True)
class Database:
    """`name` is how people know it, without a password."""

    name: str
    engine: sa.Engine
    to_write: bool = False


def at(where: str | Path, renew: bool = False, make: bool = True) -> Database:
    """The index at a SQLite file's path or a postgresql:// URL, made where there is none. Raises HistoryIndexError.
    `renew`: an index of another version is emptied and gets this version's tables. Without `make` nothing is made or
    changed there, and an index that is not there is refused."""
    found = _opened(where, make)
    try:
        revision = _revision(found)
        if revision != REVISION and (not make or (revision is not None and not renew)):
            what = "is of another version of kernelgate" if revision else "is no index"
            again = "`kernelgate history rebuild` makes it again from the store"
            raise HistoryIndexError(f"{found.name} {what}: {again}")
        if revision != REVISION:
            _make(found)
    except BaseException:
        found.engine.dispose()
        raise
    return found


def replaced(where: str | Path) -> Database:
    """An empty index in the place of whatever is there: of a file, which is kept beside it."""
    if "://" not in str(where):
        for end in ("", "-wal", "-shm"):
            if Path(f"{where}{end}").is_file():
                Path(f"{where}{end}").replace(f"{where}.damaged{end}")
        return at(where)
    found = _opened(where, make=True)
    _make(found, anew=True)
    return found


@contextmanager
def opened(where: str | Path, make: bool = True) -> Iterator[Database]:
    """As `at`, until the block ends."""
    found = at(where, make=make)
    try:
        yield found
    finally:
        found.engine.dispose()


@contextmanager
def reading(database: Database) -> Iterator[sa.Connection]:
    """One consistent state of the index; an error of what the block makes of it is the index's fault."""
    with _faults(database), database.engine.connect() as connection:
        connection.execution_options(isolation_level="SERIALIZABLE")
        with connection.begin(), understood(database):
            yield connection


@contextmanager
def understood(database: Database) -> Iterator[None]:
    """The block makes something of the index's values, and is not at fault where they are none that belong there."""
    try:
        yield
    except exc.DBAPIError:
        raise
    except MISREAD as error:
        again = "makes it anew; if it is said again then, please report it"
        said = f"the index {database.name} is damaged ({why(error)}): `kernelgate history rebuild` {again}"
        raise BrokenIndexError(said) from error


@contextmanager
def writing(database: Database) -> Iterator[sa.Connection]:
    """A transaction: all of it is in the index once the block ends, or nothing. One process writes at a time."""
    with _faults(database), database.engine.begin() as connection:
        connection.execute(LOCK)
        yield connection


def _opened(where: str | Path, make: bool) -> Database:
    if isinstance(where, Path) or "://" not in where:
        if make:
            with suppress(OSError):  # SQLite says what is wrong
                Path(where).parent.mkdir(parents=True, exist_ok=True)
        if Path(where).exists() and not Path(where).is_file():
            what = "a folder" if Path(where).is_dir() else "a device or a pipe"
            raise HistoryIndexError(f"{where} is {what}, and no index: move it away, or name another --database")
        if not make and not Path(where).is_file():
            raise HistoryIndexError(f"there is no history at {where}")
        # SQLAlchemy's recipe for transactions that hold for reads as well; readers do not wait for the writer.
        engine = sa.create_engine(_file(Path(where)), connect_args={"timeout": WAIT_S})
        if make:
            sa.event.listen(engine, "connect", lambda raw, _: _log_ahead(raw))
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return Database(str(where), engine, make)
    try:
        url = make_url(where)
    except (exc.ArgumentError, ValueError):  # such as a port that is no number
        url = URL.create("unknown")
    if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise UsageError("--database takes a file's path, or postgresql://USER@HOST/NAME")
    name = url.render_as_string(hide_password=True)
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), connect_args={"connect_timeout": CONNECT_S})
    limits = f"SET lock_timeout = '{WAIT_S}s'; SET statement_timeout = '{STATEMENT_S}s'"
    sa.event.listen(engine, "connect", lambda raw, _: (raw.execute(limits), raw.commit()))
    return Database(name, engine, make)


def _log_ahead(raw: Any) -> None:
    """Has the file logged ahead of its changes, so that readers and a writer do not wait for each other. Of several
    that open a new file at once each would wait for the others to let go of it: nobody waits, and all try again."""
    deadline = time.monotonic() + WAIT_S
    raw.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL").close()
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.005, 0.02))  # noqa: S311 - not for secrets
    raw.execute(f"PRAGMA busy_timeout = {1000 * WAIT_S}")


def _file(path: Path) -> URL:
    """Of a folder in which nothing can be written as it is: SQLite would make files beside those that are read."""
    changing = Path(f"{path}-wal").exists() and Path(f"{path}-wal").stat().st_size > 0
    if os.access(path.absolute().parent, os.W_OK) or not path.is_file() or changing:
        return URL.create("sqlite", database=str(path))
    uri = f"file:{quote(str(path.absolute()))}"
    return URL.create("sqlite", database=uri, query={"uri": "true", "mode": "ro", "immutable": "1"})


def _revision(database: Database) -> str | None:
    """Of the index's tables; None where there are none."""
    with reading(database) as connection:
        if not sa.inspect(connection).has_table(VERSION.name):
            return None
        return connection.execute(sa.select(VERSION.c.version_num)).scalar()


def _make(database: Database, anew: bool = False) -> None:
    """Gives the database this version's tables, all of them empty: `anew`, or where no other process was faster."""
    tables = [table for table in METADATA.sorted_tables if table is not VERSION]
    try:
        with _faults(database), database.engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(VERSION, if_not_exists=True))
            connection.execute(LOCK)
            version = connection.execute(sa.select(VERSION.c.version_num)).scalar()
            theirs = {*sa.inspect(connection).get_table_names()} & {table.name for table in tables}
            if version is None and theirs:  # another program's, which are not to be dropped
                held = f"{database.name} is no index, and has tables of its own that are called as ours ({min(theirs)})"
                raise BrokenIndexError(f"{held}: name another --database; `kernelgate history rebuild` makes one")
            if anew or version != REVISION:
                METADATA.drop_all(connection, tables)
                METADATA.create_all(connection, tables)
                connection.execute(sa.delete(VERSION))
                connection.execute(sa.insert(VERSION).values(version_num=REVISION))
    except HistoryIndexError:
        if _revision(database) != REVISION:  # as where another process has made them meanwhile
            raise


@contextmanager
def _faults(database: Database) -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        reason = first_line(error.orig or error)
        # What is there is at fault, and neither the disk, nor the server, nor another writer: by SQLite's names of
        # errors, and Postgres's of what lacks a table or a column, or is held to another constraint.
        sqlite, postgres = (str(getattr(error.orig, key, None) or "") for key in ("sqlite_errorname", "sqlstate"))
        if "database is locked" in reason:
            reason = f"another process has been writing for {WAIT_S} s: try again"
        elif sqlite.startswith(DAMAGE) or postgres.startswith(("23", "42")) or reason.startswith("Could not decode"):
            said = f"the index {database.name} is damaged ({reason}): `kernelgate history rebuild` makes it anew"
            raise BrokenIndexError(said) from None
        elif database.to_write and (sqlite.startswith(UNWRITABLE) or postgres.startswith(("25006", "53100"))):
            said = f"the index {database.name} cannot be written: {reason}; make room there, or name another --database"
            raise UnwritableIndexError(said) from None
        raise HistoryIndexError(f"the index {database.name}: {reason}") from None
