"""What is right for the inputs of a pool, computed in float32 and proven in float64."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import compare, operands
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.timing.arena import Arena
from kernelgate.bench.timing.pool import Pool

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
            few = max(1, min(chunk, size.length) // 8, min(chunk, PROVEN_ELEMENTS // self._elements_of_entry()))
            self.way = self._chosen_way(arena, order[:few].sort().values)
        wide, count = self.way.wide, min(self.way.entries, size.entries)
        entries = order[:count].sort().values
        made = [self._right(arena, entries[at : at + chunk], wide) for at in range(0, count, chunk)]
        values = {name: torch.cat([one[name] for one in made]) for name in self.pool.outs}
        limits = {name: self._limits(name, _some(value)) for name, value in values.items()}
        return References(entries, values, limits, _finite(values), count == size.entries)

    def _elements_of_entry(self) -> int:
        """Of its largest input or output. Of small ones many are tried together, since a call alone takes some time."""
        tensors = [tensor for name, tensor in operands.tensors(self.pool.first) if name in self.pool.kernel.independent]
        return max(1, max(one.numel() for one in (*tensors, *self.pool.outs.values())) // self.pool.shape.length)

    def _chosen_way(self, arena: Arena, few: torch.Tensor) -> Way:
        """How precise the oracle must be, and for how many entries there is time."""
        wide = not self._float32_will_do(arena, few)
        self._right(arena, few, wide)
        _synchronize(self.pool.draw.device)
        begun = time.perf_counter()
        self._right(arena, few, wide)
        _synchronize(self.pool.draw.device)
        cost_s = (time.perf_counter() - begun) / len(few)
        return Way(wide, max(int(self._budget_s / max(cost_s, 1e-12)), 2 * len(few)))

    def _references_of_sets(self, arena: Arena) -> References:
        """Of each set: where the oracle takes too long, only the first two have any."""
        sets: list[Tensors] = []
        begun = time.perf_counter()
        for number in range(self.pool.shape.windows):
            given = self.pool.set_of(arena, number)
            right = compare.expected(self.pool.kernel, self.pool.case, given, tuple(self.pool.outs))
            sets.append({name: _narrow(value, self.pool.outs[name].dtype) for name, value in right.items()})
            _synchronize(self.pool.draw.device)
            if number and time.perf_counter() - begun > self._budget_s:
                break
        limits = {name: self._limits(name, sets[0][name]) for name in self.pool.outs}
        none = torch.empty(0, dtype=torch.long, device=self.pool.draw.device)
        finite = all(map(_finite, sets))
        sets += [{}] * (self.pool.shape.windows - len(sets))
        return References(none, {}, limits, finite, all(sets), sets)

    def _right(self, arena: Arena, entries: torch.Tensor, wide: bool) -> Tensors:
        given = self.pool.part_of(arena, entries)
        exact = operands.exact(given) if wide else operands.changed(given, _as_float32)
        made = operands.named(self.pool.kernel.oracle(self.pool.case, **exact), tuple(self.pool.outs), "oracle()")
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
        return compare.limits(self.pool.kernel, self.pool.case, self.pool.outs[name].dtype, value)


def _some(values: torch.Tensor) -> torch.Tensor:
    """Elements from everywhere, enough to say how large they are."""
    flat = values.reshape(-1)
    return flat[:: max(1, flat.numel() // SCALE_ELEMENTS)]


def _as_float32(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def _narrow(right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A reference as it is kept: floats in float32, whose rounding is far below any tolerance; of float64 as it is."""
    return right.float() if right.is_floating_point() and dtype != torch.float64 else right


def _finite(values: Tensors) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in values.values() if value.is_floating_point())


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
