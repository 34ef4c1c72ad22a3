from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git as snapshots
from tests.miniature import commit, git, repository

PATHS = ("csrc/",)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"csrc/k.cu": "one\n", "notes.md": "mine\n"})


def test_a_change_is_taken_and_taken_back_and_nothing_else_is_touched(repo: Path) -> None:
    before = snapshots.take_snapshot(repo, PATHS)
    (repo / "csrc" / "k.cu").write_text("two\n")
    (repo / "csrc" / "new.cu").write_text("new\n")
    (repo / "data.bin").write_bytes(b"large")  # git does not follow it, and it is no source
    (repo / "notes.md").write_text("mine, and more\n")
    index = git(repo, "diff", "--cached")

    taken = snapshots.take_snapshot(repo, PATHS)
    patch = repo.parent / "change.patch"
    patch.write_text(snapshots.difference(repo, before, taken, PATHS))

    assert snapshots.changed_files(repo, before, taken, PATHS) == ("csrc/k.cu", "csrc/new.cu")
    assert git(repo, "show", f"{taken}:csrc/new.cu") == "new"
    assert "data.bin" not in git(repo, "ls-tree", "--name-only", taken)
    assert git(repo, "diff", "--cached") == index
    assert git(repo, "branch", "--all", "--contains", taken) == ""

    snapshots.take_back(repo, patch)

    assert (repo / "csrc" / "k.cu").read_text() == "one\n"
    assert not (repo / "csrc" / "new.cu").exists()
    assert (repo / "notes.md").read_text() == "mine, and more\n"
    assert (repo / "data.bin").exists()


def test_a_kept_snapshot_survives_a_collection(repo: Path) -> None:
    (repo / "csrc" / "k.cu").write_text("two\n")
    taken = snapshots.take_snapshot(repo, PATHS)
    snapshots.keep_snapshot(repo, "one", "try-1", taken)
    git(repo, "gc", "--quiet", "--prune=now")

    assert git(repo, "show", f"{taken}:csrc/k.cu") == "two"


def test_what_changed_meanwhile_is_not_written_over(repo: Path) -> None:
    before = snapshots.take_snapshot(repo, PATHS)
    (repo / "csrc" / "k.cu").write_text("two\n")
    patch = repo.parent / "change.patch"
    patch.write_text(snapshots.difference(repo, before, snapshots.take_snapshot(repo, PATHS), PATHS))
    (repo / "csrc" / "k.cu").write_text("three\n")

    with pytest.raises(KernelgateError, match="patch does not apply"):
        snapshots.take_back(repo, patch)
    assert (repo / "csrc" / "k.cu").read_text() == "three\n"


def test_half_a_merge_is_not_measured(repo: Path) -> None:
    git(repo, "checkout", "--quiet", "-b", "other")
    commit(repo, {"csrc/k.cu": "theirs\n"})
    git(repo, "checkout", "--quiet", "main")
    commit(repo, {"csrc/k.cu": "ours\n"})
    subprocess.run(["git", "merge", "other"], cwd=repo, check=False, capture_output=True)

    with pytest.raises(KernelgateError, match="a merge is under way"):
        snapshots.take_snapshot(repo, PATHS)
