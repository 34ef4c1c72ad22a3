"""What is right: PyTorch's SDPA in float64, and how far from it an output may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernelgate.bench import record
from kernelgate.bench.dtypes import DTYPES
from kernelgate.bench.kernel.case_list import HEAD_DIM, Dtype

TORCH_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, DTYPES[name].torch_name) for name in get_args(Dtype)}

_MAX_SCORES = 2**28
"""Scores held at once: 2 GiB in float64."""


@dataclass(frozen=True)
class Comparison:
    """An output against the oracle's. The errors are None where the output is not finite throughout."""

    passed: bool
    max_abs_error: float | None
    error_ratio: float | None
    """Largest |output - expected| / limit: at most 1 in a pass."""
    worst: tuple[int, int, int, int]
    """Where: [b, h, s, d] of the first element that is not finite, else of the largest error ratio."""


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool) -> torch.Tensor:
    """softmax(q kᵀ · scale) v in float64 by PyTorch's plain backend; shapes (B, H, S, 64), on the device of `q`.

    Float64 has no reduced-precision mode to switch off. Heads are taken in slices, to bound the memory for scores.
    """
    batch, heads, seq, _ = q.shape
    flat = [tensor.reshape(batch * heads, seq, HEAD_DIM) for tensor in (q, k, v)]
    step = max(1, _MAX_SCORES // (seq * seq))
    out = torch.empty(flat[0].shape, dtype=torch.float64, device=q.device)
    with sdpa_kernel(SDPBackend.MATH):
        for start in range(0, batch * heads, step):
            part = slice(start, start + step)
            queries, keys, values = (tensor[part].double() for tensor in flat)
            out[part] = scaled_dot_product_attention(queries, keys, values, is_causal=causal, scale=scale)
    return out.reshape(q.shape)


def compare(
    output: torch.Tensor, expected: torch.Tensor, tolerance: record.Tolerance, value_scale: float = 1.0
) -> Comparison:
    """Whether |output - expected| <= atol * value_scale + rtol * |expected| everywhere; NaN and Inf never pass."""
    atol, rtol = tolerance.atol or 0.0, tolerance.rtol or 0.0
    finite = torch.isfinite(output)
    if not bool(finite.all()):
        return Comparison(False, None, None, first(~finite))
    error = (output.double() - expected).abs_()
    ratio = error / (atol * value_scale + rtol * expected.abs())
    worst = float(ratio.max())
    return Comparison(worst <= 1.0, float(error.max()), worst, first(ratio == worst))


def first(mask: torch.Tensor) -> tuple[int, int, int, int]:
    """The position [b, h, s, d] of the first true element."""
    flat = int(mask.reshape(-1).to(torch.uint8).argmax())
    b, rest = divmod(flat, mask.shape[1] * mask.shape[2] * mask.shape[3])
    h, rest = divmod(rest, mask.shape[2] * mask.shape[3])
    s, d = divmod(rest, mask.shape[3])
    return (b, h, s, d)


def largest(values: Sequence[float | None]) -> float | None:
    """The largest; None where one is None."""
    known = [value for value in values if value is not None]
    return max(known, default=None) if len(known) == len(values) else None
