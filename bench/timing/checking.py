"""Holds the outputs of timed calls against their references: whole, where there are references for all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import compare
from kernelgate.bench.kernel.card import Kernel
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.timing import arena as memory
from kernelgate.bench.timing import device
from kernelgate.bench.timing.arena import Arena
from kernelgate.bench.timing.pool import Pool, seen_by_oracle
from kernelgate.bench.timing.protocol import Place
from kernelgate.bench.timing.references import References


@dataclass(frozen=True)
class CallError:
    """How far one call's outputs lie from what is right."""

    failed: bool
    maximum: float | None
    """None where an output is not finite."""
    mean: float | None = None


@dataclass
class CallTally:
    """What is known of one side's calls."""

    made: int = 0
    compared: int = 0
    failed: int = 0
    maxima: list[float | None] = field(default_factory=list)
    means: list[float] = field(default_factory=list)

    def add(self, error: CallError) -> None:
        self.compared += 1
        self.failed += error.failed
        self.maxima.append(error.maximum)
        if error.mean is not None:
            self.means.append(error.mean)

    def calls(self, repeated: int) -> record.Calls:
        return record.Calls(made=self.made, compared=self.compared, failed=self.failed, repeated=repeated)

    def errors(self) -> record.OutputErrors:
        mean = sum(self.means) / len(self.means) if self.means else None
        return record.OutputErrors(maximum=compare.largest(self.maxima), mean=mean)


@dataclass(frozen=True)
class Right:
    """The references for one call."""

    entries: torch.Tensor | None
    """Which of the call's entries they are of; None where of all."""
    values: Tensors


def right_of(pool: Pool, references: References, window: int) -> Right:
    """The references for a call on a window that has some (`comparable`)."""
    size = pool.shape.size
    if size is None:
        return Right(None, references.sets[window])
    start = size.start(window)
    if references.complete:
        return Right(None, {name: value[start : start + size.length] for name, value in references.values.items()})
    (low,), (high,) = (ends.tolist() for ends in _known(references, [start], size.length))
    values = {name: value[low:high] for name, value in references.values.items()}
    return Right(references.entries[low:high] - start, values)


def comparable(pool: Pool, references: References, windows: Sequence[int]) -> list[bool]:
    """Of calls on these windows, which have a reference."""
    size = pool.shape.size
    if references.complete or not windows:
        return [True] * len(windows)
    if size is None:
        return [bool(references.sets[window]) for window in windows]
    first, end = _known(references, [size.start(window) for window in windows], size.length)
    found: list[bool] = (end > first).tolist()
    return found


def _known(references: References, starts: Sequence[int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of windows that begin at `starts`, the first reference and the one after the last."""
    at = torch.tensor(starts, device=references.entries.device)
    return torch.searchsorted(references.entries, at), torch.searchsorted(references.entries, at + length)


@dataclass(frozen=True)
class ComparedCall:
    """A call whose outputs are compared."""

    window: int
    slot: int


def compare_calls(
    pool: Pool, references: References, outputs: Outputs, calls: Sequence[ComparedCall]
) -> list[CallError]:
    """The outputs of each call with its references, which it has."""
    if calls and _on_device(pool, references):
        return _by_device(pool, references, outputs, calls)
    return [
        _generic(pool, references, outputs.of(call.slot), right_of(pool, references, call.window)) for call in calls
    ]


@dataclass(frozen=True)
class Outputs:
    """Where the outputs of calls lie."""

    arena: Arena
    places: Mapping[str, Place]

    def of(self, slot: int) -> Tensors:
        return memory.outputs(self.arena, self.places, slot)


def _by_device(pool: Pool, references: References, outputs: Outputs, calls: Sequence[ComparedCall]) -> list[CallError]:
    """One launch for each output of all calls: what a launch costs the host is more than what it costs the device."""
    found: list[list[device.DeviceComparison]] = []
    for name, out in pool.outs.items():
        pairs, count = _pairs(pool, references, outputs, name, calls)
        results = device.new_results(len(calls), pool.draw.device)
        at = torch.tensor(pairs, dtype=torch.int64).to(pool.draw.device)
        device.compare(at, count, out.dtype, references.limits[name], results)
        found.append(device.read_results(results))
    return [_worst(of_call) for of_call in zip(*found, strict=True)]


def _pairs(
    pool: Pool, references: References, outputs: Outputs, name: str, calls: Sequence[ComparedCall]
) -> tuple[list[tuple[int, int]], int]:
    """The addresses of each call's output and of what is right, and how many elements they have."""
    place, size = outputs.places[name], pool.shape.size
    first = outputs.arena.address + place.offset
    if size is None:
        addresses = [references.sets[call.window][name].data_ptr() for call in calls]
    else:
        values = references.values[name]
        row = values.shape[1] * values.element_size()
        addresses = [values.data_ptr() + size.start(call.window) * row for call in calls]
    outs = [first + call.slot * place.step for call in calls]
    return list(zip(outs, addresses, strict=True)), pool.outs[name].numel()


def _on_device(pool: Pool, references: References) -> bool:
    """Whether every output has references whole, and all are as the device's own comparison takes them."""
    simple = all(device.supports(out.dtype) and out.is_contiguous() for out in pool.outs.values())
    whole = references.complete and references.finite and _elementwise(pool)
    return pool.draw.device == "cuda" and simple and whole


def _elementwise(pool: Pool) -> bool:
    """Whether the card leaves the comparison to its tolerance."""
    return type(pool.kernel).compare is Kernel.compare


def _rows(pool: Pool, out: torch.Tensor, right: Right) -> torch.Tensor:
    """The elements of an output that there are references for."""
    if right.entries is None:
        return out.contiguous()
    return out.reshape(pool.shape.length, -1).index_select(0, right.entries)


def _worst(found: Sequence[device.DeviceComparison]) -> CallError:
    finite = all(one.nonfinite == 0 for one in found)
    if not all(one.compared for one in found):
        raise KernelgateError("a comparison on the device did not run")
    maximum = max(one.max_abs for one in found) if finite else None
    mean = sum(one.mean_abs for one in found) / len(found) if finite else None
    return CallError(any(one.wrong for one in found), maximum, mean)


def _generic(pool: Pool, references: References, outs: Tensors, right: Right) -> CallError:
    """By torch: on a CPU, for integers, for a card's own comparison, and where references are not finite."""
    if references.finite and _elementwise(pool) and all(map(_simple, pool.outs.values())):
        return _by_torch(pool, references, outs, right)
    made = outs
    if right.entries is not None:
        rows = {name: _rows(pool, out, right) for name, out in outs.items()}
        made = {name: seen_by_oracle(pool.kernel, name, row, outs[name]) for name, row in rows.items()}
    wanted = {name: right.values[name].reshape(one.shape) for name, one in made.items()}
    found = compare.outputs(pool.kernel, pool.case, made, wanted)
    return CallError(not found.passed, found.max_abs_error)


def _simple(out: torch.Tensor) -> bool:
    """Of floats, and not empty, so that there is a largest error."""
    return out.dtype in (torch.float16, torch.bfloat16, torch.float32) and out.numel() > 0


def _by_torch(pool: Pool, references: References, outs: Tensors, right: Right) -> CallError:
    failed, maxima, means = False, [], []
    for name, out in outs.items():
        wanted = right.values[name].reshape(-1)
        error = (_rows(pool, out, right).reshape(-1).float() - wanted).abs_()
        atol, rtol = references.limits[name]
        highest = float(error.max())
        finite = highest < float("inf")  # NaN is not, either
        maxima.append(highest if finite else None)
        if finite:
            means.append(float(error.mean()))
        failed |= not finite or (highest > atol and not bool((error <= wanted.abs() * rtol + atol).all()))
    mean = sum(means) / len(means) if means and len(means) == len(maxima) else None
    return CallError(failed, compare.largest(maxima), mean)
