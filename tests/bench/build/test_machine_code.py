"""What cuobjdump says of kernels compiled here: no GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import machine_code
from kernelgate.bench.build.machine_code import occupancy, with_occupancy
from kernelgate.bench.build.toolchain import find as find_toolchain
from kernelgate.bench.core.errors import NoDeviceError, UsageError
from kernelgate.bench.core.hardware import SM_89, gpu
from kernelgate.bench.record import KernelFacts
from kernelgate.bench.system import cuda_tools

KERNELS = Path(__file__).parents[2] / "gpu" / "kernels"


def compiled(source: str, target: str, folder: Path) -> tuple[Path, str]:
    """The cubin, and what ptxas said of it."""
    cuda = find_toolchain().cuda
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


def test_arrays_in_local_memory_are_no_spills(tmp_path: Path) -> None:
    cubin, said = compiled("arrays", "sm_90", tmp_path)
    pattern = r"properties for \w*?(nearest|histogram|spilled_too)\w*\n.* (\d+) bytes spill stores"
    by_ptxas = {name: int(size) for name, size in re.findall(pattern, said)}
    found = {kernel.name: kernel for kernel in machine_code.read(cubin)}
    assert {name: kernel.spill_bytes for name, kernel in found.items()} == by_ptxas
    assert by_ptxas["nearest"] == by_ptxas["histogram"] == 0 < by_ptxas["spilled_too"]
    assert all(kernel.stack_bytes and kernel.instructions["STL"] for kernel in found.values())


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = cuda_tools.candidates
    monkeypatch.setattr(cuda_tools, "candidates", lambda name, *_: iter(()) if name == "cuobjdump" else find(name, *_))
    with pytest.raises(NoDeviceError, match=r"cuobjdump, .* is neither on PATH .*; install it: pip install nvidia"):
        machine_code.read(tmp_path / "kernel.so")


# Occupancy, against what the hardware and NVIDIA's tables say ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "percent", "limits"),
    [
        # sm__maximum_warps_per_active_cycle_pct of the reports in tests/data/nsight (H200).
        ("h200", 128, 242, 49152, 12.5, ("registers",)),
        ("h200", 128, 128, 49152, 25.0, ("registers", "shared memory")),
        ("h100", 1024, 10, 128, 100.0, ("warps",)),
        # NVIDIA's table: 48 warps and 24 blocks on 8.9.
        ("l4", 32, 16, 0, 50.0, ("blocks",)),
        ("l4", 1024, 32, 0, 200 / 3, ("warps",)),
        ("a100", 256, 0, 0, 100.0, ("warps",)),
    ],
)
def test_known_occupancies(
    name: str, threads: int, registers: int, shared: int, percent: float, limits: tuple[str, ...]
) -> None:
    found = occupancy(gpu(name).limits, threads, registers, shared)
    assert found.percent == pytest.approx(percent)
    assert found.limits == limits


def test_a_block_has_1_to_1024_threads_and_a_thread_at_most_255_registers() -> None:
    assert occupancy(SM_89, 1, 255, 0).warps == occupancy(SM_89, 32, 255, 0).warps
    assert occupancy(SM_89, 1024, 64, 0).blocks == 1
    for threads, registers in ((0, 32), (1025, 32), (128, 256), (128, -1)):
        with pytest.raises(UsageError):
            occupancy(SM_89, threads, registers, 0)


KNOWN = KernelFacts(
    target="sm_90", name="k", registers=242, threads=128, static_shared_bytes=1024, dynamic_shared_bytes=48 * 1024
)


def test_static_and_dynamic_shared_memory_count_together() -> None:
    found = with_occupancy(KNOWN)
    assert found.occupancy_pct == {"H100 and H200": 12.5}
    assert found.occupancy_limits == {"H100 and H200": "registers"}
    more = with_occupancy(KNOWN.model_copy(update={"static_shared_bytes": 96 * 1024}))
    assert more.occupancy_pct == {"H100 and H200": 6.25}


def test_what_is_unknown_is_not_taken_for_nothing() -> None:
    unknown = ({"dynamic_shared_bytes": None}, {"registers": None}, {"threads": 0}, {"threads": 1025})
    for update in (*unknown, {"target": "sm_75"}):
        assert with_occupancy(KNOWN.model_copy(update=update)).occupancy_pct == {}, update
