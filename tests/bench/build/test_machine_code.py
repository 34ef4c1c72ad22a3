"""What cuobjdump says of kernels compiled here: no GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import machine_code
from kernelgate.bench.build.toolchain import find as find_toolchain
from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import cuda_tools

KERNELS = Path(__file__).parents[2] / "gpu" / "kernels"


def compiled(source: str, target: str, folder: Path) -> tuple[Path, str]:
    """The cubin, and what ptxas said of it."""
    cuda = find_toolchain().cuda
    assert cuda is not None
    cubin = folder / f"{source}.cubin"
    words = [str(cuda.nvcc), "-arch", target, "-O3", "-std=c++17", "-cubin", "-Xptxas=-v", "-o", str(cubin)]
    done = subprocess.run([*words, str(KERNELS / f"{source}.cu")], capture_output=True, text=True, check=True)
    return cubin, done.stdout + done.stderr


def test_spills_are_what_ptxas_says(tmp_path: Path) -> None:
    cubin, said = compiled("spills", "sm_90", tmp_path)
    (kernel,) = machine_code.read(cubin)
    assert kernel.name == "running_sums"
    assert kernel.target == "sm_90"
    assert f"{kernel.spill_bytes} bytes spill stores" in said
    assert f"Used {kernel.registers} registers" in said
    assert f"{kernel.stack_bytes} bytes stack frame" in said
    assert kernel.spill_bytes
    assert kernel.instructions["STL"] > 0
    assert kernel.threads == 256


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = cuda_tools.candidates
    monkeypatch.setattr(cuda_tools, "candidates", lambda name, *_: iter(()) if name == "cuobjdump" else find(name, *_))
    with pytest.raises(NoDeviceError, match=r"cuobjdump, .* is neither on PATH .*; install it: pip install nvidia"):
        machine_code.read(tmp_path / "kernel.so")
