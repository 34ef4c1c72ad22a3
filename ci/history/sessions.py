"""Optimisation sessions in the history: each one's log in the store, and what it came to in the index.

Logs only grow, so that of two logs of a session the one that goes on from the other is the newer. Who reads a log into
an entry is told from outside: what a session comes to is no matter of the history's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import sqlalchemy as sa
from pydantic import Field, TypeAdapter, ValidationError

from kernelgate.bench.core.errors import KernelgateError, RecordError, faults
from kernelgate.bench.record import Model
from kernelgate.ci.history import database, store
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.series import EXPORT
from kernelgate.ci.history.tables import SESSION

Key = tuple[str, str]
"""A session's repository and name."""


class KeptSession(Model):
    """A session as the store has it."""

    schema_: Annotated[Literal["kernelgate.kept-session/1"], Field(alias="schema")] = "kernelgate.kept-session/1"
    repository: Annotated[str, Field(pattern=r"^[^\x00-\x1f]{0,200}$")] = ""
    """Empty where it is not known."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    log: str
    """JSON lines, docs/sessions.md."""

    @property
    def key(self) -> Key:
        return self.repository, self.name


@dataclass(frozen=True)
class SessionEntry:
    """What the index holds of a session; columns of the table `session`."""

    name: str
    repository: str
    source: str
    """Measured by kernelgate, or recorded by people in a document."""
    opened: str | None
    objective: str
    card: str | None
    gpu: str | None
    closed: str | None
    minutes: float
    speedup: float | None
    """Times as fast as the reference."""
    speedup_low: float | None
    speedup_high: float | None
    """Its 95% interval, where the log has one."""
    gain_kept_pct: float
    tries: int
    kept: int
    blind: int
    usd: float | None
    """None where nothing is known of what it cost."""
    log: str

    @property
    def key(self) -> Key:
        return self.repository, self.name


ReadLog = Callable[[KeptSession], SessionEntry]
"""Raises KernelgateError of a log that this kernelgate cannot read, such as one with lines of a newer one."""
Say = Callable[[str], None]


def keep(archive: Archive, found: Iterable[KeptSession], read: ReadLog, say: Say) -> int:
    """Brings these sessions into the history, and returns how many of them are new to it, or went on.

    A log that cannot be read is said; it is kept, and in the index once a kernelgate that reads it rebuilds that. None
    takes the place of one that goes on from it.
    """
    before = {one.key: one.log for one in listed(archive.database)}
    wanted = [one for one in found if not _goes_on(before.get(one.key, ""), one.log)]
    for one in wanted:
        data = _data(one)
        store.put(archive.store, "sessions", store.name_of(data), data)
    entries = list(_entries(wanted, read, say))
    unread = {one.key for one in wanted} - {one.key for one in entries}
    _put(archive.database, entries, unread)
    for one in wanted:
        if _goes_on(one.log, before.get(one.key, "")):
            _remove(archive, one.model_copy(update={"log": before[one.key]}))
    return sum(before.get(one.key) != one.log for one in entries)


def rebuild(archive: Archive, here: Iterable[KeptSession], read: ReadLog, say: Say) -> None:
    """Makes the index hold the store's sessions, each by its longest log, and those that are `here`. Others may add
    meanwhile. The store is read alone: whoever publishes a dashboard need not be able to write it.
    """
    known = {one.key for one in listed(archive.database)}
    newest: dict[Key, KeptSession] = {}
    for one in _kept(archive, say):
        if one.key not in newest or len(one.log) > len(newest[one.key].log):
            newest[one.key] = one
    for one in here:
        if one.key not in newest or not _goes_on(newest[one.key].log, one.log):
            newest[one.key] = one
    entries = list(_entries(newest.values(), read, say))
    _put(archive.database, entries, known - {one.key for one in entries})


def listed(index: Database) -> list[SessionEntry]:
    """All sessions, by the time they were opened; those without one first."""
    order = (sa.func.coalesce(SESSION.c.opened, ""), SESSION.c.repository, SESSION.c.name)
    with database.reading(index) as connection:
        return [SessionEntry(**row._mapping) for row in connection.execute(sa.select(SESSION).order_by(*order))]


def of_export(path: Path) -> tuple[KeptSession, ...]:
    """The sessions in the file of a `history export`. Raises RecordError of anything else."""
    try:
        text = path.read_text(encoding="utf-8")
        if f'"{EXPORT}"' not in text[:100]:
            raise RecordError(f"{path} is no export of a history: write one with `kernelgate history export`")
        rows = json.loads(text).get("sessions", [])
        kept = [{key: row[key] for key in ("repository", "name", "log")} for row in rows]
        return TypeAdapter(tuple[KeptSession, ...]).validate_python(kept)
    except ValidationError as error:
        raise RecordError(f"{path}: its sessions are damaged: {faults(error)}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path} is no whole export of a history: {type(error).__name__}: {error}") from None


def _goes_on(log: str, earlier: str) -> bool:
    return len(log) > len(earlier) > 0 and log.startswith(earlier)


def _data(one: KeptSession) -> bytes:
    return one.model_dump_json(by_alias=True).encode()


def _remove(archive: Archive, one: KeptSession) -> None:
    store.remove(archive.store, "sessions", store.name_of(_data(one)))


def _kept(archive: Archive, say: Say) -> Iterator[KeptSession]:
    for name in store.names(archive.store, "sessions"):
        try:
            yield KeptSession.model_validate_json(store.get(archive.store, "sessions", name) or b"")
        except ValidationError as error:
            say(f"left out: {name} is no session: {faults(error)}")
        except KernelgateError as error:
            say(f"left out: {error}")


def _entries(found: Iterable[KeptSession], read: ReadLog, say: Say) -> Iterator[SessionEntry]:
    for one in found:
        try:
            yield read(one)
        except KernelgateError as error:
            say(f"left out: {error}")


def _put(index: Database, entries: Sequence[SessionEntry], gone: Iterable[Key]) -> None:
    """Puts the entries in the place of what the index has of them, unless that went on meanwhile."""
    given = {one.key: one for one in entries}
    with database.writing(index) as connection:
        has = {(row.repository, row.name): row.log for row in connection.execute(sa.select(SESSION))}
        new = [one for key, one in given.items() if not _goes_on(has.get(key, ""), one.log)]
        for repository, name in {*gone, *(one.key for one in new)}:
            mine = SESSION.c.repository == repository, SESSION.c.name == name
            connection.execute(sa.delete(SESSION).where(*mine))
        if new:
            connection.execute(sa.insert(SESSION), [asdict(one) for one in new])
