"""The device's own kernels on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernelgate.bench.system import cuda_driver
from kernelgate.bench.system.cuda_driver import CudaDriverError
from kernelgate.bench.timing import device
from kernelgate.bench.timing.device import DeviceComparison

pytestmark = pytest.mark.gpu

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
ATOL, RTOL = 1e-3, 1e-2
EXACT = 1e-5
"""Of a float32 computation."""


Pair = tuple[torch.Tensor, torch.Tensor]


def addresses(*pairs: Pair) -> torch.Tensor:
    """What `device.compare` takes of outputs and their references."""
    return torch.tensor([[one.data_ptr() for one in pair] for pair in pairs], device="cuda")


def compare(out: torch.Tensor, reference: torch.Tensor, atol: float = ATOL, rtol: float = RTOL) -> DeviceComparison:
    results = device.new_results(1, "cuda")
    device.compare(addresses((out, reference)), out.numel(), out.dtype, (atol, rtol), results)
    (read,) = device.read_results(results)
    assert read.compared == out.numel()
    return read


def pair(count: int, dtype: torch.dtype, offsets: tuple[int, int] = (0, 0)) -> Pair:
    """An output and its reference, which begin at these elements of their memory."""
    generator = torch.Generator("cuda").manual_seed(count)
    reference = torch.randn(count + offsets[1], device="cuda", generator=generator)[offsets[1] :]
    noise = 1e-3 * torch.randn(count, device="cuda", generator=generator)
    out = torch.empty(count + offsets[0], device="cuda", dtype=dtype)[offsets[0] :]
    return out.copy_(reference + noise), reference


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (0, 1), (3, 3), (8, 4)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_agrees_with_float64(dtype: torch.dtype, offsets: tuple[int, int]) -> None:
    for count in (1, 7, 8, 33, 255, 2049, 1_000_003):
        out, reference = pair(count, dtype, offsets)
        difference = out.double() - reference.double()
        ratio = difference.abs() / (ATOL + RTOL * reference.double().abs())
        read = compare(out, reference)
        assert read.max_abs == pytest.approx(float(difference.abs().max()), rel=EXACT)
        assert read.mean_abs == pytest.approx(float(difference.abs().mean()), rel=EXACT)
        assert int((ratio > 1 + EXACT).sum()) <= read.wrong <= int((ratio > 1 - EXACT).sum())
        assert (read.nonfinite, read.compared) == (0, count)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_wrong_element_is_found_and_what_is_not_finite_stays_out_of_the_errors(
    dtype: torch.dtype, offset: int
) -> None:
    out, reference = pair(1_000_003, dtype, (offset, offset))
    for index in (0, 5, 262_143, 1_000_000, 1_000_002):
        out.copy_(reference)
        assert compare(out, reference).wrong == 0
        out[index] += 1
        read = compare(out, reference)
        assert (read.wrong, read.nonfinite) == (1, 0)
        assert read.max_abs == pytest.approx(1, abs=0.05)
    for value in (float("nan"), float("inf"), float("-inf")):
        out.copy_(reference)
        expected = compare(out, reference)
        out[[77, 1_000_002]] = value
        read = compare(out, reference)
        assert (read.wrong, read.nonfinite, read.compared) == (2, 2, 1_000_003)
        assert read.max_abs <= expected.max_abs
        assert read.mean_abs == pytest.approx(expected.mean_abs, rel=1e-3)


def test_a_limit_of_zero_and_nothing_to_compare() -> None:
    out = torch.zeros(40, device="cuda")
    assert compare(out, torch.zeros(40, device="cuda"), 0, 0).wrong == 0
    out[13] = 1e-30
    assert compare(out, torch.zeros(40, device="cuda"), 0, 0).wrong == 1
    assert compare(out[:0], out[:0].clone()) == DeviceComparison(0, 0, 0, 0, 0)


@pytest.mark.parametrize("count", [33, 2049, 300_001])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_of_many_outputs_is_judged_on_its_own(dtype: torch.dtype, count: int) -> None:
    """Every third is wrong, each in more elements than the one before, and every tenth ends in NaN."""
    pairs = [pair(count, dtype, (at % 3, at % 5)) for at in range(100)]
    expected = []
    for at, (out, reference) in enumerate(pairs):
        out.copy_(reference)
        wrong = set(range(at % 7, min(count, at % 7 + at // 3))) if at % 3 == 0 else set()
        out[sorted(wrong)] += 10
        if at % 10 == 0:
            out[-1] = float("nan")
            wrong.add(count - 1)
        expected.append((len(wrong), int(at % 10 == 0), count))
    results = device.new_results(len(pairs), "cuda")
    device.compare(addresses(*pairs), count, dtype, (ATOL, RTOL), results)
    together = device.read_results(results)
    assert [(one.wrong, one.nonfinite, one.compared) for one in together] == expected
    for one, of_pair in zip(together, pairs, strict=True):
        alone = compare(*of_pair)
        assert (one.max_abs, one.wrong) == (alone.max_abs, alone.wrong)
        assert one.mean_abs == pytest.approx(alone.mean_abs, rel=EXACT)


def test_as_many_outputs_as_a_launch_takes() -> None:
    number = 65_535  # a grid has no more blocks in y
    outs, reference = torch.zeros(number, 12, device="cuda"), torch.zeros(12, device="cuda")
    outs[::2, 7] = 1
    pairs = torch.empty(number, 2, dtype=torch.int64, device="cuda")
    pairs[:, 0] = outs.data_ptr() + 48 * torch.arange(number, device="cuda")
    pairs[:, 1] = reference.data_ptr()
    results = device.new_results(number, "cuda")
    device.compare(pairs, 12, torch.float32, (ATOL, RTOL), results)
    read = device.read_results(results)
    assert {(one.wrong, one.max_abs, one.compared) for one in read[::2]} == {(1, 1.0, 12)}
    assert {(one.wrong, one.max_abs, one.compared) for one in read[1::2]} == {(0, 0.0, 12)}


def probes(count: int) -> torch.Tensor:
    return torch.zeros(count, device.PROBE_WORDS, dtype=torch.int64, device="cuda")


@pytest.mark.parametrize("microseconds", [200.0, 5_000.0])
def test_a_pause_is_about_as_long_as_asked_for(microseconds: float) -> None:
    slots = probes(2)
    device.probe(slots[0])
    device.wait(microseconds)
    device.probe(slots[1])
    begun, ended = slots[:, 0].tolist()
    assert 0.99 * microseconds < (ended - begun) / 1e3 < 3 * microseconds + 2_000


def expected_digest(words: torch.Tensor, secret: int) -> int:
    """Of each word times SplitMix64's output, made odd."""
    with np.errstate(over="ignore"):
        state = np.uint64(secret) + np.arange(len(words), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
        keys = state ^ (state >> np.uint64(31)) | np.uint64(1)
        return int((words.cpu().numpy() * keys.view(np.int64)).sum())


@pytest.mark.parametrize("count", [1, 1_000, (1 << 22) + 3])
def test_a_digest_changes_with_each_word_and_with_the_secret(count: int) -> None:
    words = torch.randint(-(1 << 62), 1 << 62, (count,), dtype=torch.int64, device="cuda")
    before = device.digest(words, 7)
    assert before == device.digest(words.clone(), 7) == expected_digest(words, 7) != device.digest(words, 8)
    for at in (0, count // 2, count - 1):
        words[at] ^= 1 << 61 - at % 2
        assert device.digest(words, 7) != before
        words[at] ^= 1 << 61 - at % 2
    assert device.digest(words, 7) == before


def test_a_failure_names_the_function() -> None:
    with pytest.raises(CudaDriverError, match="cuMemAlloc_v2 failed: CUDA_ERROR_"):
        cuda_driver.allocate(1 << 50)
    with pytest.raises(CudaDriverError, match="cuModuleLoadData failed: CUDA_ERROR_"):
        cuda_driver.Module("this is no PTX")
