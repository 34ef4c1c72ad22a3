"""The device's own kernels, as far as a machine without a GPU can tell."""

from __future__ import annotations

import math
import re
import struct
import subprocess
from pathlib import Path

import pytest
import torch

from kernelgate.bench.system import cuda_tools
from kernelgate.bench.timing import device
from kernelgate.bench.timing.device import DeviceComparison

ROOT = Path(__file__).parents[3]
SOURCE = device.PTX.with_name("device.cu")
COMMAND = re.compile(r"^//\s+nvcc (.+) -o (\S+) (\S+)$", re.MULTILINE)
RELEASE = re.compile(r"release [\d.]+, V[\d.]+")


def instructions(ptx: str) -> list[str]:
    return [line for line in ptx.splitlines() if not line.lstrip().startswith("//")]


def release(text: str) -> str:
    """Such as "release 13.0, V13.0.88"."""
    found = RELEASE.search(text)
    assert found is not None
    return found[0]


def nvcc(wanted: str) -> Path:
    """The compiler of that release."""
    for candidate in cuda_tools.candidates("nvcc"):
        said = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=True).stdout
        if release(said) == wanted:
            return candidate
    pytest.skip(f"there is no nvcc of {wanted} here")


def test_the_ptx_is_what_the_compiler_makes_of_the_source(tmp_path: Path) -> None:
    committed = device.PTX.read_text(encoding="ascii")
    command = COMMAND.search(SOURCE.read_text(encoding="utf-8"))
    assert command is not None
    assert [(ROOT / file).resolve() for file in (command[2], command[3])] == [device.PTX.resolve(), SOURCE.resolve()]
    made = tmp_path / "device.ptx"
    compiler = nvcc(release(committed))
    subprocess.run([compiler, *command[1].split(), "-o", made, SOURCE], capture_output=True, check=True)
    assert instructions(made.read_text(encoding="ascii")) == instructions(committed)


def test_results_are_read() -> None:
    first = struct.pack("<ffQddQQQ", 1.5, 0.25, 3, 12.0, -4.0, 2**33, 1, 9)
    second = struct.pack("<ffQddQQQ", math.inf, 0.0, 0, 0.0, 0.0, 2**64 - 1, 4, 4)
    rows = torch.tensor([list(first), list(second)], dtype=torch.uint8)
    assert device.read_results(rows) == [DeviceComparison(0.25, 3, 1, 1.5, 9), DeviceComparison(0.0, 0, 4, 0.0, 4)]


@pytest.mark.parametrize("limits", [(math.nan, 0), (0, math.inf), (-1, 0)])
def test_a_limit_that_nothing_could_exceed_is_refused(limits: tuple[float, float]) -> None:
    pairs = torch.zeros(3, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="must be finite and not negative"):
        device.compare(pairs, 8, torch.float32, limits, device.new_results(3, "cpu"))
