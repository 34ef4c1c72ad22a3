import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, factor * tl.load(x_ptr + offsets, mask=inside), mask=inside)


def scale(x, out):
    launch(x, out, 1024)


def launch(x, out, block):
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), 2.0, BLOCK=block)


def twice(x, out):
    """Two blocks, so that one call launches two variants of one kernel."""
    launch(x, out, 512)
    launch(x, out, 256)


def product(x, out):
    product_kernel[(1,)](x, out, SIDE=64)


@triton.jit
def product_kernel(x_ptr, out_ptr, SIDE: tl.constexpr):
    offsets = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.dot(x, x).to(tl.bfloat16))
