"""Which files a card's patterns name, what comes along, and which of them torch's stable ABI refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.build.recipe import namespace_of
from kernelgate.bench.build.sources import Extension, literal_namespace, read_sources
from kernelgate.bench.core.errors import BuildError
from tests.bench.build.test_recipe import BOTH, sources
from tests.miniature import write


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
        (("csrc/gemm*",), {"csrc/gemm.cu", "csrc/gemm.cuh"}),
        (("csrc/**/*.cc", "other"), {"csrc/deep/er.cc", "other/other.cpp"}),
        (("csrc/gemm.cu", "csrc/gemm*"), {"csrc/gemm.cu", "csrc/gemm.cuh"}),
        (("./root.cxx",), {"root.cxx"}),
        (
            (".",),
            {"csrc/binding.cpp", "csrc/gemm.cu", "csrc/gemm.cuh", "csrc/deep/er.cc", "other/other.cpp", "root.cxx"},
        ),
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
        ("../else", r"here: the pattern \.\./else of the card gemm leads out of the repository$"),
        ("csrc/../../else", r"the pattern csrc/\.\./\.\./else of the card gemm leads out of the repository$"),
        ("/etc", "here: the pattern /etc of the card gemm leads out of the repository$"),
        ("csrc/a**.cu", r"the pattern csrc/a\*\*\.cu of the card gemm is no pattern: "),
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
    files = {
        "csrc/gemm.cpp": '#include <gemm/gemm.h>\n#include "gemm/own.h"\n',
        "csrc/gemm/own.h": "",
        "include/gemm/gemm.h": '#include "other.h"',
        "include/gemm/other.h": "",
        "include/gemm/unused.h": "",
    }
    found = read(write(tmp_path, files), "csrc/gemm.cpp", **{member: flags})
    assert set(found) == {"csrc/gemm.cpp", "csrc/gemm/own.h", "include/gemm/gemm.h", "include/gemm/other.h"}


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
    str(caught.value).encode()


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


@pytest.mark.parametrize(
    "header",
    ["torch/extension.h", "torch/library.h", "ATen/ATen.h", "c10/cuda/CUDAStream.h"],
)
def test_a_header_beyond_the_stable_abi_needs_a_torch(tmp_path: Path, header: str) -> None:
    tree = write(
        tmp_path, {"a.cpp": '// first\n#include "b.h"\n', "b.h": f"// #include <{header}>\n\n # include <{header}>"}
    )
    with pytest.raises(BuildError) as raised:
        read(tree, "a.cpp")
    said = str(raised.value)
    assert said.startswith(f"here: b.h:3 includes {header}, but the card gemm is compiled to the stable ABI")
    assert "include <torch/csrc/stable/library.h> instead" in said
    assert 'Extension(…, torch="2.11"); see https:' in said
    assert set(read(tree, "a.cpp", torch="2.11")) == {"a.cpp", "b.h"}


@pytest.mark.parametrize(
    ("text", "literal", "namespace"),
    [
        (b"STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) {", None, "ours"),
        (b"TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, m) {", None, "ours"),
        (b"TORCH_LIBRARY(my_ops, m) {", "my_ops", "my_ops"),
        (b"  STABLE_TORCH_LIBRARY( my_ops , m) {", "my_ops", "my_ops"),
        (b"x;\nTORCH_LIBRARY_FRAGMENT(my_ops, m) {", "my_ops", "my_ops"),
        (b"// TORCH_LIBRARY(my_ops, m)", None, "ours"),
        (b"TORCH_LIBRARY_IMPL(aten, CPU, m) {", None, "ours"),
        # Such as #ifdef KERNELGATE_NAMESPACE … #else …: on the one path that is compiled here, or on both.
        (b"STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) {\nTORCH_LIBRARY(my_ops, m) {", "my_ops", "ours"),
    ],
)
def test_namespace_that_sources_register_under(text: bytes, literal: str | None, namespace: str) -> None:
    recipe = replace(BOTH, sources=sources({"a.cpp": b"", "b.cu": text}), fixed_namespace="ours")
    assert (literal_namespace(recipe.sources), namespace_of(recipe)) == (literal, namespace)
