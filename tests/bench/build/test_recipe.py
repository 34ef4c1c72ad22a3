from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.build.recipe import Recipe, Sources, read_sources, target_of
from kernelgate.bench.build.toolchain import Cuda, Toolchain, Torch
from kernelgate.bench.errors import NoKernelError

SOURCES = Sources(
    {
        "csrc/a.h": b"a",
        "csrc/binding.cpp": b"b",
        "csrc/fa_s512_sm89.cu": b"89",
        "csrc/fa_s512_sm90.cu": b"90",
    }
)


def toolchain(home: str = "/opt") -> Toolchain:
    return Toolchain(
        gxx=Path(home, "g++"),
        gxx_version="g++ 12",
        ninja=Path(home, "ninja"),
        ccache=None,
        torch=Torch(Path(home, "torch/include"), Path(home, "torch/lib"), "2.13.0"),
        cuda=Cuda(Path(home, "nvcc"), Path(home, "cuda/include"), Path(home, "cuda/lib"), "nvcc 13"),
        cuda_missing="",
    )


BOTH = Recipe(SOURCES, ((8, 9), (9, 0)), toolchain(), None, ())
CPU = replace(BOTH, sources=SOURCES.for_targets(()), targets=())


def edited(recipe: Recipe, path: str, contents: bytes) -> Recipe:
    return replace(recipe, sources=Sources({**recipe.sources.files, path: contents}))


def test_read_sources(tmp_path: Path) -> None:
    for path in ("binding.cpp", "x.cu", "x.cuh", "deep/x.h", "notes.md", "fa_s512/__init__.py"):
        (tmp_path / "csrc" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "csrc" / path).write_bytes(path.encode())
    assert dict(read_sources(tmp_path, "here").files) == {
        "csrc/binding.cpp": b"binding.cpp",
        "csrc/deep/x.h": b"deep/x.h",
        "csrc/x.cu": b"x.cu",
        "csrc/x.cuh": b"x.cuh",
    }


def test_read_sources_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(NoKernelError, match=r"commit 123 has no csrc/\*\*/\*.cpp: there is no kernel to compile"):
        read_sources(tmp_path, "commit 123")


def test_units() -> None:
    assert BOTH.units == ("csrc/fa_s512_sm89.cu", "csrc/fa_s512_sm90.cu", "csrc/binding.cpp")
    assert CPU.units == ("csrc/binding.cpp",)
    assert [target_of(unit) for unit in BOTH.units] == ["sm_89", "sm_90", None]


def test_units_in_folders() -> None:
    """Every .cpp of any folder, and of each target that is wanted the units named after it."""
    names = ("attention/binding.cpp", "attention/cpu/cpu.cpp", "attention/mma_sync/mma_sync_sm90.cu")
    hopper = ("attention/mma_sync/mma_sync_sm90a.cu", "attention/wgmma/wgmma_sm90a.cu")
    sources = Sources({f"csrc/{name}": b"" for name in (*names, *hopper, "attention/wgmma/kernel.cuh")})
    assert sources.units == ("csrc/attention/binding.cpp", "csrc/attention/cpu/cpu.cpp")
    recipe = replace(BOTH, sources=sources.for_targets([(9, 0, "a")]), targets=((9, 0, "a"),))
    assert recipe.units == (*(f"csrc/{name}" for name in hopper), *sources.units)
    assert f"csrc/{names[2]}" not in recipe.sources.files
    assert "-DFA_S512_SM90A " in recipe.ninja_file
    assert "gencode = arch=compute_90a,code=sm_90a" in recipe.ninja_file
    assert target_of(recipe.units[0]) == "sm_90a"


DIFFERENT = {
    "a header": edited(BOTH, "csrc/a.h", b"other"),
    "a file's name": edited(BOTH, "csrc/b.h", b""),
    "targets": replace(BOTH, sources=SOURCES.for_targets([(9, 0)]), targets=((9, 0),)),
    "the CPU alone": CPU,
    "namespace": replace(BOTH, fixed_namespace="fa_s512"),
    "g++": replace(BOTH, toolchain=replace(toolchain(), gxx_version="g++ 13")),
    "nvcc": replace(BOTH, toolchain=replace(toolchain(), cuda=Cuda(Path("n"), Path("i"), Path("l"), "nvcc 14"))),
    "torch": replace(BOTH, toolchain=replace(toolchain(), torch=Torch(Path("i"), Path("l"), "2.14.0"))),
    "environment": replace(BOTH, environment=(("CPATH", "/x"),)),
}
EQUAL = {
    "a machine with other folders": replace(BOTH, toolchain=toolchain("/home/someone/.venv")),
    "ccache": replace(BOTH, toolchain=replace(toolchain(), ccache=Path("/usr/bin/ccache"))),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_key_tells_apart(other: Recipe) -> None:
    assert other.key != BOTH.key
    assert len({recipe.key for recipe in DIFFERENT.values()}) == len(DIFFERENT)


@pytest.mark.parametrize("other", EQUAL.values(), ids=EQUAL.keys())
def test_key_is_the_same_for(other: Recipe) -> None:
    assert other.key == BOTH.key


def test_key_of_a_cpu_library_does_not_know_nvcc() -> None:
    assert replace(CPU, toolchain=replace(toolchain(), cuda=None, cuda_missing="no nvcc")).key == CPU.key


def test_key_ignores_targets_that_are_not_compiled() -> None:
    other = edited(BOTH, "csrc/fa_s512_sm90.cu", b"other").sources
    keys = {replace(BOTH, sources=one.for_targets([(8, 9)]), targets=((8, 9),)).key for one in (SOURCES, other)}
    assert len(keys) == 1


def test_namespace_comes_from_the_key() -> None:
    assert BOTH.namespace == f"fa_s512_{BOTH.key[:12]}"
    assert replace(BOTH, fixed_namespace="fa_s512").namespace == "fa_s512"


def test_ninja_file() -> None:
    recipe = replace(BOTH, fixed_namespace="ns", toolchain=replace(toolchain(), ccache=Path("/opt/ccache")))
    assert (
        recipe.ninja_file
        == """\
rule nvcc
  command = /opt/ccache /opt/nvcc -ccbin /opt/g++ -O3 -std=c++17 --expt-relaxed-constexpr -lineinfo \
-Xcompiler -fPIC,-fvisibility=hidden,-fno-gnu-unique,-Wall -DFA_S512_SM89 -DFA_S512_SM90 \
-gencode $gencode -c $in -o $out
  description = $in
rule cxx
  command = /opt/ccache /opt/g++ -O3 -std=c++17 -fPIC -fvisibility=hidden -fno-gnu-unique -Wall -Wextra \
-DTORCH_TARGET_VERSION=0x020b000000000000 -DFA_S512_SM89 -DFA_S512_SM90 -DKERNELGATE_NAMESPACE=ns \
-isystem /opt/torch/include -isystem /opt/cuda/include -c $in -o $out
  description = $in
rule link
  command = /opt/g++ -o $out $in -L/opt/torch/lib -shared -Wl,-z,defs -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
-Xlinker --no-as-needed -ltorch -Xlinker --as-needed -ltorch_cpu -lc10 -lpthread \
-L/opt/cuda/lib -l:libcudart_static.a -lrt -ldl
  description = $out
build csrc/fa_s512_sm89.cu.o: nvcc csrc/fa_s512_sm89.cu
  gencode = arch=compute_89,code=sm_89
build csrc/fa_s512_sm90.cu.o: nvcc csrc/fa_s512_sm90.cu
  gencode = arch=compute_90,code=sm_90
build csrc/binding.cpp.o: cxx csrc/binding.cpp
build kernel.so: link csrc/fa_s512_sm89.cu.o csrc/fa_s512_sm90.cu.o csrc/binding.cpp.o
"""
    )


def test_ninja_file_for_the_cpu_alone() -> None:
    text = CPU.ninja_file
    assert "nvcc" not in text
    assert "cuda" not in text
    assert "FA_S512_SM" not in text


def test_ninja_file_quotes_folders() -> None:
    text = replace(CPU, toolchain=toolchain("/my $tools")).ninja_file
    assert "-isystem '/my $$tools/torch/include'" in text
    assert "'-L/my $$tools/torch/lib'" in text
