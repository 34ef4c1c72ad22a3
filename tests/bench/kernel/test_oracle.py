"""The oracle, and what is near enough to it."""

from __future__ import annotations

import math

import pytest
import torch

from kernelgate.bench.kernel import oracle
from kernelgate.bench.record import Tolerance

TOLERANCE = Tolerance(atol=0.5, rtol=0.25)


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool) -> torch.Tensor:
    """Attention by its definition, one row at a time."""
    out = torch.zeros(q.shape, dtype=torch.float64)
    for b, h, s in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        seen = s + 1 if causal else q.shape[2]
        scores = (k[b, h, :seen].double() @ q[b, h, s].double()) * scale
        weights = (scores - scores.max()).exp()
        out[b, h, s] = weights @ v[b, h, :seen].double() / weights.sum()
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", list(oracle.TORCH_DTYPES.values()))
def test_the_oracle_is_attention(causal: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 3, 9, 64, generator=generator).to(dtype) for _ in range(3))
    found = oracle.expected(q, k, v, 0.2, causal)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, plain(q, k, v, 0.2, causal), rtol=1e-12, atol=1e-12)


def test_the_oracle_is_the_same_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(3, 2, 8, 64, generator=generator) for _ in range(3))
    whole = oracle.expected(q, k, v, 0.1, True)
    monkeypatch.setattr(oracle, "_MAX_SCORES", 4 * 8 * 8)
    assert torch.equal(oracle.expected(q, k, v, 0.1, True), whole)


def test_the_limit_is_atol_plus_rtol_of_what_is_right() -> None:
    expected = torch.full((1, 1, 2, 2), 2.0, dtype=torch.float64)
    output = expected.clone()
    output[0, 0, 1, 0] += 1.0
    assert oracle.compare(output, expected, TOLERANCE) == oracle.Comparison(True, 1.0, 1.0, (0, 0, 1, 0))
    output[0, 0, 1, 0] += 0.01
    assert not oracle.compare(output, expected, TOLERANCE).passed
    assert not oracle.compare(output, expected, TOLERANCE, value_scale=0.5).passed


def test_atol_shrinks_with_the_scale_of_the_values() -> None:
    expected = torch.zeros((1, 1, 1, 4), dtype=torch.float64)
    output = expected + 0.1
    assert oracle.compare(output, expected, TOLERANCE).error_ratio == pytest.approx(0.2)
    assert oracle.compare(output, expected, TOLERANCE, value_scale=0.1).error_ratio == pytest.approx(2.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_passes(value: float) -> None:
    expected = torch.zeros((2, 3, 4, 5), dtype=torch.float64)
    output = expected.clone()
    output[1, 2, 3, 4] = value
    assert oracle.compare(output, expected, TOLERANCE) == oracle.Comparison(False, None, None, (1, 2, 3, 4))


def test_positions_are_those_of_the_first_true_element() -> None:
    mask = torch.zeros((2, 3, 4, 5), dtype=torch.bool)
    mask[1, 0, 2, 3] = mask[1, 2, 0, 0] = True
    assert oracle.first(mask) == (1, 0, 2, 3)
