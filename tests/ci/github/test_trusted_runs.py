"""The default branch's libraries and index are used; what anybody else left under their names is not."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build import build
from kernelgate.ci.github import artifacts
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.artifacts import INDEX, INDEX_FILE, LIBRARIES, MAX_TAKEN, fetch_index, fetch_libraries
from kernelgate.ci.pipeline.measured import take_over
from tests.ci.desk import Desk
from tests.ci.github.test_untrusted_artifact import entry
from tests.miniature import BINDING, CPU_FILES, compiled, write

BASE, TIP = "b" * 40, "c" * 40
LIBRARY = {"answer/library.json": b"{}", "answer/kernel.so": b"\x7fELF"}
NIGHT = b"SQLite format 3\0 of the night"


@pytest.fixture
def main(desk: Desk) -> Desk:
    """Two commits of the default branch."""
    desk.github.refs["heads/main"] = TIP
    desk.github.merge_bases |= {("main", BASE): BASE, ("main", TIP): TIP}
    return desk


def left(desk: Desk, content: bytes | dict[str, bytes] | None = None, **facts: Any) -> dict[str, Any]:
    """A run that handed over a library; of a push to the default branch unless the facts say otherwise."""
    run = desk.github.add_run(**{"event": "push", "head_branch": "main", "head_sha": BASE} | facts)
    return desk.github.add_artifact(run, LIBRARIES, content or LIBRARY)


def taken(desk: Desk, folder: Path) -> list[str]:
    return [path.name for path in fetch_libraries(desk.bot, BASE, folder)]


def left_index(desk: Desk, content: bytes | dict[str, bytes], **facts: Any) -> None:
    """A run that handed over an index; of a night of the default branch unless the facts say otherwise."""
    run = desk.github.add_run(**{"event": "schedule", "head_branch": "main", "head_sha": TIP} | facts)
    desk.github.add_artifact(run, INDEX, content)


def taken_index(desk: Desk, folder: Path) -> bytes | None:
    file = folder / "history.sqlite"
    return file.read_bytes() if fetch_index(desk.bot, file) else None


def test_the_bases_own_library_comes_first_then_the_newest(main: Desk, tmp_path: Path) -> None:
    own = left(main)
    left(main, event="schedule", head_sha=TIP)
    left(main, head_sha=TIP)
    found = taken(main, tmp_path)
    assert found[0] == str(own["id"])
    assert len(found) == MAX_TAKEN
    assert (tmp_path / found[0] / "answer/kernel.so").read_bytes() == b"\x7fELF"


STRANGE: dict[str, dict[str, Any]] = {
    "of a pull request": {"event": "pull_request"},
    "of a comment, which builds a pull request's head": {"event": "issue_comment"},
    "of a dispatch, which may name a pull request": {"event": "workflow_dispatch"},
    "of a report": {"event": "workflow_run"},
    "of another branch": {"head_branch": "main2"},
    "of a fork's main": {"head_repository": "somebody/kernels"},
    "of a tag that is called main, of a commit that is not on the branch": {"head_sha": "d" * 40},
}


@pytest.mark.parametrize("facts", STRANGE.values(), ids=STRANGE)
def test_what_another_run_left_is_not_taken(main: Desk, facts: dict[str, Any], tmp_path: Path) -> None:
    """Planted under the very name and, but for the tag, for the very commit: each would be the base of a comparison, or
    every pull request would be judged by made-up spreads."""
    main.github.merge_bases["main", "d" * 40] = TIP
    if name := facts.get("head_repository"):
        like = main.github.add_run()["head_repository"]
        facts = {"head_repository": main.github._repository_reference(like, name)}
    left_index(main, {INDEX_FILE: NIGHT})
    left(main, **facts)
    left_index(main, {INDEX_FILE: NIGHT + b" poisoned"}, **facts)
    assert (taken(main, tmp_path), taken_index(main, tmp_path)) == ([], NIGHT)
    left(main)
    assert len(taken(main, tmp_path)) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"no zip file",
        entry("../kernel.so"),
        entry("/elsewhere/kernel.so"),
        entry("a\\..\\kernel.so"),
        entry("answer/kernel.so", mode=stat.S_IFLNK),
    ],
    ids=["no zip", "traversal", "absolute", "backslash", "link"],
)
def test_an_archive_of_another_kind_is_left(main: Desk, content: bytes, tmp_path: Path) -> None:
    left(main, content)
    assert taken(main, tmp_path / "in") == []
    assert [path.name for path in tmp_path.rglob("kernel.so")] == []


def test_a_large_or_an_expired_one_is_left(main: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = left(main)
    for limit, most in (("LIBRARIES_PACKED", 10), ("LIBRARIES_UNPACKED", 5)):
        monkeypatch.setattr(artifacts, limit, most)
        assert taken(main, tmp_path) == []
        monkeypatch.undo()
    artifact["expired"] = True
    assert taken(main, tmp_path) == []


@pytest.mark.usefixtures("cache")
def test_it_is_found_in_the_cache_by_its_key(main: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine, whose cache is empty: nothing is compiled, and the library is the same."""
    made = compiled(write(tmp_path / "main", CPU_FILES), sha=BASE)
    build.export(made, tmp_path / "out/answer")
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    left(main, {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in found})
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "another machine's"))
    assert take_over(fetch_libraries(main.bot, BASE, tmp_path / "in"), Step({})) == 1
    again = compiled(write(tmp_path / "pull request", CPU_FILES), sha=TIP)
    assert again.cached
    assert (again.manifest.key, again.manifest.sha256) == (made.manifest.key, made.manifest.sha256)
    assert (again.manifest.sha, again.manifest.warnings) == (TIP, ())
    changed = write(tmp_path / "pull request", {"csrc/binding.cpp": BINDING.replace("42", "43")})
    assert not compiled(changed).cached


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("change", ["library", "key", "manifest"])
def test_what_is_not_as_its_manifest_says_is_left_out(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = compiled(write(tmp_path / "main", CPU_FILES))
    folder = tmp_path / "out/answer"
    build.export(made, folder)
    if change == "library":
        (folder / "kernel.so").write_bytes(b"another")
    text = (folder / "library.json").read_text()
    damaged = {"key": text.replace(made.manifest.key, "../../elsewhere"), "manifest": "{"}
    (folder / "library.json").write_text(damaged.get(change, text))
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "empty"))
    assert take_over([tmp_path / "out"], Step({})) == 0
    assert "what the default branch compiled is not used" in capsys.readouterr().out
    assert not list(tmp_path.rglob("elsewhere*"))


def test_the_newest_one_is_taken(main: Desk, tmp_path: Path) -> None:
    """Of both events, and of runs that left none in between."""
    assert taken_index(main, tmp_path) is None
    left_index(main, {INDEX_FILE: NIGHT + b" before"})
    left_index(main, {INDEX_FILE: NIGHT}, event="push")
    main.github.add_run(event="schedule", head_branch="main", head_sha=TIP)
    assert taken_index(main, tmp_path) == NIGHT


@pytest.mark.parametrize(
    "content",
    [
        b"no zip file",
        entry("../index.sqlite"),
        {INDEX_FILE: b"no database"},
        {INDEX_FILE: NIGHT, "more": b""},
        {"other": NIGHT},
    ],
    ids=["no zip", "traversal", "no database", "two files", "another file"],
)
def test_what_is_no_index_is_left(main: Desk, content: bytes | dict[str, bytes], tmp_path: Path) -> None:
    left_index(main, content)
    assert taken_index(main, tmp_path / "in") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
