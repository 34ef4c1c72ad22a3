"""Every way to be wrong; `# fault: NAME` is where kernelgate must point."""

import os

import triton
import triton.language as tl

from .helpers import deep


@triton.jit
def unknown_kernel(x_ptr, out_ptr, n):
    offsets = tl.arange(0, 16)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offset))  # noqa: F821  # fault: unknown


def unknown(x, out):
    unknown_kernel[(1,)](x, out, x.numel())


@triton.autotune(
    configs=[triton.Config({"BLOCK": 12}), triton.Config({"BLOCK": 24})],
    key=["n"],
)
@triton.jit
def block_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 0.0)  # fault: block


def block(x, out):
    block_kernel[(1,)](x, out, x.numel())


@triton.jit
def nested_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, deep(tl.load(x_ptr)))


def nested(x, out):
    nested_kernel[(1,)](x, out)


@triton.jit
def asserting_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 32 == 0, "BLOCK must be a multiple of 32")  # fault: asserting


def asserting(x, out):
    asserting_kernel[(1,)](x, out, 16)


@triton.jit
def assembly_kernel(x_ptr, out_ptr):  # fault: assembly
    value = tl.inline_asm_elementwise("no.such.op $0, $1;", "=r,r", [tl.load(x_ptr).to(tl.int32)], tl.int32, True, 1)
    tl.store(out_ptr, value)


def assembly(x, out):
    assembly_kernel[(1,)](x, out)


@triton.jit
def packed_kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 32)
    x = tl.load(x_ptr + offsets).to(tl.int32)
    value = tl.inline_asm_elementwise("mov.u32 $0, $1;", "=r,r", [x], tl.int32, True, 3)  # fault: packed
    tl.store(out_ptr + offsets, value)


def packed(x, out):
    packed_kernel[(1,)](x, out)


def arguments(x, out):
    unknown_kernel[(1,)](x, out)  # fault: arguments


def refused(x, out):
    if x.numel() % 128:
        raise ValueError("expected a multiple of 128\nelements")  # fault: refused


def killed(x, out):
    os.abort()  # fault: killed


def caught(x, out):
    """A wrapper that tries another kernel where the first cannot be compiled."""
    try:
        asserting(x, out)
    except triton.compiler.errors.CompileTimeAssertionFailure:
        return
