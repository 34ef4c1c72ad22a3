from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build.recipe import Recipe
from kernelgate.bench.build.sources import Extension, Sources
from kernelgate.bench.build.toolchain import Cuda, Toolchain, Torch


def sources(files: dict[str, bytes], **spec: Any) -> Sources:
    return Sources("gemm", Extension("csrc", **spec), files)


SOURCES = sources(
    {
        "csrc/a.h": b"a",
        "csrc/binding.cpp": b"b",
        "csrc/gemm_sm89.cu": b"89",
        "csrc/gemm_sm90.cu": b"90",
    }
)


def toolchain(home: str = "/opt") -> Toolchain:
    return Toolchain(
        gxx=Path(home, "g++"),
        gxx_version="g++ 12",
        ninja=Path(home, "ninja"),
        ccache=None,
        torch=torch("2.13.0", home),
        cuda=Cuda(Path(home, "nvcc"), Path(home, "cuda/include"), Path(home, "cuda/lib"), "nvcc 13"),
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
        ({**PLAIN, "b_sm80.cu": b""}, [(9, 0)], ((8, 0), (9, 0))),
        ({**PLAIN, "b_sm90a.cu": b""}, [(9, 0)], ((9, 0), (9, 0, "a"))),
        # What is wanted of the one must not leave the other out.
        ({**PLAIN, "b_sm90.cu": b""}, [(9, 0, "a")], ((9, 0),)),
        ({"a.cpp": b"", "b_sm90.cu": b""}, [(8, 9)], ((9, 0),)),
        ({"a.cpp": b""}, [(8, 9)], ()),
    ],
)
def test_available_targets(
    files: dict[str, bytes], wanted: list[tuple[int, int]], available: tuple[tuple[int, int], ...]
) -> None:
    assert sources(files).available(wanted) == available


def test_cudaflags_come_after_the_cards_own_and_go_to_nvcc_alone() -> None:
    given = replace(with_spec(BOTH, nvcc_flags=("-DOWN",)), environment=(("CUDAFLAGS", "--use_fast_math '-DA=b c'"),))
    (nvcc,) = [line for line in given.ninja_file.splitlines() if "/nvcc" in line or "nvcc -ccbin" in line]
    assert nvcc.index("-DOWN") < nvcc.index("--use_fast_math") < nvcc.index("'-DA=b c'")
    assert given.ninja_file.count("--use_fast_math") == 1
    assert "--use_fast_math" in given.without_contents().ninja_file, "a machine's own flags are not the sources' fault"


DIFFERENT = {
    "a header": edited(BOTH, "csrc/a.h", b"other"),
    "card": replace(BOTH, sources=replace(SOURCES, card="gemm2")),
    "flags": with_spec(BOTH, flags=("-DFAST",)),
    "targets": replace(BOTH, sources=SOURCES.for_targets([(9, 0)]), targets=((9, 0),)),
    "the CPU alone": CPU,
    "namespace": replace(BOTH, fixed_namespace="gemm"),
    "g++": replace(BOTH, toolchain=replace(toolchain(), gxx_version="g++ 13")),
    "nvcc": replace(BOTH, toolchain=replace(toolchain(), cuda=Cuda(Path("n"), Path("i"), Path("l"), "nvcc 14"))),
    "torch": replace(BOTH, toolchain=replace(toolchain(), torch=torch("2.14.0"))),
    "CUDAFLAGS": replace(BOTH, environment=(("CUDAFLAGS", "-DFAST -Xptxas -v"),)),
}
EQUAL = {
    "a machine with other folders": replace(BOTH, toolchain=toolchain("/home/someone/.venv")),
    "ccache": replace(BOTH, toolchain=replace(toolchain(), ccache=Path("/usr/bin/ccache"))),
    "another pattern for the same files": with_spec(BOTH, "csrc/*"),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_key_tells_apart(other: Recipe) -> None:
    assert other.key != BOTH.key
    assert len({recipe.key for recipe in DIFFERENT.values()}) == len(DIFFERENT)


@pytest.mark.parametrize("card", ["my-scale.v2", "3d_conv", "scale"])
def test_operators_are_registered_under_a_name_that_cpp_has(card: str) -> None:
    named = replace(BOTH, sources=replace(SOURCES, card=card))
    assert re.fullmatch(r"[A-Za-z_]\w*", named.namespace, re.ASCII)
    assert f"-DKERNELGATE_NAMESPACE={named.namespace}" in named.ninja_file


@pytest.mark.parametrize("other", EQUAL.values(), ids=EQUAL.keys())
def test_key_is_the_same_for(other: Recipe) -> None:
    assert other.key == BOTH.key


def test_ninja_file() -> None:
    recipe = replace(BOTH, fixed_namespace="ns", toolchain=replace(toolchain(), ccache=Path("/opt/ccache")))
    assert (
        recipe.ninja_file
        == """\
rule nvcc
  command = /opt/ccache ../tools/cuda/bin/nvcc -ccbin ../tools/host/g++ -O3 -std=c++17 --expt-relaxed-constexpr \
-lineinfo -Xcompiler -fPIC,-fvisibility=hidden,-fno-gnu-unique,-Wall -DKERNELGATE_CUDA -DKERNELGATE_SM89 \
-DKERNELGATE_SM90 -DTORCH_TARGET_VERSION=0x020b000000000000 -isystem ../tools/torch/include \
-isystem ../tools/cuda/include \
--objdir-as-tempdir -Xcudafe --orig_src_path_name=$in $gencode -c $in -o $out
  description = $in
rule cxx
  command = /opt/ccache /opt/g++ -O3 -std=c++17 -fPIC -fvisibility=hidden -fno-gnu-unique -Wall -Wextra \
-DKERNELGATE_CUDA -DKERNELGATE_SM89 -DKERNELGATE_SM90 -DKERNELGATE_NAMESPACE=ns -DTORCH_EXTENSION_NAME=ns \
-DTORCH_TARGET_VERSION=0x020b000000000000 -isystem ../tools/torch/include -isystem ../tools/cuda/include \
-c $in -o $out
  description = $in
rule link
  command = /opt/g++ -o $out $in -L../tools/torch/lib -shared -Wl,-z,defs -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
-Xlinker --no-as-needed -ltorch -Xlinker --as-needed -ltorch_cpu -lc10 -lpthread \
-L../tools/cuda/lib -l:libcudart_static.a -lrt -ldl
  description = $out
build csrc/gemm_sm89.cu.o: nvcc csrc/gemm_sm89.cu
  gencode = -gencode arch=compute_89,code=sm_89
build csrc/gemm_sm90.cu.o: nvcc csrc/gemm_sm90.cu
  gencode = -gencode arch=compute_90,code=sm_90
build csrc/binding.cpp.o: cxx csrc/binding.cpp
build kernel.so: link csrc/gemm_sm89.cu.o csrc/gemm_sm90.cu.o csrc/binding.cpp.o
"""
    )


def commands(recipe: Recipe) -> dict[str, str]:
    """Rule -> command."""
    lines = recipe.ninja_file.splitlines()
    return {one.removeprefix("rule "): two.strip() for one, two in pairwise(lines) if one.startswith("rule ")}


def test_a_torch_extension_is_compiled_against_all_of_torch() -> None:
    found = commands(with_spec(BOTH, torch="2.13"))
    for name in ("nvcc", "cxx"):
        assert "TORCH_TARGET_VERSION" not in found[name]
        folders = ("torch/include", "torch/include/torch/csrc/api/include", "python/include")
        assert "".join(f" -isystem ../tools/{folder}" for folder in folders) in found[name]
    assert found["link"].endswith("-ltorch_python -L../tools/cuda/lib -l:libcudart_static.a -lrt -ldl")
    assert "-z,defs" not in found["link"]


def test_nvcc_knows_the_namespace_where_device_code_does() -> None:
    assert "KERNELGATE_NAMESPACE" not in commands(BOTH)["nvcc"]
    for name in (b"KERNELGATE_NAMESPACE", b"TORCH_EXTENSION_NAME"):
        assert "-DKERNELGATE_NAMESPACE=" in commands(edited(BOTH, "csrc/a.h", name))["nvcc"]


@pytest.mark.parametrize("flag", ["$HOME", "$$(touch here)", "$gencode;x"])
def test_a_flag_of_a_card_is_one_word(flag: str) -> None:
    """Neither ninja nor the shell finds a variable or a command in it."""
    text = commands(with_spec(CPU, flags=(flag,)))["cxx"]
    assert shlex.split(text.replace("$$", "$"))[-5:] == [flag, "-c", "$in", "-o", "$out"]
