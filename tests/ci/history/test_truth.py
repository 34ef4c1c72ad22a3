"""The store is the truth: its index is counted against it, made again from it, and repaired by what is added again."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.history import database, store
from tests.ci.history.entries import a_record, as_file
from tests.ci.history.test_verbs import INDEX, answered

STORE = INDEX.parent


@pytest.fixture(autouse=True)
def history(checkout: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A repository whose history has three records."""
    for day in (1, 2, 3, 4):
        record.write(a_record(day=day), Path(f"{day}.json"))
    assert answered(capsys, ["add", "1.json", "2.json", "3.json"])["added"] == 3
    return checkout


def points(capsys: pytest.CaptureFixture[str]) -> int:
    return len(answered(capsys, ["show"])["series"][0]["points"]) // 2


def file_of(day: int) -> Path:
    name = store.name_of(as_file(a_record(day=day)))
    return STORE / "records" / name[:2] / f"{name}{store.SUFFIX}"


def test_an_index_that_is_gone_is_made_again_by_the_next_add(capsys: pytest.CaptureFixture[str]) -> None:
    INDEX.unlink()
    assert cli.run(["history", "add", "4.json"]) == 0
    assert "lacks 3 that the store has" in capsys.readouterr().err
    assert points(capsys) == 4


def test_an_index_that_lacks_a_record_says_so_to_whoever_reads_and_gets_it_when_added_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with sqlite3.connect(INDEX) as connection:
        (number,) = connection.execute("SELECT min(id) FROM record").fetchone()
        for table in ("point", "comparison"):
            connection.execute(f"DELETE FROM {table} WHERE record_id = ?", (number,))  # noqa: S608
        connection.execute("DELETE FROM record WHERE id = ?", (number,))
    assert cli.run(["history", "show"]) == 0
    assert "lacks 1 that the store has: `kernelgate history rebuild`" in capsys.readouterr().err
    assert answered(capsys, ["add", "4.json"])["added"] == 1
    assert points(capsys) == 4
    assert cli.run(["history", "show"]) == 0
    assert capsys.readouterr().err == ""


def test_a_damaged_record_is_found_lost_and_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(capsys, ["verify"])["files"] == 3
    file_of(2).write_bytes(file_of(2).read_bytes()[:-9])
    file_of(3).unlink()
    found = answered(capsys, ["verify"], code=3)
    assert (found["files"], len(found["damaged"])) == (1, 1)
    assert found["index"] == "has 1 that the store lacks"
    rebuilt = answered(capsys, ["rebuild"], code=3)
    assert (rebuilt["measurements"], len(rebuilt["lost"])) == (1, 1), "although it was judged before"
    assert "is damaged: add the measurement again" in rebuilt["lost"][0]
    added = answered(capsys, ["add", "2.json", "3.json"])
    assert (added["added"], answered(capsys, ["verify"])["files"]) == (2, 3)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("no database" * 999, encoding="utf-8"),
    "empty": lambda path: path.write_bytes(b""),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:9000]),
    "zeros in it": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(40000)),
    "no table": lambda path: sqlite3.connect(path).execute("DROP TABLE point"),
    "no column": lambda path: sqlite3.connect(path).execute("ALTER TABLE record DROP COLUMN reason"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_rebuild_replaces_whatever_is_there(capsys: pytest.CaptureFixture[str], damage: str) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{INDEX}{end}").unlink(missing_ok=True)
    DAMAGE[damage](INDEX)
    cli.run(["history", "show"])
    said = capsys.readouterr().err
    assert "SELECT" not in said
    assert "`kernelgate history rebuild`" in said or damage in ("empty", "no column")
    assert answered(capsys, ["rebuild"])["measurements"] == 3
    assert points(capsys) == 3
    assert answered(capsys, ["verify"])["index"] == ""


def test_a_file_that_is_no_index_is_kept_when_it_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").write_text("mine" * 999, encoding="utf-8")
    assert cli.run(["history", "--database", "mine", "rebuild"]) == 0
    assert Path("mine.damaged").read_text(encoding="utf-8") == "mine" * 999
    assert "in its place" in capsys.readouterr().err


def test_a_store_that_is_read_only_can_be_read(checkout: Path) -> None:
    """On a file system that takes no file, also for root."""
    mounted = f"mount --bind {checkout} {checkout} && mount -o remount,ro,bind {checkout}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    for verb in ("show", "verify", "changes"):
        program = f"{sys.executable} -m kernelgate.ci.commands.cli history {verb}"
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"{mounted} && cd {checkout} && {program}"], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), verb


@pytest.mark.parametrize("when", ["yesterday", "2026-02-30T12:00:00Z", "9999-01-01T00:00:00Z", "-1", ""])
def test_a_record_of_no_time_is_not_added(capsys: pytest.CaptureFixture[str], when: str) -> None:
    made = a_record(day=5)
    record.write(made.model_copy(update={"run": made.run.model_copy(update={"created_at": when})}), Path("5.json"))
    assert cli.run(["history", "add", "5.json"]) == 3
    assert "5.json: run.created_at is" in capsys.readouterr().err
    assert points(capsys) == 3


def test_a_server_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(database, "CONNECT_S", 2)  # the least that libpq takes
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://someone@127.0.0.1:{silent.getsockname()[1]}/history"
        assert cli.run(["history", "--database", address, "show"]) == 3
    assert "timeout expired" in capsys.readouterr().err


def test_a_store_that_cannot_be_counted_does_not_keep_the_index_from_being_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.rmtree(STORE / "records")
    (STORE / "records").write_text("", encoding="utf-8")
    assert points(capsys) == 3
