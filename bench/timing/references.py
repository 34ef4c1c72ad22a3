"""What is right for the inputs of a pool, computed in float32 and proven in float64; and whether outputs are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import compare, operands
from kernelgate.bench.kernel.card import asked_for
from kernelgate.bench.kernel.operands import Inputs, Tensors
from kernelgate.bench.timing import device
from kernelgate.bench.timing.pool import Pool, outputs, seen_by_oracle

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
FLOATS = (torch.float16, torch.bfloat16, torch.float32)
DRAWS_OF_WITNESS = 6
"""The witness draws often and compares little of each output: whoever skips work skips it in the comparison, too."""


@dataclass(frozen=True)
class Way:
    wide: bool
    entries: int


@dataclass(frozen=True)
class CallError:
    failed: bool
    maximum: float | None
    mean: float | None = None


@dataclass
class References:
    """What is right, for some or all entries of the pool."""

    pool: Pool
    entries: torch.Tensor
    """Which have references, sorted."""
    values: Tensors
    """Of each output, a row for each of them."""
    limits: dict[str, tuple[float, float]]
    """atol, with its scale, and rtol of each output."""
    set_us: float = 0.0
    """What the oracle takes for a whole set: of one without references it can still be asked after a call."""

    def __post_init__(self) -> None:
        floats = (value for value in self.values.values() if value.is_floating_point())
        self.finite = all(bool(torch.isfinite(value).all()) for value in floats)
        self.complete = len(self.entries) == self.pool.size.entries

    def follow(self, order: torch.Tensor) -> None:
        """Entry order[i] of the pool has come to place i."""
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        self.entries, sorting = place[self.entries].sort()
        self.values = {name: value[sorting] for name, value in self.values.items()}

    def right_of(self, window: int) -> tuple[torch.Tensor | None, Tensors]:
        """And which of the window's entries that is; None where it is all of them."""
        size = self.pool.size
        low = start = size.start(window)
        high = start + size.length
        if not self.complete:
            (low,), (high,) = (ends.tolist() for ends in self._known([start], size.length))
            if self.pool.whole and low == high:
                return None, _right_of_set(self.pool, start)
        entries = None if high - low == size.length else self.entries[low:high] - start
        return entries, {name: value[low:high] for name, value in self.values.items()}

    def comparable(self, windows: Sequence[int]) -> list[bool]:
        size = self.pool.size
        if self.complete or not windows:
            return [True] * len(windows)
        first, end = self._known([size.start(window) for window in windows], size.length)
        return (end > first).tolist()

    def _known(self, starts: Sequence[int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of windows that begin at `starts`, the first reference and the one after the last."""
        at = torch.tensor(starts, device=self.entries.device)
        return torch.searchsorted(self.entries, at), torch.searchsorted(self.entries, at + length)

    def compare(self, calls: Sequence[tuple[int, int]]) -> list[CallError]:
        """The outputs of each call, given as window and slot, with its references, which it has."""
        outs = self.pool.outs.values()
        simple = compare.by_tolerance(self.pool.kernel) and self.finite
        direct = all(out.dtype in device.KERNELS and out.is_contiguous() for out in outs)
        if calls and self.pool.draw.device == "cuda" and direct and self.complete and simple:
            return self._by_device(calls)
        simple = simple and all(out.dtype in FLOATS and out.numel() > 0 for out in outs)
        how = self._by_torch if simple else self._by_card
        return [
            how(window, outputs(self.pool.written, self.pool.outputs, slot), *self.right_of(window))
            for window, slot in calls
        ]

    def _by_device(self, calls: Sequence[tuple[int, int]]) -> list[CallError]:
        """One launch for each output of all calls: what a launch costs the host is more than what it costs the
        device."""
        size, where = self.pool.size, self.pool.draw.device
        found: list[list[device.DeviceComparison]] = []
        for name, out in self.pool.outs.items():
            place = self.pool.outputs[name]
            first = self.pool.written.address + place.offset
            values = self.values[name]
            row = values.shape[1] * values.element_size()
            pairs = [
                (first + slot * place.step, values.data_ptr() + size.start(window) * row) for window, slot in calls
            ]
            results = device.new_results(len(calls), where)
            at = torch.tensor(pairs, dtype=torch.int64).to(where)
            device.compare(at, out.numel(), out.dtype, self.limits[name], results)
            found.append(device.read_results(results))
        return [_worst(of_call) for of_call in zip(*found, strict=True)]

    def _given(self, window: int, entries: torch.Tensor | None) -> Inputs:
        """What the kernel got, of these entries of a window, or of all."""
        size, device = self.pool.size, self.pool.draw.device
        if self.pool.whole:
            return self.pool.set_of(size.start(window))
        local = torch.arange(size.length, device=device) if entries is None else entries
        return self.pool.part_of(size.start(window) + local)

    def _by_card(self, window: int, outs: Tensors, entries: torch.Tensor | None, right: Tensors) -> CallError:
        """By the card's own comparison; of integers, and where references are not finite, too."""
        pool, made = self.pool, outs
        if entries is not None:
            rows = {name: out.reshape(pool.size.length, -1).index_select(0, entries) for name, out in outs.items()}
            made = {name: seen_by_oracle(pool.kernel, name, row, outs[name]) for name, row in rows.items()}
        wanted = {name: right[name].reshape(one.shape) for name, one in made.items()}
        found = compare.outputs(pool.kernel, pool.draw.case, made, wanted, partial(self._given, window, entries))
        return CallError(not found.passed, found.max_abs_error)

    def _by_torch(self, _: int, outs: Tensors, entries: torch.Tensor | None, right: Tensors) -> CallError:
        failed, maxima, means = False, [], []
        for name, out in outs.items():
            wanted = right[name].reshape(-1)
            made = out if entries is None else out.reshape(self.pool.size.length, -1).index_select(0, entries)
            error = (made.reshape(-1).float() - wanted).abs_()
            atol, rtol = self.limits[name]
            highest = float(error.max())
            finite = highest < float("inf")  # NaN is not, either
            maxima.append(highest if finite else None)
            if finite:
                means.append(float(error.mean()))
            failed |= not finite or (highest > atol and not bool((error <= wanted.abs() * rtol + atol).all()))
        mean = sum(means) / len(means) if means and len(means) == len(maxima) else None
        return CallError(failed, compare.largest(maxima), mean)


def _worst(found: Sequence[device.DeviceComparison]) -> CallError:
    finite = all(one.nonfinite == 0 for one in found)
    if not all(one.compared for one in found):
        raise KernelgateError("a comparison on the device did not run")
    maximum = max(one.max_abs for one in found) if finite else None
    mean = sum(one.mean_abs for one in found) / len(found) if finite else None
    return CallError(any(one.wrong for one in found), maximum, mean)


class Oracle:
    """Asks a card's oracle about a pool, as often as that is drawn anew."""

    def __init__(self, pool: Pool, fresh: bool, way: Way | None = None) -> None:
        self.pool = pool
        self.way = way
        """Found once for a case: how precise the oracle must be does not change from process to process."""
        self._budget_s = REFERENCE_S[pool.draw.device] / (DRAWS_OF_WITNESS if fresh else 1)

    def compute(self) -> References:
        """Computed in float32 and proven in float64 on some of the entries; in float64 where float32 is too coarse."""
        if self.pool.whole:
            return self._references_of_sets()
        size = self.pool.size
        most = max(out.numel() for out in self.pool.outs.values())
        chunk = max(1, CHUNK_ELEMENTS * size.length // max(1, most))
        order = torch.randperm(size.entries, generator=self.pool.draw.generator, device=self.pool.draw.device)
        if self.way is None:
            # Of small inputs and outputs many entries are tried together, since a call alone takes some time.
            tensors = operands.tensors(self.pool.first)
            inputs = [tensor.numel() for name, tensor in tensors if name in self.pool.kernel.independent]
            elements = max(1, max(most, *inputs) // size.length)
            few = max(1, min(chunk, size.length) // 8, min(chunk, PROVEN_ELEMENTS // elements))
            self.way = self._chosen_way(order[:few].sort().values)
        wide, count = self.way.wide, min(self.way.entries, size.entries)
        entries = order[:count].sort().values
        made = [self._right(entries[at : at + chunk], wide) for at in range(0, count, chunk)]
        values = {name: torch.cat([one[name] for one in made]) for name in self.pool.outs}
        limits = {}
        for name, value in values.items():  # of elements from everywhere, enough to say how large they are
            flat = value.reshape(-1)
            limits[name] = self._limits(name, flat[:: max(1, flat.numel() // SCALE_ELEMENTS)])
        return References(self.pool, entries, values, limits)

    def _chosen_way(self, few: torch.Tensor) -> Way:
        """How precise the oracle must be, and for how many entries there is time."""
        wide = not self._float32_will_do(few)
        self._right(few, wide)
        synchronize(self.pool.draw.device)
        begun = time.perf_counter()
        self._right(few, wide)
        synchronize(self.pool.draw.device)
        cost_s = (time.perf_counter() - begun) / len(few)
        return Way(wide, max(int(self._budget_s / max(cost_s, 1e-12)), 2 * len(few)))

    def _references_of_sets(self) -> References:
        """Of each set, in float64: where the oracle takes too long, only of the first ones before they are read."""
        pool = self.pool
        sets: list[Tensors] = []
        begun = time.perf_counter()
        for number in range(pool.size.windows):
            sets.append(_right_of_set(pool, number))
            synchronize(pool.draw.device)
            set_us = (time.perf_counter() - begun) * 1e6 / len(sets)
            if time.perf_counter() - begun > self._budget_s:
                break
        limits = {name: self._limits(name, sets[0][name]) for name in pool.outs}
        values = {name: torch.stack([one[name].reshape(-1) for one in sets]) for name in pool.outs}
        return References(pool, torch.arange(len(sets), device=pool.draw.device), values, limits, set_us)

    def _right(self, entries: torch.Tensor, wide: bool) -> Tensors:
        kernel = self.pool.kernel
        given = asked_for(kernel.oracle, self.pool.part_of(entries))
        exact = (
            operands.exact(given)
            if wide
            else operands.changed(given, lambda one: one.float() if one.is_floating_point() else one)
        )
        made = compare.asked(kernel, self.pool.draw.case, exact, tuple(self.pool.outs))
        for name, value in made.items():
            wanted = len(entries) * self.pool.outs[name].numel() // self.pool.size.length
            if value.numel() != wanted:
                text = f"oracle() gave {value.numel()} elements of {name} for {len(entries)} entries, not {wanted}"
                raise UsageError(text)
        return {name: _narrow(value).reshape(len(entries), -1) for name, value in made.items()}

    def _float32_will_do(self, entries: torch.Tensor) -> bool:
        """Whether the oracle in float32 is near the one in float64, by the case's own tolerance."""
        largest = max(out.numel() for out in self.pool.outs.values())
        few = entries[: max(1, PROVEN_ELEMENTS * self.pool.size.length // max(1, largest))]
        try:
            near = self._right(few, wide=False)
        except Exception:  # an oracle that takes float64 alone
            return False
        for name, value in self._right(few, wide=True).items():
            atol, rtol = self._limits(name, value)
            wide, made = value.double(), near[name].double()
            limit = PROVEN_SHARE * (atol + rtol * wide.abs())
            if not bool(((made - wide).abs() <= limit).logical_or(made.isnan() & wide.isnan()).all()):
                return False
        return True

    def _limits(self, name: str, value: torch.Tensor) -> tuple[float, float]:
        return compare.limits(self.pool.kernel, self.pool.draw.case, self.pool.outs[name].dtype, value)


def _right_of_set(pool: Pool, number: int) -> Tensors:
    right = compare.expected(pool.kernel, pool.draw.case, pool.set_of(number), tuple(pool.outs))
    return {name: _narrow(value) for name, value in right.items()}


def _narrow(right: torch.Tensor) -> torch.Tensor:
    """A reference as it is kept: floats in float32, whose rounding is far below any tolerance."""
    return right.float() if right.is_floating_point() else right


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@dataclass
class CallTally:
    made: int = 0
    compared: int = 0
    failed: int = 0
    repeated: int = 0
    outside: int = 0
    """Calls that wrote where no output of theirs is."""
    maxima: list[float | None] = field(default_factory=list)
    means: list[float] = field(default_factory=list)

    def add(self, error: CallError) -> None:
        """What is beyond the largest number of a record is as wrong as that."""
        self.compared += 1
        self.failed += error.failed
        self.maxima.append(None if error.maximum is None else min(error.maximum, record.LARGEST))
        if error.mean is not None:
            self.means.append(min(error.mean, record.LARGEST))

    def join(self, other: CallTally) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def wrote_outside(self, compared: bool) -> None:
        """As wrong as a wrong output. `compared`: whether it was counted as one that was looked at."""
        self.outside += 1
        self.compared += not compared
        self.failed = min(self.failed + 1, self.compared)

    def calls(self) -> record.Calls:
        return record.Calls(made=self.made, compared=self.compared, failed=self.failed, repeated=self.repeated)

    def errors(self) -> record.OutputErrors:
        mean = min(sum(self.means) / len(self.means), record.LARGEST) if self.means else None  # a sum rounds
        return record.OutputErrors(maximum=compare.largest(self.maxima), mean=mean)
