"""What is prepared to time one case: sets of inputs, outputs, the calls of each side, and what is checked of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle

import torch

from kernelgate.bench import record
from kernelgate.bench.kernel import compare, operands
from kernelgate.bench.kernel.calls import Bound
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.compare import Comparison, largest
from kernelgate.bench.kernel.draw import Draw
from kernelgate.bench.kernel.operands import Inputs, Parts, Tensors
from kernelgate.bench.timing.protocol import AskedCase, TimingRequest
from kernelgate.bench.timing.timer import Call, Timer

CHECKS = 3
"""Rounds of each side whose output is compared with the oracle."""
CHECKED_ELEMENTS = 2**19
"""Elements of an output that are compared: more float64 work between rounds would heat the device and change its
clocks. Outputs that cannot be divided are compared whole."""
MAX_SETS = 1024


@dataclass
class SharedData:
    """Inputs and outputs of one case, shared by all sides."""

    kernel: Kernel
    draw: Draw
    sets: list[Inputs]
    outs: Tensors
    """Of each output; where the kernel works in place, none."""
    fresh: list[Tensors]
    """Of a kernel that works in place, what each set's tensors were before a call."""

    def refill(self) -> None:
        """New values in the same memory."""
        for number, given in enumerate(self.sets):
            drawn = operands.inputs(self.kernel, self.draw.case, self.draw)
            held = (tensor for _, tensor in operands.tensors(given))
            self.sets[number] = operands.changed(drawn, lambda new: operands.fill(next(held), new))  # noqa: B023
            for name in self.kernel.in_place:
                self.fresh[number][name].copy_(self.sets[number][name])

    def restore(self, numbers: list[int]) -> None:
        """What calls in place have overwritten, for the next ones."""
        for number in numbers:
            for name, tensor in self.fresh[number].items():
                self.sets[number][name].copy_(tensor)


@dataclass
class Checks:
    """Copies of outputs of timed calls, and what comparing them has shown so far."""

    rounds: dict[record.Side, frozenset[int]]
    parts: Parts | None
    entries: torch.Tensor
    """Which of the entries along the independent axes are compared, drawn at random: a kernel cannot know them."""
    copies: dict[tuple[record.Side, int], Tensors] = field(default_factory=dict)
    """Of this turn, by side and round; emptied after it."""
    sets: dict[tuple[record.Side, int], int] = field(default_factory=dict)
    """Which input set such a copy belongs to."""
    results: dict[record.Side, list[Comparison]] = field(default_factory=dict)

    def part(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of what is compared of a tensor."""
        return tensor.clone() if self.parts is None else self.parts.take(name, tensor, self.entries)

    def calls(self) -> dict[record.Side, record.Calls]:
        return {
            side: record.Calls(compared=len(results), failed=sum(not result.passed for result in results))
            for side, results in self.results.items()
        }

    def errors(self) -> dict[record.Side, record.OutputErrors]:
        return {
            side: record.OutputErrors(maximum=largest([result.max_abs_error for result in results]))
            for side, results in self.results.items()
        }


@dataclass(frozen=True)
class LoadedKernels:
    """One card's kernels in this process."""

    judge: Kernel
    bound: dict[record.Side, Bound]


@dataclass(frozen=True)
class Bench:
    asked: AskedCase
    timer: Timer
    data: SharedData
    bound: dict[record.Side, Bound]
    sides: dict[record.Side, Callable[[int], Call]]
    """From the number of an input set to the call on it; of the reference, too."""
    checks: Checks
    sets: Iterator[int]
    """The number of the set for the next call, on and on."""
    rng: random.Random
    notes: tuple[record.Note, ...] = ()
    last_set: dict[record.Side, int] = field(default_factory=dict)
    """The set that each side's last call was on."""

    @property
    def case(self) -> CaseAxes:
        return self.data.draw.case


def prepare(asked: AskedCase, loaded: LoadedKernels, timer: Timer, request: TimingRequest) -> Bench:
    seed = f"{request.seed}/{asked.id}"
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    data = shared_data(
        loaded.judge, Draw(CaseAxes(asked.axes), request.device, rng.getrandbits(63)), request.cache_bytes
    )
    sides: dict[record.Side, Callable[[int], Call]] = {
        side: partial(_kernel_call, bound, data) for side, bound in loaded.bound.items()
    }
    reference = partial(_reference_call, data)
    missing = without_reference(reference, data, timer)
    if missing is None:
        sides["reference"] = reference
    checked = {side: frozenset(rng.sample(range(request.rounds), min(CHECKS, request.rounds))) for side in loaded.bound}
    checks = _checks(data, checked, rng, request.device)
    notes = _said(loaded, data, request.card)
    if missing is not None:
        notes = (*notes, record.Note(code="no_reference", text=f"{asked.id}: the reference is not timed: {missing}"))
    return Bench(asked, timer, data, loaded.bound, sides, checks, cycle(range(len(data.sets))), rng, notes)


def shared_data(kernel: Kernel, draw: Draw, cache_bytes: int) -> SharedData:
    first = operands.inputs(kernel, draw.case, draw)
    size = sum(tensor.numel() * tensor.element_size() for _, tensor in operands.tensors(first))
    others = (operands.inputs(kernel, draw.case, draw) for _ in range(set_count(size, cache_bytes) - 1))
    sets = [first, *others]
    shapes = operands.output_shapes(kernel, draw.case, first)
    outs = {
        name: torch.empty(shape, dtype=dtype, device=draw.device)
        for name, (shape, dtype) in shapes.items()
        if name not in kernel.in_place
    }
    fresh = [{name: given[name].clone() for name in kernel.in_place} for given in sets]
    return SharedData(kernel, draw, sets, outs, fresh)


def set_count(set_bytes: int, cache_bytes: int) -> int:
    """So many input sets that those which are read between two uses of one fill the cache.

    Bounded, because each set costs the host memory too: cases of a few rows in all stay in the cache.
    """
    return min(MAX_SETS, max(2, cache_bytes // max(1, set_bytes) + 2))


def _checks(data: SharedData, rounds: dict[record.Side, frozenset[int]], rng: random.Random, device: str) -> Checks:
    """Divides the outputs where the card says how."""
    given = data.sets[0]
    outs = data.outs or {name: given[name] for name in data.kernel.in_place}
    shapes = {name: tuple(tensor.shape) for name, tensor in [*operands.tensors(given), *outs.items()]}
    parts = operands.parts(data.kernel, shapes)
    if parts is None:
        return Checks(rounds, None, torch.empty(0))
    largest_output = max(tensor.numel() for tensor in outs.values())
    count = min(parts.count, max(1, CHECKED_ELEMENTS * parts.count // max(1, largest_output)))
    return Checks(rounds, parts, torch.tensor(sorted(rng.sample(range(parts.count), count)), device=device))


def _kernel_call(bound: Bound, data: SharedData, number: int) -> Call:
    return bound.prepared(data.draw.case, data.sets[number], data.outs)


def _reference_call(data: SharedData, number: int) -> Call:
    """It allocates its outputs: a reference has none to write into."""
    return partial(data.kernel.reference, data.draw.case, **data.sets[number])


def without_reference(call: Callable[[int], Call], data: SharedData, timer: Timer) -> str | None:
    """Why the reference cannot be timed here; None where it can."""
    before = operands.changed(data.sets[0], torch.Tensor.clone)
    try:
        timer.run(call(0))
    except Exception as error:
        return str(error).strip().split("\n")[0] or type(error).__name__
    for (name, tensor), (_, old) in zip(operands.tensors(data.sets[0]), operands.tensors(before), strict=True):
        bits = compare.bits_dtype(tensor.dtype)
        if not torch.equal(tensor.view(bits), old.view(bits)):
            operands.fill(tensor, old)
            return f"it changes its input {name}, which the kernels read, too"
    return None


def _said(loaded: LoadedKernels, data: SharedData, card: str) -> tuple[record.Note, ...]:
    """What a reader must know of how these calls work."""
    if not any(bound.returns(tuple(data.outs)) for bound in loaded.bound.values() if data.outs):
        return ()
    text = (
        f"calls of {card} return new tensors: each allocates its output, so that the sides write to different "
        "addresses and unwritten elements cannot be told apart"
    )
    return (record.Note(code="returns_new_tensors", text=text),)
