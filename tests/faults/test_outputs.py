"""What a verb is asked to leave is tried first: nothing is compiled, measured or judged for what has no place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.pipeline import local
from tests.disks import full

FILES = {
    "bench -o": ("bench", "-o"),
    "fuzz -o": ("fuzz", "-o"),
    "resources --record": ("resources", "--record"),
    "profile --record": ("profile", "--record"),
    "report -o": ("report", "no-such-record.json", "-o"),
    "report --html": ("report", "no-such-record.json", "--html"),
}
FOLDERS = {"build -o": ("build", "-o"), "profile --out": ("profile", "--out"), "pr --out": ("pr", "--out")}


def refused(words: tuple[str, ...], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said in one line. There is no repository here: whatever a verb did first would be said instead."""
    assert cli.run([*words, str(path)]) in (64, 74)
    printed = capsys.readouterr()
    assert printed.out == ""
    (said,) = printed.err.splitlines()[-1:]
    assert str(path) in said
    return said


@contextmanager
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob(".kernelgate-*"))


@pytest.mark.parametrize("verb", FILES)
@pytest.mark.parametrize("fault", ["a folder in its place", "below a file", "no folder can be made", "a full disk"])
def test_a_file_that_has_no_place_stops_a_verb_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, fault: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    path, why = {
        "a folder in its place": (Path("folder"), "it is a folder"),
        "below a file": (Path("file/run.json"), f"{tmp_path}/file is no folder"),
        "no folder can be made": (Path("/sys/no-such-folder/run.json"), ""),
        "a full disk": (Path("run.json"), "file too large"),
    }[fault]
    with elsewhere(tmp_path, monkeypatch), full() if fault == "a full disk" else nullcontext():
        said = refused(FILES[verb], path, capsys)
    assert said.startswith(f"kernelgate: {path} cannot be written: {why}")
    assert sorted(one.name for one in tmp_path.iterdir()) in (["file", "folder"], ["file", "folder", "out"])


@pytest.mark.parametrize("verb", FOLDERS)
@pytest.mark.parametrize("fault", ["a file in its place", "below a file", "no folder can be made", "a full disk"])
def test_a_folder_that_has_no_place_stops_a_verb_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, fault: str
) -> None:
    (tmp_path / "file").touch()
    path = {
        "a file in its place": Path("file"),
        "below a file": Path("file/out"),
        "no folder can be made": Path("/sys/no-such-folder"),
        "a full disk": Path("out"),
    }[fault]
    with elsewhere(tmp_path, monkeypatch), full() if fault == "a full disk" else nullcontext():
        said = refused(FOLDERS[verb], path, capsys)
    assert "cannot be written" in said or "is a file" in said


def test_a_pr_that_cannot_start_keeps_the_last_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    for name in (local.RECORD, local.COMMENT, local.PAGE):
        (Path("out") / name).write_text("of the last run", encoding="utf-8")
    assert cli.run(["pr"]) == 3
    assert "is not a git repository that can be read" in capsys.readouterr().err
    assert {path.read_text() for path in Path("out").iterdir()} == {"of the last run"}
    assert len(local.written(Path("out"))) == 3


def test_a_record_that_cannot_be_added_to_stops_a_verb_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text("{", encoding="utf-8")
    for words in (
        ["resources", "--record", "run.json"],
        ["profile", "--record", "run.json"],
        ["bench", "--fuzz", "run.json"],
    ):
        assert cli.run(words) == 3
        assert "run.json is not a kernelgate.run/2 record" in capsys.readouterr().err
