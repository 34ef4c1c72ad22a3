"""Is a card right? Its members are tried on a small case in a process of their own, on any machine: no GPU is needed.

When a library is built, its operators are held against the card's `call`. When a card is checked, its inputs, outputs
and oracle must agree; where it has CPU cases, the kernel itself is run on the smallest and held against the oracle.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernelgate.bench.build.cache import cache_folder
from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.loading import line_of, load, trying
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

if TYPE_CHECKING:
    from kernelgate.bench.kernel.card import CaseAxes, Kernel
    from kernelgate.bench.kernel.operands import Inputs, Shapes, Tensors

PATIENCE_S = 120.0


class CardTrial(Message):
    """One case that a card's members are tried on."""

    library: LibraryAt
    card: Path
    axes: dict[str, AxisValue]
    what: Literal["operators", "oracle", "call"]
    """`call`: the oracle, and the kernel, which has a path for the CPU."""


class CardFault(Message):
    """What is wrong, or nothing."""

    line: int | None = None
    member: str = ""
    fault: str | None = None


def _ask(trial: CardTrial) -> CardFault:
    with WorkerProcess(f"{__name__}:examine") as worker:
        return worker.ask(trial, CardFault, PATIENCE_S)


def check_operators(library: Library, card: CardFacts) -> None:
    """Raises CardError at the line of the card that does not fit; once found right, a library is not asked again."""
    if library.manifest.kind != "extension" or library.card is None:
        return
    known = cache_folder() / "checked" / f"{library.manifest.key}-{library.manifest.card_sha256}"
    if known.exists():
        return
    axes = min(card.cases.values(), key=lambda case: case.bytes or 0.0).axes
    at = library.card.absolute()
    try:
        answer = _ask(CardTrial(library=LibraryAt.of(library), card=at, axes=axes, what="operators"))
    except WorkerError as error:
        answer = CardFault(member="build", fault=f"{library.path} could not be tried: {error}")
    if answer.fault is not None:
        raise CardError(str(card.file), answer.line or _line(card, answer.member), answer.member, answer.fault)
    with suppress(OSError):  # a cache that only others may write
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()


def check(library: Library, card: CardFacts) -> tuple[CardError, ...]:
    """What is wrong with a card whose library was built; empty where nothing is.

    Raises KernelgateError where the library cannot be loaded here.
    """
    mistakes = []
    lacking = next((case for case in card.cases.values() if case.bytes is None), None)
    if lacking is not None:
        text = f"the shapes of {lacking.id} cannot be worked out without torch: say how many bytes one call moves"
        mistakes.append(CardError(str(card.file), _line(card, "bytes"), "bytes", text))
    if all(case.flops is None for case in card.cases.values()):
        text = "flops() is not given: without it no rate, no roofline and no floor below which no time is believed"
        mistakes.append(CardError(str(card.file), _line(card, "flops"), "flops", text))
    case = min(card.suites["cpu"] or tuple(card.cases.values()), key=lambda one: one.bytes or 0.0)
    what: Literal["call", "oracle"] = "call" if _runs_on_cpu(card, library) else "oracle"
    try:
        answer = _ask(CardTrial(library=LibraryAt.of(library), card=card.file, axes=case.axes, what=what))
    except WorkerError as error:
        raise KernelgateError(f"the card {card.name} cannot be tried: {error}") from None
    if answer.fault is not None:
        line = answer.line or _line(card, answer.member)
        mistakes.append(CardError(str(card.file), line, answer.member, f"{answer.fault} (case {case.id})"))
    return tuple(mistakes)


def tried(card: CardFacts, library: Library) -> str:
    """What `check` has shown, for people."""
    if _runs_on_cpu(card, library):
        return "operators fit call(); call() and oracle() agree on the CPU"
    return "inputs(), outputs() and oracle() fit each other; the kernel has no CPU path and was not run"


def _runs_on_cpu(card: CardFacts, library: Library) -> bool:
    return bool(card.suites["cpu"]) and library.manifest.kind == "extension"


def _line(card: CardFacts, member: str) -> int | None:
    """Where the card defines the member; where it does not, the line of its class."""
    return line_of(ast.parse(card.file.read_bytes()), member)


# ----------------------------------------------------------------------------------------------------------------------
# In the process of its own: the oracle, and the kernel
# ----------------------------------------------------------------------------------------------------------------------


def examine(trial: CardTrial) -> CardFault:
    """Tries one case on the CPU."""
    from kernelgate.bench.kernel import compare, operands
    from kernelgate.bench.kernel.card import CaseAxes
    from kernelgate.bench.kernel.operands import Draw

    path, case = trial.card, CaseAxes(trial.axes)
    try:
        schemas: Mapping[str, Sequence[Any]] = _schemas(trial) if trial.what == "operators" else {}
        with trying(path, ""):
            kernel = load(path)
        with trying(path, "inputs"):
            given = operands.inputs(kernel, case, Draw(case, "cpu", 0))
        with trying(path, "outputs"):
            shapes = operands.output_shapes(kernel, case, given)
        if trial.what == "operators":
            with trying(path, "call"):
                _record_call(kernel, case, given, shapes, schemas)
            return CardFault()
        whole = {name: tuple(tensor.shape) for name, tensor in operands.tensors(given)}
        whole |= {name: shape for name, (shape, _) in shapes.items()}
        with trying(path, "independent"):
            parts = operands.parts(kernel, whole)
        with trying(path, "oracle"):
            right = compare.expected(kernel, case, given, tuple(shapes))
            for name, (shape, _) in shapes.items():
                if tuple(right[name].shape) != shape:
                    text = f"oracle() gives {list(right[name].shape)} for {name}; outputs() says {list(shape)}"
                    raise KernelgateError(text)
        if parts is not None:
            with trying(path, "independent"):
                _try_parts(kernel, case, given, right, parts)
        if trial.what == "call":
            with trying(path, "call"):
                _try_call(trial.library.read(), kernel, case, (given, shapes, right))
    except CardError as error:
        return CardFault(line=error.line, member=error.member, fault=error.text.removeprefix("TypeError: "))
    return CardFault()


def _try_parts(kernel: Kernel, case: CaseAxes, given: Inputs, right: Tensors, parts: Any) -> None:
    """Raises KernelgateError where the oracle's result for the first and last part alone is another one."""
    import torch

    from kernelgate.bench.kernel import compare, operands

    ends = torch.tensor([0, parts.count - 1][: parts.count])
    part = operands.changed_by_name(given, lambda name, tensor: parts.take(name, tensor, ends))
    alone = compare.expected(kernel, case, part, tuple(right))
    for name in right:
        whole = parts.take(name, right[name], ends)
        if whole.shape != alone[name].shape or not torch.allclose(whole.double(), alone[name].double()):
            raise KernelgateError(f"a part of {name} that is computed alone is not that part of the whole")


def _try_call(library: Library, kernel: Kernel, case: CaseAxes, tried: tuple[Inputs, Shapes, Tensors]) -> None:
    """Raises KernelgateError where the kernel's result is not the oracle's."""
    import torch

    from kernelgate.bench.kernel import calls, compare, operands

    given, shapes, right = tried
    bound = calls.bind(library, kernel, "head")
    outs = operands.empty_outputs(kernel, shapes, "cpu")
    own = operands.changed(given, torch.Tensor.clone)
    returned = bound.prepared(case, own, outs)()
    made = calls.results(bound, returned, own, outs, tuple(kernel.in_place))
    compared = compare.outputs(kernel, case, made, right)
    if not compared.passed:
        where = compare.place(compared.output, compared.worst)
        ratio = "" if compared.error_ratio is None else f": {compared.error_ratio:.3g} times what is allowed"
        raise KernelgateError(f"call() and oracle() do not agree at {where}{ratio}")


# ----------------------------------------------------------------------------------------------------------------------
# In the process of its own: the operators
# ----------------------------------------------------------------------------------------------------------------------


def _schemas(trial: CardTrial) -> Mapping[str, Sequence[Any]]:
    """The schemas of the library's operators, overloads together. Raises CardError where there are none."""
    import torch

    def registered() -> set[str]:
        return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}

    library, before = trial.library.read(), registered()
    try:
        torch.ops.load_library(str(library.path))  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError) as error:
        reason = first_line(error.__cause__ or error)  # torch's own error does not repeat it
        fault = f"torch {torch.__version__} cannot load the library: {reason}"
        raise CardError(str(trial.card), None, "build", fault) from None
    prefix = f"{library.manifest.namespace}::"
    own = sorted(name for name in registered() if name.startswith(prefix))
    found = {name.removeprefix(prefix): torch._C._jit_get_schemas_for_operator(name) for name in own}
    schemas = {name: overloads for name, overloads in found.items() if overloads}
    if not schemas:
        fault = f"the library registers no operator under KERNELGATE_NAMESPACE, here {library.manifest.namespace}; "
        fault += f"it registers: {', '.join(sorted(registered() - before)) or 'none'}"
        raise CardError(str(trial.card), None, "build", fault)
    return schemas


def _record_call(
    kernel: Kernel, case: CaseAxes, given: Inputs, shapes: Shapes, schemas: Mapping[str, Sequence[Any]]
) -> None:
    """Raises an error where the card's call does not fit."""
    from kernelgate.bench.kernel import operands
    from kernelgate.bench.kernel.calls import Bound

    outs = operands.empty_outputs(kernel, shapes, "cpu")
    recorder = _Recorder(schemas, {**given, **outs}[next(iter(shapes))])
    Bound.of(kernel, recorder).prepared(case, given, outs)()
    if not recorder.called:
        raise KernelgateError(f"call() called no operator of the library, which registers: {', '.join(schemas)}")


class _Recorder:
    """Stands for torch.ops.<namespace>: holds each call against the schema, and computes nothing."""

    def __init__(self, schemas: Mapping[str, Sequence[Any]], result: Any) -> None:
        self._schemas = schemas
        self._result = result
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._schemas:
            there = ", ".join(self._schemas) or "none"
            raise TypeError(f"the library registers no operator {name}; it registers: {there}")
        call = self._operator(name, self._schemas[name])
        for schema in self._schemas[name]:
            setattr(call, schema.overload_name or "default", self._operator(name, [schema]))
        return call

    def _operator(self, name: str, overloads: Sequence[Any]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            whys = [mismatch(schema, args, kwargs) for schema in overloads]
            if None not in whys:
                written = [str(schema).partition("::")[2] for schema in overloads]  # as the sources say it
                raise TypeError("; ".join(f"{schema}: {why}" for schema, why in zip(written, whys, strict=True)))
            self.called.append(name)
            count = len(overloads[whys.index(None)].returns)
            return None if count == 0 else self._result if count == 1 else (self._result,) * count

        return call


def mismatch(schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """Why an operator of this schema would refuse these arguments; None where it would take them."""
    parameters = list(schema.arguments)
    if len(args) > len(parameters):
        return f"it takes {len(parameters)} arguments, call() gives {len(args)}"
    given = {parameter.name: value for parameter, value in zip(parameters, args, strict=False)}
    for name, value in kwargs.items():
        if name in given or name not in {parameter.name for parameter in parameters}:
            return f"it has no argument {name} that is still free"
        given[name] = value
    for parameter in parameters:
        if parameter.name not in given:
            if not parameter.has_default_value():
                return f"call() does not give the argument {parameter.name}"
        elif not _fits(str(parameter.type), given[parameter.name]):
            kind = type(given[parameter.name]).__name__
            return f"the argument {parameter.name} is a {parameter.type}, call() gives a {kind}"
    return None


def _fits(wanted: str, value: Any) -> bool:
    import torch

    if wanted.startswith("Optional["):
        return value is None or _fits(wanted[len("Optional[") : -1], value)
    if wanted.startswith("List["):
        return isinstance(value, list | tuple) and all(_fits(wanted[len("List[") : -1], item) for item in value)
    kinds: dict[str, Any] = {
        "Tensor": torch.Tensor,
        "int": int | torch.dtype | torch.layout | torch.memory_format,  # schemas call these int, too
        "float": int | float,
        "bool": bool,
        "str": str,
        "number": int | float,
    }
    return wanted not in kinds or isinstance(value, kinds[wanted])
