"""What is right for the inputs of a pool, computed in float32 and proven in float64; and whether outputs are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import compare, operands
from kernelgate.bench.kernel.card import Kernel
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.timing import arena as memory
from kernelgate.bench.timing import device
from kernelgate.bench.timing.arena import Arena
from kernelgate.bench.timing.pool import Pool, seen_by_oracle
from kernelgate.bench.timing.protocol import Place

REFERENCE_S = {"cuda": 0.06, "cpu": 0.4}
"""Device time that computing references of a case may take in one process, about a quarter of what is timed there.
Where the oracle is slower, only a part of the entries has references, and outputs are compared in that part."""
CHUNK_ELEMENTS = 2**24
"""Elements of output for which the oracle is asked at once, to bound its memory."""
SCALE_ELEMENTS = 2**20
"""Elements of which the size of an output is taken, for its tolerance."""
PROVEN_ELEMENTS = 2**18
"""Elements of the references that are held against the oracle in float64."""
PROVEN_SHARE = 0.25
"""How much of the tolerance a reference in float32 may be off."""
DRAWS_OF_WITNESS = 6
"""The witness draws often and compares little of each output: whoever skips work skips it in the comparison, too."""


@dataclass(frozen=True)
class Way:
    """How references are computed."""

    wide: bool
    """In float64."""
    entries: int
    """For so many there is time."""


@dataclass
class References:
    """What is right, for some or all entries of the pool, in their order; of a pool of sets, for each set whole."""

    entries: torch.Tensor
    """Which entries have references, sorted; empty where sets have them."""
    values: Tensors
    """By output: a row for each of them."""
    limits: dict[str, tuple[float, float]]
    """atol, with its scale, and rtol of each output."""
    finite: bool
    complete: bool
    """Whether every entry has a reference."""
    sets: list[Tensors] = field(default_factory=list)

    def follow(self, order: torch.Tensor) -> None:
        """Entry order[i] of the pool, or its set, has come to place i."""
        if self.sets:
            self.sets[:] = [self.sets[old] for old in order.tolist()]
            return
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        self.entries, sorting = place[self.entries].sort()
        self.values = {name: value[sorting] for name, value in self.values.items()}


class Oracle:
    """Asks a card's oracle about a pool, as often as that is drawn anew."""

    def __init__(self, pool: Pool, fresh: bool, way: Way | None = None) -> None:
        self.pool = pool
        self.way = way
        """Found once for a case: how precise the oracle must be does not change from process to process."""
        self._budget_s = REFERENCE_S[pool.draw.device] / (DRAWS_OF_WITNESS if fresh else 1)

    def compute(self, arena: Arena) -> References:
        """Computed in float32 and proven in float64 on some of the entries; in float64 where float32 is too coarse."""
        if self.pool.shape.size is None:
            return self._references_of_sets(arena)
        size = self.pool.shape.size
        most = max(out.numel() for out in self.pool.outs.values())
        chunk = max(1, CHUNK_ELEMENTS * size.length // max(1, most))
        order = torch.randperm(size.entries, generator=self.pool.draw.generator, device=self.pool.draw.device)
        if self.way is None:
            # Of small inputs and outputs many entries are tried together, since a call alone takes some time.
            tensors = operands.tensors(self.pool.first)
            inputs = [tensor.numel() for name, tensor in tensors if name in self.pool.kernel.independent]
            elements = max(1, max(most, *inputs) // size.length)
            few = max(1, min(chunk, size.length) // 8, min(chunk, PROVEN_ELEMENTS // elements))
            self.way = self._chosen_way(arena, order[:few].sort().values)
        wide, count = self.way.wide, min(self.way.entries, size.entries)
        entries = order[:count].sort().values
        made = [self._right(arena, entries[at : at + chunk], wide) for at in range(0, count, chunk)]
        values = {name: torch.cat([one[name] for one in made]) for name in self.pool.outs}
        limits = {}
        for name, value in values.items():  # of elements from everywhere, enough to say how large they are
            flat = value.reshape(-1)
            limits[name] = self._limits(name, flat[:: max(1, flat.numel() // SCALE_ELEMENTS)])
        return References(entries, values, limits, _finite(values), count == size.entries)

    def _chosen_way(self, arena: Arena, few: torch.Tensor) -> Way:
        """How precise the oracle must be, and for how many entries there is time."""
        wide = not self._float32_will_do(arena, few)
        self._right(arena, few, wide)
        synchronize(self.pool.draw.device)
        begun = time.perf_counter()
        self._right(arena, few, wide)
        synchronize(self.pool.draw.device)
        cost_s = (time.perf_counter() - begun) / len(few)
        return Way(wide, max(int(self._budget_s / max(cost_s, 1e-12)), 2 * len(few)))

    def _references_of_sets(self, arena: Arena) -> References:
        """Of each set: where the oracle takes too long, only the first two have any."""
        sets: list[Tensors] = []
        begun = time.perf_counter()
        for number in range(self.pool.shape.windows):
            given = self.pool.set_of(arena, number)
            right = compare.expected(self.pool.kernel, self.pool.draw.case, given, tuple(self.pool.outs))
            sets.append({name: _narrow(value, self.pool.outs[name].dtype) for name, value in right.items()})
            synchronize(self.pool.draw.device)
            if number and time.perf_counter() - begun > self._budget_s:
                break
        limits = {name: self._limits(name, sets[0][name]) for name in self.pool.outs}
        none = torch.empty(0, dtype=torch.long, device=self.pool.draw.device)
        finite = all(map(_finite, sets))
        sets += [{}] * (self.pool.shape.windows - len(sets))
        return References(none, {}, limits, finite, all(sets), sets)

    def _right(self, arena: Arena, entries: torch.Tensor, wide: bool) -> Tensors:
        given = self.pool.part_of(arena, entries)
        exact = (
            operands.exact(given)
            if wide
            else operands.changed(given, lambda one: one.float() if one.is_floating_point() else one)
        )
        made = operands.named(self.pool.kernel.oracle(self.pool.draw.case, **exact), tuple(self.pool.outs), "oracle()")
        for name, value in made.items():
            wanted = len(entries) * self.pool.outs[name].numel() // self.pool.shape.length
            if value.numel() != wanted:
                text = f"oracle() gave {value.numel()} elements of {name} for {len(entries)} entries, not {wanted}"
                raise UsageError(text)
        return {
            name: _narrow(value, self.pool.outs[name].dtype).reshape(len(entries), -1) for name, value in made.items()
        }

    def _float32_will_do(self, arena: Arena, entries: torch.Tensor) -> bool:
        """Whether the oracle in float32 is near the one in float64, by the case's own tolerance."""
        if any(out.dtype == torch.float64 for out in self.pool.outs.values()):
            return False
        most = max(
            1, PROVEN_ELEMENTS * self.pool.shape.length // max(1, max(out.numel() for out in self.pool.outs.values()))
        )
        few = entries[:most]
        try:
            near = self._right(arena, few, wide=False)
        except Exception:  # an oracle that takes float64 alone
            return False
        exact = self._right(arena, few, wide=True)
        for name, value in exact.items():
            atol, rtol = self._limits(name, value)
            wide, made = value.double(), near[name].double()
            limit = PROVEN_SHARE * (atol + rtol * wide.abs())
            if not bool(((made - wide).abs() <= limit).logical_or(made.isnan() & wide.isnan()).all()):
                return False
        return True

    def _limits(self, name: str, value: torch.Tensor) -> tuple[float, float]:
        return compare.limits(self.pool.kernel, self.pool.draw.case, self.pool.outs[name].dtype, value)


def _narrow(right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A reference as it is kept: floats in float32, whose rounding is far below any tolerance; of float64 as it is."""
    return right.float() if right.is_floating_point() and dtype != torch.float64 else right


def _finite(values: Tensors) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in values.values() if value.is_floating_point())


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


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
    found = compare.outputs(pool.kernel, pool.draw.case, made, wanted)
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
