"""Errors in units in the last place (ulp) of an output's dtype, against an oracle in float64.

The unit of an element is the spacing of the dtype at max(|oracle|, the output's root mean square). Kahan's and
Goldberg's unit (ACM Computing Surveys 23, 1991), the spacing at |oracle| alone, is the right one for a function of one
number. An element of a sum of products may be near zero because its terms cancel, and then no algorithm that rounds its
terms is within a few such units: error analysis bounds it by the size of the terms (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 3.1). The root mean square stands for that size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernelgate.bench.kernel import tolerance
from kernelgate.bench.kernel.compare import NAMES
from kernelgate.bench.record import LARGEST


@dataclass(frozen=True)
class SideErrors:
    """Of one output of one call, in ulp."""

    mean: float
    maximum: float
    bias: float
    outward: float
    """Mean of |output| - |oracle|."""


@dataclass(frozen=True)
class PairErrors:
    """Of the same elements of both sides: those that are finite on both and in the oracle."""

    base: SideErrors
    head: SideErrors
    elements: int


def measurable(dtype: torch.dtype) -> bool:
    """Whether an oracle in float64 is so much more precise than the output that the difference is the output's."""
    return dtype != torch.float64 and not dtype.is_complex


def pair(base: torch.Tensor, head: torch.Tensor, right: torch.Tensor) -> PairErrors | None:
    """The errors of both sides' tensors, of the shape and dtype of an output; None where no element is finite."""
    dtype = base.dtype
    if not dtype.is_floating_point and not right.is_floating_point():
        # float64 does not tell large integers apart.
        exact = right.long()
        made, zero = [one.long() - exact for one in (base, head)], right.double()
        return _errors(made[0].double(), made[1].double(), zero, torch.ones_like(zero), base.numel())
    one, other, wide = base.double(), head.double(), right.double()
    finite = torch.isfinite(one) & torch.isfinite(other) & torch.isfinite(wide)
    count = int(finite.sum())
    if count < base.numel():
        one, other, wide = one[finite], other[finite], wide[finite]
    return _errors(one - wide, other - wide, wide, spacing(wide, dtype), count)


def spacing(right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The unit of each element of a finite oracle in float64."""
    if not dtype.is_floating_point:
        return torch.ones_like(right)
    size = right.abs()
    if right.numel():
        size = size.clamp(min=float(right.square().mean().sqrt()))
    mantissa, _ = torch.frexp(size)  # from 0.5 to 1, so that the quotient is a power of two, and exact; of 0 it is NaN
    steps = size / mantissa * (torch.finfo(dtype).eps / 2)
    return steps.nan_to_num(0.0).clamp(min=tolerance.SMALLEST[NAMES[dtype]])


def _errors(
    base: torch.Tensor, head: torch.Tensor, right: torch.Tensor, unit: torch.Tensor, count: int
) -> PairErrors | None:
    """From signed differences to the oracle."""
    if not count:
        return None
    return PairErrors(_of_side(base, right, unit), _of_side(head, right, unit), count)


def _of_side(difference: torch.Tensor, right: torch.Tensor, unit: torch.Tensor) -> SideErrors:
    error = (difference / unit).clamp(-LARGEST, LARGEST)
    outward = (((difference + right).abs() - right.abs()) / unit).clamp(-LARGEST, LARGEST)
    size = error.abs()
    return SideErrors(*(float(one) for one in torch.stack((size.mean(), size.max(), error.mean(), outward.mean()))))
