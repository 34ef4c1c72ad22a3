"""Compilers and caches that are missing, break down or hang: never the fault of a commit's author."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.build import build, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.build import Recipe
from kernelgate.bench.build.library import LIBRARY
from kernelgate.bench.build.sources import Extension
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError
from kernelgate.ci.commands import exit_codes
from kernelgate.ci.github import untrusted_artifact
from tests.miniature import CPU_FILES, compiled, write
from tests.processes import program

pytestmark = pytest.mark.usefixtures("cache")

BREAKDOWNS = {
    "killed": ("echo 'csrc/binding.cpp:9:1: error: half a w' >&2; kill -9 $$", "could not be compiled"),
    "silent": ("exit 1", "it failed without output"),
    "full disk at a line": (
        "echo 'csrc/binding.cpp:9:1: fatal error: error writing to /tmp/a.s: No space left on device' >&2; exit 1",
        "error writing to /tmp/a.s: No space left on device",
    ),
    "refuses everything": (
        "echo 'g++: error: unrecognized option' >&2; exit 1",
        "refuse even an empty source: empty.c",
    ),
    "makes nothing": ("exit 0", "refuse even an empty source"),
}
"""What else compilers print when they break down, tests/bench/build tells apart from an error of the sources."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "a checkout", CPU_FILES)


@pytest.mark.parametrize(("script", "says"), BREAKDOWNS.values(), ids=BREAKDOWNS.keys())
def test_a_compiler_that_breaks_down(
    tree: Path, cache: Path, compiler: Callable[[str], Path], script: str, says: str
) -> None:
    compiler(script)
    with pytest.raises(CannotCompileError) as caught:
        compiled(tree)
    assert says in str(caught.value)
    assert caught.value.exit_code == 3
    untrusted_artifact.note(caught.value, "build", {"KERNELGATE_FAILURE": str(tree / "failure.json")})
    assert json.loads((tree / "failure.json").read_text("utf-8"))["fault"] == "runner"
    assert not list((cache / "building").iterdir())


def test_without_room_for_temporary_files_no_line_is_at_fault(
    tree: Path, compiler: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a compiler makes of half a file."""
    compiler("echo 'csrc/binding.cpp:9:1: error: expected }' >&2; exit 1")
    with pytest.raises(CompileError, match=r"csrc/binding\.cpp:9: error: expected }"):
        compiled(tree)
    monkeypatch.setattr(tempfile, "tempdir", "/proc/none")
    with pytest.raises(CannotCompileError, match=r"/proc/none.* cannot be written"):
        compiled(tree)


ONLY_WITHOUT_A_FLAG = 'case "$*" in *-DWRONG*) echo "g++: error: unrecognized option -DWRONG" >&2; exit 1;; esac; '


def test_a_flag_of_the_card_that_the_compiler_refuses(tree: Path, compiler: Callable[[str], Path]) -> None:
    """The compiler works, as it compiles empty sources without the card's flags."""
    compiler(ONLY_WITHOUT_A_FLAG + 'exec $GXX "$@"')
    with pytest.raises(CompileError, match="unrecognized option -DWRONG"):
        compiled(tree, Extension("csrc", flags=("-DWRONG",)))


def test_a_broken_ccache(tree: Path, compiler: Callable[[str], Path]) -> None:
    folder = compiler('exec $GXX "$@"')
    program(folder / "ccache", "echo 'ccache: error: Could not create cache folder' >&2; exit 1")
    with pytest.raises(CannotCompileError, match=r"an empty source: .*ccache: Could not create cache folder"):
        compiled(tree)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("NVCC_APPEND_FLAGS", "--no-such-flag", "Unknown option '--no-such-flag' (NVCC_APPEND_FLAGS are set"),
        ("TORCH_CUDA_ARCH_LIST", "9.9", "Unsupported gpu architecture 'compute_99'"),
    ],
    ids=["flags of the environment", "a target that nvcc does not know"],
)
def test_nvcc_cannot_do_what_the_environment_asks(
    tree: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    monkeypatch.setenv(variable, value)
    with pytest.raises(CannotCompileError) as caught:
        compiled(write(tree, {"csrc/plain.cu": "void plain() {}\n"}))
    assert says in str(caught.value)


def test_ninja_is_killed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_ninja", lambda *_: -9)
    with pytest.raises(CannotCompileError, match="could not be compiled: it was ended by SIGKILL"):
        compiled(tree)


def test_ninja_vanishes(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = toolchain.find()
    gone = replace(found, ninja=tmp_path / "ninja")
    monkeypatch.setattr(toolchain, "find", lambda: gone)
    with pytest.raises(CannotCompileError, match="ninja cannot be run: No such file or directory"):
        compiled(tree)


VERSIONS = {
    "hangs": ("sleep 1000", "--version` did not end within 0.3 s"),
    "hangs in a process of its own": ("sleep 1000 & wait", "--version` did not end within 0.3 s"),
    "fails": ("exit 7", "--version` ended with code 7"),
}


@pytest.mark.parametrize(("script", "says"), VERSIONS.values(), ids=VERSIONS.keys())
def test_a_compiler_that_does_not_say_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    hangs = "sleep" in script
    own_compiler(tmp_path, monkeypatch, f"exec {script}" if script == "sleep 1000" else script)
    monkeypatch.setattr(toolchain, "PATIENCE_S", 0.3 if hangs else 60.0)
    with pytest.raises(CannotCompileError) as caught:
        toolchain.find()
    assert says in str(caught.value)


def test_a_version_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_compiler(tmp_path, monkeypatch, "printf 'g\\377'")
    assert toolchain.find().gxx_version == "g\N{REPLACEMENT CHARACTER}"


def test_a_compiler_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_compiler(tmp_path, monkeypatch, "").write_bytes(b"\x7fELF")
    with pytest.raises(CannotCompileError, match=r"g\+\+ cannot be run: Exec format error"):
        toolchain.find()


def own_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    path = program(tmp_path / "bin" / "g++", script)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def test_much_output_is_cut_off_and_the_error_found(
    tree: Path,
    compiler: Callable[[str], Path],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build, "MAX_LOG", 1 << 20)
    warning = "csrc/binding.cpp:1:1: warning: 'unused' was declared and never used by anybody at all"
    compiler(f"yes \"{warning}\" | head -c 4000000; echo; echo 'csrc/binding.cpp:7:1: error: the one'; exit 1")
    with pytest.raises(CompileError) as caught:
        compiled(tree)
    assert caught.value.first == "csrc/binding.cpp:7: error: the one"
    assert caught.value.excerpt == ("csrc/binding.cpp:7:1: error: the one",)
    assert len(capfd.readouterr().err.splitlines()) < build.MAX_SHOWN + 20
    assert caught.value.log.stat().st_size <= 1 << 20


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled: a library is what stands there."""

    def made(tree: Path, recipe: Recipe, *_: object) -> tuple[()]:
        tree.mkdir(parents=True)
        (tree / LIBRARY).write_bytes(b"a library")
        subprocess.run(["g++", "-xc++", "-c", "/dev/null", "-o", tree / "empty.o"], check=True)
        for unit in recipe.units:
            (tree / f"{unit}.o").parent.mkdir(parents=True, exist_ok=True)
            (tree / f"{unit}.o").write_bytes((tree / "empty.o").read_bytes())
        return ()  # no warnings

    monkeypatch.setattr(build, "compile_in", made)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("what", ["file", "dangling link", "link to a folder", "empty folder"])
def test_an_entry_of_the_cache_that_is_something_else(tree: Path, tmp_path: Path, what: str) -> None:
    first = compiled(tree)
    shutil.rmtree(first.folder)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    if what == "file":
        first.folder.touch()
    elif what == "empty folder":
        first.folder.mkdir()
    else:
        first.folder.symlink_to(tmp_path / ("nowhere" if what == "dangling link" else "elsewhere"))
    second = compiled(tree)
    assert not second.cached
    assert compiled(tree).cached
    assert (tmp_path / "elsewhere" / "kept").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("folder", "expected"), [("locks", 3), ("building", 74)])
def test_a_folder_of_the_cache_that_is_a_file(tree: Path, cache: Path, folder: str, expected: int) -> None:
    cache.mkdir()
    (cache / folder).touch()
    with pytest.raises((KernelgateError, OSError)) as caught:
        compiled(tree)
    code, said = exit_codes.of_error(caught.value)
    assert code == expected
    assert str(cache / folder) in said


@pytest.mark.usefixtures("quick")
def test_what_killed_builds_left_is_removed_by_the_next_one(tree: Path, cache: Path) -> None:
    """Of a build that still runs, nothing is: it holds its lock."""
    write(cache / "building" / "of a killed build", {"sources/a.cpp": ""})
    write(cache / "building" / "of another build", {"sources/a.cpp": ""})
    with build_cache._locked(cache / "locks" / "of another build"):
        compiled(tree)
        assert [path.name for path in (cache / "building").iterdir()] == ["of another build"]
