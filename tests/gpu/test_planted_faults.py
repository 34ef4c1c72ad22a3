"""Planted faults, built for this test alone, are caught on the GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import archs
from kernelgate.bench.build.toolchain import find
from kernelgate.bench.check import sanitize
from kernelgate.bench.system import cuda_tools
from tests import sanitized

KERNELS = Path(__file__).parent / "kernels" / "sanitize"

PLANTED = {
    "memcheck": ("out_of_bounds", 7),
    "racecheck": ("race", 6),
    "initcheck": ("uninitialised", 4),
    "synccheck": ("divergent_barrier", 8),
}


@pytest.mark.gpu
@pytest.mark.parametrize("tool", PLANTED)
def test_planted_faults_are_caught(tool: str, tmp_path: Path) -> None:
    name, line = PLANTED[tool]
    cuda = find().cuda
    assert cuda is not None
    program = tmp_path / name
    target = archs.sm(archs.only_gpu())
    words = [cuda.nvcc, "-arch", target, "-lineinfo", "-std=c++17", "-o", program, KERNELS / f"{name}.cu"]
    subprocess.run(words, check=True)
    found = sanitized.program(cuda_tools.find(sanitize.SANITIZER), tool, [program])
    assert [(one.file, one.line) for one in found] == [(f"{name}.cu", line)]
