from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git

PATHS = ("csrc/",)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "k.cu").write_text("one\n")
    (tmp_path / "notes.md").write_text("mine\n")
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    run_git(tmp_path, "add", ".")
    commit(tmp_path)
    return tmp_path


def run_git(repo: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True, text=True).stdout


def commit(repo: Path) -> None:
    run_git(repo, "commit", "--quiet", "--all", "--message", "so")


def test_a_clean_tree_is_its_commit(repo: Path) -> None:
    assert git.take_snapshot(repo, PATHS) == run_git(repo, "rev-parse", "HEAD").strip()


def test_a_change_is_taken_and_taken_back_and_nothing_else_is_touched(repo: Path) -> None:
    before = git.take_snapshot(repo, PATHS)
    (repo / "csrc" / "k.cu").write_text("two\n")
    (repo / "csrc" / "new.cu").write_text("new\n")
    (repo / "data.bin").write_bytes(b"large")  # git does not follow it, and it is no source
    (repo / "notes.md").write_text("mine, and more\n")
    index = run_git(repo, "diff", "--cached")

    taken = git.take_snapshot(repo, PATHS)
    patch = repo.parent / "change.patch"
    patch.write_text(git.difference(repo, before, taken, PATHS))

    assert git.changed_files(repo, before, taken, PATHS) == ("csrc/k.cu", "csrc/new.cu")
    assert run_git(repo, "show", f"{taken}:csrc/new.cu") == "new\n"
    assert "data.bin" not in run_git(repo, "ls-tree", "--name-only", taken)
    assert run_git(repo, "diff", "--cached") == index
    assert run_git(repo, "branch", "--all", "--contains", taken) == ""

    git.take_back(repo, patch)

    assert (repo / "csrc" / "k.cu").read_text() == "one\n"
    assert not (repo / "csrc" / "new.cu").exists()
    assert (repo / "notes.md").read_text() == "mine, and more\n"
    assert (repo / "data.bin").exists()


def test_a_kept_snapshot_survives_a_collection(repo: Path) -> None:
    (repo / "csrc" / "k.cu").write_text("two\n")
    taken = git.take_snapshot(repo, PATHS)
    git.keep_snapshot(repo, "one", "try-1", taken)
    run_git(repo, "gc", "--quiet", "--prune=now")

    assert run_git(repo, "show", f"{taken}:csrc/k.cu") == "two\n"


def test_what_changed_meanwhile_is_not_written_over(repo: Path) -> None:
    before = git.take_snapshot(repo, PATHS)
    (repo / "csrc" / "k.cu").write_text("two\n")
    patch = repo.parent / "change.patch"
    patch.write_text(git.difference(repo, before, git.take_snapshot(repo, PATHS), PATHS))
    (repo / "csrc" / "k.cu").write_text("three\n")

    with pytest.raises(KernelgateError, match="patch does not apply"):
        git.take_back(repo, patch)
    assert (repo / "csrc" / "k.cu").read_text() == "three\n"


def test_half_a_merge_is_not_measured(repo: Path) -> None:
    run_git(repo, "checkout", "--quiet", "-b", "other")
    (repo / "csrc" / "k.cu").write_text("theirs\n")
    commit(repo)
    run_git(repo, "checkout", "--quiet", "main")
    (repo / "csrc" / "k.cu").write_text("ours\n")
    commit(repo)
    subprocess.run(["git", "merge", "other"], cwd=repo, check=False, capture_output=True)

    with pytest.raises(KernelgateError, match="a merge is under way"):
        git.take_snapshot(repo, PATHS)
