"""What a library says of its launches, read from real ELF files without loading them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build import machine_code
from kernelgate.bench.build.machine_code import LaunchFacts
from kernelgate.bench.core.errors import KernelgateError

HEADER = Path(__file__).parents[3] / "csrc/attention/launch_record.h"
DOCUMENTED = HEADER.read_text(encoding="utf-8").replace("#pragma once", "")
"""The struct and the macro as the documentation names them."""
STRUCT = f"#include <cstdint>\n{DOCUMENTED.partition('#define')[0]}static_assert(sizeof(KernelgateLaunch) == 128);\n"


def library(folder: Path, source: str) -> bytes:
    words = ["g++", "-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-x", "c++", "-"]
    subprocess.run([*words, "-o", str(folder / "a.so")], input=source, text=True, check=True)
    return (folder / "a.so").read_bytes()


def test_the_documented_macro_is_what_is_read(tmp_path: Path) -> None:
    source = "\n".join(
        [
            "#include <cstdint>",
            "namespace SharedStorage { constexpr int kBytes = 48 * 1024; }",
            "constexpr int kThreads = 128;",
            DOCUMENTED,
            'KERNELGATE_LAUNCH("gemm", 90, SharedStorage::kBytes, kThreads);',
            'namespace { KERNELGATE_LAUNCH("softmax<1, true>", 0, 0, 0); }',
            "int answer() { return 42; }",
        ]
    )
    assert set(machine_code.launches_in(library(tmp_path, source))) == {
        LaunchFacts("gemm", 90, 48 * 1024, 128),
        LaunchFacts("softmax<1, true>", 0, 0, 0),
    }


def record(*fields: str) -> str:
    attribute = '__attribute__((section("kernelgate_launches"), used, aligned(32)))'
    return f"{STRUCT}{attribute} static const KernelgateLaunch one = {{{', '.join(fields)}}};\n"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (('"k"', "2", "0", "0", "0"), "a record of version 2; version 1 is known"),
        (('"k"', "1", "-1", "0", "0"), "a negative number"),
        (('""', "1", "0", "0", "0"), "without a kernel"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, fields: tuple[str, ...], says: str) -> None:
    with pytest.raises(KernelgateError, match=says):
        machine_code.launches_in(library(tmp_path, record(*fields)))


def test_a_file_that_is_cut_off_or_no_library_is_refused(tmp_path: Path) -> None:
    whole = library(tmp_path, record('"k"', "1", "0", "0", "0"))
    assert machine_code.launches_in(whole) == (LaunchFacts("k", 0, 0, 0),)
    for damaged in (whole[:40], whole[: len(whole) // 2], whole[:-1]):
        with pytest.raises(KernelgateError, match="section table is damaged"):
            machine_code.launches_in(damaged)
    with pytest.raises(KernelgateError, match="not a 64-bit ELF file"):
        machine_code.launches_in(b"")
    with pytest.raises(KernelgateError, match="not a 64-bit ELF file"):
        machine_code.launches_in(b"\x7fELF\x01\x01" + whole[6:])  # 32 bits


NAME = "fa_s512::cuda::attention<fa_s512::cuda::Sm90, (fa_s512::Dtype)1, false>"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("attention", True),
        ("attention<Sm90, 1, false>", True),
        ("fa_s512::cuda::attention", True),
        ("attention<fa_s512::cuda::Sm90, (fa_s512::Dtype)1, false>", True),
        ("attention<Sm89, 1, false>", False),
        ("attention<Sm9", False),
        ("Sm90", False),  # a plain word is the kernel's own name
    ],
)
def test_which_kernel_a_text_means(text: str, names: bool) -> None:
    found = machine_code.launch_of([LaunchFacts(text, 0, 7, 0)], NAME, "sm_90")
    assert (found is not None) == names
