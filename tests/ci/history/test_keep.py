"""Store and index together, the same on SQLite and on Postgres."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from kernelgate.bench.core.errors import KernelgateError, RecordError, UsageError
from kernelgate.bench.record import Cost, Device, Environment
from kernelgate.ci.history import database, index, judging, keep, shown, store, tables
from kernelgate.ci.history.database import REVISION, VERSION_TABLE, Database, HistoryIndexError
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.policy.policy import Gates
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import H200, HEAD, a_record, an_entry, as_file, contents, counted, named, put

EVENT = SeriesEvent(
    made="2026-08-02T00:00:00Z", kind="accepted", card="norm", case="one", gpu="NVIDIA H200", sha=HEAD, who="a", why="b"
)


def shas(*letters: str) -> list[str]:
    return [letter * 40 for letter in letters]


def heads_of(index_at: Database, wanted: Wanted = Wanted()) -> list[str]:  # noqa: B008 - frozen
    with database.reading(index_at) as connection:
        return [row["commit"][0] for one in shown.series(connection, wanted) for row in one.points]


# ---- adding ----------------------------------------------------------------------------------------------------------


def test_a_record_is_added_once(archive: Archive) -> None:
    data = as_file(a_record())
    assert keep.add_record(archive, data, "run.json")
    before = contents(archive.database)
    assert not keep.add_record(archive, data, "run.json")
    assert contents(archive.database) == before
    assert (len(before["points"]), len(before["comparisons"])) == (2, 1)


def test_what_is_no_record_is_not_kept(archive: Archive) -> None:
    with pytest.raises(RecordError, match=r"run\.json is not a kernelgate\.run/2 record"):
        keep.add_record(archive, b"{}{", "run.json")
    assert list(store.names(archive.store, "records")) == []


def test_a_record_that_the_index_lost_is_added_without_judging_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a writer that was killed between store and index."""
    data = as_file(a_record())
    keep.add_record(archive, data, "run.json")
    before = contents(archive.database)
    with database.writing(archive.database) as connection:
        index.remove(connection, [store.name_of(data)])
    monkeypatch.setattr(judging, "judged", lambda *_: pytest.fail("judged again"))
    assert keep.add_record(archive, data, "run.json")
    assert contents(archive.database) == before


def test_another_policy_judges_again_and_takes_the_place(archive: Archive) -> None:
    data = as_file(a_record(change=0.02, processes=4))
    keep.add_record(archive, data, "run.json")
    strict = replace(archive, policy=QUICK.model_copy(update={"gates": Gates(regression_pct=1.0)}))
    assert keep.add_record(strict, data, "run.json")
    (row,) = contents(archive.database)["comparisons"]
    assert "'regressed'" in row
    assert counted(archive.database, tables.RECORD) == 1


def test_a_new_environment_begins_a_new_series(index_at: Database) -> None:
    newer = H200.model_copy(update={"device": Device(name="NVIDIA H200", driver="590.0")})
    put(index_at, an_entry("a"), an_entry("b", day=2), an_entry("c", day=3, environment=newer))
    with database.reading(index_at) as connection:
        found = shown.series(connection, Wanted())
    assert [(one.environment["driver"], len(one.points)) for one in found] == [("580.1", 2), ("590.0", 1)]


def test_text_that_a_database_does_not_take_is_made_harmless(index_at: Database) -> None:
    case = an_entry("x").cases[0].model_copy(update={"case": "a\0b", "card": "ö" * 9000})
    entry = an_entry("x", cases=(case,), costs=(Cost(phase="t\0", gpu_seconds=1.5),))
    put(index_at, entry.model_copy(update={"reason": "\0"}))
    with database.reading(index_at) as connection:
        (one,) = shown.series(connection, Wanted(case="a b"))
    assert one.card == "ö" * 9000


# ---- places and selections -------------------------------------------------------------------------------------------


def test_commits_stand_as_the_default_branch_has_them_whatever_their_dates(index_at: Database) -> None:
    put(index_at, *(an_entry(sha, sha * 40, day=day) for day, sha in enumerate("cxab", 1)))
    assert heads_of(index_at) == ["c", "x", "a", "b"], "by time, as long as nothing else is known"
    with database.writing(index_at) as connection:
        index.place(connection, shas("a", "b", "c"))
        index.place(connection, shas("f", "e"))  # of another repository's checkout
    assert heads_of(index_at) == ["a", "b", "c", "x"]


def test_series_are_chosen_by_what_people_type(index_at: Database) -> None:
    l4 = Environment(device=Device(name="NVIDIA L4"))
    put(index_at, an_entry("a"), an_entry("b", "b" * 40, day=9), an_entry("c", "c" * 40, environment=l4))
    assert heads_of(index_at, Wanted(gpu="h200")) == ["a", "b"]
    assert heads_of(index_at, Wanted(card="norm", case="one", gpu="l4")) == ["c"]
    assert heads_of(index_at, Wanted(since="2026-08-05T00:00:00Z")) == ["b"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(card="x"), "the history has no card 'x'; it has: norm"),
        (Wanted(card="norm", case="x"), "the history has no case 'x'; it has: one"),
        (Wanted(gpu="b200"), "the history has nothing of that on a 'b200'; it has: NVIDIA H200"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(index_at: Database, wanted: Wanted, said: str) -> None:
    put(index_at, an_entry("a"))
    with pytest.raises(KernelgateError, match=said):
        heads_of(index_at, wanted)


def test_an_empty_history_says_how_to_begin(index_at: Database) -> None:
    with pytest.raises(KernelgateError, match="the history is empty: `kernelgate history add RECORD`"):
        heads_of(index_at)


# ---- rebuilding ------------------------------------------------------------------------------------------------------


def filled(archive: Archive) -> dict[str, list[str]]:
    """Two records, another tool's measurement and an event."""
    for day in (1, 2):
        keep.add_record(archive, as_file(a_record(day=day)), "run.json")
    keep.add_entry(archive, an_entry("", rules=""))
    keep.add_event(archive, EVENT)
    keep.add_event(archive, EVENT)
    return contents(archive.database)


def test_an_index_made_again_is_the_same(archive: Archive) -> None:
    before = filled(archive)
    assert len(before["events"]) == 1
    with database.writing(archive.database) as connection:
        for table in reversed(tables.METADATA.sorted_tables):
            connection.execute(sa.delete(table))
    said: list[str] = []
    assert keep.rebuild(archive, said.append) == 3
    assert contents(archive.database) == before
    assert keep.rebuild(archive, said.append) == 3
    assert contents(archive.database) == before
    assert said == []


def test_a_rebuild_forgets_what_the_store_no_longer_has_and_names_what_is_damaged(archive: Archive) -> None:
    filled(archive)
    put(archive.database, an_entry("never in the store"))
    folder = archive.store.folder
    assert folder is not None
    broken, lost = sorted((folder / "records").rglob("*.zst"))
    lost.unlink()
    broken.write_bytes(b"")
    for file in (folder / "judgements").rglob("*.zst"):
        file.write_bytes(b"")
    (folder / "events").joinpath(*next((folder / "events").rglob("*.zst")).parts[-2:]).unlink()
    said: list[str] = []
    assert keep.rebuild(archive, said.append) == 1
    assert len(said) == 1
    assert f"left out: {broken} is damaged" in said[0]
    assert contents(archive.database)["events"] == []
    names = {row["record"] for row in rows(archive, "points")}
    assert names == {broken.name.removesuffix(store.SUFFIX), *store.names(archive.store, "imports")}


def test_a_rebuild_keeps_what_others_add_meanwhile(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    keep.add_record(archive, as_file(a_record(day=1)), "run.json")
    listed = store.names

    def names(kept: store.Store, kind: store.Kind) -> list[str]:
        found = list(listed(kept, kind))
        if kind == "records":
            keep.add_record(archive, as_file(a_record(day=2)), "run.json")
            keep.add_event(archive, EVENT)
        return found if kind != "events" else []

    monkeypatch.setattr(store, "names", names)
    keep.rebuild(archive, pytest.fail)
    after = contents(archive.database)
    assert (len(after["comparisons"]), len(after["events"])) == (2, 1)


def rows(archive: Archive, name: str) -> list[dict[str, object]]:
    with database.reading(archive.database) as connection:
        return list(shown.exported(connection, name))


def test_a_damaged_judgement_is_made_again(archive: Archive) -> None:
    before = filled(archive)
    folder = archive.store.folder
    assert folder is not None
    for file in (folder / "judgements").rglob("*.zst"):
        file.write_bytes(b"")
    keep.rebuild(archive, lambda _: pytest.fail("nothing is lost"))
    assert contents(archive.database) == before


# ---- the database ----------------------------------------------------------------------------------------------------


def test_the_steps_lead_to_the_tables(index_at: Database) -> None:
    scripts = ScriptDirectory(str(Path(database.__file__).parent / "migrations"))
    assert scripts.get_current_head() == REVISION
    with database.reading(index_at) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, tables.METADATA) == []


def test_an_index_of_the_first_tables_knows_what_its_records_hold(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'index.sqlite'}")
    shared = {"driver": "1", "torch": "2", "triton": "", "cuda": "13", "clock_policy": "", "producer": "kernelgate"}
    series = {"repository": "o/r", "card": "norm", "case": "one", "gpu": "NVIDIA H200", **shared}
    with engine.begin() as connection:
        database.upgrade(connection, "0001")
        for table, row in (
            (
                "record",
                {"id": 7, "name": "n", "rules": "", "repository": "o/r", "producer": "", "event": "", "gpu": ""},
            ),
            ("series", {"id": 3, "key": "k", **series}),
            ("point", {"series_id": 3, "record_id": 7, "side": "head", "us": 1.0, "processes": 1, "rounds": 1}),
        ):
            connection.execute(sa.insert(sa.table(table, *map(sa.column, row))), row)
    engine.dispose()
    opened = database.at(tmp_path / "index.sqlite")
    with database.reading(opened) as connection:
        record = connection.execute(sa.select(tables.RECORD)).one()
        assert record.cards == '["norm"]'
        named = index.environment_of(series)
        assert record.environment == connection.execute(sa.select(tables.SERIES.c.environment)).scalar_one() == named
    opened.engine.dispose()


def test_an_index_of_a_later_kernelgate_is_left_alone(index_at: Database, where: str | Path) -> None:
    version = sa.table(VERSION_TABLE, sa.column("version_num"))
    with database.writing(index_at) as connection:
        connection.execute(sa.update(version).values(version_num="9999"))
    with pytest.raises(HistoryIndexError, match="was written by a later kernelgate: update this one"):
        database.at(where)


def test_half_a_transaction_leaves_nothing(index_at: Database) -> None:
    put(index_at, an_entry("a"))
    before = contents(index_at)
    impossible = an_entry("b").model_copy(update={"costs": (None,)})
    with pytest.raises(AttributeError), database.writing(index_at) as connection:
        index.add(connection, impossible)  # after its points
    assert contents(index_at) == before


def test_readers_see_one_state_while_others_write(index_at: Database) -> None:
    put(index_at, an_entry("a"))
    with database.reading(index_at) as connection:
        first = len(shown.series(connection, Wanted())[0].points)
        put(index_at, an_entry("b", "c" * 40))
        assert len(shown.series(connection, Wanted())[0].points) == first == 1


def test_many_writers_at_once_lose_nothing(index_at: Database, where: str | Path) -> None:
    """Of the same record twice, and of others; each thread with connections of its own."""
    entries = [an_entry(f"{number % 8}", f"{number % 8}" * 40, day=number % 8 + 1) for number in range(16)]
    faults: list[BaseException] = []

    def write(mine: list[object]) -> None:
        try:
            own = database.at(where)
            for one in mine:
                put(own, one)  # type: ignore[arg-type]
            own.engine.dispose()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(entries[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert counted(index_at, tables.RECORD) == counted(index_at, tables.POINT) == 8


@pytest.mark.parametrize(
    ("where", "said"),
    [("mysql://u:secret@host/x", "--database takes a file's path"), ("nonsense://", "--database takes a file's path")],
)
def test_another_database_is_refused(where: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        database.at(where)


def test_a_file_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_text("not a database at all, but text" * 100)
    with pytest.raises(
        HistoryIndexError, match=r"file is not a database: move the file away, and run `kernelgate hist"
    ):
        database.at(tmp_path / "index.sqlite")


def test_a_password_is_never_said() -> None:
    with pytest.raises(HistoryIndexError) as error:
        database.at("postgresql://someone:secret@127.0.0.1:1/none")
    assert "someone:***@127.0.0.1" in str(error.value)
    assert "secret" not in str(error.value)


def test_names_are_those_of_contents() -> None:
    assert store.name_of(b"a") == named("a")


def test_an_index_of_before_is_brought_up_to_date(where: str | Path, index_at: Database) -> None:
    """With what can be known of its series; an event of it counts wherever its case is."""
    put(index_at, an_entry("a", day=2), an_entry("b", day=9))
    before = contents(index_at)
    with database.writing(index_at) as connection:
        new = (("series", "newest"), ("series", "reference"), ("event", "repository"), ("record", "condensed"))
        for table, column in new:
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.exec_driver_sql("DROP TABLE session")
        connection.execute(sa.update(sa.table(VERSION_TABLE, sa.column("version_num"))).values(version_num="0002"))
    again = database.at(where)
    assert contents(again) == before
    with database.reading(again) as connection:
        assert connection.execute(sa.select(tables.SERIES.c.newest)).scalars().all() == ["2026-08-09T00:00:00Z"]
    again.engine.dispose()


def test_a_series_calls_its_reference_as_its_newest_record_does(index_at: Database) -> None:
    for day, name in ((2, "torch SDPA"), (1, "something old")):
        case = an_entry("x").cases[0].model_copy(update={"reference": name})
        put(index_at, an_entry(name, day=day, cases=(case,)))
    with database.reading(index_at) as connection:
        [one] = shown.answer(shown.series(connection, Wanted())).series
    assert one.reference == "torch SDPA"
