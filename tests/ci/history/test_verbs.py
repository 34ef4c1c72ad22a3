"""`kernelgate history`, as it is typed: in words, and with --json one object of the published schema."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.commands.history_verbs import with_author
from kernelgate.ci.history import database, store
from kernelgate.ci.history.facts import Change
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import Closed
from kernelgate.ci.report import dashboard_write
from tests import miniature
from tests.called import EndsWith
from tests.ci.answered import validated
from tests.ci.history.entries import a_record, as_file, put
from tests.ci.history.test_nights import STEP, a_pair, nightly, sha
from tests.ci.lab import session_events

ROOT = Path(__file__).parents[3]
INDEX = Path(".kernelgate/history/index.sqlite")


def commit_of(rev: str) -> str:
    return miniature.git(Path.cwd(), "rev-parse", rev)


def measured(name: str, day: int = 1, rev: str = "HEAD") -> str:
    run = record.Run(base_sha="b" * 40, head_sha=commit_of(rev), created_at=f"2026-08-{day:02}")
    record.write(a_record(day=day, run=run), Path(name))
    return name


def answered(ends_with: EndsWith, words: Sequence[str], code: int = 0) -> Any:
    """The object that the verb printed, alone on standard output."""
    return validated(f"history {words[0]}", ends_with(code, "history", *words, "--json").out)


@pytest.mark.usefixtures("checkout")
def test_what_is_kept_answers_what_its_schema_says(monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith) -> None:
    folder.create(Path.cwd(), session_events.opened())
    added = answered(ends_with, ["add", measured("a.json")])
    assert (added["added"], added["known"]) == (1, 0)
    assert answered(ends_with, ["rebuild"])["measurements"] == 1
    assert answered(ends_with, ["condense"])["with_every_sample"] == 1
    [compared] = answered(ends_with, ["show"])["series"]
    assert (len(compared["points"]), len(compared["comparisons"])) == (2, 1)
    export = answered(ends_with, ["export"])
    assert (len(export["points"]), [one["name"] for one in export["sessions"]]) == (2, ["one"])
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    site = answered(ends_with, ["site", "-o", "pages"])
    assert (site["cases"], Path(site["index"]).exists()) == (1, True)
    assert ends_with(0, "history", "next").out.startswith("pairs=\n")


def test_the_dashboard_is_written_with_the_newest_tag_as_release(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    folder.create(checkout, session_events.opened(name="wider-loads"))
    miniature.git(checkout, "tag", "v7", "HEAD~1")
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    words = ("history", "site", "-o", "out")
    assert "there is no history" in ends_with(3, *words).err
    ends_with(0, "history", "add", measured("one.json", rev="HEAD~1"), measured("two.json"))
    assert ends_with(0, *words).out.endswith("out/index.html: 1 case\n")
    page = Path("out/index.html").read_text()
    assert "(v7)" in page
    assert "≈ 0.00%" in page, "both were measured alike, and one of them is the release"
    assert "wider-loads" in Path("out/sessions.html").read_text()
    assert "has no commit 'v8'" in ends_with(3, *words, "--release", "v8").err


@pytest.mark.usefixtures("checkout")
def test_what_is_suspected_and_told_answers_what_its_schema_says(ends_with: EndsWith) -> None:
    index = database.at(INDEX)
    nightly(index, "one", "two")
    put(index, a_pair(STEP - 1, STEP, 2.0))
    index.engine.dispose()
    states = {one["series"]["case"]: one["state"] for one in answered(ends_with, ["changes"])["changes"]}
    assert states == {"one": "confirmed", "two": "suspected"}
    assert [one["cases"] for one in answered(ends_with, ["tonight"])["pairs"]] == [["norm/two"]]
    [culprit] = answered(ends_with, ["culprits", "-o", "told"])["culprits"]
    assert (culprit["commit"], culprit["cases"][0]["case"]) == (sha(STEP), "one")
    assert validated("history culprits", Path("told/culprits.json").read_text())["culprits"] == [culprit]


@pytest.mark.usefixtures("checkout")
def test_one_unreadable_record_stops_no_other(ends_with: EndsWith) -> None:
    Path("bad.json").write_text("{")
    out, err = ends_with(3, "history", "add", "bad.json", "absent.json", measured("a.json"))
    assert out == "1 record added, 2 not added\n"
    assert "bad.json is not a kernelgate.run/2 record" in err
    assert "absent.json: cannot be read: No such file or directory" in err
    assert answered(ends_with, ["verify"])["files"] == 1, "what is no record is not kept"


@pytest.mark.usefixtures("checkout")
def test_an_index_of_another_version_is_made_again_where_it_is_needed(ends_with: EndsWith) -> None:
    ends_with(0, "history", "add", measured("a.json"))
    assert ends_with(0, "history", "rebuild", "--if-needed") == ("", "")
    change(INDEX, "UPDATE kernelgate_history SET version_num = '0006'")
    for words in (["show"], ["add", "a.json"]):
        assert "`kernelgate history rebuild` makes it again from the store" in ends_with(3, "history", *words).err
    assert "holds 1 measurement" in ends_with(0, "history", "rebuild", "--if-needed").out
    assert "one on NVIDIA H200" in ends_with(0, "history", "show").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "--since", "yesterday"], 64, "--since 'yesterday' is no date: give one such as 2026-08-01"),
        (["--store", "memory://x", "rebuild"], 64, "the store memory://x is no folder: name a file or a Postgres"),
        (["--database", "mysql://u:pw@h/d", "rebuild"], 64, "--database takes a file's path"),
        (["--database", "nonsense://", "rebuild"], 64, "--database takes a file's path"),
        (["--database", "postgresql://u:pw@[::1/d", "rebuild"], 64, "--database takes a file's path"),
        (["--store", "nosuch://x", "rebuild"], 3, "the store nosuch://x cannot be opened"),
        (["--store", "/etc/passwd", "rebuild"], 3, "the store /etc/passwd is no folder: name one"),
        (["show"], 3, "there is no history at "),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_what_cannot_be_done_is_one_sentence(ends_with: EndsWith, words: list[str], code: int, said: str) -> None:
    err = ends_with(code, "history", *words).err
    assert (said in err, len(err.splitlines())) == (True, 1), err


def test_without_the_extra_one_sentence_names_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['sqlalchemy', 'fsspec', 'zstandard']))\n"
        "from kernelgate.ci.commands.cli import run; sys.exit(run(['history', '--store', 'x', 'rebuild']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    assert "which is not installed: pip install 'kernelgate[history]'" in done.stderr


@pytest.mark.usefixtures("checkout")
def test_what_was_decided_is_told(ends_with: EndsWith) -> None:
    ends_with(0, "history", "add", measured("a.json"))
    words = ("--why", "needed", "--by", "maria")
    out = ends_with(0, "history", "decide", "accepted", "HEAD", "--card", "", *words).out
    assert out == f"accepted: {commit_of('HEAD')[:12]} in 1 case\n"
    [event] = answered(ends_with, ["export"])["events"]
    assert (event["sha"], event["kind"], event["who"]) == (commit_of("HEAD"), "accepted", "maria")
    err = ends_with(3, "history", "decide", "excluded", "HEAD~1", *words).err
    assert "the history has no measurement of that at" in err


def test_sessions_are_kept_with_the_store_and_exported_whole(checkout: Path, ends_with: EndsWith) -> None:
    """A rebuild shows those of the checkout, too, and adds none."""
    one = folder.create(checkout, session_events.opened())
    folder.append(one.folder, *session_events.passed(0.8))
    later = folder.create(checkout, session_events.opened(name="later")).folder / "log.jsonl"
    later.write_text(later.read_text() + '{"event":"dreamt","of":"a later kernelgate"}\n')
    shutil.copytree(one.folder, one.folder.parent / "copied")
    said = ends_with(0, "history", "add", measured("a.json")).err
    assert "copied/log.jsonl is the log of 'one': its folder was copied or renamed" in said
    assert "later/log.jsonl:2 is no event of a session" in said
    exported = answered(ends_with, ["export"])
    assert [row["name"] for row in exported["sessions"]] == ["one"]
    folder.append(one.folder, Closed(at=session_events.clock(30), why="done", said="so"))
    later.write_text("{")
    said = ends_with(0, "history", "rebuild").err
    assert ("left out: " in said, "later/log.jsonl:1 is no event" in said) == (True, True)
    assert '"event":"closed"' in answered(ends_with, ["export"])["sessions"][0]["log"]
    shutil.rmtree(one.folder.parent)
    ends_with(0, "history", "--database", "new.sqlite", "rebuild")
    assert json.loads(ends_with(0, "history", "--database", "new.sqlite", "export").out) == exported


@pytest.mark.usefixtures("checkout")
def test_a_change_has_the_author_and_the_first_line_of_its_commit_where_the_checkout_has_it() -> None:
    change = Change("step", "a" * 40, 0, commit_of("HEAD"), 1, "e", 2.0, (1.0, 3.0))
    found = with_author(change)
    assert (found.author, found.subject) == ("A", "m")
    assert with_author(replace(change, commit="c" * 40)).subject is None


# ---- The store is the truth: its index is counted against it, made again from it, and repaired by what is added again

STORE = INDEX.parent


@pytest.fixture
def three(checkout: Path, ends_with: EndsWith) -> Path:
    for day in (1, 2, 3, 4):
        record.write(a_record(day=day), Path(f"{day}.json"))
    assert answered(ends_with, ["add", "1.json", "2.json", "3.json"])["added"] == 3
    return checkout


def points(ends_with: EndsWith) -> int:
    return len(answered(ends_with, ["show"])["series"][0]["points"]) // 2


def file_of(day: int) -> Path:
    name = store.name_of(as_file(a_record(day=day)))
    return STORE / "records" / name[:2] / f"{name}{store.SUFFIX}"


@pytest.mark.usefixtures("three")
def test_an_index_that_is_gone_is_made_again_by_the_next_add(ends_with: EndsWith) -> None:
    INDEX.unlink()
    assert "lacks 3 that the store has" in ends_with(0, "history", "add", "4.json").err
    assert points(ends_with) == 4


@pytest.mark.usefixtures("three")
def test_an_index_that_lacks_a_record_says_so_to_whoever_reads_and_gets_it_when_added_to(ends_with: EndsWith) -> None:
    with closing(sqlite3.connect(INDEX)) as connection, connection:
        (number,) = connection.execute("SELECT min(id) FROM record").fetchone()
        for table in ("point", "comparison"):
            connection.execute(f"DELETE FROM {table} WHERE record_id = ?", (number,))  # noqa: S608
        connection.execute("DELETE FROM record WHERE id = ?", (number,))
    assert "lacks 1 that the store has: `kernelgate history rebuild`" in ends_with(0, "history", "show").err
    assert answered(ends_with, ["add", "4.json"])["added"] == 1
    assert points(ends_with) == 4
    assert ends_with(0, "history", "show").err == ""


@pytest.mark.usefixtures("three")
def test_a_damaged_record_is_found_lost_and_repaired(ends_with: EndsWith) -> None:
    assert answered(ends_with, ["verify"])["files"] == 3
    file_of(2).write_bytes(file_of(2).read_bytes()[:-9])
    file_of(3).unlink()
    found = answered(ends_with, ["verify"], code=3)
    assert (found["files"], len(found["damaged"])) == (1, 1)
    assert found["index"] == "has 1 that the store lacks"
    rebuilt = answered(ends_with, ["rebuild"], code=3)
    assert (rebuilt["measurements"], len(rebuilt["lost"])) == (1, 1), "although it was judged before"
    assert "is damaged: add the measurement again" in rebuilt["lost"][0]
    added = answered(ends_with, ["add", "2.json", "3.json"])
    assert (added["added"], answered(ends_with, ["verify"])["files"]) == (2, 3)


def change(index: Path, statement: str) -> None:
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.execute(statement)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("no database" * 999, encoding="utf-8"),
    "empty": lambda path: path.write_bytes(b""),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:9000]),
    "zeros in it": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(40000)),
    "no table": lambda path: change(path, "DROP TABLE point"),
    "no column": lambda path: change(path, "ALTER TABLE record DROP COLUMN reason"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_rebuild_replaces_whatever_is_there(
    ends_with: EndsWith, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{INDEX}{end}").unlink(missing_ok=True)
    DAMAGE[damage](INDEX)
    cli.run(["history", "show"])
    said = capsys.readouterr().err
    assert "SELECT" not in said
    assert "`kernelgate history rebuild`" in said or damage in ("empty", "no column")
    assert answered(ends_with, ["rebuild"])["measurements"] == 3
    assert points(ends_with) == 3
    assert answered(ends_with, ["verify"])["index"] == ""
    if damage == "text":
        assert Path(f"{INDEX}.damaged").read_text(encoding="utf-8").startswith("no database"), "it may be somebody's"


MISFITS = {
    "a blob for a name": ("UPDATE series SET gpu = x'ff00'", ("export", "site -o pages")),
    "a blob for a day": ("UPDATE record SET made = x'ff00'", ("show --json", "export")),
    "a blob for a place": ("UPDATE 'commit' SET place = x'ff00'", ("export",)),
    "a blob for a session": ("UPDATE session SET log = x'ff00'", ("export", "site -o pages", "add 1.json")),
    "text for a time": ("UPDATE point SET us = 'abc'", ("show", "site -o pages")),
    "a date that is none": ("UPDATE record SET made = 'abc'", ("site -o pages",)),
    "letters that are none": ("UPDATE record SET name = CAST(x'ff00' AS TEXT) WHERE id = 1", ("show", "add 1.json")),
    "another shape": (
        "CREATE TRIGGER one BEFORE INSERT ON record BEGIN SELECT RAISE(ABORT, 'no'); END",
        ("add 4.json",),
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("misfit", MISFITS)
def test_each_reader_of_an_index_with_what_is_none_of_ours_says_how_to_make_it_anew(
    ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch, misfit: str
) -> None:
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    folder.create(Path.cwd(), session_events.opened())
    ends_with(0, "history", "add", "1.json")
    measured("4.json", day=4)
    statement, readers = MISFITS[misfit]
    change(INDEX, statement)
    for reader in readers:
        said = ends_with(3, "history", *reader.split()).err.splitlines()[-1]
        assert "is damaged" in said, reader
        assert "`kernelgate history rebuild` makes it anew" in said, reader
    ends_with(0, "history", "rebuild")
    for reader in readers:
        ends_with(0, "history", *reader.split())


def test_a_database_of_another_program_loses_nothing(three: Path, ends_with: EndsWith) -> None:
    other = three / "other.sqlite"
    change(other, "CREATE TABLE record (title TEXT)")
    change(other, "INSERT INTO record VALUES ('mine')")
    words = ("history", "--database", str(other))
    assert "other.sqlite is no index: `kernelgate" in ends_with(3, *words, "show").err
    assert (
        "is no index, and has tables of its own that are called as ours (record)"
        in ends_with(3, *words, "add", "1.json").err
    )
    ends_with(0, *words, "rebuild")
    ends_with(0, *words, "show")
    with closing(sqlite3.connect(f"{other}.damaged")) as kept:
        assert kept.execute("SELECT title FROM record").fetchall() == [("mine",)]


def test_a_folder_in_the_place_of_the_index_is_called_one(three: Path, ends_with: EndsWith) -> None:
    INDEX.rename(INDEX.with_name("aside"))
    INDEX.mkdir()
    for words in (["show"], ["verify"], ["add", "1.json"], ["rebuild"]):
        said = ends_with(3, "history", *words).err
        assert (
            said == f"kernelgate: {three / INDEX} is a folder, and no index: move it away, or name another --database\n"
        )
    INDEX.rmdir()
    assert answered(ends_with, ["rebuild"])["measurements"] == 3


@pytest.mark.slow
def test_a_store_that_is_read_only_can_be_read(three: Path) -> None:
    """On a file system that takes no file, also for root."""
    mounted = f"mount --bind {three} {three} && mount -o remount,ro,bind {three}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    (three / "read.py").write_text(
        "from kernelgate.ci.commands.cli import run\n"
        "print([run(['history', verb]) for verb in ('show', 'verify', 'changes')])\n",
        encoding="utf-8",
    )
    reading = f"{mounted} && cd {three} && {sys.executable} read.py"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", reading], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "[0, 0, 0]")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("when", ["yesterday", "2026-02-30T12:00:00Z", "9999-01-01T00:00:00Z", "1970-01-01T00:00:09Z"])
def test_a_record_of_no_time_is_not_added(ends_with: EndsWith, when: str) -> None:
    made = a_record(day=5)
    record.write(made.model_copy(update={"run": made.run.model_copy(update={"created_at": when})}), Path("5.json"))
    assert "5.json: run.created_at is" in ends_with(3, "history", "add", "5.json").err
    assert points(ends_with) == 3


@pytest.mark.usefixtures("three")
def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith) -> None:
    monkeypatch.setattr(database, "CONNECT_S", 2)  # the least that libpq takes
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://someone@127.0.0.1:{silent.getsockname()[1]}/history"
        assert "timeout expired" in ends_with(3, "history", "--database", address, "show").err
