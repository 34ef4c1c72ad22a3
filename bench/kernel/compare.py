"""Whether an output is right: held against the card's oracle in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import operands, tolerance
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.draw import TORCH_DTYPES
from kernelgate.bench.kernel.operands import Inputs, Tensors

NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


@dataclass(frozen=True)
class Comparison:
    """An output against the oracle's. The errors are None where the output is not finite where the oracle is."""

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
    """What the oracle gives for these inputs, in float64."""
    return operands.named(kernel.oracle(case, **operands.exact(given)), names, "oracle()")


def outputs(kernel: Kernel, case: CaseAxes, made: Tensors, right: Tensors) -> Comparison:
    """The worst of the outputs. Raises UsageError where an oracle's result has another shape."""
    compared = [output(kernel, case, name, made[name], right[name]) for name in made]
    return max(compared, key=lambda one: (not one.passed, one.max_abs_error is None, one.error_ratio or 0.0))


def output(kernel: Kernel, case: CaseAxes, name: str, made: torch.Tensor, right: torch.Tensor) -> Comparison:
    """One output: |output - oracle| <= atol * scale + rtol * |oracle| everywhere, where the oracle is finite.

    NaN and Inf pass only where the oracle has the same, once it is rounded to the output's dtype.
    """
    if made.shape != right.shape:
        raise UsageError(f"oracle() gave shape {list(right.shape)} for {name}, whose shape is {list(made.shape)}")
    if made.numel() == 0:
        return Comparison(True, 0.0, 0.0, (), name)
    own = kernel.compare(case, name, made, right)
    if own is not None:
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
    limit = _limit(kernel, case, made, right)
    ratio = torch.where(error == 0, 0.0, error / limit)
    worst = float(ratio.max())
    return Comparison(worst <= 1.0, float(error.max()), worst, first(ratio == worst), name)


def nonfinite(made: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Where an output is NaN or Inf and the oracle, rounded to the output's dtype, is not."""
    wide, rounded = made.double(), right.to(made.dtype).double()
    return ~torch.isfinite(wide) & ~((wide == rounded) | (wide.isnan() & rounded.isnan()))


def limits(kernel: Kernel, case: CaseAxes, dtype: torch.dtype, right: torch.Tensor) -> tuple[float, float]:
    """What an output of `dtype` may be off: atol, with its scale, and rtol. `right`: what the scale is taken from."""
    name = NAMES[dtype]
    given = kernel.tolerance(case)
    named_dtype = case.get("dtype")
    by_dtype = tolerance.of_output(name, named_dtype if isinstance(named_dtype, str) else None)
    atol, rtol = given if given is not None else (by_dtype.atol or 0.0, by_dtype.rtol or 0.0)
    scale = kernel.atol_scale(case, _finite(right)) if atol else 0.0
    return max(atol * scale, tolerance.SMALLEST.get(name, 0.0)), rtol


def _finite(right: torch.Tensor) -> torch.Tensor:
    """The finite elements; the tensor itself where all are."""
    finite = torch.isfinite(right)
    return right if bool(finite.all()) else right[finite]


def _limit(kernel: Kernel, case: CaseAxes, made: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """What each element's error may be."""
    atol, rtol = limits(kernel, case, made.dtype, right)
    return atol + rtol * right.abs().nan_to_num(0.0, 0.0, 0.0)


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
    return Comparison(worst <= 1.0, None, max(worst, 0.0), first(own == own.max()), name)


def first(mask: torch.Tensor) -> tuple[int, ...]:
    """The index of the first true element."""
    flat = int(mask.reshape(-1).to(torch.uint8).argmax())
    return tuple(int(at) for at in torch.unravel_index(torch.tensor(flat), mask.shape))


def largest(values: Sequence[float | None]) -> float | None:
    """The largest; None where one is None."""
    known = [value for value in values if value is not None]
    return max(known, default=None) if len(known) == len(values) else None


def place(output: str, index: Sequence[int]) -> str:
    """Such as "out[0,1,512,0]": one word, which a comment shows as one piece of code."""
    return f"{output}[{','.join(map(str, index))}]" if index else output


def bits_dtype(dtype: torch.dtype) -> torch.dtype:
    """The integer type of the same width."""
    bits = DTYPES[NAMES[dtype]].bits
    found: torch.dtype = getattr(torch, f"int{bits}") if dtype != torch.bool else torch.int8
    return found
