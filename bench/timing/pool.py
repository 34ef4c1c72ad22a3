"""The inputs of a case, as the verifier draws and keeps them, and which of them each call reads.

Where a card names independent axes, the pool is longer along them than a case: each call reads a window, as many
neighbouring entries as the case has, from a start that no call before it had. Once every start was used, the pool's
entries change places, so that windows hold what they never held. Else the pool is a number of whole sets of inputs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch

from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import Kernel
from kernelgate.bench.kernel.operands import Draw, Inputs
from kernelgate.bench.timing.arena import ALIGNMENT, Arena, Layout, footprint
from kernelgate.bench.timing.protocol import NamedInput, Place, PlainValues

MANY = 1024
"""Windows that a pool should have, where that costs little memory."""
CHEAP_BYTES = 64 << 20


@dataclass(frozen=True)
class PoolSize:
    """How a pool is cut into windows."""

    entries: int
    """In the pool, along the independent axes."""
    length: int
    """Of one window, in entries: what the case has."""
    grain: int
    """Windows start at multiples of this many entries, so that each is aligned."""

    @property
    def windows(self) -> int:
        return (self.entries - self.length) // self.grain + 1

    def start(self, window: int) -> int:
        """The first entry of a window."""
        return window * self.grain


def grain(entry_bytes: list[int]) -> int:
    """The least number of entries after which every tensor is aligned again."""
    return math.lcm(*(ALIGNMENT // math.gcd(ALIGNMENT, size) for size in entry_bytes))


def set_count(set_bytes: int, cache_bytes: int, most_bytes: int) -> int:
    """So many whole sets that those which are read between two uses of one fill the cache, and more of small ones."""
    cold, many = cache_bytes // max(1, set_bytes) + 2, CHEAP_BYTES // max(1, set_bytes)
    return min(MANY, max(cold, many), max(2, most_bytes // max(1, set_bytes)))


def pool_size(length: int, entry_bytes: list[int], cache_bytes: int, most_entries: int) -> PoolSize:
    """A pool whose windows do not find each other's inputs in the cache, of at most `most_entries`.

    `entry_bytes`: of each independent tensor. At least three windows side by side, and more of a small case, so that
    what lies between two calls that share entries exceeds the cache.
    """
    size, step = sum(entry_bytes), grain(entry_bytes)
    cold = -(-cache_bytes // max(1, size))
    many = min(MANY * step, CHEAP_BYTES // max(1, size))
    wanted = length + max(2 * -(-length // step) * step, cold, many)
    drawn = MANY * length  # one draw gives one case's entries: cases of a few rows stay in the cache
    return PoolSize(max(length, min(wanted, most_entries, drawn)), length, step)


def separate(count: int, length: int, entry_bytes: list[int]) -> PoolSize:
    """A pool of so many windows that share nothing."""
    step = grain(entry_bytes)
    apart = -(-length // step) * step
    return PoolSize((count - 1) * apart + length, length, apart)


class Order:
    """The numbers from 0 to `count` - 1, each once, then anew. Neighbours are a window's length apart, where that many
    are left, so that consecutive calls share no inputs. A kernel cannot know the start and the step."""

    def __init__(self, count: int, apart: int, rng: random.Random) -> None:
        self._count = count
        self._apart = apart
        self._rng = rng
        self.left = 0
        self._start = self._step = 0

    def renew(self) -> None:
        """Begins anew: the windows now hold other inputs."""
        self._start = self._rng.randrange(self._count)
        # Neither near 0 nor near the count, which leads back to the one before.
        least = max(1, min(self._apart, self._count // 2))
        most = max(least, self._count - least)
        steps = [step for step in range(least, min(2 * least + 16, most + 1)) if math.gcd(step, self._count) == 1]
        self._step = self._rng.choice(steps or [least])
        self.left = self._count

    def take(self) -> int:
        """The next one; after the last, in the same order again."""
        number = (self._count - self.left) % self._count
        rounds = number // (self._count // math.gcd(self._step, self._count))  # each leads back to its first one
        self.left -= 1
        return (self._start + number * self._step + rounds) % self._count


@dataclass(frozen=True)
class Shape:
    """How the inputs of a case lie in memory."""

    size: PoolSize | None
    """None where inputs cannot be divided: the pool is of whole sets."""
    inputs: tuple[NamedInput, ...]
    windows: int
    """Different starts, or sets."""
    apart: int
    """Windows from one call to the next, for them to share nothing."""
    length: int = 1
    """Entries of a case along the independent axes."""

    @property
    def mixes(self) -> bool:
        """Whether entries that change places give windows that no call has read."""
        return self.size is not None and self.length > 1


def entry_axes(kernel: Kernel, given: Inputs, outs: Mapping[str, torch.Tensor]) -> int | None:
    """How many entries a case has along its independent axes; None where its tensors cannot be windows of a pool.

    They can where every output is independent and independent tensors are contiguous along leading axes.
    """
    tensors = {**given, **outs}
    if not kernel.independent or any(name not in kernel.independent for name in outs):
        return None
    for name, at in kernel.independent.items():
        tensor, axes = tensors.get(name), (at,) if isinstance(at, int) else tuple(at)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_contiguous() or axes != tuple(range(len(axes))):
            return None
    shapes = {name: tuple(one.shape) for name, one in tensors.items() if isinstance(one, torch.Tensor)}
    parts = operands.parts(kernel, shapes)
    return parts.count if parts and parts.count else None


def _axes(kernel: Kernel, name: str) -> int:
    at = kernel.independent[name]
    return 1 if isinstance(at, int) else len(at)


def seen_by_oracle(kernel: Kernel, name: str, rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Some entries in the shape in which an oracle takes them: along the first independent axis, the others 1 long."""
    axes = _axes(kernel, name)
    return rows.reshape(rows.shape[0], *[1] * (axes - 1), *like.shape[axes:])


def _items(value: object) -> list[object]:
    """The parts of a named input, which is one thing or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


class Pool:
    """The inputs of one case."""

    def __init__(self, kernel: Kernel, draw: Draw, cache_bytes: int, most_bytes: int, fresh: int | None) -> None:
        self.kernel = kernel
        self.draw = draw
        self.first = operands.inputs(kernel, draw.case, draw)
        shapes = operands.output_shapes(kernel, draw.case, self.first)
        self.outs = {
            name: self.first[name] if name in kernel.in_place else torch.empty(shape, dtype=dtype, device="meta")
            for name, (shape, dtype) in shapes.items()
        }
        self.layout = Layout()
        self.shape = self._shape(cache_bytes, most_bytes, fresh)
        self.golden: dict[str, torch.Tensor] = {}
        """Of an input that is overwritten, what its windows hold."""
        self.fixed = False
        """Whether the sets differ in numbers, which are no memory that could change hands."""
        self._filled = False

    # ------------------------------------------------------------------------------------------------------------------
    # Where everything lies
    # ------------------------------------------------------------------------------------------------------------------

    def _shape(self, cache_bytes: int, most_bytes: int, fresh: int | None) -> Shape:
        case_bytes = sum(footprint(tensor) for _, tensor in operands.tensors(self.first))
        count = entry_axes(self.kernel, self.first, self.outs)
        if fresh is not None:
            sets = min(fresh, max(1, most_bytes // max(1, case_bytes)))
            return self._sets(sets, 1) if count is None else self._windows(separate(sets, count, self._entry(count)), 1)
        if count is None:
            return self._sets(set_count(case_bytes, cache_bytes, most_bytes), 1)
        entry = self._entry(count)
        references = sum(4 * out.numel() // count for out in self.outs.values())
        most = max(count, most_bytes // max(1, sum(entry) + references))
        size = pool_size(count, entry, cache_bytes, most)
        return self._windows(size, max(1, min(MANY, cache_bytes // max(1, case_bytes) + 2)))

    def _entry(self, count: int) -> list[int]:
        """Bytes of an entry of each independent input."""
        return [footprint(self.first[name]) // count for name in self.first if name in self.kernel.independent]

    def _windows(self, size: PoolSize, copies: int) -> Shape:
        """`copies`: of inputs that are not independent, so that they are not found in the cache."""
        inputs = tuple(self._given(name, value, size, copies) for name, value in self.first.items())
        return Shape(size, inputs, size.windows, max(1, -(-size.length // size.grain)), size.length)

    def _sets(self, count: int, length: int) -> Shape:
        inputs = tuple(self._given(name, value, None, count) for name, value in self.first.items())
        return Shape(None, inputs, count, 1, length)

    def _given(self, name: str, value: object, size: PoolSize | None, copies: int) -> NamedInput:
        slotted = name in self.kernel.in_place
        windowed = size if name in self.kernel.independent else None
        places = tuple(self._item(item, windowed, copies, slotted) for item in _items(value))
        kind: Literal["one", "list", "tuple"] = "one"
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
        return NamedInput(name=name, kind=kind, items=places, slotted=slotted)

    def _item(self, item: object, size: PoolSize | None, copies: int, slotted: bool) -> Place | PlainValues:
        if not isinstance(item, torch.Tensor):
            return PlainValues(values=(item,))  # type: ignore[arg-type]
        if slotted:  # its places are those of the outputs
            return Place(offset=0, step=0, count=1, bytes=0, shape=(), stride=(), dtype="uint8")
        if size is None:
            return self.layout.place(item, count=copies)
        entry = footprint(item) // size.length
        unused = size.entries - size.start(size.windows - 1) - size.length
        return self.layout.place(item, entry * size.grain, size.windows, entry * unused)

    # ------------------------------------------------------------------------------------------------------------------
    # Drawing
    # ------------------------------------------------------------------------------------------------------------------

    def fill(self, arena: Arena) -> None:
        """Draws every entry, or every set, anew."""
        size = self.shape.size
        draws = self.shape.windows if size is None else -(-size.entries // size.length)
        for number in range(draws):
            drawn = self.first
            if number or self._filled:
                drawn = operands.inputs(self.kernel, self.draw.case, self.draw)
            for given in self.shape.inputs:
                self._fill_one(arena, given, drawn[given.name], number, size)
            if size is None:
                self._keep_numbers(drawn, number)
        self._filled = True

    def _keep_numbers(self, drawn: Inputs, number: int) -> None:
        """The numbers of a set, beside those of the sets before."""
        kept = []
        for given in self.shape.inputs:
            items: list[Place | PlainValues] = []
            for item, new in zip(given.items, _items(drawn[given.name]), strict=True):
                if isinstance(item, PlainValues):
                    item = PlainValues(values=(*(item.values if number else ()), new))  # type: ignore[arg-type]
                    self.fixed |= len(set(item.values)) > 1
                items.append(item)
            kept.append(given.model_copy(update={"items": tuple(items)}))
        self.shape = replace(self.shape, inputs=tuple(kept))

    def _fill_one(self, arena: Arena, given: NamedInput, value: object, number: int, size: PoolSize | None) -> None:
        for item, drawn in zip(given.items, _items(value), strict=True):
            if not isinstance(drawn, torch.Tensor):
                continue
            if size is not None and given.name in self.kernel.independent:
                rows = drawn.reshape(size.length, -1)[: size.entries - number * size.length]
                self.entries(arena, given.name)[number * size.length :][: len(rows)].copy_(rows)
            elif given.slotted:
                kept = self.golden.setdefault(given.name, drawn.new_empty((self.shape.windows, *drawn.shape)))
                kept[number].copy_(drawn)
            elif size is None:
                operands.fill(arena.view(item, number), drawn)  # type: ignore[arg-type]
            elif number == 0:
                for copy in range(item.count):  # type: ignore[union-attr]
                    operands.fill(arena.view(item, copy), drawn)  # type: ignore[arg-type]

    def entries(self, arena: Arena, name: str) -> torch.Tensor:
        """All entries of an independent input, a row each."""
        size = self.shape.size
        if size is None:
            raise ValueError("sets have no entries")
        given = next(one for one in self.shape.inputs if one.name == name)
        first = self.first[name]
        if given.slotted:
            row = first.numel() // size.length
            return self.golden.setdefault(name, first.new_empty((size.entries, row)))
        place = given.items[0]
        if not isinstance(place, Place) or arena.data is None:
            raise ValueError(f"{name} has no memory")
        entry = place.bytes // size.length
        flat = arena.data[place.offset : place.offset + entry * size.entries]
        return flat.view(first.dtype).view(size.entries, -1)

    def shuffle(self, arena: Arena) -> torch.Tensor | None:
        """Entries change places; of a pool of sets, whole sets. Returns which one has come to each place, if any."""
        size = self.shape.size
        if size is None and self.fixed:
            return None
        count = self.shape.windows if size is None else size.entries
        order = torch.randperm(count, generator=self.draw.generator, device=self.draw.device)
        for given in self.shape.inputs:
            held: list[torch.Tensor] = []
            if size is not None:
                held = [self.entries(arena, given.name)] if given.name in self.kernel.independent else []
            elif given.slotted:
                held = [self.golden[given.name]]
            else:
                held = [arena.rows(item) for item in given.items if isinstance(item, Place)]
            for rows in held:
                rows.copy_(rows[order])
        return order

    def restore(self, arena: Arena, outputs: Mapping[str, Place], window: int, slot: int) -> None:
        """What a kernel overwrites, for a call on this window with this slot."""
        size = self.shape.size
        for name in self.kernel.in_place:
            target = arena.view(outputs[name], slot)
            if size is None:
                operands.fill(target, self.golden[name][window])
            else:
                start = size.start(window)
                target.copy_(self.golden[name][start : start + size.length].view(target.shape))

    def set_of(self, arena: Arena, number: int) -> Inputs:
        """One set's inputs."""
        return {
            given.name: self.golden[given.name][number]
            if given.slotted
            else given.value(partial(arena.view, index=number), number)
            for given in self.shape.inputs
        }

    def part_of(self, arena: Arena, entries: torch.Tensor) -> Inputs:
        """The inputs of some entries, as an oracle takes them."""
        made: Inputs = {}
        for given in self.shape.inputs:
            first = self.first[given.name]
            if given.name in self.kernel.independent:
                rows = self.entries(arena, given.name)[entries]
                made[given.name] = seen_by_oracle(self.kernel, given.name, rows, first)
            else:
                made[given.name] = given.value(partial(arena.view, index=0), 0)
        return made
