"""Adds measurements, decisions and sessions to the history, and makes its index again.

The store is written before the index: after a kill between the two, `rebuild` or adding the same again completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, RecordError, one_line
from kernelgate.bench.record import Model
from kernelgate.ci.history import database, entry, index, judging, series, store
from kernelgate.ci.history.database import RECORD, SESSION, Database
from kernelgate.ci.history.entry import CondensedRecord, Entry, KeptSession, SeriesEvent, StoreFile
from kernelgate.ci.history.store import Kind, Store
from kernelgate.ci.policy.policy import Policy

Say = Callable[[str], None]
Names = Mapping[Kind, Collection[str]]
EARLIEST = "2020"


@dataclass(frozen=True)
class Archive:
    """All that the history is, and the policy that it is judged by."""

    store: Store
    database: Database
    policy: Policy

    @property
    def rules(self) -> str:
        return judging.rules_of(self.policy)


def add_record(archive: Archive, data: bytes, source: str) -> bool:
    """Keeps a run record, given as its file's bytes. False where the history had it. Raises RecordError."""
    name = store.name_of(data)
    of_record = sa.select(RECORD.c.rules, RECORD.c.condensed).filter_by(name=name)
    with database.reading(archive.database) as connection:
        known = connection.execute(of_record).first()
    if known and known.condensed and store.is_whole(archive.store, "condensed", known.condensed):
        return False
    judged = _kept_judgement(archive, name)
    made = None if judged else record.from_json(data, source)  # before anything is kept
    when = (made or judged or record.RunRecord()).run.created_at
    at = entry.moment(when)
    # The history would begin or end for ever with a time that is none, of a clock that was not set, or has not come.
    latest = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    if when is not None and (at is None or not EARLIEST <= at <= latest):
        named = one_line(when[:80])
        raise RecordError(f"{source}: run.created_at is {named!r}, which is no time that has been: correct it")
    store.put(archive.store, "records", name, data)  # also where it was judged: it may have been removed since
    judged = judged or judgement(archive, name, made)
    with database.writing(archive.database) as connection:
        known = connection.execute(of_record).first()  # another process may have been faster
        if known and known.rules == judged.rules and not known.condensed:
            return False
        index.add(connection, judged)
    return True


def add_event(archive: Archive, event: SeriesEvent) -> None:
    """Keeps what was decided; the same again changes nothing."""
    data = event.model_dump_json(exclude_none=True).encode()
    name = store.name_of(data)
    store.put(archive.store, "events", name, data)
    with database.writing(archive.database) as connection:
        index.add_event(connection, name, event)


def catch_up(archive: Archive, say: Say) -> None:
    """Brings into the index what only the store has, as after a process that was killed, or an index that is gone."""
    with database.reading(archive.database) as connection:
        found = index.difference(archive.store, connection)
        is_new = connection.execute(sa.select(RECORD.c.id).limit(1)).first() is None
    if str(found):
        say(f"the index {archive.database.name} {found}: it gets what it lacks, `history rebuild` makes it anew")
    if is_new and any(found.unindexed.values()):
        rebuild(archive, say)
    elif any(found.unindexed.values()):
        for name in found.unindexed["records"]:
            with suppress(KernelgateError):
                _of_whole(archive, name)  # what takes long, before others have to wait
        with database.writing(archive.database) as connection:
            _fill(archive, connection, found.unindexed, say)


def verify(archive: Archive, say: Say) -> int:
    """Reads all that the store has, says what is damaged, and returns how many files that are."""
    forms: dict[Kind, type[Model]] = {"condensed": CondensedRecord, "events": SeriesEvent, "sessions": KeptSession}
    forms["records"] = record.RunRecord
    return sum(1 for kind, form in forms.items() for _ in _read(archive, kind, form, say))


def rebuild(archive: Archive, say: Say, here: Iterable[KeptSession] = ()) -> int:
    """Makes the index hold exactly what the store does, and returns how many measurements that are. A file that is
    damaged is said and left out. `here`: sessions of the checkout, which need not be in the store."""
    checked = set()
    for name in store.names(archive.store, "records"):
        with suppress(KernelgateError):
            _of_whole(archive, name)  # what takes long, before others have to wait
            checked.add(name)
    with database.writing(archive.database) as connection:
        index.clear(connection)
        every = {kind: store.names(archive.store, kind) for kind in index.INDEXED}
        count = _fill(archive, connection, every, say, checked)
        kept = sorted((one for _, one in _read(archive, "sessions", KeptSession, say)), key=lambda one: len(one.log))
        newest = _newest([*kept, *here]).values()
        index.insert(connection, SESSION, [one.model_dump(exclude={"schema_"}) for one in newest])
    return count


def _fill(archive: Archive, connection: sa.Connection, names: Names, say: Say, checked: Collection[str] = ()) -> int:
    """Puts these files into the index, and counts the measurements. `checked`: records that are known to be whole."""
    replaced = set()
    for own, short in _read(archive, "condensed", CondensedRecord, say, names["condensed"]):
        index.add(connection, short.entry, own)
        replaced.add(short.raw)
    count = len(replaced)
    for name in sorted({*names["records"]} - replaced):
        try:
            index.add(connection, judgement(archive, name) if name in checked else _of_whole(archive, name))
            count += 1
        except KernelgateError as error:
            say(f"left out: {error}")
    for name, event in _read(archive, "events", SeriesEvent, say, names["events"]):
        index.add_event(connection, name, event)
    return count


def _read(
    archive: Archive, kind: Kind, form: type[StoreFile], say: Say, names: Iterable[str] | None = None
) -> Iterator[tuple[str, StoreFile]]:
    """Files of a kind, all unless some are named, with their names. What is damaged is said, and left out."""
    for name in store.names(archive.store, kind) if names is None else names:
        try:
            yield name, entry.parsed(form, store.get(archive.store, kind, name) or b"", name)
        except KernelgateError as error:
            say(f"left out: {error}")


def judgement(archive: Archive, name: str, made: record.RunRecord | None = None) -> Entry:
    """What the judge makes of the record, which is kept. `made`: the record, where it was read already."""
    if made is None and (known := _kept_judgement(archive, name)) is not None:
        return known
    made = made or record.from_json(store.get(archive.store, "records", name) or b"", name)
    judged = judging.judged(name, made, archive.policy)
    data = judged.model_dump_json(by_alias=True, exclude_none=True).encode()
    store.write(archive.store, "judgements", f"{name}-{archive.rules}", data)
    return judged


def _of_whole(archive: Archive, name: str) -> Entry:
    """The same of a record that is as it was put there. Raises StoreError where it is damaged, though it was judged."""
    store.get(archive.store, "records", name)
    return judgement(archive, name)


def _kept_judgement(archive: Archive, name: str) -> Entry | None:
    """What was made of the record; None where it was not judged by these rules, or the file of it is damaged."""
    try:
        data = store.get(archive.store, "judgements", f"{name}-{archive.rules}")
        found = entry.parsed(Entry, data, name) if data is not None else None
    except KernelgateError:
        return None
    return found if found and (found.name, found.rules) == (name, archive.rules) else None


# ---- sessions --------------------------------------------------------------------------------------------------------
# Logs only grow, so that of two logs of a session the one that goes on from the other is the newer.


def add_sessions(archive: Archive, found: Collection[KeptSession]) -> int:
    """Brings these sessions into the history, and returns how many of them are new to it, or went on. None takes the
    place of one that goes on from it."""
    new = 0
    with database.writing(archive.database) as connection:
        with database.understood(archive.database):
            before = {one.key: one for one in series.sessions(connection)}
        for one in (one for one in _newest([*before.values(), *found]).values() if one in found):
            data, known = _data(one), before.get(one.key)
            store.put(archive.store, "sessions", store.name_of(data), data)
            if known == one:
                continue
            connection.execute(sa.delete(SESSION).filter_by(repository=one.repository, name=one.name))
            index.insert(connection, SESSION, [one.model_dump(exclude={"schema_"})])
            new += 1
            if known and one.log.startswith(known.log):
                store.remove(archive.store, "sessions", store.name_of(_data(known)))
    return new


def _newest(found: Iterable[KeptSession]) -> dict[tuple[str, str], KeptSession]:
    """Of each session the last log, but for one from which a log before it goes on."""
    newest: dict[tuple[str, str], KeptSession] = {}
    for one in found:
        if one.key not in newest or not newest[one.key].log.startswith(one.log):
            newest[one.key] = one
    return newest


def _data(one: KeptSession) -> bytes:
    return one.model_dump_json(by_alias=True).encode()
