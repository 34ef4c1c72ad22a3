"""Is a card right? Its members are tried on a small case in a process of their own, on any machine: no GPU is needed.

When a library is built, its operators are held against the card's `call`. When a card is checked, its inputs, outputs
and oracle must agree; where it has CPU cases, the kernel itself is run on the smallest and held against the oracle.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernelgate.bench.build.cache import cache_folder
from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import CardFacts, CardMistake, CardsAnswer
from kernelgate.bench.kernel.loading import line_of, load, trying
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

if TYPE_CHECKING:
    from kernelgate.bench.kernel.card import CaseAxes, Kernel
    from kernelgate.bench.kernel.operands import Inputs, Shapes, Tensors

PATIENCE_S = 120.0
What = Literal["operators", "oracle", "call"]
"""Is tried; `call`: the oracle, and the kernel, which has a path for the CPU."""


class CardTrial(Message):
    """One case that a card's members are tried on."""

    library: LibraryAt
    card: Path
    axes: dict[str, AxisValue]
    what: What


def _ask(library: Library, card: CardFacts, what: What) -> CardError | None:
    """What is wrong with the smallest case. Raises WorkerError."""
    cases = card.suites["cpu"] if what == "call" else card.cases.values()
    case = min(cases, key=lambda one: one.bytes or 0.0)
    file = card.file if library.card is None or what != "operators" else library.card.absolute()
    with WorkerProcess(f"{__name__}:examine") as worker:
        asked = CardTrial(library=LibraryAt.of(library), card=file, axes=case.axes, what=what)
        answer = worker.ask(asked, CardsAnswer, PATIENCE_S)
    for one in answer.mistakes:
        text = one.text if what == "operators" else f"{one.text} (case {case.id})"
        return _mistake(card, one.member, text, one.line)
    return None


def check_operators(library: Library, card: CardFacts) -> None:
    """Raises CardError at the line of the card that does not fit; once found right, a library is not asked again."""
    if library.manifest.kind != "extension" or library.card is None:
        return
    known = cache_folder() / "checked" / f"{library.manifest.key}-{library.manifest.card_sha256}"
    if known.exists():
        return
    try:
        mistake = _ask(library, card, "operators")
    except WorkerError as error:
        mistake = _mistake(card, "build", f"{library.path} could not be tried: {error}")
    if mistake is not None:
        raise mistake
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
        mistakes.append(_mistake(card, "bytes", text))
    if all(case.flops is None for case in card.cases.values()):
        text = "flops() is not given: without it no rate, no roofline and no floor below which no time is believed"
        mistakes.append(_mistake(card, "flops", text))
    try:
        mistake = _ask(library, card, "call" if _runs_on_cpu(card, library) else "oracle")
    except WorkerError as error:
        raise KernelgateError(f"the card {card.name} cannot be tried: {error}") from None
    return (*mistakes, *([mistake] if mistake else []))


def tried(card: CardFacts, library: Library) -> str:
    if _runs_on_cpu(card, library):
        return "operators fit call(); call() and oracle() agree on the CPU"
    return "inputs(), outputs() and oracle() fit each other; the kernel has no CPU path and was not run"


def _runs_on_cpu(card: CardFacts, library: Library) -> bool:
    return bool(card.suites["cpu"]) and library.manifest.kind == "extension"


def _mistake(card: CardFacts, member: str, text: str, line: int | None = None) -> CardError:
    """At the line, else where the card defines the member, else at its class."""
    return CardError(str(card.file), line or line_of(ast.parse(card.file.read_bytes()), member), member, text)


def examine(trial: CardTrial) -> CardsAnswer:
    """Tries one case on the CPU, in a process of its own."""
    from kernelgate.bench.kernel import compare, operands
    from kernelgate.bench.kernel.card import CaseAxes
    from kernelgate.bench.kernel.operands import Draw

    path, case = trial.card, CaseAxes(trial.axes)
    try:
        schemas: Mapping[str, Sequence[Any]] = _schemas(trial) if trial.what == "operators" else {}
        kernel = load(path)
        with trying(path, "inputs"):
            given = operands.inputs(kernel, case, Draw(case, "cpu", 0))
        with trying(path, "outputs"):
            shapes = operands.output_shapes(kernel, case, given)
        if trial.what == "operators":
            with trying(path, "call"):
                _record_call(kernel, case, given, shapes, schemas)
            return CardsAnswer()
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
        wrong = {**vars(error), "text": error.text.removeprefix("TypeError: ")}
        return CardsAnswer(mistakes=(CardMistake(**wrong),))
    return CardsAnswer()


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

    from kernelgate.bench.kernel import compare, operands

    given, shapes, right = tried
    bound = operands.bind(library, kernel, "head")
    outs = operands.empty_outputs(kernel, shapes, "cpu")
    own = operands.changed(given, torch.Tensor.clone)
    returned = bound.prepared(case, own, outs)()
    made = operands.results(bound, returned, own, outs, tuple(kernel.in_place))
    compared = compare.outputs(kernel, case, made, right)
    if not compared.passed:
        where = compare.place(compared.output, compared.worst)
        ratio = "" if compared.error_ratio is None else f": {compared.error_ratio:.3g} times what is allowed"
        raise KernelgateError(f"call() and oracle() do not agree at {where}{ratio}")


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
    own = sorted(name for name in registered() if name.startswith(f"{library.manifest.namespace}::"))
    schemas = {name: torch._C._jit_get_schemas_for_operator(name) for name in own}
    if not any(schemas.values()):
        fault = f"the library registers no operator under KERNELGATE_NAMESPACE, here {library.manifest.namespace}; "
        fault += f"it registers: {', '.join(sorted(registered() - before)) or 'none'}"
        raise CardError(str(trial.card), None, "build", fault)
    return {name: overloads for name, overloads in schemas.items() if overloads}


def _record_call(
    kernel: Kernel, case: CaseAxes, given: Inputs, shapes: Shapes, schemas: Mapping[str, Sequence[Any]]
) -> None:
    """Raises an error where the card's call does not fit."""
    from kernelgate.bench.kernel import operands
    from kernelgate.bench.kernel.operands import Bound

    outs = operands.empty_outputs(kernel, shapes, "cpu")
    recorder = _Recorder(schemas, {**given, **outs}[next(iter(shapes))])
    Bound(kernel, recorder).prepared(case, given, outs)()
    if not recorder.called:
        raise KernelgateError(f"call() called no operator of the library, which registers: {recorder.names}")


class _Recorder:
    """Stands for torch.ops.<namespace>: has torch hold each call against the schemas, and computes nothing."""

    def __init__(self, schemas: Mapping[str, Sequence[Any]], result: Any) -> None:
        self._schemas = {name.partition("::")[2]: (name, overloads) for name, overloads in schemas.items()}
        self._result = result
        self.called = False
        self.names = ", ".join(self._schemas)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._schemas:
            raise TypeError(f"the library registers no operator {name}; it registers: {self.names}")
        overloads = {schema.overload_name or "default": schema for schema in self._schemas[name][1]}
        call = partial(self._call, name, overloads)
        for overload, schema in overloads.items():
            setattr(call, overload, partial(self._call, name, {overload: schema}))
        return call

    def _call(self, name: str, overloads: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        import torch

        whole = self._schemas[name][0]
        try:
            chosen = torch._C._jit_resolve_packet(whole, *args, **kwargs)
        except (RuntimeError, TypeError) as error:
            whys = [line for line in str(error).splitlines() if line.startswith((f"{whole}()", "Unknown keyword"))]
            raise TypeError("; ".join(whys or [first_line(error)]).replace(whole, name)) from None
        if chosen not in overloads:
            raise TypeError(f"{name}.{next(iter(overloads))} does not take what {name}.{chosen} takes")
        self.called = True
        count = len(overloads[chosen].returns)
        return None if count == 0 else self._result if count == 1 else (self._result,) * count
