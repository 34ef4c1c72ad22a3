"""Is a card right? Its members are tried on a small case in a process of their own, on any machine: no GPU is needed.

When a library is built, its operators are held against the card's `call`. When a card is checked, all of its members
are called once, on the smallest case and on one that fuzzing draws; where it has CPU cases, the kernel is run, too, and
held against the oracle. A package's `call` is tried without any: what it names must be there.
"""

from __future__ import annotations

import ast
import math
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from kernelgate.bench.build import archs
from kernelgate.bench.build.cache import cache_folder
from kernelgate.bench.build.compiler_output import broke_down
from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import CannotCompileError, CardError, KernelgateError, first_line
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import fuzz_trials, loading
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import NONFINITE, CaseAxes, DeviceKind, Kernel, asked_for
from kernelgate.bench.kernel.cards import MOST_GPU_BYTES, CardFacts, CardMistake
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION
from kernelgate.bench.kernel.loading import line_of, load, trying
from kernelgate.bench.system import isolation
from kernelgate.bench.system.worker import Doing, Leader, Message, WorkerError, WorkerProcess

if TYPE_CHECKING:
    import torch

    from kernelgate.bench.kernel.operands import Inputs, Shapes, Tensors

PATIENCE_S = 120.0
TRIED_BYTES = 2.0**24
"""A timed case beyond that takes a CPU's oracle, in float64, too long, and more memory than it may have."""
UNTOUCHED = 0x7F
"""Every byte of an output before the kernel is called."""
What = Literal["operators", "oracle", "call"]
"""Is tried: the operators that `call` names, the oracle with all that belongs to it, or the kernel itself."""


class CardTrial(Message):
    library: LibraryAt
    """Not read to try the oracle."""
    card: Path
    cases: tuple[dict[str, AxisValue], ...]
    """The first is one that is timed: the kernel is run on it alone."""
    what: What


class CardTried(Message):
    mistake: CardMistake | None = None
    not_run: str = ""
    """Why the kernel itself was not run."""


def _ask(library: Library | None, card: CardFacts, what: What, must_run: bool = True) -> CardTried:
    """What comes of small cases: the smallest that is timed, and what fuzzing would draw. A member that ends the
    process is a mistake, where it must run here. Raises WorkerError."""
    device: DeviceKind = "cpu" if card.suites["cpu"] else "cuda"
    timed = card.suites["cpu"] if what == "call" and card.suites["cpu"] else card.cases.values()
    smallest = min(timed, key=lambda one: one.bytes or 0.0)
    cases = [smallest.axes]
    if what == "oracle":
        known = fuzz_trials.domain(card, device)
        small = fuzz_trials.small(card, known, device)
        # Of sizes that differ, where the card takes them: transposed, a square has its shape.
        apart = {axis: whole[min(at, len(whole) - 1)] for at, (axis, whole) in enumerate(known.ranges.items(), 2)}
        small |= apart if known.takes(small | apart) else {}
        drawn = (card.distributions[0], *([NONFINITE] if card.nonfinite else []))
        cases = [] if (smallest.bytes or 0.0) > TRIED_BYTES else cases
        cases += [{**small, DISTRIBUTION: name} for name in drawn]
    file = library.card.absolute() if library and library.card and what == "operators" else card.file
    at = LibraryAt.of(library) if library else LibraryAt(folder=file.parent, card=None)
    asked = CardTrial(library=at, card=file, cases=tuple(cases), what=what)
    with WorkerProcess(f"{__name__}:examine", apart=isolation.of_sources()) as worker:
        try:
            return worker.ask(asked, CardTried, PATIENCE_S)
        except WorkerError as error:
            member = worker.doing.doing
            if not must_run:  # a GPU's kernel that takes a CPU's memory for its own
                return CardTried(not_run=f"{member}, on the CPU: {error}")
            if not worker.ended_by_work(error):
                raise WorkerError(f"{member}, on the CPU: {error}") from None
            said = "cannot be loaded, whatever the card says" if member == "build" else "could not be tried"
            return CardTried(mistake=CardMistake(file=str(file), line=None, member=member, text=f"{said}: {error}"))


def check_operators(library: Library, card: CardFacts) -> None:
    """Raises CardError at the line of the card that does not fit; once found right, a library is not asked again."""
    if library.manifest.kind != "extension" or library.card is None:
        return
    known = cache_folder() / "checked" / f"{library.manifest.key}-{library.manifest.card_sha256}"
    if known.exists():
        return
    try:
        told = _ask(library, card, "operators").mistake
    except WorkerError as error:
        if "was killed by SIGKILL" in str(error) or broke_down(str(error)):  # as for want of memory
            raise CannotCompileError(f"{library.path} could not be tried: {error}") from None
        raise mistake(card, "build", f"{library.path} could not be tried: {error}") from None
    if told is not None:
        of = f" (in {library.manifest.sha[:7]})" if library.manifest.sha else ""
        raise mistake(card, told.member, f"{told.text}{of}", told.line)
    with suppress(OSError):  # a cache that only others may write
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()


def check(library: Library | None, card: CardFacts) -> tuple[tuple[CardError, ...], str]:
    """The mistakes of a card, and of its library where one could be built; and what was tried, in words, where there
    are none. Raises KernelgateError where the library cannot be loaded here."""
    if mistakes := (*(CardError(**one.model_dump()) for one in card.doubts), *_too_large(card)):
        return mistakes, ""
    must_run = library is not None and bool(card.suites["cpu"])
    kind = library and library.manifest.kind
    try:
        told = _ask(library, card, "oracle")
        if told.mistake is None and (must_run or kind == "package"):
            told = _ask(library, card, "call", must_run)
    except WorkerError as error:
        raise KernelgateError(f"the card {card.name} cannot be tried: {error}") from None
    if one := told.mistake:
        return (mistake(card, one.member, one.text, one.line),), ""
    if not _uses_ops(ast.parse(card.file.read_bytes())):
        text = "call() does not use ops, which has one side's kernels: base and head would run the same"
        return (mistake(card, "call", text),), ""
    if must_run:
        return (), f"{'operators fit call(); ' if kind == 'extension' else ''}call() and oracle() agree on the CPU"
    more = ""
    if kind == "package" and not told.not_run:
        more = "; call() and oracle() agree, on the CPU, too"
    elif library is not None:
        said = f"; with tensors of the CPU it says: {told.not_run}" if told.not_run else ""
        more = f"; the kernel was not run: it has no CPU path{said}"
    return (), f"inputs(), outputs(), oracle() and compare() fit each other{more}"


def _uses_ops(tree: ast.Module) -> bool:
    """Whether the card's call reads its ops, or torch.ops, which has them, too, where sides take turns."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call")
    if (call := next(calls, None)) is None or len(call.args.args) < 2:
        return True
    ops, inside = call.args.args[1].arg, list(ast.walk(call))
    read = any(isinstance(one, ast.Name) and one.id == ops for one in inside)
    return read or any(isinstance(one, ast.Attribute) and one.attr == "ops" for one in inside)


def _too_large(card: CardFacts) -> Iterator[CardError]:
    """Cases that no machine's memory holds; of a GPU's, that of the one at hand, where there is one."""
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most, whose = (MOST_GPU_BYTES, "no GPU has more than")
    if archs.gpus_at_hand():
        from kernelgate.bench.system import environment  # who only judges loads this module, too

        device = environment.describe().device
        most, whose = device.memory_bytes or most, f"{device.name} has"
    for name, suite in card.suites.items():
        limit, where = (ram, "this machine has") if name == "cpu" else (most, whose)
        member = {"pr": "cases", "cpu": "cpu_cases"}.get(name, "suites")
        for case in suite:
            if (size := case.bytes or 0.0) > limit:
                held = f"{size / 2**30:,.0f} GiB of inputs and outputs, and {where} {limit / 2**30:,.0f} GiB"
                yield mistake(card, member, f"{case.id} has {held}: make it smaller")


def mistake(card: CardFacts, member: str, text: str, line: int | None = None) -> CardError:
    """At the line, else where the card defines the member, else at its class."""
    return CardError(str(card.file), line or line_of(ast.parse(card.file.read_bytes()), member), member, text)


def examine(trial: CardTrial, leader: Leader) -> CardTried:
    """Tries the cases on the CPU, in a process of its own."""
    case = trial.cases[0]
    loading.tell_member = lambda member: leader.send(Doing(doing=member))
    loading.tell_member("build")
    try:
        recorder = _recorder(trial) if trial.what == "operators" else None
        kernel = load(trial.card)
        if trial.what != "oracle":
            return CardTried(not_run=_tried(trial, kernel, CaseAxes(case), recorder))
        for case in trial.cases:
            _tried(trial, kernel, CaseAxes(case), recorder)
    except CardError as error:
        text = error.text.removeprefix("TypeError: ")
        if trial.what != "operators":
            text += f" (case {case_axes.case_id(case)})"
        return CardTried(mistake=CardMistake(**{**vars(error), "text": text}))
    return CardTried()


def _tried(trial: CardTrial, kernel: Kernel, case: CaseAxes, recorder: _Recorder | _Functions | None) -> str:
    """Why the kernel was not run, where it was to be. Raises CardError."""
    from kernelgate.bench.kernel import compare, operands
    from kernelgate.bench.kernel.operands import Draw

    path, distribution = trial.card, str(case.get(DISTRIBUTION, "normal"))
    with trying(path, "nonfinite" if distribution == NONFINITE else "inputs"):
        given = operands.inputs(kernel, case, Draw(case, "cpu", 0, distribution))
        own = kernel.inputs(case, Draw(case, "cpu", 0, distribution))
        if twice := sorted(own.keys() & kernel.state(case, **asked_for(kernel.state, own)).keys()):
            raise KernelgateError(f"state() gives {twice[0]}, which is an input already: it adds to them")
    with trying(path, "outputs"):
        shapes = operands.output_shapes(kernel, case, given)
    if recorder:
        with trying(path, "call"):
            _record_call(kernel, case, given, shapes, recorder)
        return ""
    with trying(path, "oracle"):
        right = compare.expected(kernel, case, given, tuple(shapes))
        for name, (shape, _) in shapes.items():
            if tuple(right[name].shape) != shape:
                said = "outputs() says"
                if type(kernel).outputs is Kernel.outputs:
                    said = "without outputs() it has the first input's"
                raise KernelgateError(f"oracle() gives {list(right[name].shape)} for {name}; {said} {list(shape)}")
    if trial.what == "call":
        with trying(path, "call"):
            return _try_call(trial, kernel, case, (given, shapes, right))
    whole = {name: tuple(tensor.shape) for name, tensor in operands.tensors(given)}
    whole |= {name: shape for name, (shape, _) in shapes.items()}
    with trying(path, "independent"):
        if unknown := sorted(set(kernel.independent) - whole.keys()):
            raise KernelgateError(f"independent names {unknown[0]}; there are {', '.join(whole)}")
        if (parts := operands.parts(kernel, whole)) is not None:
            _try_parts(kernel, case, given, right, parts)
    with trying(path, "compare"):
        rounded = {name: right[name].to(dtype) for name, (_, dtype) in shapes.items()}
        if not compare.outputs(kernel, case, rounded, right, lambda: given).passed:
            raise KernelgateError("the oracle's own result is called wrong: what passes then?")
        finite = all(bool(one.isfinite().all()) for one in right.values())
        spoilt = {name: one.fill_(math.nan) if one.is_floating_point() else one for name, one in rounded.items()}
        real = all(one.is_floating_point() and one.numel() for one in spoilt.values())
        if finite and real and compare.outputs(kernel, case, spoilt, right, lambda: given).passed:
            raise KernelgateError("outputs that are all NaN are called right: what fails then?")
        zeros = {name: one.new_zeros(one.shape) for name, one in rounded.items()}
        some = distribution == "normal" and any(bool(one.any()) for one in right.values())
        # A card's own compare() may know better, such as of samples.
        tolerant = some and compare.by_tolerance(kernel)
        if tolerant and compare.outputs(kernel, case, zeros, right, lambda: given).passed:
            raise KernelgateError("outputs of zeros are called right: the tolerance is too large for these values")
    with trying(path, "reference"):
        try:
            kernel.reference(case, **asked_for(kernel.reference, given))
        except Exception as error:  # what it needs may not be here
            if _is_dead(error, path):
                raise
    return ""


def _is_dead(error: Exception, path: Path) -> bool:
    """Whether a line of the card itself names what is not there, whatever the machine."""
    between = ("__getattr__", "apply")  # of a module, and of an autograd function
    steps = [one for one in traceback.extract_tb(error.__traceback__) if one.name not in between]
    return isinstance(error, AttributeError | NameError | TypeError) and steps[-1].filename == str(path.absolute())


def _try_parts(kernel: Kernel, case: CaseAxes, given: Inputs, right: Tensors, parts: Any) -> None:
    """Raises KernelgateError where the oracle's result for the first and last part alone is another one."""
    import torch

    from kernelgate.bench.kernel import compare, operands

    ends = torch.tensor([0, parts.count - 1][: parts.count], dtype=torch.int64)
    part = operands.changed_by_name(given, lambda name, tensor: parts.take(name, tensor, ends))
    alone = compare.expected(kernel, case, part, tuple(right))
    for name in right:
        whole = parts.take(name, right[name], ends)
        if whole.shape != alone[name].shape or not torch.allclose(whole.double(), alone[name].double(), equal_nan=True):
            raise KernelgateError(f"a part of {name} computed alone differs from that part of the whole")


def _try_call(trial: CardTrial, kernel: Kernel, case: CaseAxes, tried: tuple[Inputs, Shapes, Tensors]) -> str:
    """Why the kernel was not run. Raises KernelgateError where its result is not the oracle's, and its own error where
    the CPU should have run it, or where the card is to blame."""
    import torch

    from kernelgate.bench.kernel import compare, operands

    given, shapes, right = tried
    outs = operands.empty_outputs(kernel, shapes, "cpu")
    for one in outs.values():
        _raw(one).fill_(UNTOUCHED)
    own = operands.changed(given, torch.Tensor.clone)
    try:
        bound = operands.Bound(kernel, operands.load(trial.library.read(), "head", type(kernel).__module__))
        returned = bound.prepared(case, own, outs)()
    except Exception as error:
        if kernel.cpu_cases or _is_dead(error, trial.card):
            raise
        return first_line(error)
    made = operands.results(bound, returned, own, outs, tuple(kernel.in_place))
    handed = [] if bound.returns(tuple(outs)) else [_raw(one) for one in outs.values() if one.numel()]
    if handed and all(bool((one == UNTOUCHED).all()) for one in handed):
        raise KernelgateError("call() launches nothing: it leaves its outputs as they were")
    compared = compare.outputs(kernel, case, made, right, lambda: given)
    if not compared.passed:
        where = compare.place(compared.output, compared.worst)
        ratio = "" if compared.error_ratio is None else f": {compared.error_ratio:.3g} times what is allowed"
        raise KernelgateError(f"call() and oracle() do not agree at {where}{ratio}")
    return ""


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.reshape(-1).view(torch.uint8)


def _recorder(trial: CardTrial) -> _Recorder | _Functions:
    """What stands for the library's operators. Raises CardError where there are none."""
    import torch

    from kernelgate.bench.kernel import operands

    library, before = trial.library.read(), loading.registered()
    try:
        ops = operands.load(library)
    except KernelgateError as error:
        raise CardError(str(trial.card), None, "build", str(error)) from None
    if library.manifest.binding != "torch":
        return _Functions(ops)
    new = loading.registered()
    own = sorted(name for name in new if name.startswith(f"{library.manifest.namespace}::"))
    schemas = {name: overloads for name in own if (overloads := torch._C._jit_get_schemas_for_operator(name))}
    if not schemas:
        fault = f"the library registers no operator under KERNELGATE_NAMESPACE, here {library.manifest.namespace}"
        others = ", ".join(sorted(new - before)) or "none"
        raise CardError(str(trial.card), None, "build", f"{fault}; it registers: {others}")
    return _Recorder(schemas)


def _record_call(
    kernel: Kernel, case: CaseAxes, given: Inputs, shapes: Shapes, recorder: _Recorder | _Functions
) -> None:
    from kernelgate.bench.kernel import operands
    from kernelgate.bench.kernel.operands import Bound

    outs = operands.empty_outputs(kernel, shapes, "cpu")
    if isinstance(recorder, _Recorder):
        recorder.result = {**given, **outs}[next(iter(shapes))]
    try:
        Bound(kernel, recorder).prepared(case, given, outs)()
    except _CalledError:
        return
    if not recorder.called:
        raise KernelgateError(f"call() called no operator of the library, which registers: {recorder.names}")


class _Recorder:
    """Stands for torch.ops.<namespace>: has torch hold each call against the schemas, and computes nothing."""

    def __init__(self, schemas: Mapping[str, Sequence[Any]]) -> None:
        self._schemas = {name.partition("::")[2]: (name, overloads) for name, overloads in schemas.items()}
        self.result: Any = None
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
        return None if count == 0 else self.result if count == 1 else (self.result,) * count


class _CalledError(Exception):
    """A function was called: of what it would have returned nothing is known, so the card's call ends there."""


class _Functions:
    """Stands for a module of pybind11 or TVM-FFI: has its functions and submodules. pybind11 says in a function's first
    line what it takes; of others nobody knows before a call."""

    def __init__(self, module: Any, calls: list[bool] | None = None) -> None:
        self._module = module
        self._calls: list[bool] = [] if calls is None else calls
        self.names = ", ".join(name for name in dir(module) if not name.startswith("_")) or "nothing"

    @property
    def called(self) -> bool:
        return bool(self._calls)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._module, name):
            raise AttributeError(f"the module has no {name}; it has {self.names}")
        found = getattr(self._module, name)
        return _Functions(found, self._calls) if isinstance(found, ModuleType) else partial(self._call, found)

    def _call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        head = (getattr(function, "__doc__", None) or "").partition("\n")[0]
        made: dict[str, Any] = {}
        with suppress(Exception):  # a default that is no Python, such as <object at 0x7f>, or an unknown name's
            if ") -> " in head:
                exec(f"from __future__ import annotations\ndef {head}: ...", made)  # noqa: S102 - by who wrote the library
        try:
            signature(made.get(head.partition("(")[0], lambda *_, **__: None)).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{error}: the library has {head}") from None
        self._calls.append(True)
        raise _CalledError
