"""One call of a kernel on fresh inputs, and everything that can be wrong with what it leaves behind.

Outputs are filled with a pattern before the call: an element that still holds it was never written. They lie between
guards that must stay as they were, inputs between NaNs that a read past their ends would bring into an output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from kernelgate.bench import record
from kernelgate.bench.check.accuracy import CaseMeasured, DrawnInputs
from kernelgate.bench.check.trial_process import CheckRequest, TrialOutcome
from kernelgate.bench.core.errors import UsageError, first_line
from kernelgate.bench.kernel import compare, loading, operands, triton_runtime
from kernelgate.bench.kernel.card import Kernel
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.kernel.operands import Bound, Draw, Inputs, Shapes, Tensors
from kernelgate.bench.system.worker import Leader, Ready

GUARD_BYTES = 16384
"""Before and after each tensor; a multiple of every alignment that kernels ask for."""
PATTERNS: dict[torch.dtype, tuple[int, int]] = {
    torch.float16: (0x7E5A, 0x6B5A),
    torch.bfloat16: (0x7FDA, 0x475A),
    torch.float32: (0x7FDA5A5A, 0x475A5A5A),
    torch.float8_e4m3fn: (0x7F, 0x6A),
    torch.float8_e5m2: (0x7E, 0x6A),
    torch.int8: (0x5A, 0x25),
    torch.uint8: (0x5A, 0x25),
    torch.int32: (0x5A5A5A5A, 0x25A52525),
    torch.int64: (0x5A5A5A5A5A5A5A5A, 0x25A525A525A52525),
    torch.bool: (0x5A, 0x25),
}
"""Two bit patterns that arithmetic hardly produces: a NaN where there is one, and a finite number."""


@dataclass(frozen=True)
class MemoryLayout:
    strides: tuple[int, ...] | None = None
    """In elements; None without gaps."""
    offset: int = 0
    """Elements from an address that is aligned to GUARD_BYTES."""


@dataclass(frozen=True)
class Guarded:
    buffer: torch.Tensor
    """All of it, as integers of the dtype's width."""
    tensor: torch.Tensor
    pattern: int

    def untouched(self) -> torch.Tensor:
        """Where the tensor still holds the pattern."""
        return bits(self.tensor) == self.pattern

    def guards_changed(self) -> bool:
        guard = GUARD_BYTES // self.buffer.element_size()
        edges = torch.cat((self.buffer[:guard], self.buffer[-guard:]))
        return bool((edges != self.pattern).any())

    def poison(self) -> None:
        self.buffer.fill_(self.pattern)


def guarded(
    shape: Sequence[int], dtype: torch.dtype, device: str, which: int, place: MemoryLayout | None = None
) -> Guarded:
    """A tensor filled with one of the two patterns, between guards that hold it, too."""
    pattern, width, place = PATTERNS[dtype][which], compare.bits_dtype(dtype), place or MemoryLayout()
    guard = GUARD_BYTES // width.itemsize
    lengths = place.strides if place.strides is not None else torch.empty(shape, device="meta").stride()
    needed = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, lengths, strict=True))
    first = guard + place.offset
    buffer = torch.full((guard + first + needed,), pattern, dtype=width, device=device)
    tensor = buffer.view(dtype)[first : first + needed].as_strided(tuple(shape), lengths, first)
    return Guarded(buffer, tensor, pattern)


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def beyond_use(device: str) -> bool:
    """Whether an error was of the kind that a CUDA context does not survive."""
    try:
        synchronize(device)
    except RuntimeError:
        return True
    return False


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as integers of its width."""
    return tensor.view(compare.bits_dtype(tensor.dtype))


Layouts = Callable[[str, torch.Tensor], MemoryLayout | None]
"""Where a tensor, an input or an output, is to lie; None leaves it as it is."""


@dataclass(frozen=True)
class Subject:
    """What is tried: the judging card and one side's kernel."""

    judge: Kernel
    bound: Bound
    device: str
    called: str = "kernel"
    """In an error."""


A = TypeVar("A", Trial, DrawnInputs)
M = TypeVar("M", TrialOutcome, CaseMeasured)


def answer_each(
    request: CheckRequest, leader: Leader, kind: type[A], answer: Callable[[Mapping[record.Side, Subject], A], M]
) -> None:
    """Loads the libraries, then answers what is asked until an answer leaves the device beyond use."""
    with triton_runtime.shared([at.folder for _, at in request.libraries]):
        judge, device, both = loading.load(request.card), request.device, len(request.libraries) > 1
        subjects = {
            side: Subject(judge, operands.bind(at.read(), judge, side), device, side if both else "kernel")
            for side, at in request.libraries
        }
        leader.send(Ready())
        beyond = False
        while not beyond:
            asked = leader.receive(kind)
            with triton_runtime.untuned(asked.axes):
                done = answer(subjects, asked)
            beyond = beyond_use(device)
            leader.send(done.model_copy(update={"last": beyond}))


class KernelCallError(Exception):
    """The kernel's own error, in words; any other is the card's."""


@dataclass(frozen=True)
class ReadyCall:
    """A call that is ready: its inputs and outputs lie between guards."""

    subject: Subject
    draw: Draw
    originals: Inputs
    given: Inputs
    inputs: tuple[tuple[str, Guarded, torch.Tensor], ...]
    """Name, what the kernel gets, and what it must still be afterwards."""
    outputs: dict[str, Guarded]
    shapes: Shapes
    call: Callable[[], Any]

    def refill(self) -> None:
        for _, copy, original in self.inputs:
            operands.fill(copy.tensor, original)
        for buffer in self.outputs.values():
            buffer.poison()

    def made(self, returned: Any) -> Tensors:
        """The outputs of a call. Raises KernelCallError where they are not what outputs() says."""
        judge, outs = self.subject.judge, {name: one.tensor for name, one in self.outputs.items()}
        try:  # `call` is the commit's own, as the kernel is
            made = operands.results(self.subject.bound, returned, self.given, outs, tuple(judge.in_place))
        except Exception as error:
            self.agrees()
            raise KernelCallError(first_line(loading.error_message(error))) from None
        for name, tensor in made.items():
            if (tuple(tensor.shape), tensor.dtype) != self.shapes[name]:
                self.agrees()
                returned = f"{_kind(tensor.shape, tensor.dtype)} for {name}"
                said = _kind(*self.shapes[name])
                raise KernelCallError(f"the {self.subject.called} returned {returned}; outputs() says {said}")
        return made

    def agrees(self) -> None:
        """Raises UsageError where outputs() of the card says otherwise than its oracle(), so that no kernel fits."""
        for name, tensor in self.right().items():
            if tuple(tensor.shape) != (said := self.shapes[name][0]):
                raise UsageError(f"oracle() gives {list(tensor.shape)} for {name}; outputs() says {list(said)}")

    def right(self) -> Tensors:
        return compare.expected(self.subject.judge, self.draw.case, self.originals, tuple(self.shapes))

    def compared(self, made: Tensors, right: Tensors) -> Comparison:
        return compare.outputs(self.subject.judge, self.draw.case, made, right, lambda: self.originals)


@dataclass(frozen=True)
class KernelCall:
    comparison: Comparison
    by_card: bool
    """Whether the card compares by itself."""
    right: Tensors
    untouched: dict[str, torch.Tensor]
    """By output: where it still holds the poison. Empty where the kernel makes its outputs itself."""
    nonfinite: dict[str, torch.Tensor]
    """By output: NaN or Inf where the oracle has none."""
    trespass: str | None


def prepared(
    subject: Subject,
    draw: Draw,
    which: int = 0,
    places: Layouts = lambda _, __: None,
    originals: Inputs | None = None,
) -> ReadyCall:
    """A call on copies of `originals`, or of inputs that are drawn now. `which`: of the two patterns for outputs."""
    judge, bound, case = subject.judge, subject.bound, draw.case
    if originals is None:
        originals = operands.inputs(judge, case, draw)
    guards: list[tuple[str, Guarded, torch.Tensor]] = []
    names = iter([name for name, _ in operands.tensors(originals)])
    copies: dict[int, torch.Tensor] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        name = next(names)
        if id(tensor) not in copies:
            place = places(name, tensor) or MemoryLayout(tensor.stride())
            copy = guarded(tensor.shape, tensor.dtype, subject.device, 0, place)
            operands.fill(copy.tensor, tensor)
            guards.append((name, copy, tensor))
            copies[id(tensor)] = copy.tensor
        return copies[id(tensor)]

    given = operands.changed(originals, copied)
    shapes = operands.output_shapes(judge, case, originals)
    outputs = {
        name: guarded(shape, dtype, subject.device, which, places(name, torch.empty(shape, device="meta")))
        for name, (shape, dtype) in shapes.items()
        if name not in judge.in_place
    }
    with calling(subject):
        call = bound.prepared(case, given, {name: buffer.tensor for name, buffer in outputs.items()})
    return ReadyCall(subject, draw, originals, given, tuple(guards), outputs, shapes, call)


def moved(ready: ReadyCall) -> ReadyCall:
    """The same call with its first tensor where it is and the other inputs elsewhere, as caching allocators have it.
    Where those were, there is poison."""
    kept, *others = ready.inputs
    elsewhere: dict[int, torch.Tensor] = {}
    inputs = [kept]
    for name, copy, original in others:
        new = guarded(original.shape, original.dtype, ready.subject.device, 0, MemoryLayout(copy.tensor.stride()))
        elsewhere[id(copy.tensor)] = new.tensor
        inputs.append((name, new, original))
        copy.poison()
    given = operands.changed(ready.given, lambda one: elsewhere.get(id(one), one))
    outs = {name: one.tensor for name, one in ready.outputs.items()}
    with calling(ready.subject):
        call = ready.subject.bound.prepared(ready.draw.case, given, outs)
    made = replace(ready, given=given, inputs=tuple(inputs), call=call)
    made.refill()
    return made


def called(ready: ReadyCall) -> Tensors:
    """The outputs of one call. Raises KernelCallError, also for an error that a GPU tells of later."""
    with calling(ready.subject):
        returned = ready.call()
        synchronize(ready.subject.device)
    return ready.made(returned)


@contextmanager
def calling(subject: Subject) -> Iterator[None]:
    """An error inside is the kernel's."""
    try:
        yield
    except Exception as error:
        why = first_line(loading.error_message(error))
        raise KernelCallError(f"the {subject.called} raised an error: {why}") from None


def run(ready: ReadyCall) -> KernelCall:
    judge = ready.subject.judge
    made, right = called(ready), ready.right()
    outputs = {} if ready.subject.bound.returns(tuple(ready.outputs)) else ready.outputs
    return KernelCall(
        comparison=ready.compared(made, right),
        by_card=not compare.by_tolerance(judge),
        right=right,
        untouched={name: buffer.untouched() for name, buffer in outputs.items()},
        nonfinite={
            name: compare.nonfinite(tensor, right[name]) for name, tensor in made.items() if tensor.is_floating_point()
        },
        trespass=trespass(ready, outputs),
    )


def trespass(ready: ReadyCall, outputs: dict[str, Guarded]) -> str | None:
    """What was written that is no output: "the kernel wrote to its input x"."""
    for name, buffer in outputs.items():
        if buffer.guards_changed():
            return f"the kernel wrote to memory outside the output {name}"
    for name, copy, original in ready.inputs:
        if copy.guards_changed():
            return f"the kernel wrote to memory outside its input {name}"
        if name not in ready.subject.judge.in_place and not torch.equal(bits(copy.tensor), bits(original)):
            return f"the kernel wrote to its input {name}"
    return None


def fault(runs: Sequence[KernelCall]) -> str | None:
    """What is wrong with calls on the same case, the most telling first."""
    for name in runs[0].untouched:
        unwritten = torch.stack([one.untouched[name] for one in runs]).all(dim=0)
        if bool(unwritten.any()) and any(_wrong_there(one, name, unwritten) for one in runs):
            return f"{_elements(name, unwritten)} never written"
    for one in runs:
        for name, mask in one.nonfinite.items():
            if not one.comparison.passed and bool(mask.any()) and _wrong_there(one, name, mask):
                return f"{_elements(name, mask)} NaN or Inf"
        if one.trespass:
            return one.trespass
    return wrong(worst(one.comparison for one in runs), runs[0].right)


def _wrong_there(one: KernelCall, name: str, mask: torch.Tensor) -> bool:
    """Whether elements of an output that are unwritten, NaN or Inf are what is wrong. A card that compares by itself
    may look past them: it passes, or finds another element wrong."""
    found = one.comparison
    if not one.by_card:
        return True
    return not found.passed and found.output == name and (len(found.worst) != mask.dim() or bool(mask[found.worst]))


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    return max(comparisons, key=lambda one: (not one.passed, one.error_ratio or 0.0))


def wrong(found: Comparison, right: Tensors) -> str | None:
    if found.passed:
        return None
    where = f"{compare.place(found.output, found.worst)} of shape {list(right[found.output].shape)}"
    if found.oracle is not None:
        return f"finite at {where}, where the oracle has {found.oracle:g}"
    if found.max_abs_error is None or found.error_ratio is None:
        return f"wrong at {where}"
    return f"error {found.max_abs_error:.3g}, at {where} {found.error_ratio:.3g} times what is allowed"


def _kind(shape: Sequence[int], dtype: torch.dtype) -> str:
    return f"{operands.NAMES.get(dtype, dtype)} {list(shape)}"


def _elements(name: str, mask: torch.Tensor) -> str:
    """Such as "64 of 512 elements, the first at out[0,1,512,0], are"."""
    count, where = int(mask.sum()), compare.place(name, compare.first(mask))
    return f"the element {where} is" if count == 1 else f"{count} of {mask.numel()} elements, the first at {where}, are"
