"""Room is made in the cache, and never below what somebody uses."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernelgate.bench.build import cache as subject
from kernelgate.bench.build.library import MANIFEST
from tests.miniature import CPU_FILES, compiled, write

DAY = 86_400.0
OLD, OLDER, NEW = "a" * 32, "b" * 32, "c" * 32


def made(cache: Path, key: str, days: float, size: int = 1000) -> Path:
    """An entry that was last taken so many days ago."""
    write(cache, {f"{key}/{MANIFEST}": "{}", f"{key}/kernel.so": "x" * size, f"logs/{key}.log": "l"})
    write(cache, {f"locks/{key}.used": ""})
    os.utime(cache / "locks" / f"{key}.used", (time.time() - days * DAY,) * 2)
    return cache / key


@pytest.fixture
def filled(cache: Path) -> Path:
    for key, days in ((OLD, 40), (OLDER, 50), (NEW, 1)):
        made(cache, key, days)
    write(cache, {"corpus/attention/one.json": "{}", "cards/aa/card.py": "", "building/x/y": ""})
    return cache


def keys(found: tuple[subject.CacheEntry, ...]) -> set[str]:
    return {one.folder.name for one in found}


def test_what_nobody_used_for_long_goes_with_its_log(filled: Path) -> None:
    done = subject.prune(filled, 30 * DAY, 1e9)
    assert (keys(done.removed), keys(done.kept)) == ({OLD, OLDER}, {NEW})
    assert sum(one.size for one in done.removed) == 2 * 1002
    assert sorted(path.name for path in filled.glob("[abc]" * 32)) == [NEW]
    assert [path.name for path in (filled / "logs").iterdir()] == [f"{NEW}.log"]
    assert (filled / "corpus" / "attention" / "one.json").exists()
    assert (filled / "cards" / "aa" / "card.py").exists()


def test_what_is_in_use_stays_and_is_said(filled: Path) -> None:
    subject.hold(filled / OLD)
    (young,) = (one for one in subject.entries(filled) if one.folder.name == OLD)
    assert time.time() - young.last_used < DAY / 2, "it is taken"
    os.utime(filled / "locks" / f"{OLD}.used", (0, 0))
    done = subject.prune(filled, 30 * DAY, 0)
    assert (keys(done.removed), keys(done.in_use), keys(done.kept)) == ({OLDER, NEW}, {OLD}, {OLD})
    assert (filled / OLD / "kernel.so").exists()


def test_a_library_that_this_process_has_built_stays_until_it_ends(tmp_path: Path, cache: Path) -> None:
    tree = write(tmp_path / "tree", CPU_FILES)
    key = compiled(tree).manifest.key
    assert keys(subject.prune(cache, 0, 0).in_use) == {key}
    assert compiled(tree).cached
    os.close(subject._held.pop(cache / key))
    assert keys(subject.prune(cache, 0, 0).removed) == {key}
    assert not compiled(tree).cached, "it is compiled again"
