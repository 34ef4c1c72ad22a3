"""A commit's cards become libraries: real git, real compilers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from kernelgate.bench.build import library
from kernelgate.bench.build.library import ABSENT, Library
from kernelgate.bench.core.errors import CardError, CompileError, NoKernelError, OutputError
from kernelgate.bench.kernel import card_check, commit, operands
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.system.worker import WorkerProcess
from kernelgate.ci.commands import cli
from tests import miniature
from tests.miniature import SCALE, SCALE_CARD, SCALE_FILES, git, repository, write

pytestmark = pytest.mark.usefixtures("no_gpu", "cards_in_forks")

TWICE = SCALE.replace("scale", "twice").replace("factor *", "2 * factor *")
TWICE_CARD = SCALE_CARD.replace("scale", "twice")
BASE = HowToBuild(forgiving=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one card; some of its sources are no kernel's."""
    return repository(tmp_path / "a repository", {**SCALE_FILES, "csrc/other.cpp": "#error not of a card"})


def scaled(built: Library) -> float:
    """What its operator makes of 1 · 3."""
    out, one = torch.zeros(1), torch.ones(1)
    operands.load(built).scale(out, one, 3.0)
    return out.item()


@pytest.mark.slow
def test_a_commit_becomes_a_library_for_each_card(repo: Path) -> None:
    miniature.commit(repo, {"csrc/twice.cpp": TWICE, ".ci/kernels/twice.py": TWICE_CARD})
    sha = git(repo, "rev-parse", "HEAD")
    found = commit.build_commit(repo)
    assert (sorted(found.built), dict(found.absent)) == (["scale", "twice"], {})
    for name, built in found.built.items():
        assert (built.manifest.card, built.manifest.sha) == (name, sha)
        assert built.card.read_bytes() == (repo / ".ci" / "kernels" / f"{name}.py").read_bytes()
    base = found.built["scale"]
    write(repo, {"csrc/scale.cpp": SCALE.replace("factor *", "10 * factor *")})
    head = commit.build_tree(repo).built["scale"]
    assert [scaled(base), scaled(head), scaled(base)] == [3.0, 30.0, 3.0], "each runs its own code in one process"
    out = torch.zeros(2)
    operands.load(found.built["twice"]).twice(out, torch.ones(2), 3.0)
    assert out.tolist() == [6.0, 6.0]


def test_a_missing_header_names_the_submodules_that_are_not_checked_out(repo: Path) -> None:
    """As after `git clone` without --recurse-submodules."""
    write(repo, {"csrc/scale.cpp": '#include "cutlass.h"\n' + SCALE})
    with pytest.raises(CompileError) as raised:
        commit.build_tree(repo)
    assert "submodule" not in str(raised.value), "there is none"
    sha = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{sha},deps/cutlass")
    git(repo, "commit", "--quiet", "--message=m")
    with pytest.raises(CompileError) as raised:
        commit.build_tree(repo)
    hint = "cutlass.h: No such file or directory; not checked out here: deps/cutlass (git submodule update --init"
    assert hint in raised.value.first
    assert "git submodule update --init" in str(raised.value)


def test_a_commit_without_a_card(repo: Path) -> None:
    git(repo, "rm", "-r", "--quiet", ".ci")
    sha = miniature.commit(repo)
    says = rf"commit {sha[:12]} has no card in \.ci/kernels/: .*--cards .*uncommitted.* \(https://.*/docs/cards\.md\)"
    with pytest.raises(NoKernelError, match=says):
        commit.build_commit(repo)
    with pytest.raises(NoKernelError, match=r"a repository has no card in \.ci/kernels/"):
        commit.build_tree(repo)


WRONG = {
    "no source": (
        {".ci/kernels/scale.py": SCALE_CARD.replace("csrc/scale*", "csrc/scael*")},
        ".ci/kernels/scale.py:5: build: {} has no sources at csrc/scael*, which the card scale names",
    ),
    "card": (
        {".ci/kernels/scale.py": SCALE_CARD.replace("dict(N=64,", "dict(N=None,")},
        ".ci/kernels/scale.py:6: cases: {'N': None, 'dtype': 'fp32'}: the axis N is None",
    ),
    "call": (
        {".ci/kernels/scale.py": SCALE_CARD.replace("ops.scale(", "ops.sclae(")},
        ".ci/kernels/scale.py:12: call: the library registers no operator sclae; it registers: scale",
    ),
}


@pytest.mark.slow
def test_a_mistake_of_a_card_names_the_place_as_the_repository_has_it(repo: Path) -> None:
    for files, says in WRONG.values():
        with pytest.raises(CardError) as raised:
            commit.build_tree(write(repo, {**SCALE_FILES, **files}))
        assert str(raised.value).startswith(says.replace("{}", str(repo)))
        assert raised.value.file == ".ci/kernels/scale.py"
        assert raised.value.exit_code == 1


ABSENT_BASES = {
    "call": WRONG["call"],
    "does not compile": (
        {"csrc/scale.cpp": "#error broken\n"},
        "{sha} does not compile: csrc/scale.cpp:1: error: #error",
    ),
    "cannot be read": ({".ci/kernels/scale.py": "class ("}, ".ci/kernels/scale.py:1: SyntaxError: "),
    "registers nothing": (
        {"csrc/scale.cpp": "int nothing;\n"},
        ".ci/kernels/scale.py:5: build: the library registers no operator under KERNELGATE_NAMESPACE",
    ),
    "ends what reads it": (
        {".ci/kernels/scale.py": "import os\nos._exit(3)\n"},
        ".ci/kernels/scale.py: the card cannot be read: the process exited early with code 3",
    ),
}


@pytest.mark.parametrize(("files", "says"), ABSENT_BASES.values(), ids=ABSENT_BASES)
def test_a_base_that_cannot_be_built_is_absent_with_the_reason(
    repo: Path, tmp_path: Path, files: dict[str, str], says: str
) -> None:
    sha = miniature.commit(repo, files)
    found = commit.build_commit(repo, "HEAD", BASE)
    assert dict(found.built) == {}
    expected = says.replace("{sha}", sha[:7]).replace("{}", f"commit {sha[:12]}")
    assert found.absent["scale"].startswith(expected)
    commit.export(found, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [ABSENT]
    assert library.read_all(tmp_path / "out") == found


@pytest.mark.slow
def test_a_base_whose_library_ends_the_process_that_loads_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_check, "WorkerProcess", WorkerProcess)
    thrown = '#include <stdexcept>\nstatic int x = (throw std::runtime_error("at load"), 0);\n'
    miniature.commit(repo, {"csrc/scale.cpp": thrown})
    says = commit.build_commit(repo, "HEAD", BASE).absent["scale"]
    assert says.startswith(".ci/kernels/scale.py:5: build: ")
    assert "cannot be loaded, whatever the card says: the process was killed by SIGABRT" in says
    assert "at load" in says


def test_a_base_without_a_card(repo: Path, tmp_path: Path) -> None:
    """Or without anything."""
    git(repo, "rm", "-r", "--quiet", ".ci")
    miniature.commit(repo)
    for base in (repo, repository(tmp_path / "empty", {})):
        found = commit.build_commit(base, "HEAD", BASE)
        assert (dict(found.built), dict(found.absent)) == ({}, {})
    commit.export(found, tmp_path / "out")
    assert library.read_all(tmp_path / "out") == found


@pytest.mark.slow
def test_an_export_holds_what_was_exported_last(repo: Path, tmp_path: Path) -> None:
    """Also of a base, of which one card does not take the others with it."""
    out = tmp_path / "out"
    miniature.commit(repo, {"csrc/twice.cpp": TWICE, ".ci/kernels/twice.py": TWICE_CARD})
    commit.export(commit.build_tree(repo), out)
    assert sorted(library.read_all(out).built) == ["scale", "twice"]
    write(repo, {"csrc/scale.cpp": "#error", ".ci/kernels/thrice.py": "import nothing_of_that_name.\n"})
    commit.export(commit.build_tree(repo, BASE), out)
    found = library.read_all(out)
    assert (sorted(found.built), sorted(found.absent)) == (["twice"], ["scale", "thrice"])
    (repo / ".ci" / "kernels" / "thrice.py").unlink()
    git(repo, "checkout", "--quiet", ".")
    commit.export(commit.build_tree(repo), out)
    assert (sorted(library.read_all(out).built), dict(library.read_all(out).absent)) == (["scale", "twice"], {})


def test_an_export_removes_nothing_that_is_no_library(repo: Path, tmp_path: Path) -> None:
    mine = tmp_path / "scale" / library.SOURCES / "mine.cpp"
    write(tmp_path, {f"scale/{library.SOURCES}/mine.cpp": "// mine", f"another/{library.MANIFEST}": "{}"})
    with pytest.raises(OutputError, match="scale holds something else than a library"):
        commit.export(commit.build_tree(repo), tmp_path)
    assert mine.read_text(encoding="utf-8") == "// mine"
    assert (tmp_path / "another" / library.MANIFEST).exists()


def test_verb_exit_codes(repo: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(repo)
    write(repo, {"csrc/scale.cpp": "#error broken\n"})
    assert cli.run(["build"]) == 1
    says = "kernelgate: the working tree does not compile: csrc/scale.cpp:1: error: #error broken"
    assert says in capfd.readouterr().err
    (repo / "csrc" / "scale.cpp").unlink()
    assert cli.run(["build"]) == 1
    assert "kernelgate: .ci/kernels/scale.py:5: build: " in capfd.readouterr().err
    assert cli.run(["build", "--as-base"]) == 0
    assert "scale is left out: .ci/kernels/scale.py:5: build: " in capfd.readouterr().err
    assert cli.run(["build", "--ref", "nowhere"]) == 3
    assert "has no commit 'nowhere'" in capfd.readouterr().err
    assert cli.run(["build", "--time-limit", "0"]) == 64
    shutil.rmtree(repo / ".ci")
    assert cli.run(["build"]) == 2
