"""Do a library's operators fit its card's `call`? Asked when building, on any machine: no GPU is needed."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelgate.bench.build.build import cache_folder
from kernelgate.bench.build.library import Library
from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.loading import line_of, load, trying
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

PATIENCE_S = 120.0


class OperatorsRequest(Message):
    """One call of `card` on `axes` is made with operators that compute nothing and hold it against their schemas."""

    library: Path
    namespace: str
    card: Path
    axes: dict[str, bool | int | float | str]


class OperatorsAnswer(Message):
    """What does not fit, or nothing; `registered` are the schemas."""

    registered: tuple[str, ...]
    line: int | None = None
    member: str = "call"
    fault: str | None = None


def check(library: Library, card: CardFacts) -> None:
    """Raises CardError at the line of the card that does not fit; once found right, a library is not asked again."""
    if library.manifest.kind != "extension" or library.card is None:
        return
    known = cache_folder() / "checked" / f"{library.manifest.key}-{library.manifest.card_sha256}"
    if known.exists():
        return
    case = min(card.cases.values(), key=lambda one: one.bytes or 0.0)
    request = OperatorsRequest(
        library=library.path.absolute(),
        namespace=library.manifest.namespace,
        card=library.card.absolute(),
        axes=dict(case.axes),
    )
    with WorkerProcess(f"{__name__}:examine") as worker:
        try:
            answer = worker.ask(request, OperatorsAnswer, PATIENCE_S)
        except WorkerError as error:
            fault = f"{library.path} could not be tried: {error}"
            answer = OperatorsAnswer(registered=(), member="build", fault=fault)
    if answer.fault is not None:
        line = answer.line or line_of(ast.parse(card.file.read_bytes()), answer.member)
        raise CardError(str(card.file), line, answer.member, answer.fault)
    with suppress(OSError):  # a cache that only others may write
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(answer.registered), encoding="utf-8")


# In the process of its own --------------------------------------------------------------------------------------------


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
            fitting = overloads[whys.index(None)]
            self.called.append(name)
            count = len(fitting.returns)
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
        return isinstance(value, list | tuple) and all(_fits(wanted[len("List[") : -1], one) for one in value)
    kinds: dict[str, Any] = {
        "Tensor": torch.Tensor,
        "int": int | torch.dtype | torch.layout | torch.memory_format,  # schemas call these int, too
        "float": int | float,
        "bool": bool,
        "str": str,
        "number": int | float,
    }
    return wanted not in kinds or isinstance(value, kinds[wanted])


def examine(request: OperatorsRequest) -> OperatorsAnswer:
    """Loads the library and tries the card's call."""
    schemas: Mapping[str, Sequence[Any]] = {}
    try:
        schemas = _registered(request)
        _try_call(request, schemas)
    except CardError as error:
        fault = error.text.removeprefix("TypeError: ")
        return OperatorsAnswer(registered=_listed(schemas), line=error.line, member=error.member, fault=fault)
    return OperatorsAnswer(registered=_listed(schemas))


def _listed(schemas: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    return tuple(str(schema) for overloads in schemas.values() for schema in overloads)


def _registered(request: OperatorsRequest) -> Mapping[str, Sequence[Any]]:
    """The schemas of the library's operators, overloads together. Raises CardError where there are none."""
    import torch

    before = _operator_names()
    try:
        torch.ops.load_library(str(request.library))  # type: ignore[no-untyped-call]
    except (OSError, RuntimeError) as error:
        reason = first_line(error.__cause__ or error)  # torch's own error does not repeat it
        fault = f"torch {torch.__version__} cannot load the library: {reason}"
        raise CardError(str(request.card), None, "build", fault) from None
    prefix = f"{request.namespace}::"
    own = sorted(name for name in _operator_names() if name.startswith(prefix))
    found = {name.removeprefix(prefix): torch._C._jit_get_schemas_for_operator(name) for name in own}
    schemas = {name: overloads for name, overloads in found.items() if overloads}
    if not schemas:
        fault = f"the library registers no operator under KERNELGATE_NAMESPACE, here {request.namespace}; "
        fault += f"it registers: {', '.join(sorted(_operator_names() - before)) or 'none'}"
        raise CardError(str(request.card), None, "build", fault)
    return schemas


def _try_call(request: OperatorsRequest, schemas: Mapping[str, Sequence[Any]]) -> None:
    """Raises CardError where the card's call does not fit."""
    from kernelgate.bench.kernel import operands
    from kernelgate.bench.kernel.calls import Bound
    from kernelgate.bench.kernel.card import CaseAxes
    from kernelgate.bench.kernel.draw import Draw

    case = CaseAxes(request.axes)
    with trying(request.card, ""):
        kernel = load(request.card)
    with trying(request.card, "inputs"):
        given = operands.inputs(kernel, case, Draw(case, "cpu", 0))
    with trying(request.card, "outputs"):
        shapes = operands.output_shapes(kernel, case, given)
        outs = operands.empty_outputs(kernel, shapes, "cpu")
    with trying(request.card, "call"):
        recorder = _Recorder(schemas, {**given, **outs}[next(iter(shapes))])
        Bound.of(kernel, recorder).prepared(case, given, outs)()
        if not recorder.called:
            raise KernelgateError(f"call() called no operator of the library, which registers: {', '.join(schemas)}")


def _operator_names() -> set[str]:
    """Of all that is registered, without overloads."""
    import torch

    return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
