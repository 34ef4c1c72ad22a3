"""Attention in plain float64, and how far from it a kernel may be: for the tests of the kernel on CPU and GPU."""

from __future__ import annotations

import math

import torch
from torch import Tensor

LIMITS = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 8e-3), torch.float32: (2e-5, 1e-5)}
"""(atol, rtol) for values of unit scale; csrc/attention/mma_sync/kernel.cuh derives those of the 16-bit types."""


def reference(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """softmax(q kᵀ · scale) v in float64."""
    scores = q.double() @ k.double().transpose(-1, -2) * scale
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores.softmax(-1) @ v.double()


def error_ratio(output: Tensor, expected: Tensor) -> float:
    """Largest |output - expected| / (atol + rtol |expected|): at most 1 where right; NaN where the output holds one."""
    atol, rtol = LIMITS[output.dtype]
    return float(((output.double() - expected).abs() / (atol + rtol * expected.abs())).max())


def inputs(
    batch: int, heads: int, seq: int, dtype: torch.dtype, device: str = "cpu", seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of shape (batch, heads, seq, 64), standard normal."""
    generator = torch.Generator(device).manual_seed(seed)
    shape = (3, batch, heads, seq, 64)
    q, k, v = torch.randn(shape, generator=generator, device=device).to(dtype)
    return q, k, v


def guarded(tensor: Tensor, margin: int = 4096) -> tuple[Tensor, Tensor]:
    """A copy of the tensor inside a larger buffer that is NaN everywhere else, and that buffer.

    Whoever reads past the copy gets NaN; whoever writes past it leaves something else than NaN in the buffer.
    """
    buffer = torch.full((tensor.numel() + 2 * margin,), math.nan, dtype=tensor.dtype, device=tensor.device)
    inner = buffer[margin:-margin].view(tensor.shape)
    inner.copy_(tensor)
    return inner, buffer


def only_inner_written(buffer: Tensor, margin: int = 4096) -> bool:
    """Of a buffer made by `guarded`: the copy holds no NaN, and what surrounds it nothing else."""
    outside = torch.cat([buffer[:margin], buffer[-margin:]])
    return bool(outside.isnan().all()) and not bool(buffer[margin:-margin].isnan().any())
