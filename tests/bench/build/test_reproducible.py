"""Two builds of one commit are the same bytes, wherever they were made: a library's sha256 says what was measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.sources import Extension
from kernelgate.bench.system import isolation
from tests.miniature import CPU_FILES, GPU_FILES, compiled, write

pytestmark = pytest.mark.usefixtures("cache")

HEADER = '#define WHERE(name) __attribute__((visibility("default"))) const char* name() { return __FILE__; }\n'
"""Of an environment: its macro says where it is used, and `here` where it stands."""
HERE = """\
inline const char* header() { return __FILE__; }
#ifdef __CUDACC__
__device__ inline float twice(float x) { return sqrtf(x * x) / 3.0f; }
#endif
"""
BINDING = '#include <installed.h>\nWHERE(where)\n__attribute__((visibility("default"))) auto x() { return header(); }\n'
KERNEL = """\
#include <installed.h>
namespace {
template <int N> __global__ void of_a_template(float* out) { out[threadIdx.x] += twice(__shfl_sync(~0U, out[0], N)); }
__device__ int counter;
__global__ void counting() { atomicAdd(&counter, 1); }
}
void launch() {
  of_a_template<3><<<1, 1>>>(nullptr);
  counting<<<1, 1>>>();
}
"""


def built(place: Path, files: dict[str, str], *flags: str) -> bytes:
    """The library of these sources, built in a checkout, an environment and a cache of its own."""
    real = toolchain.find()
    environment = write(place / "environment", {"include/installed.h": HEADER + HERE})
    os.utime(environment / "include/installed.h", (time := len(str(place)) * 10**7, time))
    torch = replace(real.torch, include=environment / "include", lib=environment / "lib")
    torch.lib.symlink_to(real.torch.lib)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(toolchain, "find", lambda: replace(real, torch=torch))
        patched.setenv(build_cache.CACHE_VARIABLE, str(place / "cache"))
        library = compiled(write(place / "checkout", files), Extension("csrc", flags=flags))
    assert not library.cached
    return library.path.read_bytes()


def here_and_elsewhere(tmp_path: Path, files: dict[str, str], *flags: str) -> bytes:
    """The library, which is the same in both places and knows neither."""
    first = built(tmp_path / "here", files, *flags)
    second = built(tmp_path / "somewhere" / "else", files, *flags)
    assert str(tmp_path).encode() not in first
    assert first == second
    return first


def test_two_builds_for_the_cpu(tmp_path: Path) -> None:
    library = here_and_elsewhere(tmp_path, {**CPU_FILES, "csrc/where.cpp": BINDING}, "-g")
    assert b"tools/torch/include/installed.h" in library


@pytest.mark.slow
def test_two_builds_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc names what is local after the absolute path, intermediate files after the process, and writes down when
    sources were changed, and when the headers of the environment were, whose device code stands in line tables."""
    monkeypatch.setenv(archs.ARCH_LIST, "8.9;9.0a")
    own = {"csrc/launch.cu": KERNEL, "csrc/deeper/answer_sm90a.cu": KERNEL.replace("launch", "launch_wgmma")}
    here_and_elsewhere(tmp_path, {**GPU_FILES, **own}, "-g")


@pytest.mark.slow
def test_what_is_compiled_in_the_sandbox_is_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a runner, where the checkout lies in the folder that is hidden."""
    first = built(tmp_path / "here", CPU_FILES)
    temporary = tmp_path / "runner" / "_work" / "_temp"
    workspace = temporary.parent / "else"
    for folder in (temporary, workspace):
        folder.mkdir(parents=True)
    told = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(temporary), "GITHUB_WORKSPACE": str(workspace)}
    found = isolation.of(told)
    if not found.words:
        pytest.skip(found.said)
    monkeypatch.setattr(isolation, "of_sources", lambda: replace(found, words=(*found.words, *isolation.OWN_PROCESSES)))
    assert built(workspace, CPU_FILES) == first
