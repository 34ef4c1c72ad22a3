"""The CPU path's inner code at each vector width, without torch between: no machine chooses all of them by itself."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch

from tests.attention import LIMITS, error_ratio, guarded, inputs, only_inner_written, reference

ROOT = Path(__file__).parent.parent.parent
DTYPE_CODES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def loaded(source: str, folder: Path) -> ctypes.CDLL:
    """A file of this folder as a library, without torch."""
    built = folder / "raw.so"
    flags = ["-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'csrc'}"]
    subprocess.run(["g++", *flags, str(Path(__file__).with_name(source)), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return loaded("cpu_kernel.cpp", tmp_path_factory.mktemp("raw"))


def address(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("seq", [1, 66, 130])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_every_width_agrees_with_float64(
    code: ctypes.CDLL, width: int, seq: int, causal: bool, dtype: torch.dtype
) -> None:
    q, k, v = (guarded(tensor)[0] for tensor in inputs(1, 2, seq, dtype))
    out, buffer = guarded(torch.full_like(q, float("nan")))
    scale = ctypes.c_float(-0.2)
    pointers = [address(tensor) for tensor in (q, k, v, out)]
    code.attend(width, DTYPE_CODES[dtype], *pointers, ctypes.c_int64(2), seq, scale, ctypes.c_bool(causal))
    assert only_inner_written(buffer)
    assert error_ratio(out, reference(q, k, v, -0.2, causal)) <= 1


def test_every_half_becomes_the_same_float(code: ctypes.CDLL) -> None:
    halves = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
    floats = torch.empty(halves.shape)
    code.halves_to_floats(address(halves), address(floats), ctypes.c_int64(halves.numel()))
    torch.testing.assert_close(floats, halves.float(), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(floats.signbit(), halves.signbit())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_floats_are_rounded_to_the_nearest(code: ctypes.CDLL, dtype: torch.dtype) -> None:
    """Random bits, which are NaN, infinite and subnormal too, every half, and every middle between two of them."""
    generator = torch.Generator().manual_seed(1)
    any_bits = torch.randint(-(2**31), 2**31, (1_000_000,), generator=generator).to(torch.int32).view(torch.float32)
    halves = torch.arange(2**15 - 2**10).to(torch.int16).view(torch.float16).float()
    middles = (halves[1:] + halves[:-1]) / 2
    above, below = (torch.nextafter(middles, torch.tensor(limit)) for limit in (float("inf"), 0.0))
    near = torch.cat([halves, middles, above, below, torch.tensor([65519.996, 65520.0, 65536.0, 1e30])])
    floats = torch.cat([any_bits, near, -near])
    rounded = torch.empty(floats.shape, dtype=dtype)
    convert = code.floats_to_halves if dtype == torch.float16 else code.floats_to_bfloats
    convert(address(floats), address(rounded), ctypes.c_int64(floats.numel()))
    torch.testing.assert_close(rounded, floats.to(dtype), rtol=0, atol=0, equal_nan=True)
