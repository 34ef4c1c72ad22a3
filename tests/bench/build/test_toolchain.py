from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from kernelgate.bench.build import toolchain
from kernelgate.bench.core.errors import BuildError
from kernelgate.bench.system import cuda_tools
from tests.processes import program

REAL_FIND_SPEC = importlib.util.find_spec


def cuda(root: Path, *, headers: bool = True, runtime: bool = True, layout: str = "") -> Path:
    """A folder that looks like a CUDA installation; the path of its nvcc."""
    for wanted, file in ((headers, "include/cuda_runtime.h"), (runtime, "lib/libcudart_static.a")):
        if wanted:
            (root / layout / file).parent.mkdir(parents=True, exist_ok=True)
            (root / layout / file).touch()
    return program(root / "bin" / "nvcc", f"echo release of {root.name}")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with g++ alone: nothing under /usr/local, no NVIDIA package beside Python."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++").symlink_to(str(shutil.which("g++")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(cuda_tools, "ROOT", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nvidia" else REAL_FIND_SPEC(name))
    return tmp_path


@pytest.mark.parametrize(
    ("headers", "runtime", "lacks"), [(False, True, "cuda_runtime.h"), (True, False, "libcudart_static.a")]
)
def test_an_incomplete_cuda_is_passed_over(machine: Path, headers: bool, runtime: bool, lacks: str) -> None:
    incomplete = cuda(machine / "usr" / "local" / "cuda-12.0", headers=headers, runtime=runtime)
    found = toolchain.find()
    assert found.cuda is None
    assert found.cuda_missing == f"{incomplete} has no {lacks} beside it"

    complete = cuda(machine / "usr" / "local" / "cuda-13.0")
    found = toolchain.find()
    assert found.cuda.nvcc == complete


def test_what_nothing_can_be_compiled_without_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(BuildError, match=r"torch is not installed beside this Python; .* -m pip install torch"):
        toolchain.find()
    monkeypatch.setattr(sys, "executable", str(machine / "nowhere" / "python"))
    with pytest.raises(BuildError, match=r"ninja is neither on PATH nor beside Python; install it \(pip install ninja"):
        toolchain.find()
    (machine / "bin" / "g++").unlink()
    with pytest.raises(BuildError, match=r"g\+\+ is not on PATH; install it \(apt-get install g\+\+\)"):
        toolchain.find()


@pytest.mark.parametrize(
    ("code", "said", "broken"),
    [
        (-9, "", "it was ended by SIGKILL"),
        (137, "a.py:1: error: half", "it was ended by SIGKILL"),
        (1, "my_kernels/x.py:12: OSError: [Errno 28] No space left on device", "No space left on device"),
        (1, "my_kernels/x.py:12: MemoryError: no message", "MemoryError"),
        (1, "my_kernels/x.py:12: ptxas died due to signal 9", "died due to signal 9"),
        (1, "my_kernels/x.py:12: NameError('Killed is not defined')", None),
        (139, 'my_kernels/x.py:12: "out of memory" is no type', None),
    ],
)
def test_who_is_to_blame_for_a_failed_build(tmp_path: Path, code: int, said: str, broken: str | None) -> None:
    found = toolchain.breakdown(code, [said], tmp_path)
    assert found is None if broken is None else broken in (found or "")
