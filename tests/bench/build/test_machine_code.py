"""What cuobjdump says of kernels compiled here, and what a library says of its launches: no GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import machine_code
from kernelgate.bench.build.machine_code import LaunchFacts, occupancy, with_occupancy
from kernelgate.bench.build.toolchain import find as find_toolchain
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.core.hardware import SM_89, gpu
from kernelgate.bench.record import KernelFacts

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
    assert (kernel.name, kernel.target, kernel.threads) == ("running_sums", "sm_90", 256)
    assert f"{kernel.spill_bytes} bytes spill stores" in said
    assert f"Used {kernel.registers} registers" in said
    assert f"{kernel.stack_bytes} bytes stack frame" in said
    assert kernel.instructions["STL"] > 0


@pytest.mark.slow
def test_arrays_in_local_memory_are_no_spills(tmp_path: Path) -> None:
    cubin, said = compiled("arrays", "sm_90", tmp_path)
    pattern = r"properties for \w*?(nearest|histogram|spilled_too)\w*\n.* (\d+) bytes spill stores"
    by_ptxas = {name: int(size) for name, size in re.findall(pattern, said)}
    found = {kernel.name: kernel for kernel in machine_code.read(cubin)}
    assert {name: kernel.spill_bytes for name, kernel in found.items()} == by_ptxas
    assert by_ptxas["nearest"] == by_ptxas["histogram"] == 0 < by_ptxas["spilled_too"]
    assert all(kernel.stack_bytes and kernel.instructions["STL"] for kernel in found.values())


# Occupancy, against what the hardware and NVIDIA's tables say ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "percent", "limits"),
    [
        # sm__maximum_warps_per_active_cycle_pct of the reports in tests/data/nsight (H200).
        ("h200", 128, 242, 49152, 12.5, ("registers",)),
        ("h200", 128, 128, 49152, 25.0, ("registers", "shared memory")),
        # NVIDIA's table: 48 warps and 24 blocks on 8.9.
        ("l4", 32, 16, 0, 50.0, ("blocks",)),
        ("l4", 1024, 32, 0, 200 / 3, ("warps",)),
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


# Launches, read from real ELF files without loading them --------------------------------------------------------------

HEADER = Path(__file__).parents[3] / "csrc/attention/launch_record.h"
DOCUMENTED = HEADER.read_text(encoding="utf-8").replace("#pragma once", "")
"""The struct and the macro as the documentation names them."""
STRUCT = f"#include <cstdint>\n{DOCUMENTED.partition('#define')[0]}static_assert(sizeof(KernelgateLaunch) == 128);\n"


def library(folder: Path, source: str) -> bytes:
    words = ["g++", "-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-x", "c++", "-"]
    subprocess.run([*words, "-o", str(folder / "a.so")], input=source, text=True, check=True)
    return (folder / "a.so").read_bytes()


def test_the_documented_macro_is_what_is_read(tmp_path: Path) -> None:
    launches = (
        'constexpr int kThreads = 128; KERNELGATE_LAUNCH("gemm", 90, 48 * 1024, kThreads);\n'
        'namespace { KERNELGATE_LAUNCH("softmax<1, true>", 0, 0, 0); }\n'
    )
    assert set(machine_code.launches_in(library(tmp_path, f"#include <cstdint>\n{DOCUMENTED}\n{launches}"))) == {
        LaunchFacts("gemm", 90, 48 * 1024, 128),
        LaunchFacts("softmax<1, true>", 0, 0, 0),
    }


def record(*fields: str) -> str:
    attribute = '__attribute__((section("kernelgate_launches"), used, aligned(32)))'
    return f"{STRUCT}{attribute} static const KernelgateLaunch one = {{{', '.join(fields)}}};\n"


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for fields in (('"k"', "2", "0", "0", "0"), ('"k"', "1", "-1", "0", "0"), ('""', "1", "0", "0", "0")):
        with pytest.raises(KernelgateError, match="kernelgate_launches holds a record that makes no sense"):
            machine_code.launches_in(library(tmp_path, record(*fields)))


def test_a_file_that_is_cut_off_or_no_library_is_refused(tmp_path: Path) -> None:
    whole = library(tmp_path, record('"k"', "1", "0", "0", "0"))
    assert machine_code.launches_in(whole) == (LaunchFacts("k", 0, 0, 0),)
    for damaged in (whole[:40], whole[: len(whole) // 2], whole[:-1]):
        with pytest.raises(KernelgateError, match="section table is damaged"):
            machine_code.launches_in(damaged)
    with pytest.raises(KernelgateError, match="not a 64-bit ELF file"):
        machine_code.launches_in(b"\x7fELF\x01\x01" + whole[6:])  # 32 bits


NAME = "fa_s512::cuda::attention<fa_s512::cuda::Sm90, (fa_s512::Dtype)1, false>"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fa_s512::cuda::attention", True),
        ("attention<Sm90", True),
        ("attention<fa_s512::cuda::Sm90, (fa_s512::Dtype)1, false>", True),
        ("attention<Sm9", False),
        ("Sm90", False),  # a plain word is the kernel's own name
    ],
)
def test_which_kernel_a_text_means(text: str, names: bool) -> None:
    found = machine_code.launch_of([LaunchFacts(text, 0, 7, 0)], NAME, "sm_90")
    assert (found is not None) == names
