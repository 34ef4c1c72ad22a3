"""The history's index is the default branch's own, whatever anybody else left under its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.github.history_index import ARTIFACT, FILE, fetch
from tests.ci.desk import Desk
from tests.ci.github.test_compiled_before import STRANGE, TIP, archive, main

__all__ = ["main"]
INDEX = b"SQLite format 3\0 of the night"


def left(desk: Desk, content: bytes = INDEX, **facts: Any) -> None:
    """A run that handed over an index; of a night of the default branch unless the facts say otherwise."""
    run = desk.github.add_run(**{"event": "schedule", "head_branch": "main", "head_sha": TIP} | facts)
    desk.github.add_artifact(run, ARTIFACT, {FILE: content})


def taken(desk: Desk, folder: Path) -> bytes | None:
    file = folder / "history.sqlite"
    return file.read_bytes() if fetch(desk.bot, file) else None


def test_the_newest_one_is_taken(main: Desk, tmp_path: Path) -> None:
    """Of both events, and of runs that left none in between."""
    assert taken(main, tmp_path) is None
    left(main, INDEX + b" before")
    left(main, event="push")
    main.github.add_run(event="schedule", head_branch="main", head_sha=TIP)
    assert taken(main, tmp_path) == INDEX


@pytest.mark.parametrize("facts", STRANGE.values(), ids=STRANGE)
def test_one_that_somebody_else_left_is_not_taken(main: Desk, facts: dict[str, Any], tmp_path: Path) -> None:
    """Planted later under the very name: with it every pull request would be judged by made-up spreads."""
    left(main)
    main.github.merge_bases[("main", "d" * 40)] = TIP
    if isinstance(name := facts.get("head_repository"), str):
        like = main.github.add_run()["head_repository"]
        facts = facts | {"head_repository": main.github._repository_reference(like, name)}
    left(main, INDEX + b" poisoned", **facts)
    assert taken(main, tmp_path) == INDEX


@pytest.mark.parametrize(
    "content",
    [b"no zip file", archive("../index.sqlite"), {FILE: b"no database"}, {FILE: INDEX, "more": b""}, {"other": INDEX}],
    ids=["no zip", "traversal", "no database", "two files", "another file"],
)
def test_what_is_no_index_is_left(main: Desk, content: bytes | dict[str, bytes], tmp_path: Path) -> None:
    run = main.github.add_run(event="schedule", head_branch="main", head_sha=TIP)
    main.github.add_artifact(run, ARTIFACT, content)
    assert taken(main, tmp_path / "in") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
