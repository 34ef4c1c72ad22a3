from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git as subject
from tests.miniature import ENVIRONMENT, commit, git, repository, write
from tests.processes import program

IN_SUBMODULE = "deps/middle/inner/csrc/a"


def unchanged(tree: Path, paths: Sequence[str]) -> str | None:
    """What git alone says."""
    return subject.unchanged_head(tree, paths, lambda *_: True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"csrc/a": "1"})


def test_resolve_a_ref_that_does_not_exist(repo: Path) -> None:
    """Nor is one that looks like an option."""
    for ref in ("nope", "--all"):
        with pytest.raises(KernelgateError, match=rf"has no commit '{ref}': check the name, or run `git fetch`"):
            subject.resolve(repo, ref)
    git(repo, "update-ref", "refs/remotes/origin/nope", "HEAD")
    with pytest.raises(KernelgateError, match=r"has no commit 'nope': origin/nope is there$"):
        subject.resolve(repo, "nope")


def test_a_name_of_a_branch_and_a_tag_is_refused_unless_both_are_one_commit(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "v1")
    git(repo, "branch", "v1")
    assert subject.resolve(repo, "v1") == first, "whichever is meant"
    commit(repo, {"csrc/a": "2"})
    git(repo, "branch", "--force", "v1")
    for ref in ("v1", "v1^0"):
        with pytest.raises(KernelgateError, match=r"has a branch and a tag 'v1', of two commits: write refs/heads/v1"):
            subject.resolve(repo, ref)
    assert subject.resolve(repo, "refs/tags/v1") == first != subject.resolve(repo, "refs/heads/v1")
    assert subject.release(repo) == ("v1", (first,)), "the newest tag is one"
    git(repo, "update-ref", "refs/heads/HEAD", first)
    assert subject.resolve(repo, "HEAD") != first, "a name that git has for itself"


def test_the_default_branch_is_a_line_of_first_parents_the_oldest_first(repo: Path, tmp_path: Path) -> None:
    """Not what a merge brought, however early that was made, and wherever the checkout is."""
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "--quiet", "-b", "side")
    commit(repo, {"csrc/a": "2"})
    git(repo, "checkout", "--quiet", "main")
    git(repo, "merge", "--quiet", "--no-ff", "--message=m", "side")
    merge = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "--quiet", "side")
    assert subject.default_branch_line(repo / "csrc") == (first, merge)
    git(repo, "branch", "--move", "main", "other")
    assert subject.default_branch_line(repo) is subject.default_branch_line(tmp_path) is None, "it is not known"


def test_a_release_is_the_newest_tag_of_the_default_branch_or_what_is_named(repo: Path, tmp_path: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    assert subject.release(repo) is None
    git(repo, "tag", "v1")
    second = commit(repo, {"csrc/a": "2"})
    git(repo, "checkout", "--quiet", "-b", "side")
    commit(repo, {"csrc/a": "3"})
    git(repo, "tag", "v2-of-a-branch")
    assert subject.release(repo) == ("v1", (first,))
    assert subject.release(repo, "main") == ("main", (second, first))
    with pytest.raises(KernelgateError, match="has no commit 'v9'"):
        subject.release(repo, "v9")
    assert subject.release(tmp_path) is None


def test_resolve_without_a_folder_or_without_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelgateError, match="nowhere is no folder: name that of a git checkout"):
        subject.resolve(repo / "nowhere", "HEAD")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(KernelgateError, match="git is not on PATH: install it"):
        subject.resolve(repo, "HEAD")


@pytest.mark.slow
def test_a_git_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "git", 'echo "almost done" >&2\nexec sleep 60')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(subject, "PATIENCE_S", 1.0)
    with pytest.raises(KernelgateError, match=r"git rev-parse .* did not end within 1 s; last line: almost done"):
        subject.root(tmp_path)


def test_worktree_holds_the_commit_and_leaves_the_checkout_alone(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, {"csrc/a": "2", "csrc/b": "new"})
    (repo / "csrc" / "a").write_text("dirty", encoding="utf-8")
    (repo / "csrc" / "untracked").write_text("u", encoding="utf-8")
    (repo / "csrc" / "b").write_text("staged", encoding="utf-8")
    git(repo, "add", "csrc/b")

    def state() -> list[str]:
        return [git(repo, *words) for words in (("status", "--porcelain", "--branch"), ("log",), ("diff", "HEAD"))]

    before = state()
    with subject.worktree(repo, first, ("csrc",)) as tree:
        assert {path.name: path.read_text(encoding="utf-8") for path in (tree / "csrc").iterdir()} == {"a": "1"}
    assert not tree.exists()
    assert state() == before
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_only_what_is_named_is_checked_out(tmp_path: Path) -> None:
    names = ("csrc/a.cu", "csrc/a.h", "csrc/deep/b.cu", "include/x.h", "include/y.h")
    repo = repository(tmp_path / "repo", dict.fromkeys(names, "x") | {"lost": "y"})
    blob = git(repo, "rev-parse", "HEAD:lost")
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for named, found in (
        (("csrc/*.cu",), {"csrc/a.cu"}),
        (("csrc/",), {"csrc/a.cu", "csrc/a.h", "csrc/deep/b.cu"}),
        (("csrc/**/*.cu", "include/x.h"), {"csrc/a.cu", "csrc/deep/b.cu", "include/x.h"}),
        (("missing", "../include/x.h", "/etc/passwd"), set()),
    ):
        with subject.worktree(repo, subject.resolve(repo, "HEAD"), named) as tree:
            assert files(tree) == found


def test_cards_that_are_built_side_by_side_check_out_into_one_tree(tmp_path: Path) -> None:
    """Two cards of one package name many files in common; what one compiles must not vanish below it."""
    files = {f"csrc/{number}.cu": f"// {number}\n" for number in range(300)}
    repo = repository(tmp_path / "many", files)
    sha = subject.resolve(repo, "HEAD")
    with subject.worktree(repo, sha, ("csrc/0.cu",)) as tree, ThreadPoolExecutor(8) as threads:
        before = (tree / "csrc/0.cu").stat().st_ino
        for done in [threads.submit(subject.check_out, repo, sha, tree, ("csrc",)) for _ in range(8)]:
            done.result()
        assert {path.name: path.read_text() for path in (tree / "csrc").iterdir()} == {
            path.removeprefix("csrc/"): text for path, text in files.items()
        }
        assert (tree / "csrc/0.cu").stat().st_ino == before


def test_worktree_of_a_repository_in_any_state(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered worktree whose folder is gone, another one that is linked, a lock of an index that a killed git left
    behind, hooks, one of which takes what git is told, sources that a sparse checkout leaves out, and the variables of
    another repository's hook."""
    commit(repo, {"docs/page": ""})
    for name in ("stale", "linked"):
        git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / name))
    (tmp_path / "stale" / ".git").unlink()
    git(repo, "sparse-checkout", "set", "docs")
    assert not (repo / "csrc").exists()
    (repo / ".git" / "index.lock").touch()
    for name in ("post-checkout", "post-index-change", "watch"):
        program(repo / ".git" / "hooks" / name, f"touch {repo}/hooked; cat")
    git(repo, "config", "core.fsmonitor", str(repo / ".git" / "hooks" / "watch"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other-index"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    for checkout in (repo, tmp_path / "linked"):
        for path in ("csrc", "."):
            with subject.worktree(checkout, subject.resolve(checkout, "HEAD"), (path,)) as tree:
                assert (tree / "csrc" / "a").exists()
    assert not (repo / "hooked").exists()


@pytest.mark.parametrize("replaced", ["a commit", "a file", "its parents"])
def test_a_sha_means_what_was_committed(repo: Path, replaced: str) -> None:
    """`git replace` would put another commit's sources under a sha, and a graft would hide where a branch began."""
    old = git(repo, "rev-parse", "HEAD")
    new = commit(repo, {"csrc/a": "2"})
    if replaced == "its parents":
        (repo / ".git" / "info" / "grafts").write_text(f"{new}\n", encoding="ascii")
    else:
        path = ":csrc/a" if replaced == "a file" else ""
        git(repo, "replace", f"{old}{path}", f"{new}{path}")
    with subject.worktree(repo, old, ("csrc",)) as tree:
        assert (tree / "csrc" / "a").read_text(encoding="utf-8") == "1"
    assert subject.is_ancestor(repo, old, new)


def test_worktree_of_a_commit_without_the_folder(repo: Path) -> None:
    git(repo, "rm", "-r", "--quiet", "csrc")
    for path in ("csrc", "."):  # of an empty commit
        with subject.worktree(repo, commit(repo), (path,)) as tree:
            assert not list(tree.iterdir())


@pytest.fixture
def outer(repo: Path, tmp_path: Path) -> Path:
    """A repository that has `repo` as a submodule of a submodule."""
    inside: tuple[Path, str] = (repo, "inner")
    for name in ("middle", "outer"):
        holder = repository(tmp_path / name, {"own": name})
        git(holder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", *map(str, inside))
        git(holder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
        commit(holder)
        inside = (holder, "deps/middle")
    return tmp_path / "outer"


def files(tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def test_worktree_with_submodules(outer: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sha = git(outer, "rev-parse", "HEAD")
    write(outer, {"deps/middle/own": "changed", "deps/middle/inner/csrc/a": "changed", "deps/middle/new": ""})
    with subject.worktree(outer, sha) as tree:
        assert files(tree) == {".gitmodules", "own", "deps/middle/.gitmodules", "deps/middle/own", IN_SUBMODULE}
        assert (tree / IN_SUBMODULE).read_text(encoding="utf-8") == "1"
        assert (tree / "deps/middle/own").read_text(encoding="utf-8") == "middle"
    with subject.worktree(outer, sha, ("own",)) as tree:
        assert files(tree) == {"own"}
    git(outer, "update-index", "--cacheinfo", f"160000,{'1' * 40},deps/middle")
    git(outer, "commit", "--quiet", "--message=of a submodule's commit that is not here")
    with subject.worktree(outer, git(outer, "rev-parse", "HEAD")) as tree:
        assert files(tree) == {".gitmodules", "own"}
    assert "the checkout of the submodule deps/middle has no commit 111111111111: it is lef" in capfd.readouterr().err


def test_worktree_without_the_submodule_that_the_checkout_lacks(outer: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(outer), "clone")
    with subject.worktree(tmp_path / "clone", git(outer, "rev-parse", "HEAD")) as tree:
        assert files(tree) == {".gitmodules", "own"}


@pytest.mark.parametrize("change", [IN_SUBMODULE, "deps/middle/inner/new"])
def test_unchanged_head_with_submodules(outer: Path, tmp_path: Path, change: str) -> None:
    assert unchanged(tmp_path, ["own"]) is None, "there is no git"
    sha = git(outer, "rev-parse", "HEAD")
    assert unchanged(outer, ["own", IN_SUBMODULE]) == sha
    write(outer, {change: "changed"})
    assert unchanged(outer, ["own"]) == sha
    assert unchanged(outer, ["own", IN_SUBMODULE]) is None


def test_default_base_is_where_the_branch_began(repo: Path, tmp_path: Path) -> None:
    fork = commit(repo, {"csrc/a": "fork"})
    git(repo, "switch", "--quiet", "--create", "topic")
    commit(repo, {"csrc/a": "topic"})
    git(repo, "switch", "--quiet", "main")
    commit(repo, {"csrc/b": "moved on"})
    git(repo, "switch", "--quiet", "topic")
    assert subject.default_base(repo) == fork
    git(tmp_path, "clone", "--quiet", "--branch=main", str(repo), "clone")
    commit(tmp_path / "clone", {"csrc/a": "not pushed"})
    assert subject.default_base(tmp_path / "clone") == fork, "the remote's branch, not the one with HEAD's commit"


def test_default_base_without_a_default_branch(repo: Path) -> None:
    git(repo, "branch", "--move", "trunk")
    with pytest.raises(KernelgateError, match=r"has no default branch .*: name the base with --base, or fetch"):
        subject.default_base(repo)


def test_default_base_of_a_branch_that_was_cloned_alone(repo: Path, tmp_path: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "topic")
    commit(repo, {"csrc/a": "2"})
    git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=topic", f"file://{repo}", "shallow")
    git(tmp_path / "shallow", "update-ref", "-d", "refs/remotes/origin/HEAD")
    with pytest.raises(KernelgateError, match=r"has no default branch .*git fetch origin main"):
        subject.default_base(tmp_path / "shallow")


def test_what_a_shallow_clone_cannot_say(repo: Path, tmp_path: Path) -> None:
    """Its HEAD is never compared with itself."""
    first = git(repo, "rev-parse", "HEAD")
    commit(repo, {"csrc/a": "2"})
    git(repo, "tag", "v1")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repo}", "shallow")
    shallow = tmp_path / "shallow"
    assert subject.default_branch_line(shallow) is subject.release(shallow) is None
    with pytest.raises(KernelgateError, match=f"shallow clone without '{first}': run `git fetch --unshallow`"):
        subject.resolve(shallow, first)
    with pytest.raises(KernelgateError, match=r"compared with itself: run `git fetch --unshallow` .* --base HEAD"):
        subject.default_base(shallow)
    head = git(shallow, "rev-parse", "HEAD")
    commit(shallow, {"csrc/a": "3"})
    assert subject.default_base(shallow) == head
    git(shallow, "fetch", "--quiet", "--unshallow")
    assert subject.default_base(shallow) == head


def test_default_base_outside_of_git_and_before_the_first_commit(tmp_path: Path) -> None:
    with pytest.raises(KernelgateError, match="is not a git repository that can be read"):
        subject.default_base(tmp_path)
    git(tmp_path, "init", "--quiet")
    with pytest.raises(KernelgateError, match="has no commit 'HEAD': commit something"):
        subject.default_base(tmp_path)


def test_default_base_of_an_unrelated_branch(repo: Path) -> None:
    git(repo, "switch", "--quiet", "--orphan", "unrelated")
    commit(repo)
    with pytest.raises(KernelgateError, match=r"no common commit .* name the base yourself"):
        subject.default_base(repo)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    return repository(tmp_path / "sources", {"csrc/k.cu": "one\n", "notes.md": "mine\n"})


def test_a_change_is_taken_and_taken_back_and_nothing_else_is_touched(sources: Path) -> None:
    before = subject.take_snapshot(sources, ("csrc/",))
    (sources / "csrc" / "k.cu").write_text("two\n")
    (sources / "csrc" / "new.cu").write_text("new\n")
    (sources / "data.bin").write_bytes(b"large")  # git does not follow it, and it is no source
    (sources / "notes.md").write_text("mine, and more\n")
    index = git(sources, "diff", "--cached")
    taken = subject.take_snapshot(sources, ("csrc/",))
    patch = sources.parent / "change.patch"
    patch.write_text(subject.difference(sources, before, taken, ("csrc/",)))
    assert subject.changed_files(sources, before, taken, ("csrc/",)) == ("csrc/k.cu", "csrc/new.cu")
    assert git(sources, "show", f"{taken}:csrc/new.cu") == "new"
    assert "data.bin" not in git(sources, "ls-tree", "--name-only", taken)
    assert git(sources, "diff", "--cached") == index
    assert git(sources, "branch", "--all", "--contains", taken) == ""
    subject.keep_snapshot(sources, "one", "try-1", taken)
    git(sources, "gc", "--quiet", "--prune=now")
    assert git(sources, "show", f"{taken}:csrc/k.cu") == "two"
    (sources / "csrc" / "k.cu").write_text("three\n")
    with pytest.raises(KernelgateError, match="patch does not apply"):
        subject.take_back(sources, patch)
    assert (sources / "csrc" / "k.cu").read_text() == "three\n", "what changed meanwhile is not written over"
    (sources / "csrc" / "k.cu").write_text("two\n")
    subject.take_back(sources, patch)
    assert (sources / "csrc" / "k.cu").read_text() == "one\n"
    assert not (sources / "csrc" / "new.cu").exists()
    assert (sources / "notes.md").read_text() == "mine, and more\n"
    assert (sources / "data.bin").exists()


def test_half_a_merge_is_not_measured(sources: Path) -> None:
    git(sources, "checkout", "--quiet", "-b", "other")
    commit(sources, {"csrc/k.cu": "theirs\n"})
    git(sources, "checkout", "--quiet", "main")
    commit(sources, {"csrc/k.cu": "ours\n"})
    subprocess.run(["git", "merge", "other"], cwd=sources, env=ENVIRONMENT, check=False, capture_output=True)
    with pytest.raises(KernelgateError, match="a merge or the like is under way"):
        subject.take_snapshot(sources, ("csrc/",))
