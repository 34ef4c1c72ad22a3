from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build.build import Recipe
from kernelgate.bench.build.sources import Extension, Sources, read_sources
from kernelgate.bench.build.toolchain import Cuda, Toolchain, Torch
from kernelgate.bench.core.errors import BuildError
from tests.miniature import write


def sources(files: dict[str, bytes]) -> Sources:
    return Sources("gemm", Extension("csrc"), files)


SOURCES = sources({"csrc/a.h": b"a", "csrc/binding.cpp": b"b", "csrc/gemm_sm89.cu": b"89", "csrc/gemm_sm90.cu": b"90"})


def toolchain(home: str = "/opt") -> Toolchain:
    return Toolchain(
        gxx=Path(home, "g++"),
        gxx_version="g++ 12",
        ninja=Path(home, "ninja"),
        ccache=None,
        torch=torch("2.13.0", home),
        cuda=Cuda(Path(home, "cuda/include"), Path(home, "cuda/lib"), "nvcc 13", Path(home, "nvcc")),
        cuda_missing="",
    )


def torch(version: str, home: str = "/opt") -> Torch:
    return Torch(Path(home, "torch/include"), Path(home, "torch/lib"), version, Path(home, "python/include"))


BOTH = Recipe(SOURCES, ((8, 9), (9, 0)), toolchain(), None, ())
CPU = replace(BOTH, sources=SOURCES.for_targets(()), targets=())


def edited(recipe: Recipe, path: str, contents: bytes) -> Recipe:
    return replace(recipe, sources=replace(recipe.sources, files={**recipe.sources.files, path: contents}))


def with_spec(recipe: Recipe, pattern: str = "csrc", **spec: Any) -> Recipe:
    return replace(recipe, sources=replace(recipe.sources, spec=Extension(pattern, **spec)))


PLAIN = {"a.cpp": b"", "gemm.cu": b""}


@pytest.mark.parametrize(
    ("files", "wanted", "available"),
    [
        (PLAIN, [(9, 0, "a")], ((9, 0, "a"),)),
        ({**PLAIN, "b_sm90a.cu": b""}, [(9, 0)], ((9, 0), (9, 0, "a"))),
        # What is wanted of the one must not leave the other out.
        ({**PLAIN, "b_sm90.cu": b""}, [(9, 0, "a")], ((9, 0),)),
        ({"a.cpp": b"", "b_sm90.cu": b""}, [(8, 9)], ((9, 0),)),
    ],
)
def test_available_targets(
    files: dict[str, bytes], wanted: list[tuple[int, int]], available: tuple[tuple[int, int], ...]
) -> None:
    assert sources(files).available(wanted) == available


def test_cudaflags_come_after_the_cards_own_and_go_to_nvcc_alone() -> None:
    given = replace(with_spec(BOTH, nvcc_flags=("-DOWN",)), environment=(("CUDAFLAGS", "--use_fast_math '-DA=b c'"),))
    (nvcc,) = [line for line in given.ninja_file().splitlines() if "/nvcc" in line or "nvcc -ccbin" in line]
    assert nvcc.index("-DOWN") < nvcc.index("--use_fast_math") < nvcc.index("'-DA=b c'")
    assert given.ninja_file().count("--use_fast_math") == 1


DIFFERENT = {
    "a header": edited(BOTH, "csrc/a.h", b"other"),
    "flags": with_spec(BOTH, flags=("-DFAST",)),
    "targets": replace(BOTH, sources=SOURCES.for_targets([(9, 0)]), targets=((9, 0),)),
    "the CPU alone": CPU,
    "namespace": replace(BOTH, fixed_namespace="gemm"),
    "g++": replace(BOTH, toolchain=replace(toolchain(), gxx_version="g++ 13")),
    "nvcc": replace(BOTH, toolchain=replace(toolchain(), cuda=Cuda(Path("i"), Path("l"), "nvcc 14", Path("n")))),
    "torch": replace(BOTH, toolchain=replace(toolchain(), torch=torch("2.14.0"))),
    "CUDAFLAGS": replace(BOTH, environment=(("CUDAFLAGS", "-DFAST -Xptxas -v"),)),
}
EQUAL = {
    "another card": replace(BOTH, sources=replace(SOURCES, card="gemm2")),
    "a machine with other folders, and ccache": replace(
        BOTH, toolchain=replace(toolchain("/home/someone/.venv"), ccache=Path("/usr/bin/ccache"))
    ),
    "another pattern for the same files": with_spec(BOTH, "csrc/*"),
}


def test_key_tells_apart_what_makes_another_library() -> None:
    assert len({recipe.key for recipe in (BOTH, *DIFFERENT.values())}) == len(DIFFERENT) + 1
    assert {recipe.key for recipe in EQUAL.values()} == {BOTH.key}


def commands(recipe: Recipe) -> dict[str, str]:
    """Rule -> command."""
    lines = recipe.ninja_file().splitlines()
    return {one.removeprefix("rule "): two.strip() for one, two in pairwise(lines) if one.startswith("rule ")}


def test_a_torch_extension_is_compiled_against_all_of_torch() -> None:
    found = commands(with_spec(BOTH, torch="2.13"))
    for name in ("nvcc", "cxx"):
        assert "TORCH_TARGET_VERSION" not in found[name]
        assert re.findall(r"-std=\S+", found[name]) == ["-std=c++20"], "what torch 2.14 asks for"
        assert " -O3 -std=c++17 " in commands(BOTH)[name]
        folders = ("torch/include", "torch/include/torch/csrc/api/include", "python/include")
        assert "".join(f" -isystem ../tools/{folder}" for folder in folders) in found[name]
    assert found["link"].endswith("-ltorch_python -L../tools/cuda/lib -l:libcudart_static.a -lrt -ldl")
    assert "-z,defs" not in found["link"]


def test_headers_of_cudas_libraries_are_found_beside_the_torch_that_includes_them() -> None:
    """After the toolkit's own, which may lack them, and once where they lie there."""
    tools = BOTH.toolchain
    wheels = (Path("/site/nvidia/cusparse/include"), tools.cuda.include)
    beside = replace(BOTH, toolchain=replace(tools, torch=replace(tools.torch, wheels=wheels)))
    for name, command in commands(with_spec(beside, torch="2.13")).items():
        found = "-isystem ../tools/cuda/include -isystem ../tools/wheels/cusparse -" in command
        assert found == (name != "link"), command
    assert commands(beside) == commands(BOTH), "the stable ABI includes none of them"


def test_a_unit_knows_the_namespace_where_it_may_register_operators() -> None:
    """The others are the same in every library."""
    for name in (b"KERNELGATE_NAMESPACE", b"TORCH_EXTENSION_NAME"):
        for path, count in (("csrc/binding.cpp", 1), ("csrc/gemm_sm90.cu", 1), ("csrc/a.h", 3)):
            assert edited(BOTH, path, name).ninja_file().count("-DKERNELGATE_NAMESPACE=kernel_") == count
    assert "KERNELGATE_NAMESPACE" not in BOTH.ninja_file()


def test_a_unit_is_another_with_another_recipe() -> None:
    binding = b'#include "a.h"\n// KERNELGATE_NAMESPACE'
    recipes = (edited(one, "csrc/binding.cpp", binding) for one in (BOTH, *DIFFERENT.values()))
    assert len({recipe.unit_key("csrc/binding.cpp") for recipe in recipes}) == len(DIFFERENT) + 1


@pytest.mark.parametrize("flag", ["$HOME", "$$(touch here)", "$gencode;x"])
def test_a_flag_of_a_card_is_one_word(flag: str) -> None:
    """Neither ninja nor the shell finds a variable or a command in it."""
    text = commands(with_spec(CPU, flags=(flag,)))["cxx"]
    assert shlex.split(text.replace("$$", "$"))[-8:] == [flag, "-MD", "-MF", "$out.d", "-c", "$in", "-o", "$out"]


def read(tree: Path, *patterns: str, **spec: object) -> dict[str, str]:
    found = read_sources(tree, "here", "gemm", Extension(*patterns, **spec))  # type: ignore[arg-type]
    return {path: contents.decode() for path, contents in found.files.items()}


TREE = {
    "csrc/binding.cpp": "1",
    "csrc/gemm.cu": "2",
    "csrc/gemm.cuh": "3",
    "csrc/deep/er.cc": "4",
    "csrc/notes.md": "5",
    "csrc/gemm/__init__.py": "6",
    "other/other.cpp": "7",
    "root.cxx": "8",
}
IN_CSRC = {"csrc/binding.cpp", "csrc/gemm.cu", "csrc/gemm.cuh", "csrc/deep/er.cc"}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("csrc",), IN_CSRC),
        (("csrc/**/*.cc", "other"), {"csrc/deep/er.cc", "other/other.cpp"}),
        (("csrc/gemm.cu", "csrc/gemm*"), {"csrc/gemm.cu", "csrc/gemm.cuh"}),
        ((".",), {*IN_CSRC, "other/other.cpp", "root.cxx"}),
    ],
)
def test_patterns(tmp_path: Path, patterns: tuple[str, ...], expected: set[str]) -> None:
    found = read(write(tmp_path, TREE), *patterns)
    assert found == {path: TREE[path] for path in expected}
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("csrc/rms*", r"here has no sources at csrc/rms\*, which the card gemm names \(.*\.cpp .*\.cu "),
        ("csrc/../../else", r"the pattern csrc/\.\./\.\./else of the card gemm leads out of the repository$"),
        ("/etc", "here: the pattern /etc of the card gemm leads out of the repository$"),
        # Until Python 3.12 it is no pattern, and later one that matches nothing here.
        ("csrc/a**.cu", r"csrc/a\*\*\.cu\b.* card gemm (is no pattern: |names \()"),
    ],
)
def test_a_pattern_that_names_nothing(tmp_path: Path, pattern: str, says: str) -> None:
    write(tmp_path, {"else/x.cpp": ""})
    with pytest.raises(BuildError, match=says):
        read(write(tmp_path / "tree", TREE), "root.cxx", pattern)


@pytest.mark.parametrize("pattern", ["csrc", "csrc/*", "csrc/link*", "csrc/link/x.cpp", "."])
@pytest.mark.parametrize("to", ["folder", "file"])
def test_a_link_out_of_the_repository_is_not_followed(tmp_path: Path, to: str, pattern: str) -> None:
    outside = write(tmp_path, {"else/x.cpp": "secret"}) / "else"
    tree = write(tmp_path / "tree", TREE)
    link = "csrc/link" if to == "folder" else "csrc/link/x.cpp"
    (tree / link).parent.mkdir(exist_ok=True)
    (tree / link).symlink_to(outside if to == "folder" else outside / "x.cpp")
    says = r"the pattern .* of the card gemm leads out of the repository through the link csrc/link"
    with pytest.raises(BuildError, match=says):
        read(tree, pattern)


def test_headers_that_are_included_with_quotes_come_along(tmp_path: Path) -> None:
    files = {
        "csrc/gemm.cpp": '#include "gemm.h"\n  #  include "../common/util.hpp"\n#include <vector>\n',
        "csrc/gemm.h": "",
        "common/util.hpp": '#include "more/table.def"\n#include "gemm.h"\n#include "missing.h"\n',
        "common/more/table.def": '#include "../util.hpp"',
        "common/unused.h": "",
        "csrc/vector": "",
    }
    found = read(write(tmp_path / "tree", files), "csrc/gemm.cpp")
    assert set(found) == {"csrc/gemm.cpp", "csrc/gemm.h", "common/util.hpp", "common/more/table.def"}


@pytest.mark.parametrize(
    ("member", "flags"), [("flags", ("-DX", "-I", "include")), ("nvcc_flags", ("-iquoteinclude",))]
)
def test_headers_in_the_folders_that_flags_name_come_along(tmp_path: Path, member: str, flags: tuple[str, ...]) -> None:
    files = {"csrc/gemm.cpp": "#include <gemm/gemm.h>\n", "include/gemm/gemm.h": "", "include/gemm/unused.h": ""}
    found = read(write(tmp_path, files), "csrc/gemm.cpp", **{member: flags})
    assert set(found) == {"csrc/gemm.cpp", "include/gemm/gemm.h"}


@pytest.mark.parametrize(
    ("include", "says"),
    [
        ('"/etc/passwd"', "here: csrc/gemm.cpp:2 includes /etc/passwd, which lies outside of the repository"),
        ("</proc/self/environ>", "csrc/gemm.cpp:2 includes /proc/self/environ, which lies outside"),
        ('"../../outside.h"', "csrc/gemm.cpp:2 includes ../../outside.h, which lies outside"),
        ("<../../etc/passwd>", "csrc/gemm.cpp:2 includes ../../etc/passwd, which lies outside"),
        ('"../../tree/csrc/detour.h"', "csrc/gemm.cpp:2 includes ../../tree/csrc/detour.h, which lies outside"),
        ('"link.h"', "csrc/gemm.cpp includes csrc/link.h, a link that leads out of the repository"),
    ],
    ids=["absolute", "in angle brackets", "above", "above system folders", "by a detour", "through a link"],
)
def test_an_include_from_outside_of_the_repository(tmp_path: Path, include: str, says: str) -> None:
    write(tmp_path, {"outside.h": "secret"})
    tree = write(tmp_path / "tree", {"csrc/gemm.cpp": f"\n#include {include}\n", "csrc/detour.h": ""})
    (tree / "csrc" / "link.h").symlink_to(tmp_path / "outside.h")
    with pytest.raises(BuildError, match=re.escape(says)):
        read(tree, "csrc/gemm.cpp")


@pytest.mark.parametrize(
    "name",
    ["a\nb.cpp", "$(id).cpp", "a b.cpp", "a@b.cpp", "a;b.cpp", "\udcff.cpp", "-o.cpp"],
    ids=["newline", "substitution", "space", "at", "semicolon", "no UTF-8", "option"],
)
def test_a_source_with_an_odd_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(BuildError) as caught:
        read(tmp_path, ".")
    assert str(caught.value) == f"here: the source {name!r} needs another name, of letters, digits and . _ - / alone"


def test_a_source_that_another_one_includes_is_compiled_with_it(tmp_path: Path) -> None:
    files = {
        "csrc/gemm.cu": '#include "impl.cu"\n',
        "csrc/impl.cu": "",
        "csrc/binding.cpp": '#include "checks.cpp"\n',
        "csrc/checks.cpp": "",
        "csrc/gemm_sm90.cu": '#include "impl.cu"\n',
        "csrc/gemm_sm90a.cu": '#include "gemm_sm90.cu"\n',
    }
    found = read_sources(write(tmp_path, files), "here", "gemm", Extension("csrc"))
    assert (found.plain_units, found.host_units) == (("csrc/gemm.cu",), ("csrc/binding.cpp",))
    assert found.target_units == {(9, 0): ("csrc/gemm_sm90.cu",), (9, 0, "a"): ("csrc/gemm_sm90a.cu",)}
    recipe = replace(BOTH, sources=found.for_targets([(9, 0, "a")]), targets=((9, 0, "a"),))
    assert recipe.units == ("csrc/gemm_sm90a.cu", "csrc/gemm.cu", "csrc/binding.cpp")
    assert set(recipe.sources.files) == set(files)


@pytest.mark.parametrize("header", ["torch/extension.h", "c10/cuda/CUDAStream.h"])
def test_a_header_beyond_the_stable_abi_needs_a_torch(tmp_path: Path, header: str) -> None:
    included = f"// #include <{header}>\n\n # include <{header}>"
    tree = write(tmp_path, {"a.cpp": '// first\n#include "b.h"\n', "b.h": included})
    with pytest.raises(BuildError) as raised:
        read(tree, "a.cpp")
    said = str(raised.value)
    assert said.startswith(f"here: b.h:3 includes {header}, but the card gemm is compiled to the stable ABI")
    assert set(read(tree, "a.cpp", torch="2.11")) == {"a.cpp", "b.h"}


@pytest.mark.parametrize(
    ("text", "literal", "namespace"),
    [
        (b"STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) {", None, "ours"),
        (b"TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m) {", None, "ours"),
        (b"  STABLE_TORCH_LIBRARY( my_ops , m) {", "my_ops", "my_ops"),
        (b"x;\nTORCH_LIBRARY_FRAGMENT(my_ops, m) {", "my_ops", "my_ops"),
        (b"// TORCH_LIBRARY(my_ops, m)", None, "ours"),
        (b"TORCH_LIBRARY_IMPL(aten, CPU, m) {", None, "ours"),
        (b'auto r = torch::RegisterOperators()\n    .op("my_ops::scale", &scale);', "my_ops", "my_ops"),
        # Such as #ifdef KERNELGATE_NAMESPACE … #else …: on the one path that is compiled here, or on both.
        (b"STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) {\nTORCH_LIBRARY(my_ops, m) {", "my_ops", "ours"),
    ],
)
def test_namespace_that_sources_register_under(text: bytes, literal: str | None, namespace: str) -> None:
    found = sources({"a.cpp": b"", "b.cu": text})
    assert (found.literal_namespace, found.namespace("ours")) == (literal, namespace)
