"""Old records lose their samples, and nothing else; what can still decide something keeps them."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernelgate.bench.record import Run
from kernelgate.ci.history import database, entry, index, keep, retention, series, store
from kernelgate.ci.history.entry import CondensedRecord, SeriesEvent
from kernelgate.ci.history.facts import CondensedRecords
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.policy import policy
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import BASE, H200, HEAD, a_record, as_counted, as_file, contents, read, write
from tests.ci.records import DATA

YEARS_LATER, SOON = datetime(2030, 1, 1, tzinfo=UTC), datetime(2026, 8, 20, tzinfo=UTC)
RULES = policy.load(Path(__file__).parents[3] / ".ci" / "kernelgate.toml")
KEPT = sorted(path for path in DATA.rglob("*.json") if '"kernelgate.run/' in path.read_text(encoding="utf-8")[:40])


def run(archive: Archive, released: Collection[str] = (), today: datetime = YEARS_LATER) -> CondensedRecords:
    return retention.condense(archive, released, today)


def names(archive: Archive) -> dict[str, list[str]]:
    kinds: tuple[store.Kind, ...] = ("records", "judgements", "condensed")
    return {kind: list(store.names(archive.store, kind)) for kind in kinds}


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of records of one series, judged, each slower than the one before: the first five are its best."""
    folder = tmp_path_factory.mktemp("eight")
    made = Archive(store.at(str(folder)), database.at(folder.parent / "eight.sqlite"), QUICK)
    for day in range(1, 9):
        keep.add_record(made, as_file(a_record(day=day, change=0.01 * day)), "run.json")
    made.database.engine.dispose()
    return folder


@pytest.fixture
def every(eight: Path, archive: Archive) -> list[str]:
    shutil.copytree(eight, archive.store.root)
    keep.rebuild(archive, pytest.fail)
    return list(store.names(archive.store, "records"))


def test_old_records_lose_their_samples_and_nothing_that_was_said(archive: Archive, every: list[str]) -> None:
    before = contents(archive.database)
    assert run(archive, today=SOON) == CondensedRecords(with_every_sample=8)
    done = run(archive)
    assert (done.condensed, done.with_every_sample) == (2, 6)
    assert contents(archive.database) == before
    assert as_counted(archive.database)
    left = names(archive)
    assert set(left["records"]) < set(every)
    assert len(left["condensed"]) == 2
    assert {name[:64] for name in left["judgements"]} == set(left["records"])
    assert run(archive) == CondensedRecords(with_every_sample=6), "twice changes nothing"
    for day in range(1, 9):
        assert not keep.add_record(archive, as_file(a_record(day=day, change=0.01 * day)), "run.json")
    assert (names(archive), contents(archive.database)) == (left, before), "nor does adding again"
    write(archive.database, index.clear)
    assert keep.rebuild(archive, pytest.fail) == 8
    assert contents(archive.database) == before, "also where the index was lost"
    for name in left["condensed"]:
        found = entry.parsed(CondensedRecord, store.get(archive.store, "condensed", name) or b"", name)
        assert [timing.samples_us for process in found.record.processes for timing in process.timings] == [{}] * 3
    assert archive.store.folder is not None
    broken = next((archive.store.folder / "condensed").rglob("*.zst"))
    broken.write_bytes(b"")
    said: list[str] = []
    assert keep.rebuild(archive, said.append) == 7
    assert [str(broken) in line for line in said] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_the_verdicts_of_kept_records_stay_as_they_are(path: Path, archive: Archive) -> None:
    """Effect, interval, spread and status of every case, whatever the record holds."""
    here = replace(archive, policy=RULES)
    keep.add_record(here, path.read_bytes(), path.name)
    before = contents(here.database)
    with database.writing(here.database) as connection:
        connection.exec_driver_sql("UPDATE record SET made = '2020-01-01T00:00:00Z'")
    assert retention._condense(here, store.name_of(path.read_bytes()))[0] > 0
    keep.rebuild(here, pytest.fail)
    assert contents(here.database) == before


@pytest.mark.parametrize(("released", "raw"), [((), 6), ({HEAD}, 7)])
@pytest.mark.usefixtures("every")
def test_of_an_earlier_environment_only_the_release_keeps_its_samples(
    archive: Archive, released: Collection[str], raw: int
) -> None:
    old = H200.model_copy(update={"torch": "2.10.0"})
    for day in (1, 2, 3):
        earlier = Run(base_sha=BASE, head_sha=HEAD, created_at=f"2026-07-0{day}T00:00:00Z")
        keep.add_record(archive, as_file(a_record(day=day, run=earlier, environments=(old,))), "run.json")
    assert run(archive, released).with_every_sample == raw


@pytest.mark.usefixtures("every")
def test_a_regression_of_the_default_branch_keeps_its_samples_until_it_is_accepted(archive: Archive) -> None:
    with database.writing(archive.database) as connection:
        index.place(connection, [BASE, HEAD])
        connection.exec_driver_sql("UPDATE comparison SET status = 'regressed'")
    assert run(archive) == CondensedRecords(with_every_sample=8)
    [row] = read(archive.database, series.chosen, Wanted())
    accepted = {"made": "2026-08-02T00:00:00Z", "kind": "accepted", "sha": HEAD, "who": "a", "why": "b"}
    names_ = {key: row[key] for key in ("repository", "card", "case", "gpu")}
    keep.add_event(archive, SeriesEvent.model_validate(accepted | names_))
    assert run(archive).condensed == 2


@pytest.mark.parametrize("last", ["put", "add", "_remove"])
@pytest.mark.usefixtures("every")
def test_killed_at_any_moment_nothing_is_lost(archive: Archive, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    before = contents(archive.database)
    module = {"put": store, "add": index, "_remove": retention}[last]
    with monkeypatch.context() as patched:
        patched.setattr(module, last, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(archive)
    keep.rebuild(archive, pytest.fail)
    assert contents(archive.database) == before
    run(archive)
    assert contents(archive.database) == before
    assert [len(one) for one in names(archive).values()] == [6, 6, 2]


@pytest.mark.usefixtures("every")
def test_several_at_once_do_each_others_work(archive: Archive, where: str | Path) -> None:
    before = contents(archive.database)

    def work(_: int) -> None:
        own = replace(archive, database=database.at(where))
        run(own)
        own.database.engine.dispose()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(3)))
    assert contents(archive.database) == before
    assert [len(one) for one in names(archive).values()] == [6, 6, 2]
