"""Is a card right? Its inputs, call and oracle are tried on a small case, on any machine.

The library's operators are held against `call` (operators.py). Where the card has CPU cases, the kernel itself is run
on the smallest and held against the oracle; else inputs, outputs and oracle alone must agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import CardError, KernelgateError
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.loading import line_of, load, trying
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

if TYPE_CHECKING:
    from kernelgate.bench.kernel.card import CaseAxes, Kernel
    from kernelgate.bench.kernel.operands import Inputs, Parts, Shapes, Tensors

PATIENCE_S = 120.0
DISTRIBUTION = "normal"


class CardCheckRequest(Message):
    """Try these cases."""

    library: LibraryAt
    card: str
    axes: dict[str, bool | int | float | str]
    runs: bool
    """Whether the kernel has a path for the CPU; else it is not called."""


class CardCheckAnswer(Message):
    """What is wrong, or nothing."""

    line: int | None = None
    member: str = ""
    fault: str | None = None


def check(library: Library, card: CardFacts) -> tuple[CardError, ...]:
    """What is wrong with a card whose library was built; empty where nothing is.

    Raises KernelgateError where the library cannot be loaded here.
    """
    mistakes = list(_work(card))
    on_cpu = card.suites["cpu"]
    case = min(on_cpu or tuple(card.cases.values()), key=lambda one: one.bytes or 0.0)
    runs = bool(on_cpu) and library.manifest.kind == "extension"
    request = CardCheckRequest(library=LibraryAt.of(library), card=str(card.file), axes=case.axes, runs=runs)
    with WorkerProcess(f"{__name__}:examine") as worker:
        try:
            answer = worker.ask(request, CardCheckAnswer, PATIENCE_S)
        except WorkerError as error:
            raise KernelgateError(f"the card {card.name} cannot be tried: {error}") from None
    if answer.fault is not None:
        line = answer.line or _line(card, answer.member)
        mistakes.append(CardError(str(card.file), line, answer.member, f"{answer.fault} (case {case.id})"))
    return tuple(mistakes)


def tried(card: CardFacts, library: Library) -> str:
    """What `check` has shown, for people."""
    if card.suites["cpu"] and library.manifest.kind == "extension":
        return "operators fit call(); call() and oracle() agree on the CPU"
    return "inputs(), outputs() and oracle() fit each other; the kernel has no CPU path and was not run"


def _work(card: CardFacts) -> Iterator[CardError]:
    lacking = next((case for case in card.cases.values() if case.bytes is None), None)
    if lacking is not None:
        text = f"the shapes of {lacking.id} cannot be worked out without torch: say how many bytes one call moves"
        yield CardError(str(card.file), _line(card, "bytes"), "bytes", text)
    if all(case.flops is None for case in card.cases.values()):
        text = "flops() is not given: without it no rate, no roofline and no floor below which no time is believed"
        yield CardError(str(card.file), _line(card, "flops"), "flops", text)


def _line(card: CardFacts, member: str) -> int | None:
    """Where the card defines the member; where it does not, the line of its class."""
    return line_of(ast.parse(card.file.read_bytes()), member)


# In the process of its own --------------------------------------------------------------------------------------------


def examine(request: CardCheckRequest) -> CardCheckAnswer:
    """Tries one case on the CPU."""
    from kernelgate.bench.kernel import compare, operands
    from kernelgate.bench.kernel.card import CaseAxes
    from kernelgate.bench.kernel.draw import Draw

    path = Path(request.card)
    kernel, case = load(path), CaseAxes(request.axes)
    try:
        with trying(path, "inputs"):
            given = operands.inputs(kernel, case, Draw(case, "cpu", 0, DISTRIBUTION))
        with trying(path, "outputs"):
            shapes = operands.output_shapes(kernel, case, given)
        with trying(path, "independent"):
            parts = operands.parts(kernel, _whole_shapes(given, shapes))
        with trying(path, "oracle"):
            right = compare.expected(kernel, case, given, tuple(shapes))
            _same_shapes(right, shapes)
        if parts is not None:
            with trying(path, "independent"):
                _try_parts(kernel, case, given, right, parts)
        if request.runs:
            with trying(path, "call"):
                _try_call(request.library.read(), kernel, case, given, shapes, right)
    except CardError as mistake:
        return CardCheckAnswer(line=mistake.line, member=mistake.member, fault=mistake.text)
    return CardCheckAnswer()


def _whole_shapes(given: Inputs, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Of inputs and outputs."""
    from kernelgate.bench.kernel import operands

    of_inputs = {name: tuple(tensor.shape) for name, tensor in operands.tensors(given)}
    return {**of_inputs, **{name: shape for name, (shape, _) in shapes.items()}}


def _same_shapes(right: Tensors, shapes: Shapes) -> None:
    """Raises KernelgateError where the oracle gives an output that is not as outputs() says."""
    for name, (shape, _) in shapes.items():
        if tuple(right[name].shape) != shape:
            raise KernelgateError(f"oracle() gives {list(right[name].shape)} for {name}; outputs() says {list(shape)}")


def _try_parts(kernel: Kernel, case: CaseAxes, given: Inputs, right: Tensors, parts: Parts) -> None:
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


def _try_call(library: Library, kernel: Kernel, case: CaseAxes, given: Inputs, shapes: Shapes, right: Tensors) -> None:
    """Raises KernelgateError where the kernel's result is not the oracle's."""
    import torch

    from kernelgate.bench.kernel import calls, compare, operands

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
