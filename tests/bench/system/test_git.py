from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.errors import KernelgateError, NoKernelError
from kernelgate.bench.system import git as subject

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(repo: Path, **files: str) -> str:
    for name, text in files.items():
        (repo / "csrc").mkdir(exist_ok=True)
        (repo / "csrc" / name).write_text(text, encoding="utf-8")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--allow-empty", "--message=m")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, a="1")
    return folder


def test_toplevel(repo: Path, tmp_path: Path) -> None:
    assert subject.toplevel(repo / "csrc") == repo
    assert subject.toplevel(tmp_path) is None


def test_toplevel_without_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert subject.toplevel(repo) is None


def test_resolve(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    second = commit(repo, a="2")
    git(repo, "tag", "--annotate", "v1", "--message=m")
    assert [subject.resolve(repo, ref) for ref in ("main", "v1", second[:8], "HEAD~1")] == [second] * 3 + [first]


def test_resolve_a_ref_that_does_not_exist(repo: Path) -> None:
    with pytest.raises(KernelgateError, match=r"has no commit 'nope': check the name, or run `git fetch`"):
        subject.resolve(repo, "nope")


def test_resolve_takes_no_option_for_a_ref(repo: Path) -> None:
    with pytest.raises(KernelgateError, match="has no commit '--all'"):
        subject.resolve(repo, "--all")


def test_resolve_in_a_shallow_clone(repo: Path, tmp_path: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    commit(repo, a="2")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repo}", "shallow")
    with pytest.raises(KernelgateError, match=f"shallow clone without '{base}': run `git fetch --unshallow`"):
        subject.resolve(tmp_path / "shallow", base)


def test_resolve_outside_of_git(tmp_path: Path) -> None:
    with pytest.raises(KernelgateError, match="is not a git repository that can be read: fatal: not a git repository"):
        subject.resolve(tmp_path, "HEAD")


def test_resolve_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(KernelgateError, match="nowhere does not exist: name the folder of a git checkout"):
        subject.resolve(tmp_path / "nowhere", "HEAD")


def test_resolve_without_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(KernelgateError, match="git is not on PATH: install it"):
        subject.resolve(repo, "HEAD")


def test_worktree_holds_the_commit_and_leaves_the_checkout_alone(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, a="2", b="new")
    (repo / "csrc" / "a").write_text("dirty", encoding="utf-8")
    (repo / "csrc" / "untracked").write_text("u", encoding="utf-8")
    (repo / "csrc" / "b").write_text("staged", encoding="utf-8")
    git(repo, "add", "csrc/b")
    before = git(repo, "status", "--porcelain", "--branch"), git(repo, "rev-parse", "HEAD"), git(repo, "diff", "HEAD")
    with subject.worktree(repo, first, "csrc") as tree:
        assert {path.name: path.read_text(encoding="utf-8") for path in (tree / "csrc").iterdir()} == {"a": "1"}
    assert not tree.exists()
    after = git(repo, "status", "--porcelain", "--branch"), git(repo, "rev-parse", "HEAD"), git(repo, "diff", "HEAD")
    assert after == before
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_worktree_from_a_folder_inside_the_checkout(repo: Path) -> None:
    with subject.worktree(repo / "csrc", git(repo, "rev-parse", "HEAD"), "csrc") as tree:
        assert (tree / "csrc" / "a").read_text(encoding="utf-8") == "1"


def test_worktree_is_removed_when_the_block_fails(repo: Path) -> None:
    with pytest.raises(KeyboardInterrupt), subject.worktree(repo, git(repo, "rev-parse", "HEAD"), "csrc") as tree:
        raise KeyboardInterrupt
    assert not tree.parent.exists()


def test_worktree_needs_no_clean_repository(repo: Path, tmp_path: Path) -> None:
    """A registered worktree whose folder is gone, and a lock of an index that a killed git left behind."""
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "stale"))
    (tmp_path / "stale" / ".git").unlink()
    (repo / ".git" / "index.lock").touch()
    with subject.worktree(repo, git(repo, "rev-parse", "HEAD"), "csrc") as tree:
        assert (tree / "csrc" / "a").exists()


def test_worktree_runs_no_hook(repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repo}/hooked\n", encoding="utf-8")
    hook.chmod(0o755)
    with subject.worktree(repo, git(repo, "rev-parse", "HEAD"), "csrc"):
        assert not (repo / "hooked").exists()


def test_worktree_of_a_sparse_checkout(repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "page").touch()
    sha = commit(repo)
    git(repo, "sparse-checkout", "set", "docs")
    assert not (repo / "csrc").exists()
    with subject.worktree(repo, sha, "csrc") as tree:
        assert (tree / "csrc" / "a").exists()


def test_worktree_of_a_linked_worktree(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    with subject.worktree(tmp_path / "linked", subject.resolve(tmp_path / "linked", "HEAD"), "csrc") as tree:
        assert (tree / "csrc" / "a").exists()


def test_worktree_inside_a_hook_of_another_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other-index"))
    with subject.worktree(repo, subject.resolve(repo, "HEAD"), "csrc") as tree:
        assert (tree / "csrc" / "a").exists()


def test_worktree_of_a_commit_without_the_folder(repo: Path) -> None:
    git(repo, "rm", "-r", "--quiet", "csrc")
    sha = commit(repo)
    with pytest.raises(NoKernelError, match=f"commit {sha[:12]} has no csrc/"), subject.worktree(repo, sha, "csrc"):
        pytest.fail("there is nothing to hold")


def test_unchanged_head(repo: Path, tmp_path: Path) -> None:
    sha = git(repo, "rev-parse", "HEAD")
    assert subject.unchanged_head(repo, "csrc") == sha
    (repo / "README").write_text("outside of csrc", encoding="utf-8")
    assert subject.unchanged_head(repo, "csrc") == sha
    (repo / "csrc" / "new").write_text("", encoding="utf-8")
    assert subject.unchanged_head(repo, "csrc") is None
    assert subject.unchanged_head(repo / "csrc", "csrc") is None
    assert subject.unchanged_head(tmp_path, "csrc") is None


def test_unchanged_head_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert subject.unchanged_head(tmp_path, "csrc") is None


def test_default_base_is_where_the_branch_began(repo: Path) -> None:
    fork = commit(repo, a="fork")
    git(repo, "switch", "--quiet", "--create", "topic")
    commit(repo, a="topic")
    git(repo, "switch", "--quiet", "main")
    commit(repo, b="moved on")
    git(repo, "switch", "--quiet", "topic")
    assert subject.default_base(repo) == fork


def test_default_base_prefers_the_remote(repo: Path, tmp_path: Path) -> None:
    pushed = git(repo, "rev-parse", "HEAD")
    git(tmp_path, "clone", "--quiet", str(repo), "clone")
    commit(tmp_path / "clone", a="not pushed")
    assert subject.default_base(tmp_path / "clone") == pushed


def test_default_base_without_a_default_branch(repo: Path) -> None:
    git(repo, "branch", "--move", "trunk")
    assert subject.default_base(repo) == git(repo, "rev-parse", "HEAD")


def test_default_base_of_an_unrelated_branch(repo: Path) -> None:
    git(repo, "switch", "--quiet", "--orphan", "unrelated")
    commit(repo)
    with pytest.raises(KernelgateError, match=r"no common commit .* name the base yourself"):
        subject.default_base(repo)
