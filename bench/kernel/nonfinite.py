"""NaN and Inf in the inputs of fuzzed cases, where a card says what they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel.draw import Draw

PLANTED = 3
"""Elements of an input at most: most of each output shall stay finite, so that what must not spread is seen."""


def plant(given: Mapping[str, Any], allowed: Mapping[str, Sequence[float]], draw: Draw) -> None:
    """Puts values of `allowed` into inputs by that name: one input at least, a few of its elements.

    Raises UsageError where there is none, and for a name that is no tensor of real numbers.
    """
    names = [name for name, values in allowed.items() if values]
    if not names:
        raise UsageError("nonfinite() names no input for this case")
    certain = int(draw.integers(0, len(names), 1))
    for at, name in enumerate(names):
        tensor = given.get(name)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            raise UsageError(f"nonfinite() names {name}, which is no input of real numbers")
        if at == certain or bool(draw.integers(0, 2, 1)):
            _into(tensor, allowed[name], draw)


def _into(tensor: torch.Tensor, values: Sequence[float], draw: Draw) -> None:
    """An 8-bit float may have no Inf: then it holds none."""
    wanted = torch.tensor(values, device=tensor.device).to(tensor.dtype)
    wanted = wanted[~torch.isfinite(wanted.float())]
    if not tensor.numel() or not len(wanted):
        return
    for _ in range(int(draw.integers(1, PLANTED + 1, 1))):
        place = tuple(int(draw.integers(0, size, 1)) for size in tensor.shape)
        tensor[place] = wanted[int(draw.integers(0, len(wanted), 1))]
