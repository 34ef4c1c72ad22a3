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


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(["history", *words])
    out, err = capsys.readouterr()
    return code, out, err


def answered(capsys: pytest.CaptureFixture[str], words: Sequence[str], code: int = 0) -> Any:
    """The object that the verb printed, alone on standard output."""
    found, out, err = run(capsys, *words, "--json")
    assert found == code, err
    return validated(f"history {words[0]}", out)


@pytest.mark.usefixtures("checkout")
def test_what_is_kept_answers_what_its_schema_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.create(Path.cwd(), session_events.opened())
    added = answered(capsys, ["add", measured("a.json")])
    assert (added["added"], added["known"]) == (1, 0)
    assert answered(capsys, ["rebuild"])["measurements"] == 1
    assert answered(capsys, ["condense"])["with_every_sample"] == 1
    [compared] = answered(capsys, ["show"])["series"]
    assert (len(compared["points"]), len(compared["comparisons"])) == (2, 1)
    export = answered(capsys, ["export"])
    assert (len(export["points"]), [one["name"] for one in export["sessions"]]) == (2, ["one"])
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    site = answered(capsys, ["site", "-o", "pages"])
    assert (site["cases"], Path(site["index"]).exists()) == (1, True)
    assert run(capsys, "next")[1].startswith("pairs=\n")


@pytest.mark.usefixtures("checkout")
def test_what_is_suspected_and_told_answers_what_its_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    index = database.at(INDEX)
    nightly(index, "one", "two")
    put(index, a_pair(STEP - 1, STEP, 2.0))
    index.engine.dispose()
    states = {one["series"]["case"]: one["state"] for one in answered(capsys, ["changes"])["changes"]}
    assert states == {"one": "confirmed", "two": "suspected"}
    assert [one["cases"] for one in answered(capsys, ["tonight"])["pairs"]] == [["norm/two"]]
    [culprit] = answered(capsys, ["culprits", "-o", "told"])["culprits"]
    assert (culprit["commit"], culprit["cases"][0]["case"]) == (sha(STEP), "one")
    assert validated("history culprits", Path("told/culprits.json").read_text())["culprits"] == [culprit]


@pytest.mark.usefixtures("checkout")
def test_one_unreadable_record_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text("{")
    code, out, err = run(capsys, "add", "bad.json", "absent.json", measured("a.json"))
    assert (code, out) == (3, "1 record added, 2 not added\n")
    assert "bad.json is not a kernelgate.run/2 record" in err
    assert "absent.json: cannot be read: No such file or directory" in err
    assert answered(capsys, ["verify"])["files"] == 1, "what is no record is not kept"


@pytest.mark.usefixtures("checkout")
def test_an_index_of_another_version_is_made_again_where_it_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", measured("a.json"))
    assert run(capsys, "rebuild", "--if-needed") == (0, "", "")
    change(INDEX, "UPDATE kernelgate_history SET version_num = '0006'")
    for words in (["show"], ["add", "a.json"]):
        code, _, err = run(capsys, *words)
        assert (code, "`kernelgate history rebuild` makes it again from the store" in err) == (3, True), err
    assert "holds 1 measurement" in run(capsys, "rebuild", "--if-needed")[1]
    assert "one on NVIDIA H200" in run(capsys, "show")[1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "--since", "yesterday"], 64, "--since 'yesterday' is no date: give one such as 2026-08-01"),
        (["--store", "memory://x", "rebuild"], 64, "the store memory://x is no folder: name a file or a Postgres"),
        (["--database", "mysql://u:pw@h/d", "rebuild"], 64, "--database takes a file's path"),
        (["--database", "nonsense://", "rebuild"], 64, "--database takes a file's path"),
        (["--database", "postgresql://u:pw@[::1/d", "rebuild"], 64, "--database takes a file's path"),
        (["--store", "nosuch://x", "rebuild"], 3, "the store nosuch://x cannot be opened"),
        (["show"], 3, "there is no history at "),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_what_cannot_be_done_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    found, _, err = run(capsys, *words)
    assert (found, said in err, len(err.splitlines())) == (code, True, 1), err


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
def test_what_was_decided_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", measured("a.json"))
    words = ("--why", "needed", "--by", "maria")
    code, out, _ = run(capsys, "decide", "accepted", "HEAD", "--card", "", *words)
    assert (code, out) == (0, f"accepted: {commit_of('HEAD')[:12]} in 1 case\n")
    [event] = answered(capsys, ["export"])["events"]
    assert (event["sha"], event["kind"], event["who"]) == (commit_of("HEAD"), "accepted", "maria")
    code, _, err = run(capsys, "decide", "excluded", "HEAD~1", *words)
    assert (code, "the history has no measurement of that at" in err) == (3, True)


def test_sessions_are_kept_with_the_store_and_exported_whole(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rebuild shows those of the checkout, too, and adds none."""
    one = folder.create(checkout, session_events.opened())
    folder.append(one.folder, *session_events.passed(0.8))
    later = folder.create(checkout, session_events.opened(name="later")).folder / "log.jsonl"
    later.write_text(later.read_text() + '{"event":"dreamt","of":"a later kernelgate"}\n')
    shutil.copytree(one.folder, one.folder.parent / "copied")
    said = run(capsys, "add", measured("a.json"))[2]
    assert "copied/log.jsonl is the log of 'one': its folder was copied or renamed" in said
    assert "later/log.jsonl:2 is no event of a session" in said
    exported = answered(capsys, ["export"])
    assert [row["name"] for row in exported["sessions"]] == ["one"]
    folder.append(one.folder, Closed(at=session_events.clock(30), why="done", said="so"))
    later.write_text("{")
    code, _, said = run(capsys, "rebuild")
    assert (code, "left out: " in said, "later/log.jsonl:1 is no event" in said) == (0, True, True)
    assert '"event":"closed"' in answered(capsys, ["export"])["sessions"][0]["log"]
    shutil.rmtree(one.folder.parent)
    assert run(capsys, "--database", "new.sqlite", "rebuild")[0] == 0
    assert json.loads(run(capsys, "--database", "new.sqlite", "export")[1]) == exported


@pytest.mark.usefixtures("checkout")
def test_a_change_has_the_author_and_the_first_line_of_its_commit_where_the_checkout_has_it() -> None:
    change = Change("step", "a" * 40, 0, commit_of("HEAD"), 1, "e", 2.0, (1.0, 3.0))
    found = with_author(change)
    assert (found.author, found.subject) == ("A", "m")
    assert with_author(replace(change, commit="c" * 40)).subject is None


# ---- The store is the truth: its index is counted against it, made again from it, and repaired by what is added again

STORE = INDEX.parent


@pytest.fixture
def three(checkout: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    for day in (1, 2, 3, 4):
        record.write(a_record(day=day), Path(f"{day}.json"))
    assert answered(capsys, ["add", "1.json", "2.json", "3.json"])["added"] == 3
    return checkout


def points(capsys: pytest.CaptureFixture[str]) -> int:
    return len(answered(capsys, ["show"])["series"][0]["points"]) // 2


def file_of(day: int) -> Path:
    name = store.name_of(as_file(a_record(day=day)))
    return STORE / "records" / name[:2] / f"{name}{store.SUFFIX}"


@pytest.mark.usefixtures("three")
def test_an_index_that_is_gone_is_made_again_by_the_next_add(capsys: pytest.CaptureFixture[str]) -> None:
    INDEX.unlink()
    assert cli.run(["history", "add", "4.json"]) == 0
    assert "lacks 3 that the store has" in capsys.readouterr().err
    assert points(capsys) == 4


@pytest.mark.usefixtures("three")
def test_an_index_that_lacks_a_record_says_so_to_whoever_reads_and_gets_it_when_added_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(sqlite3.connect(INDEX)) as connection, connection:
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


@pytest.mark.usefixtures("three")
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
    if damage == "text":
        assert Path(f"{INDEX}.damaged").read_text(encoding="utf-8").startswith("no database"), "it may be somebody's"


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
@pytest.mark.parametrize("when", ["yesterday", "2026-02-30T12:00:00Z", "9999-01-01T00:00:00Z"])
def test_a_record_of_no_time_is_not_added(capsys: pytest.CaptureFixture[str], when: str) -> None:
    made = a_record(day=5)
    record.write(made.model_copy(update={"run": made.run.model_copy(update={"created_at": when})}), Path("5.json"))
    assert cli.run(["history", "add", "5.json"]) == 3
    assert "5.json: run.created_at is" in capsys.readouterr().err
    assert points(capsys) == 3


@pytest.mark.usefixtures("three")
def test_a_server_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(database, "CONNECT_S", 2)  # the least that libpq takes
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://someone@127.0.0.1:{silent.getsockname()[1]}/history"
        assert cli.run(["history", "--database", address, "show"]) == 3
    assert "timeout expired" in capsys.readouterr().err
