"""Stubs of torch and other heavy modules, so that a card can be imported where they are not installed.

What a card does with them at import goes nowhere: attributes, calls, decorators and base classes are accepted. Methods
that compute are called by the worker processes, which have the real modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from math import prod
from types import ModuleType
from typing import Any, Self

from kernelgate.bench.core.dtypes import DTYPES, known
from kernelgate.bench.core.errors import UsageError

HEAVY = frozenset({"torch", "triton", "numpy", "scipy", "cuda", "cutlass", "cupy"})


def _attribute(name: str) -> Unknown:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return Unknown()


class Unknown:
    """Stands for any object of a module that is not there."""

    made = 0
    """How many there have been: whether what a card answers hangs on one."""

    def __init__(self) -> None:
        Unknown.made += 1

    def __repr__(self) -> str:
        return "an object of torch or another module that is not there while cards are listed"

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __call__(self, *args: Any, **_: Any) -> Any:
        # A decorator gives back what it decorates.
        return args[0] if len(args) == 1 and callable(args[0]) else Unknown()

    def __getitem__(self, _: Any) -> Any:
        return Unknown()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", *_BINARY, *(f"r{_name}" for _name in _BINARY)):
    setattr(Unknown, f"__{_name}__", lambda *_: Unknown())


class Shaped(Unknown):
    """A tensor of which shape and dtype alone are known. Arithmetic with numbers keeps both, and no more is known."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.dtype = dtype
        if min(self.shape, default=0) < 0:
            raise UsageError(f"a tensor of shape {list(self.shape)}: no size is below 0")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def bytes(self) -> float:
        return prod(self.shape) * DTYPES[self.dtype].bits / 8

    @property
    def T(self) -> Shaped:  # noqa: N802 - torch's name
        return Shaped(self.shape[::-1], self.dtype)

    def t(self) -> Shaped:
        return self.T

    def transpose(self, one: int, other: int) -> Shaped:
        shape = list(self.shape)
        shape[one], shape[other] = shape[other], shape[one]
        return Shaped(shape, self.dtype)

    def _same(self, *_: Any, **__: Any) -> Self:
        return self

    contiguous = clone = detach = __neg__ = __abs__ = _same
    abs = clamp = exp = log = log_softmax = relu = sigmoid = softmax = sqrt = square = tanh = _same

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def numel(self) -> int:
        return prod(self.shape)

    def __int__(self) -> int:
        Unknown.made += 1
        raise TypeError("its value is not known while cards are listed")

    __float__ = __index__ = item = __int__

    def __setitem__(self, _: Any, value: Any) -> None:
        """Changes neither shape nor dtype."""

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([Shaped(self.shape[1:], self.dtype)] * len(self))

    def _with(self, other: Any) -> Any:
        same = isinstance(other, int | float) or (isinstance(other, Shaped) and other.shape == self.shape)
        return self if same else Unknown()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _with


class ShapeDraw:
    """`Draw` for listing: nothing is drawn, shapes are noted."""

    distribution = "normal"
    device = "cpu"
    dtype = Unknown()
    generator = Unknown()

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype

    def __call__(self, *shape: int, dtype: str | None = None) -> Shaped:
        return Shaped(shape, known(dtype or self._dtype))

    def normal(self, *shape: int) -> Shaped:
        return Shaped(shape, "fp32")

    def uniform(self, _low: float, _high: float, *shape: int) -> Shaped:
        return Shaped(shape, "fp32")

    def integers(self, _low: int, _high: int, *shape: int, dtype: str = "int64") -> Shaped:
        return Shaped(shape, known(dtype))

    def round(self, tensor: Any, dtype: str | None = None) -> Any:
        return Shaped(tensor.shape, known(dtype or self._dtype)) if isinstance(tensor, Shaped) else Unknown()


class _Module(ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - a package, so that `import torch.nn` works

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)


class _Stubs(MetaPathFinder, Loader):
    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in HEAVY else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """From now on this process imports stubs of HEAVY."""
    sys.meta_path.insert(0, _Stubs())
