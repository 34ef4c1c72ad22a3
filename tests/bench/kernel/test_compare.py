"""What is near enough to the oracle, and errors in ulp: what one step is, and what stands in for it near zero."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.kernel import compare
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.cards import TOLERANCES
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.operands import TORCH_DTYPES
from kernelgate.bench.record import LARGEST

FLOATS = [name for name in DTYPES if TORCH_DTYPES[name].is_floating_point]
INTEGERS = ["int8", "int32", "int64", "uint8"]
NUMBERS = arrays.arrays("float64", (2, 3), elements=st.floats(-100, 100))


class Plain(Kernel):
    """A card with a tolerance and a scale of its own."""

    def __init__(self, tolerance: tuple[float, float] | None = None, scale: float | None = None) -> None:
        self.given = tolerance
        self.scale = scale

    def tolerance(self, case: Any) -> tuple[float, float] | None:  # noqa: ARG002
        return self.given

    def atol_scale(self, case: Any, expected: Any) -> float:
        return super().atol_scale(case, expected) if self.scale is None else self.scale


class Judging(Kernel):
    """A card with a rule of its own."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def compare(self, case: Any, name: str, out: Any, expected: Any) -> Any:  # noqa: ARG002
        return self.answer


def held(kernel: Kernel, made: torch.Tensor, right: torch.Tensor, dtype: str = "fp32") -> Comparison:
    return compare.output(kernel, CaseAxes({"dtype": dtype}), "out", made, right)


@given(NUMBERS, NUMBERS, st.floats(0, 10), st.floats(0, 1), st.floats(0.01, 100))
def test_an_output_passes_where_every_element_is_within_its_limit(
    right: Any, noise: Any, atol: float, rtol: float, scale: float
) -> None:
    expected, made = torch.from_numpy(right), torch.from_numpy(right + noise / 50).float()
    error = (made.double() - expected).abs()
    limit = max(atol * scale if atol else 0.0, DTYPES["fp32"].smallest) + rtol * expected.abs()
    found = held(Plain((atol, rtol), scale), made, expected)
    assert found.passed == bool((error <= limit).all())
    assert found.max_abs_error == float(error.max())
    assert (found.error_ratio <= 1) == found.passed
    at = found.worst
    assert float(error[at]) == 0 or min(float(error[at] / limit[at]), LARGEST) == found.error_ratio


@pytest.mark.parametrize("dtype", FLOATS)
def test_without_a_word_of_the_card_the_dtype_decides_and_atol_has_the_size_of_the_outputs(dtype: str) -> None:
    """All elements are 0 or 8: their root mean square is 8 / sqrt(2), and at 0 atol is all that is allowed."""
    right = torch.tensor([0.0, 8.0] * 8, dtype=torch.float64)
    rules = TOLERANCES[dtype]
    allowed = (rules.atol or 0) * 8 / math.sqrt(2)
    just, much = right.clone(), right.clone()
    just[0], much[0] = 0.97 * allowed, 1.05 * allowed
    wide = TORCH_DTYPES[dtype]
    # The value that the dtype holds must lie on the same side of the limit.
    for made, passes in ((just, True), (much, False)):
        made = made.to(wide)
        step = float(made[0].double()) - allowed
        if (step <= 0) == passes:
            assert held(Plain(), made, right, dtype).passed == passes


@pytest.mark.parametrize("dtype", FLOATS)
def test_no_limit_is_below_the_step_of_the_smallest_numbers(dtype: str) -> None:
    """Values far below the subnormal numbers: zero and one step are as near as the dtype allows."""
    step = DTYPES[dtype].smallest
    right = torch.full((3,), step / 4, dtype=torch.float64)
    for value in (0.0, step):
        made = torch.full((3,), value, dtype=torch.float64).to(TORCH_DTYPES[dtype])
        assert float(made[0].double()) == value, "it is a number of the dtype"
        assert held(Plain(), made, right, dtype).passed
    assert not held(Plain(), torch.full((3,), 3 * step).to(TORCH_DTYPES[dtype]), right, dtype).passed


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_exact(dtype: str) -> None:
    whole = TORCH_DTYPES[dtype]
    top = torch.iinfo(whole).max
    right = torch.tensor([[0, 5], [top - 1, top]], dtype=torch.int64)
    assert held(Plain(), right.to(whole), right, "int8") == Comparison(True, 0.0, 0.0, (0, 0))
    made = right.clone()
    made[1, 0] += 1
    found = held(Plain(), made.to(whole), right, "int8")
    assert (found.passed, found.max_abs_error, found.worst) == (False, 1.0, (1, 0))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_passes_only_where_the_oracle_has_the_same(value: float) -> None:
    right = torch.zeros((2, 3, 4, 5), dtype=torch.float64)
    made = right.float()
    made[1, 2, 3, 4] = value
    assert held(Plain(), made, right) == Comparison(False, None, None, (1, 2, 3, 4))
    right[1, 2, 3, 4] = value
    assert held(Plain(), made, right).passed
    made[1, 2, 3, 4] = 1.0
    missed = held(Plain(), made, right)
    assert (missed.passed, missed.worst, str(missed.oracle)) == (False, (1, 2, 3, 4), str(value))


OUT = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, Comparison(True, None, None, ())),
        (False, Comparison(False, None, None, ())),
        (torch.tensor([[True, True, False], [True, False, True]]), Comparison(False, None, None, (0, 2))),
        (torch.tensor([[0.5, 1.0], [3.0, 0.25]]), Comparison(False, None, 3.0, (1, 0))),
        (torch.tensor([[0.5, math.nan], [3.0, 0.25]]), Comparison(False, None, None, (0, 1))),
        (torch.tensor(2.0), Comparison(False, None, 2.0, ())),
    ],
)
def test_a_card_may_judge_by_itself(answer: Any, expected: Comparison) -> None:
    assert held(Judging(answer), OUT, OUT.double()) == expected


@pytest.mark.parametrize("kernel", [Plain((0.0, 0.0)), Judging(torch.tensor([0.5, 1e30]))], ids=["tolerance", "card"])
def test_errors_are_no_larger_than_a_record_can_hold(kernel: Kernel) -> None:
    found = held(kernel, torch.tensor([1.0, 1e30]), torch.tensor([1.0, 0.0]).double())
    assert (found.passed, found.error_ratio, found.worst) == (False, LARGEST, (1,))
    assert found.max_abs_error in (LARGEST, None)


def test_the_worst_of_several_outputs_is_told() -> None:
    right = {name: torch.ones(3, dtype=torch.float64) for name in "abc"}
    case = CaseAxes({"dtype": "fp32"})

    def worst(**made: float) -> Comparison:
        tensors = {name: torch.tensor([1.0, 1.0, value]) for name, value in made.items()}
        return compare.outputs(Plain(), case, tensors, right, dict)

    assert (worst(a=1.0, b=1.0001, c=1.00001).output, worst(a=1.0, b=1.0001).passed) == ("b", True)
    assert (worst(a=9.0, b=5.0, c=1.0).output, worst(a=9.0, b=5.0).passed) == ("a", False)
    assert worst(a=9.0, b=math.nan, c=1.0) == Comparison(False, None, None, (2,), "b")


# Units in the last place ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_unit_is_the_step_to_the_next_number(dtype: str) -> None:
    info = torch.finfo(TORCH_DTYPES[dtype])
    for value in (1.0, 1.9, 2.0, 3.99, 8.0, info.smallest_normal):
        step = 2.0 ** math.floor(math.log2(value)) * info.eps
        assert float(compare.ulp(torch.tensor([value], dtype=torch.float64), TORCH_DTYPES[dtype])) == step


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
    both = compare.ulp_errors(rounded, cut, right)[:2]
    base, head = ({name: value for name, (value,) in dict(one).items()} for one in both)
    assert base["maximum"] < 0.501 < head["maximum"] <= 1.0  # torch rounds to float32 on the way
    assert head["mean"] == pytest.approx(2 * base["mean"], rel=0.03)
    assert abs(base["outward"]) < 0.01
    assert head["outward"] == -head["mean"], "every output is nearer to zero"
    assert abs(head["bias"]) < 0.01, "of positive and negative outputs alike"


class NormGradient(Kernel):
    """The gradient of an RMSNorm, whose terms cancel where a row has one element."""

    def oracle(self, case: Any, x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        of = x.detach().requires_grad_()
        out = of / (of.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        return torch.autograd.grad(out, of, grad)[0]


def norm_gradient(rows: int, columns: int, kernel: Any, seed: int) -> Comparison:
    chance = torch.Generator().manual_seed(seed)
    x, grad = (torch.randn(rows, columns, generator=chance) for _ in range(2))
    given = {"x": x, "weight": torch.randn(columns, generator=chance), "grad": grad}
    card, case = NormGradient(), CaseAxes({"dtype": "fp32"})
    right = compare.expected(card, case, given, ("out",))
    return compare.outputs(card, case, {"out": kernel(**given)}, right, lambda: given)


def in_one_pass(x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor, correction: float = 1.0) -> torch.Tensor:
    scale = 1 / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    mean = (x * weight * grad).mean(-1, keepdim=True)
    return scale * (weight * grad - correction * x * mean * scale * scale)


def test_rounding_where_terms_cancel_is_not_wrong_and_all_else_is() -> None:
    for rows, seed in product((1, 17, 64), range(20)):
        assert norm_gradient(rows, 1, in_one_pass, seed).passed
    for columns, correction in product((1, 300), (0.0, 1.001)):
        kernel = partial(in_one_pass, correction=correction)
        assert not norm_gradient(17, columns, kernel, seed=0).passed, (columns, correction)
