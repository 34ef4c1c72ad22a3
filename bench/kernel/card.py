"""What a card says of a kernel: the one file that a repository writes, `.ci/kernels/<name>.py` (docs/cards.md).

Imports neither torch nor anything that takes long, so that cards can be listed where torch is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal

from kernelgate.bench.build.sources import Command, Extension, Package
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel.axes import AxisValue

if TYPE_CHECKING:
    from kernelgate.bench.kernel.operands import Draw

DeviceKind = Literal["cuda", "cpu"]

FUZZED = 32
"""Configurations that are drawn where a card names none."""
DISTRIBUTIONS = ("normal", "uniform", "large", "tiny", "mixed")
OPEN = "OPEN:"
"""A comment that begins so says what `kernelgate init` could not know, and nobody has said yet."""
NONFINITE = "nonfinite"
"""The distribution of cards that say what NaN and Inf give: normal values, and a few of those."""


@dataclass(frozen=True)
class Between:
    """A range of real numbers, drawn evenly by logarithm where both ends are positive."""

    low: float
    high: float


between = Between
"""For an axis of `fuzz`: a real number from `low` to `high`."""


class Output:
    """An output's shape and dtype; without a dtype it has the case's."""

    def __init__(self, *shape: int, dtype: str | None = None) -> None:
        self.shape = shape
        self.dtype = dtype


class AxisError(AttributeError, KeyError):
    """A case has no such axis."""


class CaseAxes(Mapping[str, AxisValue]):
    """One shape and dtype: `case.M` and `case["M"]` are the axis M. A boolean axis that is left out is False."""

    def __init__(self, axes: Mapping[str, AxisValue]) -> None:
        self._axes = dict(axes)

    def __getitem__(self, axis: str) -> AxisValue:
        if axis not in self._axes:
            raise AxisError(f"the case has no axis {axis!r}; it has {', '.join(self._axes)}")
        return self._axes[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __getattr__(self, axis: str) -> Any:
        if axis.startswith("_"):
            raise AttributeError(axis)
        return self[axis]

    def __hash__(self) -> int:
        return hash(frozenset(self._axes.items()))

    def __repr__(self) -> str:
        return f"CaseAxes({', '.join(f'{axis}={value!r}' for axis, value in self._axes.items())})"


class Kernel:
    """A card. Members without a default must be given: `build`, `cases`, `inputs`, `call` and `oracle`.

    `call` and `build` belong to the commit that is measured, all else to the default branch. `case` is one of `cases`,
    or one drawn from `fuzz`, which also has the axis `distribution`.
    """

    build: Extension | Package | Command
    cases: Sequence[Mapping[str, AxisValue]] = ()
    """What is timed on a GPU; the first is the target case, for which the kernel is tuned."""
    cpu_cases: Sequence[Mapping[str, AxisValue]] = ()
    """What is timed on a machine without a GPU; none where the kernel has no CPU path."""
    suites: Mapping[str, Sequence[Mapping[str, AxisValue]]] = {}
    """More lists of cases, for `kernelgate bench --suite NAME`."""
    fuzz: Mapping[str, Any] = {}
    """What is drawn for each axis: a range, a tuple to choose from (whose members may be ranges), or between(a, b)."""
    limits: Mapping[str, Any] = {}
    """What the kernel takes at all, for each axis as in `fuzz`: how long, how many, which scalars. Fuzzing goes to the
    ends of it; without it, to those of `fuzz`. A range that begins at 0 asks for empty axes."""
    distributions: Sequence[str] = DISTRIBUTIONS
    """Of random values, by turns; kernelgate/bench/kernel/operands.py has their definitions."""
    sanitize: Sequence[Mapping[str, AxisValue]] = ()
    """Small cases for compute-sanitizer; without any, the smallest of `cases`."""
    independent: Mapping[str, int | tuple[int, ...]] = {}
    """Input or output -> the axis (or neighbouring axes) along which a part may be checked alone."""
    in_place: Sequence[str] = ()
    """Inputs that the kernel overwrites with its results; each is an output, too, before those of `outputs`."""
    kernel: str | None = None
    """A regular expression for the names of the kernels that are profiled; all of the library where it is None."""
    reference_name: str = "PyTorch"

    # What must be given -----------------------------------------------------------------------------------------------

    def inputs(self, case: Any, draw: Draw) -> dict[str, Any]:
        """Named inputs: tensors, lists of tensors, numbers. `draw(*shape)` gives values in the case's dtype."""
        raise NotImplementedError

    def call(self, ops: Any, case: Any, *args: Any, **kwargs: Any) -> Any:
        """One call of the kernel, with outputs and inputs by name.

        `ops` holds the operators of an Extension (torch.ops.<its namespace>), or is the imported Package. A call that
        takes no output by name returns it: one tensor, or a tuple in the order of `outputs`.
        """
        raise NotImplementedError

    def oracle(self, case: Any, **inputs: Any) -> Any:
        """The right result: given float64 inputs it is the truth. One tensor, or a tuple in the order of `outputs`."""
        raise NotImplementedError

    # What has a default -----------------------------------------------------------------------------------------------

    def outputs(self, case: Any, **inputs: Any) -> Output | Mapping[str, Output]:  # noqa: ARG002 - for cards to override
        """The output, called `out`, or several by name. Default: shape and dtype of the first input tensor."""
        first = next((value for value in inputs.values() if hasattr(value, "shape")), None)
        if first is None:
            raise ValueError("no input is a tensor, whose shape the output would have: write outputs()")
        return Output(*first.shape, dtype=str(first.dtype).removeprefix("torch."))

    def state(self, case: Any, **inputs: Any) -> Mapping[str, Any]:  # noqa: ARG002 - for cards to override
        """What a forward pass has saved for this backward pass, made of the inputs outside of the clock: further inputs
        of `call`, which the oracle and the others get where they name them."""
        return {}

    def reference(self, case: Any, **inputs: Any) -> Any:
        """What is timed beside, in the case's own dtype."""
        return self.oracle(case, **asked_for(self.oracle, inputs))

    def tolerance(self, case: Any) -> tuple[float, float] | None:  # noqa: ARG002 - for cards to override
        """(atol, rtol); None leaves it to the dtype of each output (kernelgate/bench/kernel/cards.py)."""
        return None

    def atol_scale(self, case: Any, expected: Any) -> float:  # noqa: ARG002 - for cards to override
        """What atol is multiplied by: the outputs' size, as the root of their mean square, so that it fits them."""
        return float(expected.double().square().mean().sqrt()) if expected.numel() else 1.0

    def compare(self, case: Any, name: str, out: Any, expected: Any) -> Any:  # noqa: ARG002 - for cards to override
        """Whether output `name` is right, for kernels that no elementwise rule fits: True or False, or a tensor with
        each element's error as a multiple of what is allowed. None leaves it to the tolerance. A card's own may also
        take `inputs`, as the kernel got them, and all `outputs`, each a dict by name."""
        return None

    def nonfinite(self, case: Any) -> Mapping[str, Sequence[float]]:  # noqa: ARG002 - for cards to override
        """Input -> which of NaN, Inf and -Inf it may hold, such as dict(x=(nan, inf)): a few elements of it then do in
        some fuzzed cases. The kernel must give NaN where the oracle does, and Inf of the same sign."""
        return {}

    def flops(self, case: Any) -> float | None:  # noqa: ARG002 - for cards to override
        """Operations of one call, one multiplication and one addition counted as two; None where not known."""
        return None

    def bytes(self, case: Any) -> float | None:  # noqa: ARG002 - for cards to override
        """Bytes that one call must move at least; None means inputs and outputs once each."""
        return None

    def label(self, case: Any) -> str | None:  # noqa: ARG002 - for cards to override
        """How people read a case; None means its axes: "M=4096 N=1024 fp16"."""
        return None

    def configurations(self, device: DeviceKind) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002 - as above
        """The fuzz list: a name for each configuration, and what it says of axes in place of `fuzz`."""
        return {f"fuzz_{number:02}": {} for number in range(FUZZED)}

    def tile(self, rows: int, columns: int, stages: int, warps: int) -> Mapping[str, int] | str:  # noqa: ARG002 - as above
        """What a tile asks of a block, for `kernelgate resources --tile`: shared_bytes, threads and registers (of a
        thread, at least); or why it cannot be compiled."""
        return "the card does not say what a tile takes: add tile(), or give bytes, such as --tile 48KiB"


def outputs_beside(kernel: Kernel, case: CaseAxes, inputs: Mapping[str, Any]) -> dict[str, Output]:
    """The outputs that are no inputs: a kernel in place has such only where its card has an `outputs` of its own."""
    if kernel.in_place and type(kernel).outputs is Kernel.outputs:
        return {}
    said = by_name(kernel.outputs(case, **asked_for(kernel.outputs, inputs)))
    return {name: output for name, output in said.items() if name not in kernel.in_place}


def asked_for(method: Callable[..., Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that a method of a card names; all where it takes any."""
    named = takes(method)
    return {name: value for name, value in inputs.items() if named is None or name in named}


def takes(method: Callable[..., Any]) -> frozenset[str] | None:
    """The names that a method of a card takes; None where it takes any."""
    return _named(getattr(method, "__func__", method))


@cache  # by the function: a method would keep its card in memory
def _named(function: Callable[..., Any]) -> frozenset[str] | None:
    parameters = signature(function).parameters
    return None if any(one.kind is one.VAR_KEYWORD for one in parameters.values()) else frozenset(parameters)


def call_needs(kernel: Kernel) -> tuple[str, ...]:
    """The names that `call` takes after ops and case and has no default for."""
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    parameters = list(signature(kernel.call).parameters.values())[2:]
    return tuple(one.name for one in parameters if one.kind in by_name and one.default is one.empty)


def call_by_name(kernel: Kernel) -> bool:
    """Whether `call` takes ops, case, and all else by name."""
    parameters = list(signature(kernel.call).parameters.values())
    nameless = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
    return len(parameters) >= 2 and all(one.kind not in nameless for one in parameters[2:])


def by_name(outputs: Output | Mapping[str, Output]) -> dict[str, Output]:
    """What `outputs` gave: one alone is called `out`. Raises UsageError for what is no Output."""
    named: object = {"out": outputs} if isinstance(outputs, Output) else outputs
    if not isinstance(named, Mapping):
        raise UsageError(f"outputs() gave {short(outputs)}; write Output(M, N), or a dict of them")
    for name, output in named.items():
        if not isinstance(output, Output):
            raise UsageError(f"outputs() gave {short(output)} for {name}; write Output(M, N)")
    return dict(named)


def short(value: object) -> str:
    """As an error quotes it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
