"""Planted bugs of tests/repositories/swiglu, in Triton: they need a GPU."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

SOURCE = "my_kernels/swiglu.py"
FIRST = "    elements = out.numel()\n"
CHECK, LAUNCH, STORE = "if not tensor.is_contiguous():", "triton.cdiv(elements, BLOCK)", "gate * tl.sigmoid(gate) * up"

_triton = bugs_of("swiglu", "triton", SOURCE)

BUGS = (
    _triton("element-past-end", "offset", "one element is written past the end").swap(
        "offsets < elements", "offsets <= elements"
    ),
    _triton("tail-unwritten", "tail", "what is left after whole blocks of 1,024 is not written").swap(
        LAUNCH, "max(1, elements // BLOCK)"
    ),
    _triton("offset-32-bit", "size", "offsets are 32 bits wide, and overflow past 2^31 elements").swap(
        ".to(tl.int64)", ""
    ),
    _triton("grid-65535", "size", "no more than 65,535 blocks are launched").swap(LAUNCH, f"min({LAUNCH}, 65535)"),
    _triton("gate-forgotten", "formula", "the sigmoid alone is multiplied").swap(
        "gate * tl.sigmoid(gate)", "tl.sigmoid(gate)"
    ),
    _triton("gelu-instead", "formula", "the sigmoid is steeper, as in an approximation of GELU").swap(
        "tl.sigmoid(gate)", "tl.sigmoid(1.02 * gate)"
    ),
    _triton(
        "exponential-overflows", "special value", "the sigmoid is e^x / (1 + e^x), which is NaN from x = 89 on"
    ).swap("tl.sigmoid(gate)", "(tl.exp(gate) / (1 + tl.exp(gate)))"),
    _triton("nan-becomes-zero", "special value", "a gate that is NaN gives 0")
    .swap("tl.sigmoid(gate)", "tl.where(gate == gate, tl.sigmoid(gate), 0.0)")
    .swap("gate * tl.where", "tl.where(gate == gate, gate, 0.0) * tl.where"),
    _triton("large-gate-clamped", "data-dependent", "a gate above 64 counts as 64").swap(
        "gate * tl.sigmoid(gate)", "tl.minimum(gate, 64.0) * tl.sigmoid(gate)"
    ),
    _triton("rounded-twice", "rounding", "the activation is rounded before it is multiplied").swap(
        STORE, "(gate * tl.sigmoid(gate)).to(out_ptr.dtype.element_ty).to(tl.float32) * up"
    ),
    _triton("truncated", "rounding", "the result is cut instead of rounded").swap(
        STORE, f'({STORE}).to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz")'
    ),
    _triton("every-400th-call", "rare", "every 400th call computes nothing").swap(
        FIRST,
        FIRST + '    swiglu.calls = getattr(swiglu, "calls", 0) + 1\n    if swiglu.calls % 400 == 0:\n        return\n',
    ),
    _triton("strided-taken", "layout", "a tensor that is not contiguous is not refused, but taken as if it were").swap(
        CHECK, "if tensor.is_sparse:"
    ),
    _triton("gate-zeroed-after-use", "input", "the first element of gate is set to zero after use").swap(
        "elements, block=BLOCK)", "elements, block=BLOCK)\n    gate.view(-1)[:1].zero_()"
    ),
    _triton("default-stream", "stream", "the kernel is queued on the default stream instead of the current one")
    .swap("    _swiglu[", "    with torch.cuda.stream(torch.cuda.default_stream()):\n        _swiglu[")
    .swap("import triton\n", "import torch\nimport triton\n"),
    _triton("one-row-nothing-done", "tail", "a single element is not computed").swap(
        FIRST, FIRST + "    if elements == 1:\n        return\n"
    ),
    _triton("load-unmasked", "offset", "up is read past its end").swap(
        "tl.load(up_ptr + offsets, mask=inside)",
        "tl.load(up_ptr + offsets)",
        equivalent="what is read past the end is never written; memcheck sees it where it leaves the allocation",
    ),
)
