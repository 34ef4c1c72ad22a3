"""Real compilers on sources that compile in a moment and can be broken on purpose; and the cache of what they made."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import build, library
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.library import MANIFEST, Library
from kernelgate.bench.build.sources import Extension, read_sources
from kernelgate.bench.core.errors import BuildError, CompileError, KernelgateError
from kernelgate.bench.system import orphans, supervise
from kernelgate.bench.system.supervise import TimeLimits
from tests.miniature import ANSWER, BINDING, CARD, CPU_FILES, SPEC, compiled, write
from tests.processes import alive

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Sources for the CPU alone."""
    return write(tmp_path / "a checkout", CPU_FILES)


def loaded(built: Library) -> ctypes.CDLL:
    import torch  # noqa: F401  its libraries are those that ours names

    dll = ctypes.CDLL(str(built.path))
    dll.the_namespace.restype = dll.the_targets.restype = ctypes.c_char_p
    return dll


def test_sources_become_a_library_that_can_be_loaded(tree: Path, cache: Path) -> None:
    built = compiled(tree, sha="0123456789")
    assert not built.cached
    assert built.folder.parent == cache
    manifest = built.manifest
    assert (manifest.card, manifest.kind, manifest.sha, manifest.targets) == (CARD, "extension", "0123456789", ())
    assert (manifest.shared_namespace, manifest.torch, manifest.card_sha256) == (False, None, None)
    dll = loaded(built)
    assert dll.the_answer() == 42
    assert dll.the_namespace().decode() == manifest.namespace == f"kernel_{manifest.key[:12]}"
    assert dll.the_targets() == b""
    assert not list((cache / "building").iterdir())


OTHER = """\
#include "answer.h"
int unused() { int nothing; return 0; }
int& other() { return answer(); }
"""
SHARED = {**CPU_FILES, "csrc/other.cpp": f"#define ANSWER 1\n{OTHER}"}


def both(tmp_path: Path, base: dict[str, str], head: dict[str, str]) -> list[Library]:
    """The libraries of two sides that are built at once."""
    trees = [write(tmp_path / side, files) for side, files in (("base", base), ("head", head))]
    return supervise.side_by_side([lambda: compiled(trees[0]), lambda: compiled(trees[1])], 2)


def test_a_unit_of_both_sides_is_compiled_once(
    tmp_path: Path, compiler: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "units"
    compiler(f'for word; do case "$word" in csrc/*.cpp) echo $word >> "{listed}";; esac; done; exec $GXX "$@"')

    def units_compiled() -> list[str]:
        return sorted(Path(line).stem for line in listed.read_text(encoding="utf-8").split())

    base, head = both(tmp_path, SHARED, SHARED | {"csrc/binding.cpp": BINDING.replace("42", "43")})
    assert units_compiled() == ["binding", "binding", "other"]
    assert [loaded(base).the_answer(), loaded(head).the_answer()] == [42, 43]
    assert base.manifest.warnings == head.manifest.warnings != (), "the unit's warning is of both"
    third = compiled(write(tmp_path / "third", SHARED | {"csrc/binding.cpp": BINDING.replace("42", "44")}))
    assert units_compiled() == ["binding", "binding", "binding", "other"], "the cache has the other"
    assert loaded(third).the_answer() == 44
    assert "Jobserver" not in capfd.readouterr().err


EXPORTED = 'extern "C" __attribute__((visibility("default"))) int value() { return VALUE; }\n'
INCLUDED = {
    "as it is read": ('#include "value.h"\n', []),
    "by a macro": ('#define PLACE "value.h"\n#include PLACE\n', []),
    "by a flag": ("", ["-include", "csrc/value.h"]),
}


@pytest.mark.parametrize(("include", "flags"), INCLUDED.values(), ids=INCLUDED)
def test_a_unit_whose_header_changes_is_compiled_again(tmp_path: Path, include: str, flags: list[str]) -> None:
    """However it comes to be included: else the head's unit would be the base's."""
    values = []
    for value in (1, 2):
        files = {"csrc/other.cpp": include + EXPORTED, "csrc/value.h": f"#define VALUE {value}\n"}
        tree = write(tmp_path / str(value), CPU_FILES | files)
        values.append(loaded(compiled(tree, Extension("csrc", flags=flags))).value())
    assert values == [1, 2]


def test_a_build_compiles_what_another_could_not(tmp_path: Path, compiler: Callable[[str], Path]) -> None:
    """The side that has the shared unit first is at fault in another one."""
    compiler('sleep 0.3; exec $GXX "$@"')
    wrong = {"csrc/binding.cpp": "#error here\n"}
    trees = [write(tmp_path / side, SHARED | more) for side, more in (("base", wrong), ("head", {}))]

    def fails() -> str:
        with pytest.raises(CompileError, match="here") as caught:
            compiled(trees[0])
        return str(caught.value)

    said, head = supervise.side_by_side([fails, lambda: compiled(trees[1])], 2)
    assert "csrc/binding.cpp:1" in said
    assert loaded(head).the_answer() == 42


def test_max_jobs_is_obeyed_and_else_ninja_shares_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: Callable[[str], Path]
) -> None:
    """Base and head, each with what ninja starts alone, would fill a machine's memory twice."""
    running = tmp_path / "running"
    running.mkdir()
    counts = f'echo > "{running}/$$"; ls "{running}" | wc -l >> "{tmp_path}/most"; sleep 0.2; rm "{running}/$$"'
    compiler(f'{counts}; exec $GXX "$@"')
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2))
    units = {f"csrc/unit{n}.cpp": "int SIDE;\n" for n in range(4)}
    sides = [
        {name: text.replace("SIDE", f"{side}{name[9]}") for name, text in units.items()} for side in ("base", "head")
    ]
    both(tmp_path, CPU_FILES | sides[0], CPU_FILES | sides[1])
    assert max(map(int, (tmp_path / "most").read_text().split())) in (2, 3)
    (tmp_path / "most").unlink()
    monkeypatch.setenv("MAX_JOBS", "1")
    compiled(write(tmp_path / "third", CPU_FILES | {name: f"{text}// third\n" for name, text in sides[0].items()}))
    assert set((tmp_path / "most").read_text().split()) == {"1"}


def test_the_sources_lie_beside_the_library_to_be_quoted(tree: Path) -> None:
    built = compiled(tree)
    held = library.sources_in(built)
    files = {path.relative_to(held).as_posix(): path.read_bytes() for path in held.rglob("*") if path.is_file()}
    assert files
    assert files == {name: (tree / name).read_bytes() for name in files}


def test_equal_sources_are_compiled_once(tree: Path, no_compiling: Callable[[], None]) -> None:
    first = compiled(tree, sha="1" * 40)
    no_compiling()
    second = compiled(tree, sha="2" * 40)
    assert (first.cached, second.cached) == (False, True)
    assert second.manifest == first.manifest.model_copy(update={"sha": "2" * 40})
    assert library.read(first.folder).manifest.sha is None


@pytest.mark.parametrize("damage", ["library", "manifest", "missing library", "missing manifest", "kernels", "card"])
def test_a_damaged_entry_is_built_again(tree: Path, damage: str, capfd: pytest.CaptureFixture[str]) -> None:
    first = compiled(tree)
    if damage == "library":
        first.path.write_bytes(first.path.read_bytes()[:-1] + b"!")
    elif damage == "manifest":
        (first.folder / MANIFEST).write_text("{", encoding="utf-8")
    elif damage in ("kernels", "card"):  # of an earlier kernelgate, which wrote no such field
        content = json.loads((first.folder / MANIFEST).read_text(encoding="utf-8"))
        del content[damage]
        (first.folder / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(KernelgateError, match="is not a library manifest"):
            library.read(first.folder)
    else:
        (first.path if damage == "missing library" else first.folder / MANIFEST).unlink()
    second = compiled(tree)
    assert not second.cached
    assert capfd.readouterr().err.count(f"{first.folder} is damaged, or of an earlier kernelgate: ") == 1
    assert compiled(tree).cached
    assert loaded(second).the_answer() == 42


def test_what_a_killed_build_left_is_no_hindrance(tree: Path, cache: Path) -> None:
    key = compiled(tree).manifest.key
    shutil.rmtree(cache / key)
    left = {"kernel.so": "half a library", "csrc/left.cpp": "#error left"}
    write(cache / "building" / key, left)
    assert loaded(compiled(tree)).the_answer() == 42


@pytest.mark.slow
def test_of_two_builds_at_once_one_compiles(tree: Path, compiler: Callable[[str], Path]) -> None:
    compiler('sleep 0.5; exec $GXX "$@"')
    imports = "from pathlib import Path; from tests.miniature import compiled"
    code = f"{imports}; print(compiled(Path({str(tree)!r})).cached)"
    root = Path(__file__).parents[3]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert sorted(out.strip() for out, _ in said) == ["False", "True"], said
    assert "another process compiles the same sources; waiting for it" in said[0][1] + said[1][1]


def test_a_cache_that_cannot_be_written(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, card = compiled(tree), write(tmp_path, {"answer.py": ""}) / "answer.py"
    (tmp_path / "file").touch()
    monkeypatch.setenv(build_cache.CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(KernelgateError, match=r"the cache cannot be written: .*; set KERNELGATE_CACHE"):
        compiled(tree)
    with pytest.raises(KernelgateError, match=r"the cache cannot be written: .*; set KERNELGATE_CACHE"):
        build.with_card(built, card)


def test_a_failed_compile_shows_the_first_error(tree: Path, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = ANSWER.replace("return value;", "int unused;\n  return valve;\n  return nor_this;")
    write(tree, {"csrc/answer.h": wrong})
    with pytest.raises(CompileError) as caught:
        compiled(tree, sha="0123456789")
    error = caught.value
    assert error.first.startswith("csrc/answer.h:6: error: 'valve' was not declared in this scope")
    assert str(error) == f"0123456 does not compile: {error.first} (all of it: {error.log})"
    assert error.exit_code == 1
    assert "nor_this" in error.log.read_text(encoding="utf-8")
    assert "nor_this" in capfd.readouterr().err
    assert not list((cache / "building").iterdir())
    assert loaded(compiled(write(tree, CPU_FILES))).the_answer() == 42


@pytest.mark.parametrize("kind", ["error", "warning"])
def test_a_line_of_another_file_is_not_shown_while_it_is_compiled(
    tree: Path, tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """By #line a source gives any file's name as its own, and compilers quote what stands in that."""
    (tmp_path / "other").write_text("root:x:0:0\n", encoding="utf-8")
    own = "return valve;" if kind == "error" else "return value;"
    hidden = f'#line 1 "{tmp_path / "other"}"\n#{kind} hidden\n#line 7 "csrc/answer.h"\n'
    write(tree, {"csrc/answer.h": ANSWER.replace("return value;", own) + f"#warning ours\n{hidden}"})
    if kind == "error":
        with pytest.raises(CompileError, match=r"'valve' was not declared|is none of the commit's files"):
            compiled(tree)
    else:
        compiled(tree)
    said = capfd.readouterr().err
    assert "root:x" not in said
    assert f"{tmp_path / 'other'}: is none of the commit's files" in said
    assert "#warning ours" in said, "a source's own lines are shown"


def test_an_undefined_symbol_is_found_while_building(tree: Path) -> None:
    write(tree, {"csrc/binding.cpp": BINDING + "int elsewhere();\nEXPORT int more() { return elsewhere(); }\n"})
    with pytest.raises(CompileError, match=r"csrc/binding.cpp: error: undefined reference to `elsewhere\(\)'"):
        compiled(tree)


def test_a_compile_over_its_limit_is_ended(
    tree: Path, tmp_path: Path, compiler: Callable[[str], Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "GRACE_S", 0.2)
    compiler(f"trap '' TERM; echo $$ > '{tmp_path}/pid'; echo started; sleep 1000 & wait; sleep 1000")
    with pytest.raises(
        BuildError,
        match=r"the limit of 2 s .* unfinished: \S+ kernel.so; it printed nothing .*`build --time-limit` allows",
    ) as caught:
        build.build(read_sources(tree, "here", CARD, SPEC), None, limits=TimeLimits(total_s=2))
    assert caught.value.exit_code == 3
    assert not alive(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert not list((cache / "building").iterdir())


# Room is made in the cache, and never below what somebody uses

DAY = 86_400.0
OLD, OLDER, NEW = "a" * 32, "b" * 32, "c" * 32


def made(cache: Path, key: str, days: float, size: int = 1000) -> Path:
    """An entry that was last taken so many days ago."""
    write(cache, {f"{key}/{MANIFEST}": "{}", f"{key}/kernel.so": "x" * size, f"logs/{key}.log": "l"})
    write(cache, {f"locks/{key}.used": ""})
    os.utime(cache / "locks" / f"{key}.used", (time.time() - days * DAY,) * 2)
    return cache / key


@pytest.fixture
def filled(cache: Path) -> Path:
    for key, days in ((OLD, 40), (OLDER, 50), (NEW, 1)):
        made(cache, key, days)
    write(cache, {"corpus/attention/one.json": "{}"})
    return cache


def keys(found: tuple[build_cache.CacheEntry, ...]) -> set[str]:
    return {one.folder.name for one in found}


def test_objects_that_nobody_used_for_long_go_too(tree: Path, cache: Path) -> None:
    compiled(tree)
    (unit,) = (path for path in (cache / "objects").iterdir() if path.name != "locks")
    assert unit.name in keys(build_cache.prune(cache, DAY, 1e9).kept)
    os.utime(cache / "objects" / "locks" / f"{unit.name}.used", (0, 0))
    assert keys(build_cache.prune(cache, DAY, 1e9).removed) == {unit.name}
    assert not unit.exists()


def test_what_nobody_used_for_long_goes_with_its_log(filled: Path) -> None:
    done = build_cache.prune(filled, 30 * DAY, 1e9)
    assert (keys(done.removed), keys(done.kept)) == ({OLD, OLDER}, {NEW})
    assert sum(one.size for one in done.removed) == 2 * 1002
    assert [path.name for path in (filled / "logs").iterdir()] == [f"{NEW}.log"]
    assert (filled / "corpus" / "attention" / "one.json").exists()


def test_what_is_in_use_stays_and_is_said(filled: Path) -> None:
    build_cache.hold(filled / OLD)
    os.utime(filled / "locks" / f"{OLD}.used", (0, 0))
    done = build_cache.prune(filled, 30 * DAY, 0)
    assert (keys(done.removed), keys(done.in_use), keys(done.kept)) == ({OLDER, NEW}, {OLD}, {OLD})
    assert (filled / OLD / "kernel.so").exists()


def test_a_library_that_this_process_has_built_stays(tree: Path, cache: Path) -> None:
    assert compiled(tree).manifest.key in keys(build_cache.prune(cache, 0, 0).in_use)
