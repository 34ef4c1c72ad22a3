"""The default branch's index is used; what anybody else left under its name is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.github import artifacts
from kernelgate.ci.github.artifacts import INDEX, INDEX_FILE, fetch_index
from tests.ci.desk import Desk
from tests.ci.github.test_untrusted_artifact import entry
from tests.fakes.github_server import Json

TIP = "c" * 40
NIGHT = b"SQLite format 3\0 of the night"


@pytest.fixture
def main(desk: Desk) -> Desk:
    """With a commit of the default branch."""
    desk.github.refs["heads/main"] = TIP
    desk.github.merge_bases["main", TIP] = TIP
    return desk


def left(desk: Desk, content: bytes | dict[str, bytes], **facts: Any) -> Json:
    """A run that handed over an index; of a night of the default branch unless the facts say otherwise."""
    run = desk.github.add_run(**{"event": "schedule", "head_branch": "main", "head_sha": TIP} | facts)
    return desk.github.add_artifact(run, INDEX, content)


def taken(desk: Desk, folder: Path) -> bytes | None:
    file = folder / "history.sqlite"
    return file.read_bytes() if fetch_index(desk.bot, file) else None


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
    """Else every pull request would be judged by made-up spreads."""
    main.github.merge_bases["main", "d" * 40] = TIP
    if name := facts.get("head_repository"):
        like = main.github.add_run()["head_repository"]
        facts = {"head_repository": main.github._repository_reference(like, name)}
    left(main, {INDEX_FILE: NIGHT})
    left(main, {INDEX_FILE: NIGHT + b" poisoned"}, **facts)
    assert taken(main, tmp_path) == NIGHT


def test_the_newest_one_is_taken(main: Desk, tmp_path: Path) -> None:
    """Of both events, and of runs that left none in between."""
    assert taken(main, tmp_path) is None
    left(main, {INDEX_FILE: NIGHT + b" before"})
    left(main, {INDEX_FILE: NIGHT}, event="push")
    main.github.add_run(event="schedule", head_branch="main", head_sha=TIP)
    assert taken(main, tmp_path) == NIGHT


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
    left(main, content)
    assert taken(main, tmp_path / "in") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_large_or_an_expired_one_is_left(main: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = left(main, {INDEX_FILE: NIGHT})
    for limit in ("INDEX_PACKED", "INDEX_UNPACKED"):
        monkeypatch.setattr(artifacts, limit, 10)
        assert taken(main, tmp_path) is None
        monkeypatch.undo()
    artifact["expired"] = True
    assert taken(main, tmp_path) is None
