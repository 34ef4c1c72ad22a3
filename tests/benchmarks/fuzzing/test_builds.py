"""Every planted bug of a GPU path compiles: a GPU's time is not to be spent on finding out.

Only what a bug changes is compiled. Those of the CPU are compiled where they are looked for (test_caught.py).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import Bug
from kernelgate.bench.build import toolchain
from kernelgate.bench.build.build import STABLE_ABI
from kernelgate.bench.build.toolchain import Cuda

pytestmark = pytest.mark.nightly

TARGET = ("-arch=sm_90a", "-DKERNELGATE_SM90A")
UNITS = {path: f"csrc/attention/{path}/{path}_sm90a.cu" for path in ("wgmma", "mma_sync")}
"""The translation unit that has the headers of a path."""
NATIVE = [bug for bug in library.select("cuda") if bug.edits and bug.path != "triton"]


@pytest.fixture(scope="module")
def cuda() -> Cuda:
    found = toolchain.find().cuda
    assert found is not None, "the pinned nvcc is missing"
    return found


@pytest.mark.parametrize("bug", NATIVE, ids=lambda bug: bug.id)
def test_a_bug_of_a_gpu_path_compiles(bug: Bug, cuda: Cuda, tmp_path: Path) -> None:
    tree = planting.plant(bug, "cuda", tmp_path).tree
    for unit in units(bug):
        done = subprocess.run(command(unit, cuda), cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("bug", [bug for bug in library.BUGS if bug.path == "triton"], ids=lambda bug: bug.id)
def test_a_bug_in_triton_compiles(bug: Bug, tmp_path: Path) -> None:
    planting.build(planting.plant(bug, "cuda", tmp_path), targets="9.0")


def units(bug: Bug) -> list[str]:
    """What is compiled anew where the bug is planted."""
    edited = {edit.file for edit in bug.edits}
    own = {file for file in edited if file.endswith((".cu", ".cpp"))}
    headers = edited - own
    if bug.path in UNITS and headers:
        return [*own, UNITS[bug.path]]
    return [*own, "csrc/attention/wgmma/wgmma_sm90a.cu"] if headers else sorted(own)


def command(unit: str, cuda: Cuda) -> list[str | Path]:
    """Compiles one unit to nothing."""
    torch = toolchain.find().torch.include
    common = ["-std=c++17", "-DKERNELGATE_CUDA", *TARGET[1:], STABLE_ABI, "-isystem", torch, "-isystem", cuda.include]
    if unit.endswith(".cpp"):
        return ["g++", *common, "-fsyntax-only", unit]
    return [cuda.nvcc, *common, TARGET[0], "--expt-relaxed-constexpr", "-c", unit, "-o", "/dev/null"]
