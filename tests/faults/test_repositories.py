"""Repositories as they are met: paths of any bytes, what git hides, and what it says when it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelgate.bench.build.sources import Extension
from kernelgate.bench.core.errors import BuildError, KernelgateError
from kernelgate.bench.kernel import commit as commits
from kernelgate.bench.system import git as subject
from kernelgate.ci.commands import session
from tests.called import EndsWith
from tests.miniature import commit, git, repository, write
from tests.processes import program

CARD = ".ci/kernels/scale.py"
SOURCES = {
    "csrc/scale.cpp": '#include "scale.h"\n#include "generated.h"\nint a;\n',
    "csrc/scale.h": "int b;\n",
    "csrc/scale_more.cpp": "int c;\n",
    CARD: "build = 1\n",
}


class ReachedBuildError(Exception):
    """Sources were read, and would now be compiled."""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str | None]:
    """The commit that a build of this tree is recorded as; None where the tree is recorded as changed."""

    def build(_: Any, sha: str | None, **__: Any) -> None:
        raise ReachedBuildError(sha)

    monkeypatch.setattr(commits.builder, "build", build)

    def of(tree: Path) -> str | None:
        file = tree / CARD
        digest = commits.hashlib.sha256(file.read_bytes()).hexdigest()
        card: Any = SimpleNamespace(name="scale", file=file, sha256=digest, build=Extension("csrc/scale*"))
        try:
            commits.build_card(commits.Tree(tree, "here"), card)
        except ReachedBuildError as reached:
            sha: str | None = reached.args[0]
            return sha
        except BuildError:
            return None  # refused: nothing is recorded
        raise AssertionError("nothing was built")

    return of


# ---- a tree that is not HEAD's ---------------------------------------------------------------------------------------


def hidden(*words: str, path: str = "csrc/scale.cpp", text: str | None = "int changed;\n") -> Callable[[Path], None]:
    """A change of a file that git was told not to look at."""

    def change(repo: Path) -> None:
        git(repo, "update-index", *words, path)
        if text is None:
            (repo / path).unlink()
        else:
            (repo / path).write_text(text, encoding="utf-8")

    return change


def ignored_header(repo: Path) -> None:
    commit(repo, {".gitignore": "generated.h\n"})
    write(repo, {"csrc/generated.h": "int d;\n"})


def sources_behind_a_link(repo: Path) -> None:
    (repo / "csrc").rename(repo / "real")
    (repo / "csrc").symlink_to("real")
    commit(repo)
    write(repo, {"real/scale.cpp": "int changed;\n"})


def a_link_out_of_the_sources(repo: Path) -> None:
    (repo / "csrc/generated.h").symlink_to("../shared.h")
    commit(repo, {"shared.h": "int d;\n"})
    write(repo, {"shared.h": "int changed;\n"})


def a_card_elsewhere(repo: Path) -> None:
    (repo / CARD).rename(repo.parent / "card.py")
    (repo / CARD).symlink_to(repo.parent / "card.py")
    commit(repo)


CHANGES: dict[str, Callable[[Path], object]] = {
    "an ignored header": ignored_header,
    "sources behind a link": sources_behind_a_link,
    "a link out of the sources": a_link_out_of_the_sources,
    "a card that is a link out of the repository": a_card_elsewhere,
    "assumed unchanged": hidden("--assume-unchanged"),
    "assumed unchanged, the card": hidden("--assume-unchanged", path=CARD),
    "skipped in the work tree": hidden("--skip-worktree"),
    "changed": lambda repo: write(repo, {"csrc/scale.h": "int changed;\n"}),
    "a changed card": lambda repo: write(repo, {CARD: "build = 2\n"}),
    "staged": lambda repo: (write(repo, {"csrc/scale.cpp": "int changed;\n"}), git(repo, "add", "--all")),
    "untracked": lambda repo: write(repo, {"csrc/scale_new.cpp": "int e;\n"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tree_that_is_not_heads_is_never_recorded_as_head(
    tmp_path: Path, recorded: Callable[[Path], str | None], change: str
) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    assert recorded(repo) == git(repo, "rev-parse", "HEAD")
    CHANGES[change](repo)
    assert recorded(repo) is None


def windows_line_ends(repo: Path) -> None:
    git(repo, "config", "core.autocrlf", "true")
    fresh(repo)
    assert b"\r\n" in (repo / "csrc/scale.cpp").read_bytes()


def fresh(repo: Path) -> None:
    git(repo, "rm", "--quiet", "-r", "--cached", ".")
    git(repo, "reset", "--quiet", "--hard")


def in_a_submodule(repo: Path) -> None:
    inner = repository(repo.parent / "inner", {"generated.h": "int d;\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "csrc/deps")
    commit(repo, {"csrc/scale.h": '#include "deps/generated.h"\n'})


SAME: dict[str, Callable[[Path], object]] = {
    "only its time": lambda repo: os.utime(repo / "csrc/scale.cpp", (1, 1)),
    "other files": lambda repo: write(repo, {"README": "new\n"}),
    "line ends by configuration": windows_line_ends,
    "detached": lambda repo: git(repo, "checkout", "--quiet", "--detach"),
    "a header in a submodule": in_a_submodule,
}


@pytest.mark.parametrize("change", SAME)
def test_a_tree_that_reads_as_heads_is_recorded_as_head(
    tmp_path: Path, recorded: Callable[[Path], str | None], change: str
) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    SAME[change](repo)
    assert recorded(repo) == git(repo, "rev-parse", "HEAD")


ODD = {
    "a space at the end": b"repo ",
    "a line break at the end": b"repo\n",
    "a line break inside": b"re\npo",
    "no UTF-8": b"repo-\xff\xe9",
    "quotes and backslashes": b"re'po\"\\",
    "a dash in front": b"-repo",
    "brackets of a pattern": b"re[p]o*",
    "beyond Latin": "仓库".encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_a_repository_at_an_odd_path(tmp_path: Path, recorded: Callable[[Path], str | None], name: str) -> None:
    repo = tmp_path / os.fsdecode(ODD[name])
    repository(repo, SOURCES)
    assert subject.toplevel(repo / "csrc") == repo
    head = subject.resolve(repo, "HEAD")
    assert subject.default_base(repo) == head
    with subject.worktree(repo / "csrc", head) as tree:
        assert (tree / "csrc/scale.cpp").read_text(encoding="utf-8") == SOURCES["csrc/scale.cpp"]
    assert recorded(repo) == head


def test_files_whose_names_are_no_utf8(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    (repo / os.fsdecode(b"caf\xe9.h")).touch()
    with subject.worktree(repo, commit(repo)) as tree:
        assert os.fsdecode(b"caf\xe9.h") in {path.name for path in tree.iterdir()}


def test_gits_advice_on_a_repository_of_somebody_else_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for ask in (subject.default_base, lambda at: subject.resolve(at, "HEAD")):
        with pytest.raises(KernelgateError) as raised:
            ask(repo)
        assert f"git config --global --add safe.directory {repo}" in str(raised.value)
        assert "\n" not in str(raised.value)
    monkeypatch.chdir(repo / "csrc")
    with pytest.raises(KernelgateError, match=r"safe\.directory"):
        session.checkout()


def test_a_checkout_that_git_does_not_read_is_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert subject.root(repo / "csrc") == repo
    assert subject.root(tmp_path) == tmp_path


def test_a_git_that_is_no_program_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "git", "").write_bytes(bytes(9))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(KernelgateError, match=r"git cannot be run in .*: Exec format error"):
        subject.root(tmp_path)


def test_a_commit_whose_object_is_lost_is_said_by_git(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    head = git(repo, "rev-parse", "HEAD")
    blob = git(repo, "rev-parse", "HEAD:csrc/scale.cpp")
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with (
        pytest.raises(KernelgateError, match=r"`git .*checkout-index .*failed in") as raised,
        subject.worktree(repo, head),
    ):
        pytest.fail("there is nothing to hold")
    assert "\n" not in str(raised.value)


def test_a_lost_commit_or_tree_is_said_by_git_alone(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    tree, head = git(repo, "rev-parse", "HEAD^{tree}"), subject.resolve(repo, "HEAD")
    (repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(KernelgateError, match=f"failed in {repo}: fatal: "), subject.worktree(repo, head):
        pytest.fail("there is nothing to hold")
    (repo / ".git/objects" / head[:2] / head[2:]).unlink()
    with pytest.raises(KernelgateError, match=f"`git cat-file -p {head}` failed in {repo}: "):
        subject.resolve(repo, "HEAD")


def test_a_name_that_takes_commits_away_and_a_git_that_is_silent_name_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    assert subject.resolve(repo, "HEAD") == git(repo, "rev-parse", "HEAD")
    with pytest.raises(KernelgateError, match=r"has no commit '\^HEAD'"):
        subject.resolve(repo, "^HEAD")
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin" / "git", "").parent))
    with pytest.raises(KernelgateError, match="has no commit 'HEAD'"):
        subject.resolve(repo, "HEAD")


def test_pointers_of_lfs_are_no_fault_of_the_sources(tmp_path: Path, recorded: Callable[[Path], str | None]) -> None:
    repo = repository(tmp_path / "repo", SOURCES)
    assert recorded(repo) == git(repo, "rev-parse", "HEAD")
    write(repo, {"csrc/scale.h": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"})
    with pytest.raises(
        KernelgateError, match=r"pointers of git LFS alone: csrc/scale\.h; run `git lfs pull`"
    ) as raised:
        recorded(repo)
    assert raised.value.exit_code == 3


def test_a_session_begins_once_all_that_it_needs_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    repo = repository(tmp_path / "repo", {".ci/kernelgate.toml": "[gates]\nmargin_pct = 'x'\n"})
    monkeypatch.chdir(repo)
    monkeypatch.setattr("kernelgate.bench.system.environment.describe", lambda: pytest.fail("it took long"))
    assert "gates.margin_pct is 'x'" in ends_with(3, "session", "new", "faster").err
    write(repo, {".ci/kernelgate.toml": ""})
    assert "has no card in .ci/kernels/: `kernelgate init` begins one" in ends_with(3, "session", "new", "faster").err
    assert not (repo / ".ci/sessions").exists()
