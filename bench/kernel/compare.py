"""How far an output is from the card's oracle in float64: whether it is right, and its error in ulp."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import inf
from types import MappingProxyType
from typing import Any, Final

import torch

from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import cards, operands
from kernelgate.bench.kernel.card import CaseAxes, Kernel, asked_for
from kernelgate.bench.kernel.operands import NAMES, Inputs, Tensors
from kernelgate.bench.record import LARGEST, UlpErrors
from kernelgate.bench.system import environment


@dataclass(frozen=True)
class Comparison:
    """An output against the oracle's. Errors are None where it is not finite and the oracle is."""

    passed: bool
    max_abs_error: float | None
    error_ratio: float | None
    """Largest |output - expected| / limit: at most 1 in a pass."""
    worst: tuple[int, ...]
    """Where: the index of the first element that is not finite, else of the largest error ratio."""
    output: str = "out"
    oracle: float | None = None
    """NaN or Inf, which the oracle has at `worst` where the output is finite."""


def expected(kernel: Kernel, case: CaseAxes, given: Inputs, names: tuple[str, ...]) -> Tensors:
    return asked(kernel, case, operands.exact(asked_for(kernel.oracle, given)), names)


def asked(kernel: Kernel, case: CaseAxes, given: Inputs, names: tuple[str, ...]) -> Tensors:
    """What the oracle says of inputs in the precision in which it is to compute."""
    with environment.repeating_bits():
        return operands.named(kernel.oracle(case, **given), names, "oracle()")


ROUNDING: Final = 16.0
"""A kernel may round so many times worse than the oracle does in float32: where the gradient of an RMSNorm over one
element cancels to nothing, errors of honest kernels are up to 7 times the largest of NUDGES, in 99 of 100 draws."""
NUDGES: Final = 8
FEW_ELEMENTS: Final = 4096
"""Of an output. Of more, one nudge shows as much."""


def by_tolerance(kernel: Kernel) -> bool:
    """Whether the card leaves the comparison to its tolerance."""
    return type(kernel).compare is Kernel.compare


def outputs(kernel: Kernel, case: CaseAxes, made: Tensors, right: Tensors, given: Callable[[], Inputs]) -> Comparison:
    """The worst of the outputs. `given`: what the kernel got. Raises UsageError for an oracle's other shape."""
    takes = signature(kernel.compare).parameters
    beside: dict[str, Any] = {"outputs": made} if "outputs" in takes else {}
    if "inputs" in takes:
        beside["inputs"] = given()
    compared = {name: output(kernel, case, name, made[name], right[name], beside) for name in made}
    wrong = (name for name, one in compared.items() if not one.passed and one.error_ratio and one.max_abs_error)
    if far := [name for name in wrong if made[name].is_floating_point()]:
        rounding = _rounding(kernel, case, {name: right[name] for name in far}, tuple(right), given())
        compared |= {name: output(kernel, case, name, made[name], right[name], beside, rounding[name]) for name in far}
    return max(compared.values(), key=lambda one: (not one.passed, one.max_abs_error is None, one.error_ratio or 0.0))


def _rounding(
    kernel: Kernel, case: CaseAxes, right: Tensors, names: tuple[str, ...], given: Inputs
) -> dict[str, float]:
    """The largest error of these outputs that rounding explains: a multiple of what the oracle, which gives `names`,
    makes in float32 of inputs whose last bits differ. Nearly nothing, but where large terms cancel. 0 where float32
    overflows, and for an oracle that takes float64 alone."""

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        bits = torch.randint(-1, 2, tensor.shape, generator=chance[tensor.device], device=tensor.device)
        return tensor.float() * (1 + bits * torch.finfo(torch.float32).eps)

    chance = {value.device: torch.Generator(value.device).manual_seed(0) for value in right.values()}
    most = dict.fromkeys(right, 0.0)
    for _ in range(NUDGES if min(value.numel() for value in right.values()) <= FEW_ELEMENTS else 1):
        try:
            single = operands.changed(asked_for(kernel.oracle, given), nudged)
            made = asked(kernel, case, single, names)
        except Exception:
            return dict.fromkeys(right, 0.0)
        for name, value in right.items():
            error = (made[name].double() - value.double())[torch.isfinite(value)].abs()
            most[name] = max(most[name], float(error.max().nan_to_num(inf)) if error.numel() else 0.0)
    return {name: ROUNDING * error if error < inf else 0.0 for name, error in most.items()}


def output(
    kernel: Kernel,
    case: CaseAxes,
    name: str,
    made: torch.Tensor,
    right: torch.Tensor,
    beside: Mapping[str, Any] = MappingProxyType({}),
    rounding: float = 0.0,
) -> Comparison:
    """One output: |output - oracle| <= atol * scale + rtol * |oracle| + rounding everywhere, where the oracle is
    finite. NaN and Inf pass only where the oracle has the same, once it is rounded to the output's dtype."""
    if made.shape != right.shape:
        raise UsageError(f"oracle() gave shape {list(right.shape)} for {name}, whose shape is {list(made.shape)}")
    if made.numel() == 0:
        return Comparison(True, 0.0, 0.0, (), name)
    if (own := kernel.compare(case, name, made, right, **beside)) is not None:
        return _by_card(name, own)
    whole = not made.is_floating_point() and not right.is_floating_point()
    unequal = made.long() != right.long() if whole else None  # float64 does not tell large integers apart
    wide, right = made.double(), right.double()
    strange = nonfinite(made, right)
    if bool(strange.any()):
        return Comparison(False, None, None, first(strange), name)
    missed = torch.isfinite(wide) & ~torch.isfinite(right)
    if bool(missed.any()):
        at = first(missed)
        return Comparison(False, None, None, at, name, oracle=float(right[at]))
    error = torch.where(torch.isfinite(right) & torch.isfinite(wide), (wide - right).abs(), 0.0)
    if unequal is not None:
        error = torch.where(unequal, error.clamp(min=1.0), 0.0)
    atol, rtol = limits(kernel, case, made.dtype, right)
    limit = atol + rounding + rtol * right.abs().nan_to_num(0.0, 0.0, 0.0)
    ratio = torch.where(error == 0, 0.0, error / limit)
    worst = float(ratio.max())
    at = first(ratio == worst)
    return Comparison(worst <= 1.0, min(float(error.max()), LARGEST), min(worst, LARGEST), at, name)


def nonfinite(made: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Where an output is NaN or Inf and the oracle, rounded to the output's dtype, is not."""
    wide, rounded = made.double(), right.to(made.dtype).double()
    return ~torch.isfinite(wide) & ~((wide == rounded) | (wide.isnan() & rounded.isnan()))


def limits(kernel: Kernel, case: CaseAxes, dtype: torch.dtype, right: torch.Tensor) -> tuple[float, float]:
    """What an output of `dtype` may be off: atol, with its scale, and rtol. `right`: what the scale is taken from."""
    name, given = NAMES[dtype], kernel.tolerance(case)
    by_dtype = cards.output_tolerance(name, case_axes.dtype(case))
    atol, rtol = given if given is not None else (by_dtype.atol or 0.0, by_dtype.rtol or 0.0)
    finite = torch.isfinite(right)
    scale = kernel.atol_scale(case, right if bool(finite.all()) else right[finite]) if atol else 0.0
    return max(atol * scale, DTYPES[name].smallest), rtol


def _by_card(name: str, own: object) -> Comparison:
    """A card's own judgement: True or False, or the error of each element as a multiple of what is allowed."""
    if isinstance(own, bool):
        return Comparison(own, None, None, (), name)
    if not isinstance(own, torch.Tensor):
        raise UsageError(f"compare() gave a {type(own).__name__}; it must give True, False, a tensor or None")
    if own.dtype == torch.bool:
        return Comparison(bool(own.all()), None, None, first(~own), name)
    if not bool(own.isfinite().all()):
        return Comparison(False, None, None, first(~own.isfinite()), name)
    worst = float(own.max())
    return Comparison(worst <= 1.0, None, min(max(worst, 0.0), LARGEST), first(own == own.max()), name)


def first(mask: torch.Tensor) -> tuple[int, ...]:
    at, found = int(mask.reshape(-1).to(torch.uint8).argmax()), list[int]()
    for size in reversed(mask.shape):  # torch.unravel_index() loads sympy, for half a second
        at, inside = divmod(at, size)
        found.append(inside)
    return tuple(reversed(found))


def largest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known, default=None) if len(known) == len(values) else None


def place(output: str, index: Sequence[int]) -> str:
    """Such as "out[0,1,512,0]": one word, which a comment shows as one piece of code."""
    return f"{output}[{','.join(map(str, index))}]" if index else output


def bits_dtype(dtype: torch.dtype) -> torch.dtype:
    found: torch.dtype = getattr(torch, f"int{DTYPES[NAMES[dtype]].bits}") if dtype != torch.bool else torch.int8
    return found


def ulp_errors(base: torch.Tensor, head: torch.Tensor, right: torch.Tensor) -> tuple[UlpErrors, UlpErrors, int] | None:
    """The errors of both sides' tensors, of the shape and dtype of an output, and how many elements are finite on both
    and in the oracle, which count; None where none is."""
    dtype, count = base.dtype, base.numel()
    wide = right.double()
    if not dtype.is_floating_point and not right.is_floating_point():
        # float64 does not tell large integers apart.
        differences = [(made.long() - right.long()).double() for made in (base, head)]
    else:
        one, other = base.double(), head.double()
        finite = torch.isfinite(one) & torch.isfinite(other) & torch.isfinite(wide)
        count = int(finite.sum())
        if count < base.numel():
            one, other, wide = one[finite], other[finite], wide[finite]
        differences = [one - wide, other - wide]
    if not count:
        return None
    unit = ulp(wide, dtype)
    base_errors, head_errors = (_side_errors(difference, wide, unit) for difference in differences)
    return base_errors, head_errors, count


def ulp(right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The unit of each element of a finite oracle: the spacing of the dtype at max(|oracle|, its root mean square).

    Kahan's and Goldberg's unit (ACM Computing Surveys 23, 1991), the spacing at |oracle| alone, is the right one for a
    function of one number. An element of a sum of products may be near zero because its terms cancel, and then no
    algorithm that rounds its terms is within a few such units: error analysis bounds it by the size of the terms
    (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1). The root mean square stands for it.
    """
    if not dtype.is_floating_point:
        return torch.ones_like(right)
    size = right.abs().clamp(min=float(right.square().mean().sqrt())) if right.numel() else right
    mantissa, _ = torch.frexp(size)  # from 0.5 to 1, so that the quotient is a power of two, and exact; of 0 it is NaN
    steps = size / mantissa * (torch.finfo(dtype).eps / 2)
    return steps.nan_to_num(0.0).clamp(min=DTYPES[NAMES[dtype]].smallest)


def _side_errors(difference: torch.Tensor, right: torch.Tensor, unit: torch.Tensor) -> UlpErrors:
    error = (difference / unit).clamp(-LARGEST, LARGEST)
    outward = (((difference + right).abs() - right.abs()) / unit).clamp(-LARGEST, LARGEST)
    size = error.abs()
    mean, most, bias, out = torch.stack((size.mean(), size.max(), error.mean(), outward.mean())).tolist()
    return UlpErrors(mean=(mean,), maximum=(most,), bias=(bias,), outward=(out,))
