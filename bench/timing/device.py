"""The timing code's own kernels: a reading of the device's clocks, a pause, a digest, and the comparison of outputs.

All of them are queued on torch's current stream, and none makes the host wait. They are compiled from device.ptx, which
comes with the package, when they are first used. What is called of torch for each launch is held
here, so that code which replaces it in torch changes nothing.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from kernelgate.bench.system.cuda_driver import Module, launch

PTX = Path(__file__).with_name("device.ptx")
ISA = "7.0"
"""The version of PTX that has all that sm_80 has: of CUDA 11.0."""
PROBE_WORDS = 3
"""int64 values that a probe writes: the global timer in ns, the cycles of the SM that it ran on, that SM's number."""
MAX_WAIT_US = 1e6

_RESULT = struct.Struct("<ffQddQQQ")
"""`Result` in device.cu: max_ratio, max_abs, wrong, sum_abs, sum_signed, first_wrong, nonfinite, compared."""
RESULT_BYTES = _RESULT.size
_NONE = 2**64 - 1
_FIRST_WRONG = struct.calcsize("<ffQdd") // 8

KERNELS = {torch.float16: "compare_fp16", torch.bfloat16: "compare_bf16", torch.float32: "compare_fp32"}
_THREADS = 256
_ELEMENTS = 8
_STEPS = 64
"""So many chunks of each thread make its block's start and end cheap."""
_BLOCKS_PER_MULTIPROCESSOR = 4
"""So many are resident: a thread of compare_* has at most 64 registers."""

_current_stream = torch.cuda.current_stream
_address = torch.Tensor.data_ptr
_count = torch.Tensor.numel
_zeros = torch.zeros
_column = torch.Tensor.select
_fill = torch.Tensor.fill_
_as_dtype = torch.Tensor.view


@dataclass(frozen=True)
class DeviceComparison:
    """An output against its reference. Elements that are not finite count in none of the errors."""

    max_abs: float
    wrong: int
    nonfinite: int
    mean_abs: float
    compared: int
    """All elements. 0 where nothing has been compared: such a row says nothing of an output."""


@dataclass(frozen=True)
class _Loaded:
    probe: ctypes.c_void_p
    wait: ctypes.c_void_p
    digest: ctypes.c_void_p
    compare: dict[torch.dtype, ctypes.c_void_p]
    resident_blocks: int


def probe(slot: torch.Tensor) -> None:
    """Writes the device's clocks into the first PROBE_WORDS of a contiguous int64 tensor.

    The cycles of two probes can be compared where both ran on the same SM.
    """
    launch(_loaded().probe, (1, 1), 1, _stream(), (ctypes.c_void_p(_address(slot)),))


def wait(microseconds: float) -> None:
    launch(
        _loaded().wait, (1, 1), 1, _stream(), (ctypes.c_uint64(round(1e3 * min(max(microseconds, 0.0), MAX_WAIT_US))),)
    )


def digest(words: torch.Tensor, secret: int) -> int:
    """Of contiguous int64 on the device: another number where a word has changed, unless somebody knew the secret, of
    64 bits. Waits for the device."""
    into = _zeros(1, dtype=torch.int64, device=words.device)
    arguments = (
        ctypes.c_void_p(_address(words)),
        ctypes.c_uint64(_count(words)),
        ctypes.c_uint64(secret),
        ctypes.c_void_p(_address(into)),
    )
    loaded = _loaded()
    launch(loaded.digest, (2 * loaded.resident_blocks, 1), _THREADS, _stream(), arguments)
    return int(into.item())


def compare(
    pairs: torch.Tensor, count: int, dtype: torch.dtype, limits: tuple[float, float], into: torch.Tensor
) -> None:
    """Compares outputs of `count` elements with their references, all in one launch, in float32.

    `pairs` is contiguous int64 on the device: in each row the address of an output of `dtype`, and that of its
    reference, float32 and finite. Both are contiguous; it is fastest where both begin at a multiple of 16 bytes.
    `limits` are atol and rtol. What `read_results` reads goes into as many contiguous rows of `new_results`, which are
    to be used once.
    """
    if not all(0 <= limit < math.inf for limit in limits):
        raise ValueError(f"atol and rtol {limits} must be finite and not negative")
    number = _count(pairs) // 2
    atol, rtol = limits
    arguments = (
        ctypes.c_void_p(_address(pairs)),
        ctypes.c_uint64(count),
        ctypes.c_float(atol),
        ctypes.c_float(rtol),
        ctypes.c_void_p(_address(into)),
    )
    loaded = _loaded()
    blocks = (_blocks(count, number, loaded.resident_blocks), number)
    launch(loaded.compare[dtype], blocks, _THREADS, _stream(), arguments)


def _blocks(count: int, number: int, resident: int) -> int:
    """Blocks for each of `number` comparisons of `count` elements, where so many are `resident` on the device.

    At most as many as are resident, so that none waits for another; or more, of _STEPS steps each, so that there are so
    many that the last of them end together.
    """
    steps = -(-count // (_THREADS * _ELEMENTS))
    return max(1, min(steps, max(resident // number, -(-steps // _STEPS))))


def new_results(count: int, device: str | torch.device) -> torch.Tensor:
    """A row of RESULT_BYTES for each of `count` comparisons, in which nothing has been compared yet.

    Made anew by the device each time: there is no copy of it that anything could change, and nothing to wait for.
    """
    words = _zeros((count, RESULT_BYTES // 8), dtype=torch.int64, device=device)
    _fill(_column(words, 1, _FIRST_WRONG), _NONE - 2**64)
    return _as_dtype(words, torch.uint8)


def read_results(results: torch.Tensor) -> list[DeviceComparison]:
    made = []
    for _, max_abs, wrong, sum_abs, *_, nonfinite, compared in _RESULT.iter_unpack(results.cpu().numpy().tobytes()):
        mean_abs = sum_abs / max(1, compared - nonfinite)
        made.append(DeviceComparison(max_abs, wrong, nonfinite, mean_abs, compared))
    return made


def _stream() -> int:
    return _current_stream().cuda_stream


def ptx() -> str:
    """What the driver compiles. nvcc names its own version of PTX, although nothing in here is newer than ISA: so that
    drivers before CUDA 13 take it, too. ptxas makes the same machine code of either."""
    return re.sub(
        r"^\.version [\d.]+$", f".version {ISA}", PTX.read_text(encoding="ascii"), count=1, flags=re.MULTILINE
    )


@cache
def _loaded() -> _Loaded:
    module = Module(ptx())
    multiprocessors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    return _Loaded(
        probe=module.function("probe"),
        wait=module.function("wait"),
        digest=module.function("digest"),
        compare={dtype: module.function(name) for dtype, name in KERNELS.items()},
        resident_blocks=_BLOCKS_PER_MULTIPROCESSOR * multiprocessors,
    )
