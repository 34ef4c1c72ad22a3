"""One case's inputs and outputs as a card gives them, checked, and the values that leave a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernelgate.bench.core.dtypes import known
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.card import NONFINITE, CaseAxes, Kernel, Output, by_name
from kernelgate.bench.kernel.draw import TORCH_DTYPES, Draw
from kernelgate.bench.kernel.nonfinite import plant

Inputs = dict[str, Any]
"""By name: tensors, lists or tuples of tensors, numbers, words and None."""
Tensors = dict[str, torch.Tensor]
Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]
"""By output."""
KNOWN = frozenset(TORCH_DTYPES.values())


def inputs(kernel: Kernel, case: CaseAxes, draw: Draw) -> Inputs:
    """Fresh inputs. Raises UsageError naming one that is of a kind that is not supported."""
    made = kernel.inputs(case, draw)
    if not isinstance(made, Mapping):
        raise UsageError(f"inputs() gave a {type(made).__name__}; it must give a dict of named inputs")
    for name, value in made.items():
        items = value if isinstance(value, list | tuple) else [value]
        strange = next((item for item in items if not isinstance(item, torch.Tensor | int | float | str | None)), 0)
        if strange != 0 and not isinstance(strange, torch.Tensor):
            kind = type(strange).__name__
            raise UsageError(f"the input {name} is a {kind}; inputs are tensors, lists of tensors, numbers and words")
        odd = next((item.dtype for item in items if isinstance(item, torch.Tensor) and item.dtype not in KNOWN), None)
        if odd is not None:
            raise UsageError(f"the input {name} has the dtype {odd}; there are {', '.join(TORCH_DTYPES)}")
    if draw.distribution == NONFINITE:
        plant(made, kernel.nonfinite(case), draw)
    return dict(made)


def output_shapes(kernel: Kernel, case: CaseAxes, given: Inputs) -> Shapes:
    """Shape and dtype of each output; of one that is computed in place, its input's."""
    if kernel.in_place:
        return {name: (tuple(given[name].shape), given[name].dtype) for name in kernel.in_place}
    said = kernel.outputs(case, **given)
    if not isinstance(said, Output | Mapping):
        raise UsageError(f"outputs() gave a {type(said).__name__}; write Output(M, N), or a dict of them")
    listed = by_name(said)
    strange = next((name for name, output in listed.items() if not isinstance(output, Output)), None)
    if strange is not None:
        raise UsageError(f"outputs() gave a {type(listed[strange]).__name__} for {strange}; write Output(M, N)")
    dtypes = {name: known(output.dtype or case_axes.dtype(case)) for name, output in listed.items()}
    return {name: (tuple(output.shape), TORCH_DTYPES[dtypes[name]]) for name, output in listed.items()}


def empty_outputs(kernel: Kernel, shapes: Shapes, device: str) -> Tensors:
    """Memory for the outputs that a call may be handed: those that it computes in place are among its inputs."""
    return {
        name: torch.empty(shape, dtype=dtype, device=device)
        for name, (shape, dtype) in shapes.items()
        if name not in kernel.in_place
    }


def tensors(given: Inputs) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor among the inputs, a list's as "name[0]"."""
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, list | tuple):
            yield from ((f"{name}[{at}]", item) for at, item in enumerate(value) if isinstance(item, torch.Tensor))


def changed(given: Inputs, change: Callable[[torch.Tensor], torch.Tensor]) -> Inputs:
    """The inputs with each tensor replaced."""
    return changed_by_name(given, lambda _, tensor: change(tensor))


def changed_by_name(given: Inputs, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Inputs:
    """The inputs with each tensor replaced; those of a list have its name."""

    def replaced(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(name, value)
        return type(value)(replaced(name, one) for one in value) if isinstance(value, list | tuple) else value

    return {name: replaced(name, value) for name, value in given.items()}


def fill(target: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Writes values of the same shape and strides, also where a tensor was expanded, so that elements share memory."""
    own = [0 if step == 0 else slice(None) for step in target.stride()]
    target[tuple(own)].copy_(values[tuple(own)])
    return target


def exact(given: Inputs) -> Inputs:
    """The inputs for an oracle: floats as float64, which has no reduced-precision mode; integers as they are."""
    return changed(given, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)


def named(results: Any, names: tuple[str, ...], of_what: str) -> Tensors:
    """What a call or an oracle returned, by output. Raises UsageError where it is something else."""
    by_name = isinstance(results, Mapping) and set(results) == set(names)
    listed = tuple(results[name] for name in names) if by_name else results
    listed = tuple(listed) if isinstance(listed, tuple | list) else (listed,)
    if len(listed) != len(names) or not all(isinstance(one, torch.Tensor) for one in listed):
        kinds = ", ".join(type(one).__name__ for one in listed)
        raise UsageError(f"{of_what} gave {kinds}; it must give a tensor for each output: {', '.join(names)}")
    return dict(zip(names, listed, strict=True))


@dataclass(frozen=True)
class Parts:
    """Which part of each input and output is checked alone: some of the entries along the card's independent axes."""

    axes: Mapping[str, tuple[int, ...]]
    count: int
    """Entries in all."""

    def take(self, name: str, tensor: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
        """A copy of some entries; of several axes the others have length 1. A tensor without such an axis is whole."""
        axes = self.axes.get(name)
        if axes is None:
            return tensor
        first, last = axes[0], axes[-1]
        flat = tensor.flatten(first, last) if last > first else tensor
        chosen = torch.index_select(flat, first, entries)
        return chosen.reshape(*chosen.shape[:first], *[1] * (last - first), *chosen.shape[first:])


def parts(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> Parts | None:
    """How a case's checks can be divided; None where the card says nothing, so that outputs are checked whole."""
    axes = {name: (at,) if isinstance(at, int) else tuple(at) for name, at in kernel.independent.items()}
    counts = {
        name: torch.Size([shapes[name][axis] for axis in at]).numel() for name, at in axes.items() if name in shapes
    }
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise UsageError(f"independent names axes of different lengths ({lengths})")
    return Parts(axes, next(iter(counts.values())))
