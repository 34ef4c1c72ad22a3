"""`kernelgate history`, as it is typed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.commands.history import with_author
from kernelgate.ci.history import database
from kernelgate.ci.history.facts import Change
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import Closed
from tests.ci.history.entries import a_record
from tests.ci.lab import session_events

ROOT = Path(__file__).parent.parent.parent


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits on its default branch, and a policy that judges quickly."""
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "DATABASE"):
        monkeypatch.delenv(f"KERNELGATE_HISTORY_{name}", raising=False)
    git("init", "-q", "-b", "main")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "kernelgate.toml").write_text("[gates]\nregression_pct = 3.0\n")
    for name in ("one", "two"):
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", name)
    return tmp_path


def measured(path: Path, day: int = 1, rev: str = "HEAD") -> str:
    run = record.Run(base_sha="b" * 40, head_sha=git("rev-parse", rev), created_at=f"2026-08-{day:02}")
    record.write(a_record(day=day, run=run), path)
    return path.name


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(["history", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_records_are_added_and_shown_in_the_order_of_commits(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late, early = measured(checkout / "a.json", 1, "HEAD"), measured(checkout / "b.json", 2, "HEAD~1")
    assert run(capsys, "add", late, early)[:2] == (0, "2 records added\n")
    assert run(capsys, "add", late)[:2] == (0, "0 records added, 1 known already\n")
    code, out, _ = run(capsys, "show", "--json")
    (series,) = json.loads(out)["series"]
    heads = [point for point in series["points"] if point["side"] == "head"]
    assert [(point["commit"], point["place"]) for point in heads] == [
        (git("rev-parse", "HEAD~1"), 0),
        (git("rev-parse", "HEAD"), 1),
    ]
    assert code == 0
    assert "one on NVIDIA H200" in run(capsys, "show")[1]
    assert git("status", "--porcelain", "--untracked-files=all", ".kernelgate") == ""


def test_one_unreadable_record_stops_no_other(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = measured(checkout / "a.json")
    (checkout / "bad.json").write_text("{")
    code, out, err = run(capsys, "add", "bad.json", "absent.json", good)
    assert (code, out) == (3, "1 record added, 2 not added\n")
    assert "bad.json is not a kernelgate.run/2 record" in err
    assert "absent.json: cannot be read: No such file or directory" in err


def test_an_index_of_another_version_is_made_again_where_it_is_needed(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "add", measured(checkout / "a.json"))
    assert run(capsys, "rebuild", "--if-needed") == (0, "", "")
    opened = database.at(checkout / ".kernelgate/history/index.sqlite")
    with database.writing(opened) as connection:
        connection.execute(sa.update(database.VERSION).values(version_num="0006"))
    opened.engine.dispose()
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
        (["--store", "nosuch://x", "rebuild"], 3, "the store nosuch://x cannot be opened"),
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
    assert done.returncode == 3
    assert "which is not installed: pip install 'kernelgate[history]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_rebuild_shows_the_sessions_of_the_checkout_and_adds_none(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = folder.create(checkout, session_events.opened())
    folder.append(one.folder, *session_events.passed(0.8), Closed(at=session_events.clock(30), why="done", said="so"))
    broken = folder.create(checkout, session_events.opened(name="broken"))
    (broken.folder / "log.jsonl").write_text("{")
    code, _, said = run(capsys, "rebuild")
    assert (code, "left out: " in said, "broken/log.jsonl:1 is no event" in said) == (0, True, True)
    [found] = json.loads(run(capsys, "export")[1])["sessions"]
    assert (found["name"], '"event":"closed"' in found["log"]) == ("one", True)
    shutil.rmtree(one.folder.parent)
    assert run(capsys, "rebuild")[0] == 0
    assert json.loads(run(capsys, "export")[1])["sessions"] == []


def test_what_was_decided_is_told(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "add", measured(checkout / "a.json"))
    words = ("--why", "needed", "--by", "maria")
    code, out, _ = run(capsys, "decide", "accepted", "HEAD", "--card", "", *words)
    assert (code, out) == (0, f"accepted: {git('rev-parse', 'HEAD')[:12]} in 1 case\n")
    [event] = json.loads(run(capsys, "export")[1])["events"]
    assert (event["sha"], event["kind"], event["who"]) == (git("rev-parse", "HEAD"), "accepted", "maria")
    code, _, err = run(capsys, "decide", "excluded", "HEAD~1", *words)
    assert (code, "the history has no measurement of that at" in err) == (3, True)


def test_sessions_are_kept_with_the_store_and_exported_whole(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = folder.create(checkout, session_events.opened())
    folder.append(one.folder, *session_events.passed(0.8))
    later = folder.create(checkout, session_events.opened(name="later")).folder / "log.jsonl"
    later.write_text(later.read_text() + '{"event":"dreamt","of":"a later kernelgate"}\n')
    shutil.copytree(one.folder, one.folder.parent / "copied")
    said = run(capsys, "add", measured(checkout / "a.json"))[2]
    assert "copied/log.jsonl is the log of 'one': its folder was copied or renamed" in said
    assert "later/log.jsonl:2 is no event of a session" in said
    exported = json.loads(run(capsys, "export")[1])
    assert [row["name"] for row in exported["sessions"]] == ["later", "one"]
    assert "dreamt" in exported["sessions"][0]["log"]
    shutil.rmtree(one.folder.parent)
    assert run(capsys, "--database", "new.sqlite", "rebuild")[0] == 0
    assert json.loads(run(capsys, "--database", "new.sqlite", "export")[1]) == exported


@pytest.mark.usefixtures("checkout")
def test_a_change_has_the_author_and_the_first_line_of_its_commit_where_the_checkout_has_it() -> None:
    head = git("rev-parse", "HEAD")
    change = Change("step", "a" * 40, 0, head, 1, "e", 2.0, (1.0, 3.0))
    found = with_author(change)
    assert (found.author, found.subject) == ("a", "two")
    assert with_author(replace(change, commit="c" * 40)).subject is None
