"""Scaled-dot-product attention, forward, for head dimension 64, on CUDA and on the CPU.

Importing loads the compiled library that `python setup.py build_ext --inplace` puts beside this file, and registers its
operators as `torch.ops.fa_s512.forward` and `torch.ops.fa_s512.forward_out`.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from fa_s512._fake import register_fake

__all__ = ["HEAD_DIM", "attention", "fa_s512", "register_fake"]

HEAD_DIM = 64

_NAMESPACE = "fa_s512"
_LIBRARY = Path(__file__).with_name("kernel.so")


def attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, causal: bool = False) -> Tensor:
    """softmax(q kᵀ · scale) v, for each batch element and head on its own.

    q, k and v are contiguous tensors of one shape (B, H, S, 64), S from 1 to 4096, one dtype and one device: float16 or
    bfloat16 on CUDA, also float32 on the CPU. Scores, softmax and sums are float32; on CUDA the weights are rounded to
    the inputs' dtype before they meet v. The result is a new tensor like q.

    `scale` defaults to 1 / √64; it is finite, of either sign. With `causal`, query i sees the keys 0 … i.

    There is no backward pass. Raises RuntimeError where an argument is not as said here (the message names it, what was
    expected and what it is), where a gradient would be needed, where the library has no code for the GPU, and where
    CUDA reports an error.
    """
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        raise RuntimeError("fa_s512: attention has no backward pass; call it under torch.no_grad()")
    result: Tensor = torch.ops.fa_s512.forward(q, k, v, HEAD_DIM**-0.5 if scale is None else scale, causal)
    return result


def fa_s512(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """`attention` with the default scale and no mask."""
    return attention(q, k, v)


if not _LIBRARY.exists():
    raise ImportError(
        f"fa_s512 is not compiled: {_LIBRARY} is missing; run `python setup.py build_ext --inplace` in the checkout"
    )
torch.ops.load_library(str(_LIBRARY))  # type: ignore[no-untyped-call]
register_fake(_NAMESPACE)
