"""Ranges of commits: which are refused, on into a submodule, or why not; and the last one that compiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Libraries
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError, UsageError
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.measure import bisect
from kernelgate.bench.measure.bisect import BuiltCommits, CommitRange
from kernelgate.ci.bisect import first_failing
from kernelgate.ci.bisect.answers import CompiledAnswer
from tests import miniature

LOCAL = ("-c", "protocol.file.allow=always")
INNER = "third_party/inner"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Five commits, and a branch of one that was merged into the fourth."""
    made = miniature.repository(tmp_path_factory.mktemp("range") / "repo", {"a": "0"})
    shas = [miniature.git(made, "rev-parse", "HEAD")]
    shas += [miniature.commit(made, {"a": f"{number}"}) for number in range(1, 3)]
    miniature.git(made, "checkout", "--quiet", "-b", "side")
    aside = miniature.commit(made, {"b": "1"})
    miniature.git(made, "checkout", "--quiet", "main")
    shas.append(miniature.commit(made, {"c": "1"}))
    miniature.git(made, "merge", "--quiet", "--no-ff", "--message=merge", "side")
    shas.append(miniature.git(made, "rev-parse", "HEAD"))
    return made, [*shas, aside]


def test_a_range_follows_first_parents_and_one_that_is_none_is_refused(repo: tuple[Path, list[str]]) -> None:
    made, [*shas, aside] = repo
    assert bisect.span(made, shas[0], "HEAD") == tuple(shas)
    for ends, why in (
        ((shas[1], shas[1]), f"{shas[1][:12]} and {shas[1][:12]} are the same commit"),
        (("HEAD", shas[0]), "the other way round"),
        ((aside, shas[3]), "is no ancestor"),
        ((aside, "HEAD"), f"came to HEAD by a merge and is not on its line of first parents: name {shas[2][:12]}"),
    ):
        with pytest.raises(UsageError, match=why):
            bisect.span(made, *ends)


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository whose last commit moves a submodule by three; and the submodule's commits."""
    tmp_path = tmp_path_factory.mktemp("rolled")
    inner = miniature.repository(tmp_path / "inner", {"src/a.cpp": "0"})
    shas = [miniature.git(inner, "rev-parse", "HEAD")]
    made = miniature.repository(tmp_path / "outer", {"own": "1"})
    miniature.git(made, *LOCAL, "submodule", "--quiet", "add", f"file://{inner}", INNER)
    miniature.commit(made)
    shas += [miniature.commit(inner, files) for files in ({"src/a.cpp": "1"}, {"README": "2"}, {"src/a.cpp": "3"})]
    miniature.git(made / INNER, *LOCAL, "pull", "--quiet")
    miniature.commit(made)
    return made, shas


def inside(made: Path) -> CommitRange | str | None:
    return bisect.between(made, "HEAD~1", "HEAD").inside(1)


def test_the_commits_of_a_submodule_that_a_commit_moves(rolled: tuple[Path, list[str]]) -> None:
    made, shas = rolled
    found = inside(made)
    assert isinstance(found, CommitRange)
    assert (found.shas, found.submodule) == (tuple(shas), INNER)
    assert found.touching([".ci/kernels/", f"{INNER}/src/"]) == {1, 3}
    assert found.touching(["third_party/"]) == {1, 2, 3}
    assert found.touching([".ci/kernels/"]) == frozenset()
    assert bisect.between(made, "HEAD~1", "HEAD").touching([f"{INNER}/src/a"]) == {1}
    assert bisect.between(made, "HEAD~2", "HEAD~1").inside(1) is None, "it is new there"
    assert bisect.between(made, "HEAD~1", "HEAD").inside(1, ["csrc/"]) is None, "nothing is built from it"


def test_a_submodule_that_cannot_be_searched_is_said(
    rolled: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, shas = rolled
    with monkeypatch.context() as patched:
        before, after = {INNER: shas[3], "other": "1"}, {INNER: shas[0], "other": "1"}
        patched.setattr(bisect.git, "submodules", lambda _, sha: after if sha == head else before)
        head = miniature.git(made, "rev-parse", "HEAD")
        assert "is not searched: " in str(inside(made))
        assert "the other way round" in str(inside(made))
        after["other"] = "2"
        assert "moves 2 submodules at once" in str(inside(made))

    miniature.git(tmp_path, "clone", "--quiet", str(made), "without")
    assert f"run `git submodule update --init {INNER}`" in str(inside(tmp_path / "without"))

    miniature.git(tmp_path / "without", *LOCAL, "submodule", "--quiet", "update", "--init", "--depth=1")
    assert f"has no commit {shas[0][:12]}: run `git -C {INNER} fetch --unshallow`" in str(inside(tmp_path / "without"))
    shallow = tmp_path / "without" / INNER
    miniature.git(shallow, *LOCAL, "fetch", "--quiet", "--depth=1", "origin", shas[0])
    assert f"the history of {INNER} is not whole" in str(inside(tmp_path / "without"))


def test_only_the_card_that_is_searched_is_built_and_a_full_disk_is_no_commits_fault(
    repo: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shas = repo[1]
    miniature.git(tmp_path, "clone", "--quiet", str(repo[0]), "made")
    made = tmp_path / "made"
    asked: list[HowToBuild | None] = []

    def build(_: Path, sha: str, how: HowToBuild | None) -> Libraries:
        asked.append(how)
        why = "kernel.so: error: No space left on device" if sha == shas[2] else "it does not compile"
        return Libraries({}, {} if sha == shas[0] else {"scale": why})

    monkeypatch.setattr(commit, "build_commit", build)
    read = cards.read(miniature.write(made, {".ci/kernels/scale.py": miniature.SCALE_CARD}) / cards.FOLDER)
    built = BuiltCommits(bisect.between(made, shas[0], "HEAD"), read["scale"])
    assert built.build(0) == "it has no card scale"
    assert built.build(1) == "it does not compile"
    with pytest.raises(KernelgateError, match="No space left on device; free some"):
        built.build(2)
    assert {how.only for how in asked if how} == {("scale",)}


def test_the_last_commit_that_compiles_and_ends_that_say_nothing(
    repo: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, [*shas, _] = repo

    def found(broken: Sequence[str], fault: KernelgateError | None = None) -> CompiledAnswer:
        def build(_: Path, sha: str, *_how: object) -> None:
            if sha in broken:
                raise fault or CompileError(sha[:12], None, "a.cpp:1: error: no", made)

        monkeypatch.setattr(commit, "build_commit", build)
        return first_failing.last_that_compiles(bisect.between(made, shas[0], "HEAD"), lambda _: None)

    for first in (1, 4):
        answer = found(shas[first:])
        assert (answer.last_that_compiles, *answer.culprits) == (shas[first - 1], shas[first])
        assert "a.cpp:1: error: no" in answer.why
    for broken, why in (([], "the bad end, compiles: there is nothing to find"), (shas, "does not compile either")):
        with pytest.raises(UsageError, match=why):
            found(broken)
    with pytest.raises(CannotCompileError):
        found(shas[4:], CannotCompileError("the compiler was killed"))
