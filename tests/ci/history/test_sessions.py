"""Sessions in the history: the newest log of each, in store and index alike, whoever brings an older one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.history import database, keep, series, store
from kernelgate.ci.history.entry import KeptSession
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.lab import log
from kernelgate.ci.lab.log import Closed, Event
from tests.ci.history.entries import contents
from tests.ci.lab import session_events as made

OPEN: tuple[Event, ...] = (made.opened(), *made.passed(0.8))
DONE: tuple[Event, ...] = (*OPEN, Closed(at=made.clock(30), why="done", said="so"))


def of(*events: Event, name: str = "one", repository: str = "o/r") -> KeptSession:
    return KeptSession(repository=repository, name=name, log="".join(map(log.line, events)))


def listed(archive: Archive) -> list[KeptSession]:
    with database.reading(archive.database) as connection:
        return series.sessions(connection)


def test_the_newer_log_of_a_session_stays(archive: Archive) -> None:
    assert keep.add_sessions(archive, [of(*OPEN), of(*OPEN, repository="")]) == 2
    assert keep.add_sessions(archive, [of(*DONE)]) == 1
    assert keep.add_sessions(archive, [of(*OPEN), of(*DONE)]) == 0, "as an older checkout has it"
    assert listed(archive) == [of(*OPEN, repository=""), of(*DONE)]
    assert len([*store.names(archive.store, "sessions")]) == 2, "what the newer log goes on from is in it"


def test_an_index_that_is_made_again_holds_the_stores_sessions(archive: Archive, tmp_path: Path) -> None:
    keep.add_sessions(archive, [of(*DONE), of(made.opened(name="two", source="recorded", at=None), name="two")])
    before = contents(archive.database)
    another = Archive(archive.store, database.at(tmp_path / "another.sqlite"), archive.policy)
    elsewhere = Archive(store.at(str(tmp_path / "gone")), another.database, another.policy)
    keep.add_sessions(elsewhere, [of(made.opened(name="gone"), name="gone")])
    keep.rebuild(another, pytest.fail, [of(*OPEN)])
    assert (contents(another.database), listed(another)) == (before, listed(archive))
    another.database.engine.dispose()
