"""How a card's `call` meets a commit's library: loads the library, and makes calls of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kernelgate.bench.build.library import Library
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import CaseAxes, Kernel, call_needs, call_takes
from kernelgate.bench.kernel.loading import load as load_card
from kernelgate.bench.kernel.operands import Inputs, Tensors
from kernelgate.bench.kernel.package_import import load as load_package


@dataclass(frozen=True)
class Bound:
    """One commit's kernel: its own `call` on its own library."""

    kernel: Kernel
    """The commit's own card; only its `call` is used."""
    ops: Any
    """torch.ops.<namespace>, or the package."""
    takes: frozenset[str] | None
    """The names that `call` takes; None where it takes any."""
    needs: frozenset[str]
    """Those without a default."""

    @classmethod
    def of(cls, kernel: Kernel, ops: Any) -> Bound:
        """With the names that the signature of `call` has."""
        return cls(kernel, ops, call_takes(kernel), frozenset(call_needs(kernel)))

    def returns(self, outputs: tuple[str, ...]) -> bool:
        """Whether a call gives new tensors, instead of writing into the ones that it is handed."""
        return self.takes is not None and not self.takes & set(outputs)

    def prepared(self, case: CaseAxes, given: Inputs, outs: Tensors) -> Callable[[], Any]:
        """One call, with every name that it takes. Raises KernelgateError where it needs what the inputs lack."""
        offered = {**outs, **given}
        missing = sorted(self.needs - offered.keys())
        if missing:
            raise KernelgateError(f"call() takes {', '.join(missing)}, which neither inputs() nor outputs() gives")
        chosen = offered if self.takes is None else {name: one for name, one in offered.items() if name in self.takes}
        call, ops = self.kernel.call, self.ops
        return lambda: call(ops, case, **chosen)


_LOADED: set[str] = set()
"""The files that this process has: a second copy of one would register its operators again, and crash it."""


def bind(library: Library, judge: Kernel, side: str) -> Bound:
    """Loads a library into this process, with its own commit's card, or with the judging one where it brings none.

    Raises KernelgateError where it cannot be loaded here.
    """
    kernel = judge if library.card is None else load_card(library.card)
    return Bound.of(kernel, load(library, side, type(kernel).__module__))


def load(library: Library, side: str = "head", card: str | None = None) -> Any:
    """The operators of an extension, or the package. Raises KernelgateError where that cannot be loaded here.

    `card`: the module of the commit's card, whose own imports of the package mean this one.
    """
    manifest = library.manifest
    if manifest.torch and torch.__version__.split("+")[0] != manifest.torch.split("+")[0]:
        raise KernelgateError(
            f"{library.path} was compiled for torch {manifest.torch} alone, and torch {torch.__version__} is installed "
            "here: install that one, or port the sources to the stable ABI (docs/cards.md)"
        )
    if manifest.kind == "package":
        return load_package(library.path, manifest.namespace, side, card)
    if manifest.sha256 not in _LOADED:
        try:
            torch.ops.load_library(str(library.path))  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError) as error:
            why = error.__cause__ or error  # torch hides the loader's own words
            raise KernelgateError(f"{library.path} cannot be loaded by torch {torch.__version__}: {why}") from None
        _LOADED.add(manifest.sha256)
    return getattr(torch.ops, manifest.namespace)


def results(bound: Bound, returned: Any, given: Inputs, outs: Tensors, in_place: tuple[str, ...]) -> Tensors:
    """Where a call left its outputs: in what it returned, in its inputs, or in the outputs that it was handed."""
    if in_place:
        return {name: given[name] for name in in_place}
    if bound.returns(tuple(outs)):
        return operands.named(returned, tuple(outs), "call()")
    return outs
