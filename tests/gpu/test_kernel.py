"""The operators on a GPU: right at every shape, on the current stream, within their own memory."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kernelgate.bench.kernel import commit, operands
from tests.attention import error_ratio, guarded, inputs, only_inner_written, reference

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.gpu

KERNELS = ("", "mma_sync", "wgmma_m128", "wgmma_m256")
"""Values of FA_S512_KERNEL: the dispatch table's choice, and each kernel that a GPU of compute capability 9.0 has."""
SEQS = (1, 2, 4, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 448, 512, 513, 640, 1024)
DTYPES = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True, params=KERNELS, ids=lambda name: name or "chosen")
def chosen_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param and torch.cuda.get_device_capability(0) != (9, 0):
        pytest.skip("this GPU has one kernel")
    monkeypatch.setenv("FA_S512_KERNEL", request.param)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("seq", [*SEQS, 2047, 4096])
def test_agrees_with_float64(kernel: Any, seq: int, causal: bool, dtype: torch.dtype) -> None:
    q, k, v = inputs(1, 3, seq, dtype, "cuda", seed=seq)
    assert error_ratio(kernel.forward(q, k, v, 0.125, causal), reference(q, k, v, 0.125, causal)) <= 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("scale", [0.0, 1e-30, -0.3, 1.0])
def test_any_finite_scale(kernel: Any, scale: float, causal: bool, dtype: torch.dtype) -> None:
    """Also 0, where every visible key weighs the same, and below, where the smallest score weighs most."""
    q, k, v = inputs(3, 5, 300, dtype, "cuda")
    assert error_ratio(kernel.forward(q, k, v, scale, causal), reference(q, k, v, scale, causal)) <= 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("seq", SEQS)
def test_reads_and_writes_its_own_memory_alone(kernel: Any, seq: int, causal: bool, dtype: torch.dtype) -> None:
    """All around the inputs lies NaN; the output is poisoned with it."""
    tensors = [guarded(tensor)[0] for tensor in inputs(2, 3, seq, dtype, "cuda")]
    out, buffer = guarded(torch.full_like(tensors[0], math.nan))
    kernel.forward_out(*tensors, out, 0.125, causal)
    assert only_inner_written(buffer)
    assert torch.equal(out, kernel.forward(*tensors, 0.125, causal))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_is_never_hidden(kernel: Any, dtype: torch.dtype) -> None:
    """A NaN in key 70 reaches each query that sees it, and no other."""
    q, k, v = inputs(1, 1, 100, dtype, "cuda")
    k[0, 0, 70, 5] = math.nan
    poisoned = kernel.forward(q, k, v, 0.125, True).isnan().all(-1)[0, 0]
    assert poisoned.tolist() == [query >= 70 for query in range(100)]


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("spread", [1, 5, 30])
def test_the_maximum_may_rise_at_any_step(kernel: Any, spread: int, causal: bool) -> None:
    """Keys of growing and falling weight, in the order in which they are taken and against it, and a sink at key 0."""
    q, k, v = inputs(2, 3, 700, torch.float16, "cuda")
    ramp = torch.linspace(-spread, spread, 700, device="cuda").reshape(1, 1, 700, 1)
    sink = k.clone()
    sink[:, :, 0] *= spread
    for queries, keys in ((q.abs(), k + ramp), (q.abs(), k - ramp), (q, sink), (q * spread, k)):
        queries, keys = queries.half(), keys.half()
        result = kernel.forward(queries, keys, v, 0.125, causal)
        assert error_ratio(result, reference(queries, keys, v, 0.125, causal)) <= 1


def test_an_unknown_kernel_is_refused(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.get_device_capability(0) != (9, 0):
        pytest.skip("this GPU has one kernel")
    monkeypatch.setenv("FA_S512_KERNEL", "fastest")
    q, k, v = inputs(1, 1, 8, torch.float16, "cuda")
    with pytest.raises(RuntimeError, match="expected mma_sync, wgmma_m128 or wgmma_m256, got fastest"):
        kernel.forward(q, k, v, 0.125, False)


def misaligned() -> Tensor:
    return torch.zeros(1 + 2 * 3 * 8 * 64, dtype=torch.float16, device="cuda")[1:].view(2, 3, 8, 64)


REFUSED: dict[str, tuple[Callable[[Tensor], dict[str, Tensor]], str]] = {
    "float32": (lambda x: {"q": x.float()}, "q: expected dtype float16 or bfloat16 on CUDA, got float32"),
    "another device": (lambda x: {"k": x.cpu()}, "k: expected device cuda:0 like q, got cpu"),
    "alignment": (
        lambda _: {"v": misaligned()},
        "v: expected data aligned to 16 bytes, got an address 2 bytes past that; call .clone()",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_argument_the_expected_and_the_actual(
    kernel: Any, change: Callable[[Tensor], dict[str, Tensor]], message: str
) -> None:
    x = torch.zeros(2, 3, 8, 64, dtype=torch.float16, device="cuda")
    with pytest.raises(RuntimeError) as raised:
        kernel.forward(**({"q": x, "k": x, "v": x, "scale": 0.125, "causal": False} | change(x)))
    assert str(raised.value) == f"fa_s512: {message}"


def test_a_library_for_other_devices_says_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor = torch.cuda.get_device_capability(0)
    other, has = ("9.0", "sm_90, sm_90a") if major == 8 else ("8.0;8.9", "sm_80, sm_89")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", other)
    forward_out = operands.load(commit.build_tree(ROOT).built["attention"]).forward_out
    x = torch.zeros(2, 3, 8, 64, dtype=torch.float16, device="cuda")
    with pytest.raises(RuntimeError) as raised:
        forward_out(x, x, x, torch.empty_like(x), 0.125, False)
    assert str(raised.value) == (
        f"fa_s512: cuda:0 has compute capability {major}.{minor}, but this library was compiled for {has}; "
        f"build it again with TORCH_CUDA_ARCH_LIST={major}.{minor}"
    )


def test_a_library_for_the_cpu_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc", ignore=shutil.ignore_patterns("*.cu"))
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    forward_out = operands.load(commit.build_tree(tmp_path).built["attention"]).forward_out
    x = torch.zeros(2, 3, 8, 64, dtype=torch.float16, device="cuda")
    with pytest.raises(RuntimeError, match=r"fa_s512: q is on cuda:0, but this library was compiled for the CPU alone"):
        forward_out(x, x, x, torch.empty_like(x), 0.125, False)
