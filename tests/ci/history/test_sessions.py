"""Sessions in the history: the newest log of each, in store and index alike, whoever brings an older one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.history import database, sessions, store
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.sessions import KeptSession, SessionEntry
from kernelgate.ci.lab import log, session_entries
from kernelgate.ci.lab.log import Closed, Event
from kernelgate.ci.policy.policy import Policy
from tests.ci.history.entries import contents
from tests.ci.lab import session_events as made

OPEN: tuple[Event, ...] = (made.opened(objective="faster\x00, if it can be"), *made.passed(0.8))
DONE: tuple[Event, ...] = (*OPEN, Closed(at=made.clock(30), why="done", said="so"))


def of(*events: Event, name: str = "one", repository: str = "o/r") -> KeptSession:
    return KeptSession(repository=repository, name=name, log="".join(map(log.line, events)))


def read(one: KeptSession) -> SessionEntry:
    return session_entries.entry(one, Policy())


def keep(archive: Archive, *found: KeptSession) -> int:
    return sessions.keep(archive, found, read, pytest.fail)


def test_the_newer_log_of_a_session_stays(archive: Archive) -> None:
    assert keep(archive, of(*OPEN), of(*OPEN, repository="")) == 2
    assert keep(archive, of(*DONE)) == 1
    assert keep(archive, of(*OPEN), of(*DONE)) == 0, "as an older checkout has it"
    rows = sessions.listed(archive.database)
    assert [(one.repository, one.closed, one.minutes) for one in rows] == [("", None, 4.0), ("o/r", "done", 30.0)]
    assert rows[0].objective == "faster , if it can be"
    assert len([*store.names(archive.store, "sessions")]) == 2, "what the newer log goes on from is in it"


def test_an_index_that_is_made_again_holds_the_stores_sessions(archive: Archive, tmp_path: Path) -> None:
    keep(archive, of(*DONE), of(made.opened(name="two", source="recorded", at=None), name="two"))
    before = contents(archive.database)
    assert [one.name for one in sessions.listed(archive.database)] == ["two", "one"]
    another = Archive(archive.store, database.at(tmp_path / "another.sqlite"), archive.policy)
    elsewhere = Archive(store.at(str(tmp_path / "gone")), another.database, another.policy)
    keep(elsewhere, of(made.opened(name="gone"), name="gone"))
    sessions.rebuild(another, [of(*OPEN)], read, pytest.fail)
    assert contents(another.database) == before
    another.database.engine.dispose()


def test_what_this_kernelgate_cannot_read_is_kept_until_one_does(archive: Archive) -> None:
    said: list[str] = []
    later = of(*OPEN).model_copy(update={"log": of(*OPEN).log + '{"event":"dreamt"}\n'})
    assert keep(archive, of(*OPEN)) == 1
    assert sessions.keep(archive, [later], read, said.append) == 0
    assert "o/r/one/log.jsonl:6 is no event of a session" in said[0]
    assert sessions.listed(archive.database) == [], "half of it would be untrue"
    sessions.rebuild(archive, (), lambda _: read(of(*DONE)), pytest.fail)
    assert [one.closed for one in sessions.listed(archive.database)] == ["done"]
