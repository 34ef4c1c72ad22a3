"""Units in the last place: what an error of one step is, and what stands in for elements near zero."""

from __future__ import annotations

import math

import pytest
import torch

from kernelgate.bench.kernel import compare

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_unit_is_the_step_to_the_next_number(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    for value in (1.0, 1.9, 2.0, 3.99, 8.0, info.smallest_normal):
        step = 2.0 ** math.floor(math.log2(value)) * info.eps
        assert float(compare.ulp(torch.tensor([value], dtype=torch.float64), dtype)) == step


def test_elements_near_zero_have_the_unit_of_the_whole_output() -> None:
    right = torch.tensor([3.0, 4.0, 1e-9, 0.0, 100.0], dtype=torch.float64)
    rms = float(right.square().mean().sqrt())
    assert 32 < rms < 64
    eps = torch.finfo(torch.float16).eps
    assert compare.ulp(right, torch.float16).tolist() == [32 * eps] * 4 + [64 * eps]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounding_is_half_a_step_at_most_and_cutting_a_whole_one(dtype: torch.dtype) -> None:
    right = torch.randn(50_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rounded = right.to(dtype)
    toward_zero = torch.nextafter(rounded, torch.zeros_like(rounded))
    cut = torch.where(rounded.double().abs() > right.abs(), toward_zero, rounded)
    found = compare.ulp_errors(rounded, cut, right)
    assert found is not None
    assert found.base.maximum < 0.501 < found.head.maximum <= 1.0  # torch rounds to float32 on the way
    assert found.head.mean == pytest.approx(2 * found.base.mean, rel=0.03)
    assert abs(found.base.outward) < 0.01
    assert found.head.outward == -found.head.mean, "every output is nearer to zero"
    assert abs(found.head.bias) < 0.01, "of positive and negative outputs alike"


def test_what_is_not_finite_on_either_side_is_left_out_of_both() -> None:
    right = torch.tensor([1.0, 2.0, 3.0, math.inf], dtype=torch.float64)
    base = torch.tensor([1.0, math.nan, 3.0, math.inf])
    head = torch.tensor([1.5, 2.0, math.inf, 4.0])
    found = compare.ulp_errors(base, head, right)
    assert found is not None
    assert (found.elements, found.base.maximum) == (1, 0.0)
    assert compare.ulp_errors(base * math.nan, head, right) is None
