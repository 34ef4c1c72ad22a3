"""Which cases of two builds are the same machine code, called by the same host: those need not be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import library
from kernelgate.bench.build.imports import followed
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.build.sources import Package
from kernelgate.bench.record import Build, Device
from tests import miniature
from tests.miniature import CPU_FILES, GPU_FILES, KERNEL_HEADER

L4, H100, CPU = Device(compute_capability="8.9"), Device(compute_capability="9.0"), Device()
UNITS = {**CPU_FILES, "csrc/kernel.cuh": KERNEL_HEADER, "csrc/answer_sm89.cu": GPU_FILES["csrc/answer_sm89.cu"]}
HOPPER = {"csrc/answer_sm90.cu": "__global__ void hopper(float* out) { out[0] = 1.0F; }\nvoid nothing() {}\n"}


def built(folder: Path, files: dict[str, str]) -> Library:
    miniature.write(folder, files)
    made = miniature.compiled(folder)
    return Library(made.folder, made.manifest.model_copy(update={"card_sha256": "0" * 64}), cached=True)


def compared(base: Library, head: Library, device: Device) -> tuple[bool, bool]:
    """Whether the machine code is the same, and the host's part, too."""
    old, new = library.build_records(Sides(base, head), device)
    return new.same_code(old), new.same_call(old)


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_kernel_a_comment_the_host_and_another_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.9;9.0")
    files = {**UNITS, **HOPPER}

    def changed(name: str, old: str, new: str) -> Library:
        assert old in files[name]
        return built(tmp_path / f"{len(list(tmp_path.iterdir()))}", {**files, name: files[name].replace(old, new)})

    base = built(tmp_path / "base", files)
    commented = changed("csrc/kernel.cuh", "namespace {", "// moves the lines below it\nnamespace {")
    assert base.manifest.sha256 != commented.manifest.sha256, "line tables differ"
    assert compared(base, commented, L4) == compared(base, commented, H100) == (True, True)
    other_code = changed("csrc/kernel.cuh", "1.0F", "2.0F")
    assert compared(base, other_code, L4) == (False, False)
    assert compared(base, other_code, H100) == (True, True), "its code is in another unit, of another target"
    assert compared(base, other_code, CPU) == (True, True), "no host code differs"
    other_host = changed("csrc/kernel.cuh", "<<<1, 1>>>", "<<<1, 2>>>")
    assert compared(base, other_host, L4) == (True, False)
    assert compared(base, other_host, CPU) == (False, False), "there the host's code is all"
    hopper = changed("csrc/answer_sm90.cu", "out[0] = 1.0F", "out[1] = 1.0F")
    assert (compared(base, hopper, L4), compared(base, hopper, H100)) == ((True, True), (False, False))


def test_what_is_not_known_is_not_the_same() -> None:
    known = Build(side="base", call_hash="c", host="h", code={"a": "1", "b": "2"}, python="p")
    assert known.same_call(known, "a")
    for unlike in ({"host": None}, {"host": "other"}, {"code": {}}, {"code": {"a": "3"}}, {"python": "q"}):
        assert not known.same_call(known.model_copy(update=unlike), "a")
    for unlike in ({"call_hash": None}, {"call_hash": "another card"}):
        assert not known.same_code(known.model_copy(update=unlike), "a")
    nothing = Build(side="base")
    assert not nothing.same_call(nothing, "a")
    assert not known.same_call(known, "c"), "a case whose launches are not known"
    whole = known.model_copy(update={"code": {"": "1"}})
    assert whole.same_call(whole, "any case")


KERNELS = b"""
import triton
import triton.language as tl
from numba import cuda

@triton.autotune([triton.Config({}, num_warps=4)], key=[])
@triton.jit
def scale(x, BLOCK: tl.constexpr):
    tl.store(x, 2 * tl.load(x))

@cuda.jit
def other(x):
    x[0] = 2

def call(x):
    scale[(1,)](x, 128)
"""
CARD = b"class Card:\n    def call(self, ops, case, out, x):\n        ops.call(x)\n"


def host(source: bytes) -> dict[str, str]:
    files = {"mine/__init__.py": b"", "mine/ops.py": source}
    return followed(files, Package("mine.ops"), CARD).digests(files, host=True)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (b"2 * tl.load(x)", b"tl.load(x) + tl.load(x)", True),
        (b"num_warps=4", b"num_warps=8", False),
        (b"BLOCK: tl.constexpr", b"BLOCK: tl.constexpr = 64", False),
        (b"x[0] = 2", b"x[0] = 3", False),
        (b"(x, 128)", b"(x, 256)", False),
        (b"@triton.jit", b"@triton.jit(do_not_specialize=['x'])", False),
    ],
)
def test_what_is_inside_of_tritons_kernels_alone_is_no_host(old: bytes, new: bytes, same: bool) -> None:
    assert old in KERNELS
    assert (host(KERNELS) == host(KERNELS.replace(old, new))) is same
