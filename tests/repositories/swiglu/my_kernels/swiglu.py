"""SwiGLU: the gated activation between the two linear layers of a transformer's feed-forward block."""

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
"""Elements of one program: 16 bytes a thread and load for 16-bit dtypes, at Triton's four warps."""


def swiglu(gate: Tensor, up: Tensor, out: Tensor) -> None:
    """Writes silu(gate) * up to `out`; all three are contiguous and have one shape, dtype and device."""
    for name, tensor in (("gate", gate), ("up", up), ("out", out)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous tensor")
        if (tensor.shape, tensor.dtype, tensor.device) != (out.shape, out.dtype, out.device):
            raise ValueError(f"{name}: expected the shape, dtype and device of out")
    elements = out.numel()
    _swiglu[(triton.cdiv(elements, BLOCK),)](gate, up, out, elements, block=BLOCK)


@triton.jit
def _swiglu(gate_ptr, up_ptr, out_ptr, elements, block: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)  # a large tensor has more elements than an int32 counts
    offsets = program * block + tl.arange(0, block)
    inside = offsets < elements
    gate = tl.load(gate_ptr + offsets, mask=inside).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=inside).to(tl.float32)
    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up, mask=inside, cache_modifier=".cs")  # not read again
