"""One case's inputs and outputs as a card gives them: drawn at random, checked, and the values that leave a call.

`draw(M, N)` in a card gives values in the case's dtype, from today's distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from kernelgate.bench.build.library import Library
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.dtypes import DTYPES, known
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.card import NONFINITE, CaseAxes, Kernel, asked_for, call_needs, outputs_beside, takes
from kernelgate.bench.kernel.loading import load as load_card
from kernelgate.bench.kernel.loading import load_compiled, load_installed, load_package, load_tvm_ffi

TORCH_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, facts.torch_name) for name, facts in DTYPES.items()}
NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}
PLANTED = 3
"""NaN and Inf in an input at most: most of each output shall stay finite, so that what must not spread is seen."""
Inputs = dict[str, Any]
"""By name: tensors, lists or tuples of tensors, numbers, words and None."""
Tensors = dict[str, torch.Tensor]
Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]


class Draw:
    """A source of random tensors for one case. Equal seeds give equal tensors on one device."""

    def __init__(self, case: CaseAxes, device: str, seed: int, distribution: str = "normal") -> None:
        self.case = case
        self.device = device
        self.distribution = distribution
        self.generator = torch.Generator(device).manual_seed(seed)
        self._dtype = case_axes.dtype(case)

    @property
    def dtype(self) -> torch.dtype:
        return TORCH_DTYPES[self._dtype]

    def __call__(self, *shape: int, dtype: str | None = None) -> torch.Tensor:
        """Values of today's distribution, in `dtype` or the case's."""
        name = known(dtype or self._dtype)
        of_integers = not TORCH_DTYPES[name].is_floating_point
        return self._whole_numbers(name, shape) if of_integers else self.round(self._reals(name, shape), name)

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal, in float32, whatever today's distribution is."""
        return torch.randn(shape, generator=self.generator, device=self.device)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """From `low` to `high`, in float32, whatever today's distribution is."""
        return low + (high - low) * torch.rand(shape, generator=self.generator, device=self.device)

    def integers(self, low: int, high: int, *shape: int, dtype: str = "int64") -> torch.Tensor:
        """Whole numbers from `low` to `high` - 1, such as indices, whatever today's distribution is."""
        made = torch.randint(low, high, shape, generator=self.generator, device=self.device)
        return made.to(TORCH_DTYPES[known(dtype)])

    def round(self, tensor: torch.Tensor, dtype: str | None = None) -> torch.Tensor:
        """The tensor in `dtype` or the case's; what is too large for it becomes its largest number."""
        wanted = TORCH_DTYPES[known(dtype or self._dtype)]
        if wanted.is_floating_point and wanted.itemsize == 1:
            most = torch.finfo(wanted).max
            tensor = tensor.clamp(-most, most)
        return tensor.to(wanted)

    def _reals(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        # An 8-bit float has no room for more.
        large, tiny = (2.0**3, 2.0**-4) if DTYPES[dtype].bits == 8 else (2.0**8, 2.0**-12)
        match self.distribution:
            case "normal" | "peaked" | "nonfinite":  # what is not finite comes into it later: plant_nonfinite
                return self.normal(*shape)
            case "uniform":
                return self.uniform(-1, 1, *shape)
            case "large" | "tiny":
                return (large if self.distribution == "large" else tiny) * self.normal(*shape)
            case "mixed":
                return self.normal(*shape) * torch.exp2(self.uniform(-6, 2, *shape[:-1], 1))
        # "special": normal values, of which a fifth are zeros, ones and the smallest numbers, of either sign; some rows
        # are 0.
        finfo = torch.finfo(TORCH_DTYPES[dtype])
        special = torch.tensor([0.0, -0.0, 1.0, -1.0, finfo.tiny, -finfo.tiny, finfo.smallest_normal / 4, 2.0])
        chosen = special.to(self.device)[self.integers(0, len(special), *shape)]
        values = torch.where(self.uniform(0, 1, *shape) < 0.2, chosen, self.normal(*shape))
        return values * (self.uniform(0, 1, *shape[:-1], 1) >= 0.2)

    def _whole_numbers(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        """ "large" are the two ends, "special" these and some around 0, "tiny" -1, 0 and 1; others as they say."""
        wanted = TORCH_DTYPES[dtype]
        if wanted is torch.bool:
            return self.integers(0, 2, *shape, dtype=dtype)
        low, high = torch.iinfo(wanted).min, torch.iinfo(wanted).max
        if self.distribution == "uniform":
            return self.integers(low, high, *shape, dtype=dtype)
        if self.distribution == "special":
            return torch.tensor([low, low + 1, -1 if low else 1, 0, 1, high - 1, high], device=self.device)[
                self.integers(0, 7, *shape)
            ].to(wanted)
        if self.distribution == "large":
            # One end for each row, so that sums of products grow as large as they can.
            rows = (*shape[:-1], 1) if len(shape) > 1 else shape
            return torch.where(self.uniform(0, 1, *rows) < 0.5, low, high).expand(shape).to(wanted)
        size = {"tiny": 0.5, "mixed": 16.0}.get(self.distribution, 40.0)
        return (size * self.normal(*shape)).round().clamp(max(low, -128), min(high, 127)).to(wanted)


def plant_nonfinite(given: Mapping[str, Any], allowed: Mapping[str, Sequence[float]], draw: Draw) -> None:
    """Puts values of `allowed` into a few elements of one input by that name at least. Raises UsageError."""
    if not (names := [name for name, values in allowed.items() if values]):
        raise UsageError("nonfinite() names no input for this case")
    certain = int(draw.integers(0, len(names), 1))
    for at, name in enumerate(names):
        tensor = given.get(name)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            raise UsageError(f"nonfinite() names {name}, which is no input of real numbers")
        if at == certain or bool(draw.integers(0, 2, 1)):
            wanted = torch.tensor(allowed[name], device=tensor.device).to(tensor.dtype)
            wanted = wanted[~torch.isfinite(wanted.float())]  # an 8-bit float may have no Inf: then it holds none
            for _ in range(int(draw.integers(1, PLANTED + 1, 1)) if tensor.numel() and len(wanted) else 0):
                place = tuple(int(draw.integers(0, size, 1)) for size in tensor.shape)
                tensor[place] = wanted[int(draw.integers(0, len(wanted), 1))]


def inputs(kernel: Kernel, case: CaseAxes, draw: Draw) -> Inputs:
    """Fresh inputs. Raises UsageError naming one that is of a kind that is not supported."""
    made = kernel.inputs(case, draw)
    if not isinstance(made, Mapping):
        raise UsageError(f"inputs() gave a {type(made).__name__}; it must give a dict of named inputs")
    for name, value in made.items():
        for item in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(item, torch.Tensor | int | float | str | None):
                said = "inputs are tensors, lists of tensors, numbers and words"
                raise UsageError(f"the input {name} is a {type(item).__name__}; {said}")
            if isinstance(item, torch.Tensor) and item.dtype not in NAMES:
                raise UsageError(f"the input {name} has the dtype {item.dtype}; there are {', '.join(TORCH_DTYPES)}")
    if draw.distribution == NONFINITE:
        plant_nonfinite(made, kernel.nonfinite(case), draw)
    return with_state(kernel, case, made)


def with_state(kernel: Kernel, case: CaseAxes, given: Mapping[str, Any]) -> Inputs:
    """The inputs with what a forward pass would have saved of these very ones."""
    return {**given, **kernel.state(case, **asked_for(kernel.state, given))}


def output_shapes(kernel: Kernel, case: CaseAxes, given: Inputs) -> Shapes:
    """Shape and dtype of each output; of one that is computed in place, its input's."""
    in_place: Shapes = {name: (tuple(given[name].shape), given[name].dtype) for name in kernel.in_place}
    said, own = outputs_beside(kernel, case, given), case_axes.dtype(case)
    return in_place | {name: (tuple(one.shape), TORCH_DTYPES[known(one.dtype or own)]) for name, one in said.items()}


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
    unshared(target).copy_(unshared(values, like=target.stride()))
    return target


def unshared(tensor: torch.Tensor, like: Sequence[int] | None = None) -> torch.Tensor:
    """The elements of a tensor that share no memory with each other, where some were expanded. `like`: the strides of
    the tensor that says which."""
    return tensor[tuple(0 if step == 0 else slice(None) for step in like or tensor.stride())]


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
    if any(one.is_complex() for one in listed):
        raise UsageError(f"{of_what} gave complex numbers; outputs are real")
    return dict(zip(names, listed, strict=True))


@dataclass(frozen=True)
class Parts:
    """Which part of each input and output is checked alone: some of the entries along the card's independent axes."""

    axes: Mapping[str, tuple[int, ...]]
    count: int
    """Entries in all."""

    def take(self, name: str, tensor: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
        """A copy of some entries; of several axes the others have length 1. A tensor without such an axis is whole."""
        if (axes := self.axes.get(name)) is None:
            return tensor
        first, last = axes[0], axes[-1]
        flat = tensor.flatten(first, last) if last > first else tensor
        chosen = torch.index_select(flat, first, entries)
        return chosen.reshape(*chosen.shape[:first], *[1] * (last - first), *chosen.shape[first:])


def parts(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> Parts | None:
    """How a case's checks can be divided; None where the card says nothing, so that outputs are checked whole."""
    axes = {name: (at,) if isinstance(at, int) else tuple(at) for name, at in kernel.independent.items()}
    for name, at in axes.items():
        if name in shapes and not all(-len(shapes[name]) <= axis < len(shapes[name]) for axis in at):
            raise UsageError(f"independent names axis {at[0]} of {name}, whose shape is {list(shapes[name])}")
    counts = {
        name: torch.Size([shapes[name][axis] for axis in at]).numel() for name, at in axes.items() if name in shapes
    }
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise UsageError(f"independent names axes of different lengths ({lengths})")
    return Parts(axes, next(iter(counts.values())))


@dataclass(frozen=True)
class Bound:
    """One commit's kernel: its own `call` on its own library."""

    kernel: Kernel
    """The commit's own card; only its `call` is used."""
    ops: Any
    """torch.ops.<namespace>, or the package."""

    @cached_property
    def takes(self) -> frozenset[str] | None:
        return takes(self.kernel.call)

    @cached_property
    def needs(self) -> frozenset[str]:
        return frozenset(call_needs(self.kernel))

    def returns(self, outputs: tuple[str, ...]) -> bool:
        """Whether a call gives new tensors, instead of writing into the ones that it is handed."""
        return bool(outputs) and self.takes is not None and not self.takes & set(outputs)

    def prepared(self, case: CaseAxes, given: Inputs, outs: Tensors) -> Callable[[], Any]:
        """One call, with every name that it takes. Raises KernelgateError where it needs what the inputs lack."""
        offered = {**outs, **given}
        if missing := sorted(self.needs - offered.keys()):
            raise KernelgateError(f"call() takes {', '.join(missing)}, which neither inputs() nor outputs() gives")
        chosen = offered if self.takes is None else {name: one for name, one in offered.items() if name in self.takes}
        call, ops = self.kernel.call, self.ops
        return lambda: call(ops, case, **chosen)


_LOADED: set[str] = set()
"""The files that this process has: a second copy of one would register its operators again, and crash it."""


def bind(library: Library, judge: Kernel, side: str) -> Bound:
    """Loads a library with its own commit's card, else with the judging one. Raises KernelgateError."""
    kernel = judge if library.card is None else load_card(library.card)
    return Bound(kernel, load(library, side, type(kernel).__module__))


def load(library: Library, side: str = "head", card: str | None = None) -> Any:
    """What calls go to: operators, or a module, which the module `card` may import, too. Raises KernelgateError."""
    manifest = library.manifest
    if manifest.torch and torch.__version__.split("+")[0] != manifest.torch.split("+")[0]:
        raise KernelgateError(
            f"{library.path} was compiled for torch {manifest.torch} alone, and torch {torch.__version__} is installed "
            f"here: install that one, or port the sources to the stable ABI ({page('cards.md#extensions')})"
        )
    if manifest.binding == "installed":
        return load_installed(library.path, manifest.namespace)
    if manifest.kind == "package":
        return load_package(library.path, manifest.namespace, side, card)
    if manifest.binding == "tvm_ffi":
        return load_tvm_ffi(library.path)
    if manifest.binding == "pybind":
        return load_compiled(library.path, manifest.namespace, manifest.sha256)
    if manifest.sha256 not in _LOADED:
        try:
            torch.ops.load_library(str(library.path))  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError) as error:
            why = error.__cause__ or error  # torch hides the loader's own words
            raise KernelgateError(f"{library.path} cannot be loaded by torch {torch.__version__}: {why}") from None
        _LOADED.add(manifest.sha256)
    return getattr(torch.ops, manifest.namespace)


def results(bound: Bound, returned: Any, given: Inputs, outs: Tensors, in_place: tuple[str, ...]) -> Tensors:
    """Where a call left its outputs: in its inputs, and in what it returned or in the outputs that it was handed."""
    beside = named(returned, tuple(outs), "call()") if bound.returns(tuple(outs)) else outs
    return {name: given[name] for name in in_place} | beside
