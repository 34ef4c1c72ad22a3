"""Runs fuzz trials in a process of its own. Started and read by check/fuzz.py.

Each trial runs the kernel twice, on fresh inputs, into outputs that were filled with one pattern the first time and
another one the second: an element that still holds both was never written; where the dtype has NaNs, the first pattern
is one, so that another NaN is the kernel's own. Outputs lie between guards that must stay as they were, inputs between
NaNs that a read past their ends would bring into an output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelgate.bench.check.fuzz import FuzzRequest, Loaded, TrialOutcome, Unloadable
from kernelgate.bench.errors import KernelgateError, first_line
from kernelgate.bench.kernel import calls, compare, loading, operands, own_words
from kernelgate.bench.kernel.calls import Bound
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.draw import Draw
from kernelgate.bench.kernel.fuzz_list import Trial
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.kernel.package import autotune
from kernelgate.bench.kernel.package import cache as package_cache
from kernelgate.bench.system.worker_process import Parent

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
class Subject:
    """What is tried: the judging card and the head's kernel."""

    judge: Kernel
    bound: Bound
    device: str


class KernelCallError(Exception):
    """The kernel's own error, in words; any other is the card's."""


@dataclass(frozen=True)
class Guarded:
    """A tensor between guards."""

    buffer: torch.Tensor
    """All of it, as integers of the dtype's width."""
    tensor: torch.Tensor
    pattern: int

    def untouched(self) -> torch.Tensor:
        """Where the tensor still holds the pattern."""
        return _bits(self.tensor) == self.pattern

    def guards_changed(self) -> bool:
        """Whether something wrote before or after the tensor."""
        guard = GUARD_BYTES // self.buffer.element_size()
        edges = torch.cat((self.buffer[:guard], self.buffer[-guard:]))
        return bool((edges != self.pattern).any())


@dataclass(frozen=True)
class KernelCall:
    """One call of the kernel and what it left behind."""

    comparison: Comparison
    shapes: dict[str, tuple[int, ...]]
    untouched: dict[str, torch.Tensor] = field(default_factory=dict)
    """By output: where it still holds the poison. Empty where the kernel makes its outputs itself."""
    nonfinite: dict[str, torch.Tensor] = field(default_factory=dict)
    """By output: NaN or Inf where the oracle has none."""
    trespass: str | None = None
    """What the kernel wrote to that was not its output."""


def examine(subject: Subject, trial: Trial) -> TrialOutcome:
    """Runs a trial and says what is wrong, the most telling fault first."""
    draw = Draw(CaseAxes(trial.axes), subject.device, trial.seed, trial.distribution)
    runs = [_run(subject, draw, which) for which in (0, 1)]
    errors = [run.comparison.max_abs_error for run in runs]
    ratios = [run.comparison.error_ratio for run in runs]
    return TrialOutcome(fault=_fault(runs), max_abs_error=compare.largest(errors), error_ratio=compare.largest(ratios))


def _run(subject: Subject, draw: Draw, which: int) -> KernelCall:
    judge, bound, case = subject.judge, subject.bound, draw.case
    originals = operands.inputs(judge, case, draw)
    guards: list[tuple[str, Guarded, torch.Tensor]] = []

    def guarded_copy(tensor: torch.Tensor) -> torch.Tensor:
        copy = guarded(tensor.shape, tensor.dtype, subject.device, 0, tensor.stride())
        operands.fill(copy.tensor, tensor)
        guards.append((names[len(guards)], copy, tensor))
        return copy.tensor

    names = [name for name, _ in operands.tensors(originals)]
    given = operands.changed(originals, guarded_copy)
    shapes = operands.output_shapes(judge, case, originals)
    buffers = {
        name: guarded(shape, dtype, subject.device, which)
        for name, (shape, dtype) in shapes.items()
        if name not in judge.in_place
    }
    outs = {name: buffer.tensor for name, buffer in buffers.items()}
    returned = _called(bound.prepared(case, given, outs), subject.device)
    made = calls.results(bound, returned, given, outs or {name: given[name] for name in shapes}, tuple(judge.in_place))
    for name, tensor in made.items():
        if (tuple(tensor.shape), tensor.dtype) != shapes[name]:
            raise KernelCallError(
                f"the kernel returned {_kind(tensor.shape, tensor.dtype)} for {name}; "
                f"outputs() says {_kind(*shapes[name])}"
            )
    right = compare.expected(judge, case, originals, tuple(shapes))
    kept = judge.in_place or bound.returns(tuple(shapes))
    return KernelCall(
        comparison=compare.outputs(judge, case, made, right),
        shapes={name: tuple(tensor.shape) for name, tensor in made.items()},
        untouched={} if kept else {name: buffer.untouched() for name, buffer in buffers.items()},
        nonfinite=_nonfinite(made, right),
        trespass=_trespass({} if kept else buffers, guards, tuple(judge.in_place)),
    )


def _called(call: Callable[[], Any], device: str) -> Any:
    """What the call returns. Raises KernelCallError, also for an error that a GPU tells of later."""
    try:
        returned = call()
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:
        raise KernelCallError(f"the kernel raised an error: {first_line(own_words.told(error))}") from None
    return returned


def _kind(shape: Sequence[int], dtype: torch.dtype) -> str:
    return f"{compare.NAMES.get(dtype, dtype)} {list(shape)}"


def _trespass(
    buffers: dict[str, Guarded], guards: list[tuple[str, Guarded, torch.Tensor]], in_place: tuple[str, ...]
) -> str | None:
    for name, buffer in buffers.items():
        if buffer.guards_changed():
            return f"memory outside the output {name}"
    for name, copy, original in guards:
        if copy.guards_changed():
            return f"memory outside its input {name}"
        if name not in in_place and not torch.equal(_bits(copy.tensor), _bits(original)):
            return f"its input {name}"
    return None


def guarded(
    shape: tuple[int, ...], dtype: torch.dtype, device: str, which: int, strides: tuple[int, ...] | None = None
) -> Guarded:
    """A tensor filled with one of the two patterns, between guards that hold it, too."""
    pattern = PATTERNS[dtype][which]
    bits = compare.bits_dtype(dtype)
    guard = GUARD_BYTES // bits.itemsize
    lengths = strides if strides is not None else torch.empty(shape, device="meta").stride()
    empty = 0 in shape
    needed = 0 if empty else 1 + sum((size - 1) * step for size, step in zip(shape, lengths, strict=True))
    buffer = torch.full((2 * guard + needed,), pattern, dtype=bits, device=device)
    return Guarded(buffer, buffer.view(dtype)[guard : guard + needed].as_strided(shape, lengths, guard), pattern)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(compare.bits_dtype(tensor.dtype))


def _nonfinite(made: Tensors, right: Tensors) -> dict[str, torch.Tensor]:
    found = {}
    for name, tensor in made.items():
        if tensor.is_floating_point() and tensor.shape == right[name].shape:
            found[name] = compare.nonfinite(tensor, right[name])
    return found


def _fault(runs: list[KernelCall]) -> str | None:
    for name in runs[0].untouched:
        unwritten = runs[0].untouched[name] & runs[1].untouched[name]
        if bool(unwritten.any()):
            return f"{_elements(name, unwritten)} never written"
    for run in runs:
        for name, mask in run.nonfinite.items():
            if not run.comparison.passed and bool(mask.any()):
                return f"{_elements(name, mask)} NaN or Inf"
        if run.trespass:
            return f"the kernel wrote to {run.trespass}"
    worst = max((run.comparison for run in runs), key=lambda one: (not one.passed, one.error_ratio or 0.0))
    if worst.passed:
        return None
    where = f"{compare.place(worst.output, worst.worst)} of shape {list(runs[0].shapes[worst.output])}"
    if worst.max_abs_error is None or worst.error_ratio is None:
        return f"wrong at {where}"
    return f"error {worst.max_abs_error:.3g}, at {where} {worst.error_ratio:.3g} times what is allowed"


def _elements(name: str, mask: torch.Tensor) -> str:
    """Such as "64 of 512 elements, the first at out[0, 1, 512, 0], are"."""
    count = int(mask.sum())
    where = compare.place(name, compare.first(mask))
    if count == 1:
        return f"the element {where} is"
    return f"{count} of {mask.numel()} elements, the first at {where}, are"


def _without_result(fault: str, device: str) -> TrialOutcome:
    return TrialOutcome(fault=fault, max_abs_error=None, error_ratio=None, last=_beyond_use(device))


def _beyond_use(device: str) -> bool:
    """Whether the error was of the kind that a CUDA context does not survive."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def main() -> None:
    parent = Parent()
    request = parent.receive(FuzzRequest)
    with package_cache.shared([request.library.folder]):
        _run_trials(request, parent)


def _run_trials(request: FuzzRequest, parent: Parent) -> None:
    try:
        judge = loading.load(request.card)
        subject = Subject(judge, calls.bind(request.library.read(), judge, "head"), request.device)
    except KernelgateError as error:
        parent.send(Unloadable(why=str(error)))
        return
    parent.send(Loaded())
    for trial in request.trials:
        try:
            with autotune.one_config(trial.id) if "triton" in sys.modules else nullcontext():
                outcome = examine(subject, trial)
        except KernelCallError as error:
            outcome = _without_result(str(error), request.device)
        except Exception as error:
            outcome = _without_result(f"not checked: {loading.mistake_of(request.card, '', error)}", request.device)
        parent.send(outcome)
        if outcome.last:
            return


if __name__ == "__main__":
    main()
