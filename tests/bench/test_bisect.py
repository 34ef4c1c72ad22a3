"""Ranges of commits, and the last one that compiles; with a compiler that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import bisect
from kernelgate.bench.errors import CannotCompileError, CompileError, UsageError
from kernelgate.bench.kernel import commit
from tests import miniature

HERE = "HEAD"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Five commits, and a branch of one that was merged into the fourth."""
    made = miniature.repository(tmp_path_factory.mktemp("range") / "repo", {"a": "0"})
    shas = [miniature.git(made, "rev-parse", HERE)]
    shas += [miniature.commit(made, {"a": f"{number}"}) for number in range(1, 3)]
    miniature.git(made, "checkout", "--quiet", "-b", "side")
    aside = miniature.commit(made, {"b": "1"})
    miniature.git(made, "checkout", "--quiet", "main")
    shas.append(miniature.commit(made, {"c": "1"}))
    miniature.git(made, "merge", "--quiet", "--no-ff", "--message=merge", "side")
    shas.append(miniature.git(made, "rev-parse", HERE))
    return made, [*shas, aside]


def test_a_range_follows_first_parents(repo: tuple[Path, list[str]]) -> None:
    made, [*shas, _] = repo
    assert bisect.span(made, shas[0], HERE) == tuple(shas)


def test_a_range_that_is_none_is_refused(repo: tuple[Path, list[str]]) -> None:
    made, [*shas, aside] = repo
    for ends, why in (
        ((shas[1], shas[1]), "are the same commit"),
        ((HERE, shas[0]), "the other way round"),
        ((aside, shas[3]), "is no ancestor"),
        ((aside, HERE), f"came to HEAD by a merge and is not on its line of first parents: name {shas[2][:12]}"),
    ):
        with pytest.raises(UsageError, match=why):
            bisect.span(made, *ends)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_the_last_commit_that_compiles(
    repo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    made, [*shas, _] = repo

    def build(_: Path, sha: str) -> None:
        if shas.index(sha) >= first:
            raise CompileError(sha[:12], None, "a.cpp:1: error: no", made)

    monkeypatch.setattr(commit, "build_commit", build)
    found = bisect.last_that_compiles(made, (shas[0], HERE))
    assert (found.last, found.broken) == (shas[first - 1], shas[first])
    assert "a.cpp:1: error: no" in found.why


def test_ends_that_say_nothing_and_a_machine_that_cannot_compile(
    repo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, [*shas, _] = repo
    monkeypatch.setattr(commit, "build_commit", lambda *_: None)
    with pytest.raises(UsageError, match="the bad end, compiles: there is nothing to find"):
        bisect.last_that_compiles(made, (shas[0], HERE))

    def breaks_down(*_: object) -> None:
        raise CannotCompileError("the compiler was killed")

    monkeypatch.setattr(commit, "build_commit", breaks_down)
    with pytest.raises(CannotCompileError):
        bisect.last_that_compiles(made, (shas[0], HERE))
