"""Adds measurements to the history, and makes its index again: store and index together.

The store is written before the index. Whoever is killed between the two has lost nothing: adding the same again, or
`rebuild`, brings the index up to what the store holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history import database, entry, index, judging, store
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import Entry, SeriesEvent
from kernelgate.ci.history.store import Store
from kernelgate.ci.policy.policy import Policy

BATCH = 50
"""Measurements of one transaction of a rebuild: one at a time takes five times as long."""
Say = Callable[[str], None]


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
    with database.reading(archive.database) as connection:
        if name in index.condensed(connection, [name]):
            return False
    judged = _kept_judgement(archive, name)
    if judged is None:
        made = record.from_json(data, source)  # before anything is kept
        store.put(archive.store, "records", name, data)
        judged = _judge(archive, name, made)
    else:
        store.put(archive.store, "records", name, data)  # it may have been removed since
    with database.reading(archive.database) as connection:
        if index.holds(connection, name, judged.rules):
            return False
    with database.writing(archive.database) as connection:
        index.add(connection, judged)
    return True


def add_event(archive: Archive, event: SeriesEvent) -> None:
    """Keeps what was found or decided; the same again changes nothing."""
    data = event.model_dump_json(exclude_none=True).encode()
    name = store.name_of(data)
    store.put(archive.store, "events", name, data)
    with database.writing(archive.database) as connection:
        index.add_event(connection, name, event)


def rebuild(archive: Archive, say: Say) -> int:
    """Makes the index hold exactly what the store does, and returns how many measurements that are.

    Others may add and read meanwhile; killed, it is simply run again. A file that is damaged is said and left out.
    """
    with database.reading(archive.database) as connection:
        known, decided = index.known(connection)  # before the store is listed: what is added after that is not gone
    names = [*store.names(archive.store, "records")]
    replaced = [*store.names(archive.store, "condensed")]  # after the records, one of which may be replaced meanwhile
    old: set[str] = set()
    for batch in _batches(replaced):
        made = dict(_condensed(archive, batch, say))
        with database.writing(archive.database) as connection:
            for found in made.values():
                index.add(connection, *found)
        old |= made.keys()
    with database.writing(archive.database) as connection:
        index.remove(connection, index.condensed(connection, known) - old)
    failed = 0
    for batch in _batches([name for name in names if name not in old]):
        entries = dict(_entries(archive, batch, say))
        with database.writing(archive.database) as connection:
            gone = index.condensed(connection, batch)  # meanwhile, so that they are there in another form
            for name in entries.keys() - gone:
                index.add(connection, entries[name])
        failed += len(set(batch) - entries.keys() - gone)
    events = dict(_events(archive, say))
    with database.writing(archive.database) as connection:
        for name, event in events.items():
            index.add_event(connection, name, event)
        index.remove_events(connection, decided - events.keys())
        index.remove(connection, known - {*names, *old})
    return len({*names, *old}) - failed


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + BATCH] for start in range(0, len(names), BATCH))


def _condensed(archive: Archive, names: Sequence[str], say: Say) -> Iterator[tuple[str, tuple[Entry, str]]]:
    """By the names of the records that they were: what was made of them, and their own names."""
    for name in names:
        try:
            found = entry.condensed(store.get(archive.store, "condensed", name) or b"", name)
            yield found.raw, (found.entry, name)
        except KernelgateError as error:
            say(f"left out: {error}")


def _entries(archive: Archive, names: Sequence[str], say: Say) -> Iterator[tuple[str, Entry]]:
    for name in names:
        try:
            yield name, judgement(archive, name)
        except KernelgateError as error:
            with database.reading(archive.database) as connection:
                gone = index.condensed(connection, [name])
            if not gone:
                say(f"left out: {error}")


def _events(archive: Archive, say: Say) -> Iterator[tuple[str, SeriesEvent]]:
    for name in store.names(archive.store, "events"):
        try:
            yield name, entry.event(store.get(archive.store, "events", name) or b"", name)
        except KernelgateError as error:
            say(f"left out: {error}")


def judgement(archive: Archive, name: str, made: record.RunRecord | None = None) -> Entry:
    """What the judge makes of the record, which is kept. `made`: the record, where it was read already."""
    known = _kept_judgement(archive, name)
    if known is None:
        made = made or record.from_json(store.get(archive.store, "records", name) or b"", name)
        known = _judge(archive, name, made)
    return known


def _kept_judgement(archive: Archive, name: str) -> Entry | None:
    """What was made of the record; None where it was not judged by these rules, or the file of it is damaged."""
    try:
        data = store.get(archive.store, "judgements", f"{name}-{archive.rules}")
        found = entry.from_json(data, name) if data is not None else None
    except KernelgateError:
        return None
    return found if found and (found.name, found.rules) == (name, archive.rules) else None


def _judge(archive: Archive, name: str, made: record.RunRecord) -> Entry:
    judged = judging.judged(name, made, archive.policy)
    store.write(archive.store, "judgements", f"{name}-{archive.rules}", entry.to_json(judged))
    return judged
