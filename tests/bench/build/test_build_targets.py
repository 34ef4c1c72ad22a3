"""Which code a library has for which GPU, and what is known of it: real nvcc, no GPU."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import archs, build, library
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.core.errors import BuildError, CompileError
from kernelgate.bench.system import cuda_tools
from tests.bench.build.test_machine_code import record
from tests.miniature import BINDING, CARD, GPU_FILES, KERNEL, KERNEL_HEADER, compiled, write

pytestmark = pytest.mark.usefixtures("cache")

PLAIN = """\
namespace {
__global__ void plain_kernel(float* out) { out[threadIdx.x] = 1.0F; }
}
void process_all() { plain_kernel<<<1, 1>>>(nullptr); }
"""
"""A .cu for every target."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Sources for the CPU, sm_80 and sm_89."""
    return write(tmp_path / "a checkout", GPU_FILES)


def targets_of(built: Library) -> bytes:
    """What the host's code was told of the device's."""
    import torch  # noqa: F401  its libraries are those that ours names

    dll = ctypes.CDLL(str(built.path))
    dll.the_targets.restype = ctypes.c_char_p
    told: bytes = dll.the_targets()
    return told


def test_a_target_that_the_sources_lack(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archs.ARCH_LIST, "8.9;9.0")
    says = rf"asks for sm_90, but the sources of {CARD} have no translation unit for it; they have: sm_80, sm_89"
    with pytest.raises(BuildError, match=says):
        compiled(tree)


@pytest.mark.slow
def test_without_an_arch_list_the_l4_and_the_gpu_at_hand_are_served(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ((8, 6), (12, 0)))
    assert compiled(tree).manifest.targets == ("sm_80", "sm_89")
    said = capfd.readouterr().err
    assert f"no target of {CARD} runs on compute capability 12.0; it has: sm_80, sm_89" in said
    assert "8.6" not in said


def test_without_nvcc_the_cpu_path_is_compiled(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda_tools, "candidates", lambda *_: iter(()))
    built = compiled(write(tree, {"csrc/plain.cu": "#error not compiled here"}))
    assert built.manifest.targets == ()
    assert targets_of(built) == b""
    assert "nvcc, which compiles CUDA, is neither on PATH" in (said := capfd.readouterr().err)
    assert 'only the CPU path is compiled (for a GPU: pip install "cuda-toolkit[cccl,nvcc]==13.*"' in said

    monkeypatch.setenv(archs.ARCH_LIST, "8.9")
    with pytest.raises(BuildError, match=r"TORCH_CUDA_ARCH_LIST is set, but nvcc, .* pip install .cuda-toolkit"):
        compiled(tree)


def test_without_nvcc_there_must_be_a_cpu_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tools, "candidates", lambda *_: iter(()))
    with pytest.raises(BuildError, match=rf"{CARD} has CUDA sources alone, but nvcc, .* pip install .cuda-toolkit"):
        compiled(write(tmp_path, {"csrc/plain.cu": PLAIN}))


def test_a_failed_kernel_names_its_target(tree: Path) -> None:
    write(tree, {"csrc/kernel.cuh": KERNEL_HEADER.replace("threadIdx.x", "threadIndex.x")})
    says = r"does not compile for sm_89: csrc/kernel.cuh:3: error: identifier"
    with pytest.raises(CompileError, match=says) as caught:
        compiled(tree)
    assert caught.value.target == "sm_89"


def test_a_cuda_unit_of_two_commits_is_compiled_once(tree: Path, cache: Path) -> None:
    first = compiled(tree)
    second = compiled(write(tree, {"csrc/binding.cpp": BINDING.replace("42", "43")}))
    steps = [(cache / "logs" / f"{one.manifest.key}.log").read_text(encoding="utf-8") for one in (first, second)]
    assert ["/2] csrc/binding.cpp" in one for one in steps] == [False, True], "only the binding, and the link"
    assert ["[1/1] csrc/answer_sm89.cu" in one for one in steps] == [False, True]
    assert first.manifest.code == second.manifest.code


@pytest.fixture
def carried(tree: Path, tmp_path: Path) -> Library:
    """A library that says what its launches ask for, carried to a folder beside which there is nothing else."""
    built = compiled(
        write(tree, {"csrc/answer_sm89.cu": record('"kernel"', "1", "89", "6144", "96") + KERNEL}), sha="1" * 40
    )
    build.export(built, tmp_path / "elsewhere")
    shutil.rmtree(tree)
    return library.read(tmp_path / "elsewhere")


def test_facts_are_read_without_sources(carried: Library) -> None:
    (found,) = library.build_records(Sides(None, carried))
    (kernel,) = found.kernels
    assert (found.card, found.side, found.sha, found.targets) == (CARD, "head", "1" * 40, ("sm_89",))
    assert (kernel.name, kernel.target, kernel.threads) == ("kernel", "sm_89", 96)
    assert (kernel.spill_bytes, kernel.static_shared_bytes, kernel.dynamic_shared_bytes) == (0, 0, 6144)
    assert kernel.registers
    assert kernel.instructions["STG"] == 1
    # 7 KiB per block of 100 KiB, the system's kilobyte counted: 14 blocks of 3 warps, of 48.
    assert kernel.occupancy_pct == {"L4 and L40S": 87.5}
    assert kernel.occupancy_limits == {"L4 and L40S": "shared memory"}


@pytest.mark.slow
def test_facts_that_were_missing_are_read_once_the_tools_are_there(
    tree: Path, monkeypatch: pytest.MonkeyPatch, no_compiling: Callable[[], None]
) -> None:
    find = cuda_tools.candidates
    with monkeypatch.context() as without:
        without.setattr(cuda_tools, "candidates", lambda name, *_: iter(()) if name == "nvdisasm" else find(name, *_))
        built = compiled(tree)
    assert built.manifest.kernels == ()
    (missing,) = library.facts_missing(Sides(None, built))
    assert missing.startswith("head: nvdisasm, which is needed by cuobjdump, is neither on PATH")
    no_compiling()
    again = compiled(tree)
    assert (again.manifest.sha256, again.manifest.facts_missing) == (built.manifest.sha256, None)
    assert len(library.read(built.folder).manifest.kernels) == 1
