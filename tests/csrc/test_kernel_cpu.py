"""The operators on the CPU: right at every shape, and clear about what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kernelgate.bench.build.library import Library
from tests.attention import LIMITS, error_ratio, inputs, reference

SEQS = (1, 63, 64, 65, 128, 513)
DTYPES = tuple(LIMITS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("seq", SEQS)
def test_agrees_with_float64(kernel: Any, seq: int, causal: bool, dtype: torch.dtype) -> None:
    q, k, v = inputs(2, 3, seq, dtype, seed=seq)
    assert error_ratio(kernel.forward(q, k, v, 0.125, causal), reference(q, k, v, 0.125, causal)) <= 1


def test_the_number_of_threads_changes_no_bit(kernel: Any) -> None:
    q, k, v = inputs(2, 3, 300, torch.float32)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = kernel.forward(q, k, v, 0.125, True)
        torch.set_num_threads(3)
        assert torch.equal(kernel.forward(q, k, v, 0.125, True), alone)
    finally:
        torch.set_num_threads(threads)


X = torch.zeros(2, 3, 8, 64)

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "dimensions": ({"q": X[0]}, "q: expected 4 dimensions (B, H, S, 64), got shape (3, 8, 64)"),
    "too long": (
        {"q": torch.zeros(1, 1, 4097, 64)},
        "q: expected sequence length S from 1 to 4096, got 4097 in shape (1, 1, 4097, 64)",
    ),
    "dtype of k": ({"k": X.half()}, "k: expected dtype float32 like q, got float16"),
    "shape of v": ({"v": X[:, :2]}, "v: expected shape (2, 3, 8, 64) like q, got (2, 2, 8, 64)"),
    "strides": (
        {"k": torch.zeros(2, 8, 3, 64).transpose(1, 2)},
        "k: expected a contiguous tensor, got strides (1536, 64, 192, 1) for shape (2, 3, 8, 64); call .contiguous()",
    ),
    "shared memory": ({"out": X}, "out: expected memory of its own, got memory shared with v"),
    "NaN": ({"scale": math.nan}, "scale: expected a finite float32 number, got nan"),
}


@pytest.mark.parametrize(("changed", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_argument_the_expected_and_the_actual(
    kernel: Any, changed: dict[str, Any], message: str
) -> None:
    arguments = {"q": X + 0, "k": X + 0, "v": X, "out": X + 0, "scale": 0.125, "causal": False} | changed
    with pytest.raises(RuntimeError) as raised:
        kernel.forward_out(**arguments)
    assert str(raised.value) == f"fa_s512: {message}"


def test_overlap_is_seen_inside_one_storage(kernel: Any) -> None:
    storage = torch.zeros(3, 1, 1, 8, 64)
    shifted = storage.view(-1)[8 : 8 + 512].view(1, 1, 8, 64)
    with pytest.raises(RuntimeError, match="out: expected memory of its own, got memory shared with q"):
        kernel.forward_out(storage[0], storage[1], storage[2], shifted, 0.125, False)
    kernel.forward_out(storage[0], storage[0], storage[0], storage[1], 0.125, False)  # neighbours are no overlap


@pytest.mark.slow
@pytest.mark.guards("csrc/")
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_opcheck(kernel: Any, causal: bool) -> None:
    q, k, v = inputs(2, 3, 33, torch.bfloat16)
    torch.library.opcheck(kernel.forward.default, (q, k, v, 0.125, causal))
    torch.library.opcheck(kernel.forward_out.default, (q, k, v, torch.empty_like(q), 0.125, causal))


@pytest.mark.slow
@pytest.mark.guards("csrc/")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiles_into_one_graph(kernel: Any, dynamic: bool) -> None:
    def layer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        result: Tensor = kernel.forward(q * 2, k, v, scale=0.125, causal=True) + 1
        return result

    torch.compiler.reset()
    compiled: Callable[..., Tensor] = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for seq in (64, 65):
        q, k, v = inputs(1, 2, seq, torch.float32)
        assert torch.equal(compiled(q, k, v), layer(q, k, v))


def test_no_kernel_spills_and_each_says_what_its_launch_asks_for(kernel_library: Library) -> None:
    manifest = kernel_library.manifest
    if manifest.facts_missing:
        pytest.skip(manifest.facts_missing)
    assert manifest.kernels
    for kernel in manifest.kernels:
        assert kernel.spill_bytes == 0, kernel.name
        if "Wgmma" in kernel.name:
            assert kernel.dynamic_shared_bytes, kernel.name
        else:
            assert (kernel.dynamic_shared_bytes, kernel.threads) == (48 * 1024, 128), kernel.name
