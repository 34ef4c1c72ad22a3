"""The last commit that compiles, with a compiler that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.core.errors import CannotCompileError, CompileError, UsageError
from kernelgate.bench.kernel import commit
from kernelgate.bench.measure import bisect
from tests import miniature

HERE = "HEAD"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Five commits."""
    made = miniature.repository(tmp_path_factory.mktemp("range") / "repo", {"a": "0"})
    shas = [miniature.git(made, "rev-parse", HERE)]
    return made, shas + [miniature.commit(made, {"a": f"{number}"}) for number in range(1, 5)]


@pytest.mark.parametrize("first", [1, 2, 4])
def test_the_last_commit_that_compiles(
    repo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    made, shas = repo

    def build(_: Path, sha: str, *_how: object) -> None:
        if shas.index(sha) >= first:
            raise CompileError(sha[:12], None, "a.cpp:1: error: no", made)

    monkeypatch.setattr(commit, "build_commit", build)
    found = bisect.last_that_compiles(bisect.between(made, shas[0], HERE))
    assert found.range.shas[found.last : found.last + 2] == (shas[first - 1], shas[first])
    assert found.inside is None
    assert "a.cpp:1: error: no" in found.why


def test_ends_that_say_nothing_and_a_machine_that_cannot_compile(
    repo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, shas = repo
    monkeypatch.setattr(commit, "build_commit", lambda *_: None)
    with pytest.raises(UsageError, match="the bad end, compiles: there is nothing to find"):
        bisect.last_that_compiles(bisect.between(made, shas[0], HERE))

    def breaks_down(*_: object) -> None:
        raise CannotCompileError("the compiler was killed")

    monkeypatch.setattr(commit, "build_commit", breaks_down)
    with pytest.raises(CannotCompileError):
        bisect.last_that_compiles(bisect.between(made, shas[0], HERE))
