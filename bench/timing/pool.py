"""Memory that the verifier owns and the measured process maps; the inputs of a case in it, as the verifier draws and
keeps them; and which of them each call reads.

On a GPU the memory is one allocation, shared by CUDA IPC; on a CPU a file in memory that both inherit. Where a card
names independent axes, the pool is longer along them than a case: each call reads a window, as many neighbouring
entries as the case has, from a start that no call before it had. Once every start was used, the pool's entries change
places, so that windows hold what they never held. Else an entry is a whole set of inputs, and so is a window.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import mmap
import os
import random
import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import Kernel
from kernelgate.bench.kernel.operands import NAMES, TORCH_DTYPES, Draw, Inputs
from kernelgate.bench.system import cuda_driver
from kernelgate.bench.timing import device as gpu
from kernelgate.bench.timing.protocol import Memory, NamedInput, Place, Values

ALIGNMENT = 256
"""Bytes: what CUDA's allocator gives. Each window begins so, because alignment changes how fast a kernel is."""
GUARD = 4096
"""Bytes between two outputs: a page, so that outputs lie in the cache as if there were none."""
MANY = 1024
PLACES = 1
"""By so many places inputs move."""
CHEAP_BYTES = 64 << 20


class SharingError(KernelgateError):
    """Memory cannot be shared between processes here."""


@dataclass
class Arena:
    memory: Memory
    data: torch.Tensor | None
    views: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)
    """Made once, by where they lie."""

    @property
    def address(self) -> int:
        return 0 if self.data is None else self.data.data_ptr()

    def part(self, offset: int, size: int) -> torch.Tensor:
        """Its bytes."""
        if self.data is None:
            raise ValueError("the memory is closed")
        return self.data[offset : offset + size]

    def view(self, place: Place, index: int) -> torch.Tensor:
        key = (place.offset, index % place.count)
        if key not in self.views:
            typed = self.part(place.offset + key[1] * place.step, place.bytes).view(TORCH_DTYPES[place.dtype])
            self.views[key] = typed.as_strided(place.shape, place.stride)
        return self.views[key]

    def rows(self, place: Place) -> torch.Tensor:
        return self.part(place.offset, place.step * place.count).view(place.count, place.step)


F_SEAL_FUTURE_WRITE = 0x10
_SEALED: dict[int, torch.Tensor] = {}
"""Of the verifier: the file that only it writes to, by its inode."""
_LOCAL: dict[str, torch.Tensor] = {}
"""Where the verifier works in the measured process: its memory, by handle."""


def create(device: str, size: int, fd: int | None, shared: bool, sealed: bool = False) -> Arena:
    """New memory. `fd`: the file in memory, on a CPU. `shared`: whether another process is to map it. `sealed`: whether
    it may only read it, which can be had on a CPU.

    Raises SharingError where CUDA refuses to share it.
    """
    if not shared:
        handle = f"local-{len(_LOCAL)}"
        _LOCAL[handle] = torch.empty(size, dtype=torch.uint8, device=device)
        return Arena(Memory(kind="local", bytes=size, handle=handle), _LOCAL[handle])
    if device == "cpu":
        if fd is None:
            raise SharingError("there is no file in memory to share")
        if sealed:
            return Arena(Memory(kind="file", bytes=size, fd=fd, sealed=True), _sealed(fd)[:size])
        if os.fstat(fd).st_size < size:  # never cut: a process that still maps the end would be killed
            os.ftruncate(fd, size)
        return open_shared(Memory(kind="file", bytes=size, fd=fd))
    torch.cuda.init()  # type: ignore[no-untyped-call]
    pointer = cuda_driver.allocate(size)
    try:
        handle = cuda_driver.ipc_handle(pointer).hex()
    except cuda_driver.CudaDriverError as error:
        cuda_driver.free(pointer)
        raise SharingError(str(error)) from None
    return Arena(Memory(kind="cuda", bytes=size, handle=handle), cuda_driver.as_tensor(pointer, size))


def _sealed(fd: int) -> torch.Tensor:
    """All of a file that nobody can map for writing any more, but for this mapping: as long as there is memory, since
    there will be no other one. Pages are taken when they are written."""
    inode = os.fstat(fd).st_ino
    if inode not in _SEALED:
        _SEALED.clear()  # of an earlier run in this process
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        try:
            os.ftruncate(fd, size)
            mapped = mmap.mmap(fd, size, flags=mmap.MAP_SHARED)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        except OSError as error:
            raise SharingError(f"memory cannot be sealed: {error}") from None
        _SEALED[inode] = torch.frombuffer(mapped, dtype=torch.uint8)
    return _SEALED[inode]


def open_shared(memory: Memory) -> Arena:
    """Memory that another process, or the verifier in this one, has created. Raises SharingError."""
    if memory.kind == "file":
        # All pages at once: else the first call that touches one would pay for it, tenfold.
        access = mmap.PROT_READ | (0 if memory.sealed else mmap.PROT_WRITE)
        mapped = mmap.mmap(memory.fd, memory.bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=access)
        with warnings.catch_warnings():  # of memory that cannot be written to
            warnings.simplefilter("ignore", UserWarning)
            return Arena(memory, torch.frombuffer(mapped, dtype=torch.uint8))
    if memory.kind == "local":
        return Arena(memory, _LOCAL[memory.handle])
    try:
        pointer = cuda_driver.open_ipc(bytes.fromhex(memory.handle))
    except cuda_driver.CudaDriverError as error:
        raise SharingError(str(error)) from None
    return Arena(memory, cuda_driver.as_tensor(pointer, memory.bytes))


def close(arena: Arena, owner: bool) -> None:
    """Unmaps the memory; its owner frees it. No view of it may be used after that."""
    arena.views.clear()
    data, arena.data = arena.data, None
    if data is None:
        return
    if arena.memory.kind == "cuda":
        torch.cuda.synchronize()
        (cuda_driver.free if owner else cuda_driver.close_ipc)(data.data_ptr())
    elif arena.memory.kind == "local" and owner and arena.memory.handle:
        _LOCAL.pop(arena.memory.handle, None)


class Layout:
    """Places, one after the other, in memory that is created once all are known."""

    def __init__(self) -> None:
        self.bytes = 0

    def place(self, like: torch.Tensor, step: int | None = None, count: int = 1, tail: int = 0) -> Place:
        """For `count` tensors of the shape, strides and dtype of `like`.

        `step`: bytes from one to the next; by default they lie side by side. `tail`: bytes that follow the last start
        beside the tensor's own.
        """
        size = footprint(like)
        apart = aligned(size) if step is None else step
        made = Place(
            offset=self.bytes,
            step=apart,
            count=count,
            bytes=size,
            shape=tuple(like.shape),
            stride=tuple(like.stride()),
            dtype=NAMES[like.dtype],
        )
        self.bytes = aligned(self.bytes + max(apart * count, apart * (count - 1) + size) + tail)
        return made

    def guarded(self, like: torch.Tensor, count: int) -> Place:
        """For outputs: before the first, between any two and behind the last lies what no call may write to."""
        self.bytes += GUARD
        return self.place(like, aligned(footprint(like)) + GUARD, count)


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def footprint(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last; an expanded one's elements share some."""
    if tensor.numel() == 0:
        return 0
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (reach + 1) * tensor.element_size()


def guards(arena: Arena, place: Place) -> list[torch.Tensor]:
    """What lies around guarded outputs: a row in front of them all, and a row behind each."""
    return [arena.part(place.offset - GUARD, GUARD)[None], arena.rows(place)[:, place.bytes :]]


def arguments(
    read: Arena, written: Arena, givens: Sequence[NamedInput], window: int, slot: int, moved: int = 0
) -> dict[str, object]:
    """What a call gets. `moved`: as `Planned` has it."""
    return {
        given.name: given.value(written.view, slot) if given.slotted else given.value(read.view, window, at and moved)
        for at, given in enumerate(givens)
    }


def outputs(arena: Arena, places: Mapping[str, Place], slot: int) -> dict[str, torch.Tensor]:
    return {name: arena.view(place, slot) for name, place in places.items()}


# The pool


@dataclass(frozen=True)
class PoolSize:
    entries: int
    """In the pool, along the independent axes; or whole sets."""
    length: int
    """Of one window, in entries: what the case has."""
    grain: int
    """Windows start at multiples of this many entries, so that each is aligned."""

    @property
    def windows(self) -> int:
        return (self.entries - self.length) // self.grain + 1

    @property
    def apart(self) -> int:
        """Windows from one call to the next, for them to share nothing."""
        return -(-self.length // self.grain)

    def start(self, window: int) -> int:
        return window * self.grain

    @property
    def mixes(self) -> bool:
        """Whether entries that change places give windows that no call has read."""
        return self.length > 1


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


def seen_by_oracle(kernel: Kernel, name: str, rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Some entries in the shape in which an oracle takes them: along the first independent axis, the others 1 long."""
    at = kernel.independent[name]
    axes = 1 if isinstance(at, int) else len(at)
    return rows.reshape(rows.shape[0], *[1] * (axes - 1), *like.shape[axes:])


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


class Pool:
    """The inputs of one case. `arena`, of what calls read, and `written` are set once their sizes are known."""

    arena: Arena
    written: Arena

    def __init__(self, kernel: Kernel, draw: Draw, cache_bytes: int, most_bytes: int, fresh: int | None) -> None:
        self.kernel = kernel
        self.draw = draw
        self.first = operands.inputs(kernel, draw.case, draw)
        shapes = operands.output_shapes(kernel, draw.case, self.first)
        self.outs = {
            name: self.first[name] if name in kernel.in_place else torch.empty(shape, dtype=dtype, device="meta")
            for name, (shape, dtype) in shapes.items()
        }
        self.outputs: dict[str, Place] = {}
        self.layout = Layout()
        self.moved = 0
        """By how many places all inputs but the first lie elsewhere than they would. It changes with what they hold, so
        that a kernel which takes the others' addresses from the first one's reads what lay there before."""
        count = entry_axes(kernel, self.first, self.outs)
        self.whole = count is None
        """Whether inputs cannot be divided, so that an entry is a whole set of them."""
        self.size, copies = self._sized(count, cache_bytes, most_bytes, fresh)
        self.inputs = tuple(self._input(name, value, copies) for name, value in self.first.items())
        self.golden: dict[str, torch.Tensor] = {}
        """Of an input that is overwritten, what its windows hold."""
        self._targets: dict[tuple[str, int], torch.Tensor] = {}
        self._values: dict[tuple[str, int], torch.Tensor] = {}
        """Views for `restore`, made once: of the slots, and of the windows."""
        self.fixed = False
        """Whether the sets differ in numbers, which are no memory that could change hands."""
        self._filled = False
        self._digest: int | bytes | None = None
        """Of inputs that could not be sealed."""
        self._secret = secrets.randbits(64)
        """Which no other process knows."""

    def _sized(self, count: int | None, cache_bytes: int, most_bytes: int, fresh: int | None) -> tuple[PoolSize, int]:
        """And how many copies there are of what is not divided, so that it is not found in the cache."""
        case_bytes = sum(footprint(tensor) for _, tensor in operands.tensors(self.first))
        separately = None if fresh is None else min(fresh, max(1, most_bytes // max(1, case_bytes)))
        if count is None:
            sets = separately or set_count(case_bytes, cache_bytes, most_bytes)
            return PoolSize(sets, 1, 1), sets
        entry = [footprint(self.first[name]) // count for name in self.first if name in self.kernel.independent]
        if separately is not None:
            return separate(separately, count, entry), 1
        references = sum(4 * out.numel() // count for out in self.outs.values())
        most = max(count, most_bytes // max(1, sum(entry) + references))
        copies = max(1, min(MANY, cache_bytes // max(1, case_bytes) + 2))
        return pool_size(count, entry, cache_bytes, most), copies

    def _divided(self, name: str) -> bool:
        return not self.whole and name in self.kernel.independent

    def _input(self, name: str, value: object, copies: int) -> NamedInput:
        kind: Literal["one", "list", "tuple"] = "one"
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
        slotted = name in self.kernel.in_place
        items = tuple(self._item(item, self._divided(name), copies, slotted) for item in _items(value))
        return NamedInput(name=name, kind=kind, items=items, slotted=slotted)

    def _item(self, item: object, divided: bool, copies: int, slotted: bool) -> Place | tuple[Values, ...]:
        if not isinstance(item, torch.Tensor):
            return (item,)  # type: ignore[return-value]
        if slotted:  # its places are those of the outputs
            return Place(offset=0, step=0, count=1, bytes=0, shape=(), stride=(), dtype="uint8")
        if not divided:
            return self.layout.place(item, count=copies + PLACES * self.whole)
        size = self.size
        entry = footprint(item) // size.length
        unused = size.entries - size.start(size.windows - 1) - size.length
        return self.layout.place(item, entry * size.grain, size.windows + PLACES, entry * unused)

    def _at(self, name: str) -> int:
        return 0 if name == self.inputs[0].name else self.moved

    def fill(self) -> None:
        if self._filled:
            self.moved = PLACES - self.moved
        for number in range(-(-self.size.entries // self.size.length)):
            drawn = self.first
            if number or self._filled:
                drawn = operands.inputs(self.kernel, self.draw.case, self.draw)
            for given in self.inputs:
                self._fill_one(given, drawn[given.name], number)
            if self.whole:
                self.inputs = tuple(self._with_numbers(given, drawn[given.name], number) for given in self.inputs)
        self._filled = True

    def _with_numbers(self, given: NamedInput, value: object, number: int) -> NamedInput:
        """The numbers of a set are drawn together with its tensors."""
        items = list(given.items)
        for at, (item, new) in enumerate(zip(given.items, _items(value), strict=True)):
            if not isinstance(item, Place):
                items[at] = values = (*(item if number else ()), new)  # type: ignore[assignment]
                self.fixed |= len(set(values)) > 1
        return given.model_copy(update={"items": tuple(items)})

    def _fill_one(self, given: NamedInput, value: object, number: int) -> None:
        length = self.size.length
        for item, drawn in zip(given.items, _items(value), strict=True):
            if not isinstance(item, Place) or not isinstance(drawn, torch.Tensor):
                continue
            if given.slotted or self._divided(given.name):
                rows = drawn.reshape(length, -1)[: self.size.entries - number * length]
                self.entries(given.name)[number * length :][: len(rows)].copy_(rows)
            elif self.whole:
                operands.fill(self.arena.view(item, number + self._at(given.name)), drawn)
            elif number == 0:
                for copy in range(item.count):
                    operands.fill(self.arena.view(item, copy), drawn)

    def entries(self, name: str) -> torch.Tensor:
        """All entries of an input that is divided or overwritten, a row each."""
        size, first = self.size, self.first[name]
        if name in self.kernel.in_place:
            if name not in self.golden:
                self.golden[name] = first.new_empty((size.entries, first.numel() // size.length))
            return self.golden[name]
        [place] = (item for one in self.inputs if one.name == name for item in one.items if isinstance(item, Place))
        first_byte = place.offset + self._at(name) * place.step
        flat = self.arena.part(first_byte, place.bytes // size.length * size.entries)
        return flat.view(first.dtype).view(size.entries, -1)

    def sign(self) -> None:
        """Keeps in mind what the inputs are, where others may write to them."""
        self._digest = None if self.arena.memory.sealed else self._digested()

    @property
    def untouched(self) -> bool:
        return self._digest is None or self._digest == self._digested()

    def _digested(self) -> int | bytes:
        read = self.arena.part(0, self.layout.bytes)
        if self.draw.device == "cuda":
            return gpu.digest(read.view(torch.int64), self._secret)
        return hashlib.blake2b(read.numpy().data, key=self._secret.to_bytes(8, "little")).digest()

    def shuffle(self) -> torch.Tensor | None:
        """Entries change places. Returns which one has come to each place, if any."""
        if self.fixed:
            return None
        order = torch.randperm(self.size.entries, generator=self.draw.generator, device=self.draw.device)
        before = [rows for given in self.inputs for rows in self._rows(given)]
        self.moved = PLACES - self.moved
        after = [rows for given in self.inputs for rows in self._rows(given)]
        for old, new in zip(before, after, strict=True):
            new.copy_(old[order])
        return order

    def _rows(self, given: NamedInput) -> list[torch.Tensor]:
        """What of an input changes places: a row for each entry."""
        if given.slotted or self._divided(given.name):
            return [self.entries(given.name)]
        first, places = self._at(given.name), [item for item in given.items if isinstance(item, Place)]
        return [self.arena.rows(item)[first:][: self.size.entries] for item in places] if self.whole else []

    def restore(self, calls: Sequence[tuple[int, int]]) -> None:
        """What calls overwrite, of each call given as window and slot. The copies of all calls share a launch, since
        the host takes longer for one of its own than a small kernel runs."""
        for name in self.kernel.in_place if calls else ():
            copies = [self._overwritten(name, window, slot) for window, slot in calls]
            torch._foreach_copy_([target for target, _ in copies], [values for _, values in copies])

    def _overwritten(self, name: str, window: int, slot: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What a call overwrites, and what it is to hold."""
        if (name, slot) not in self._targets:
            self._targets[name, slot] = operands.unshared(self.written.view(self.outputs[name], slot))
        if (name, window) not in self._values:
            start, place = self.size.start(window), self.outputs[name]
            values = self.entries(name)[start : start + self.size.length].view(place.shape)
            self._values[name, window] = operands.unshared(values, like=place.stride)
        return self._targets[name, slot], self._values[name, window]

    def set_of(self, number: int) -> Inputs:
        return {
            given.name: self.entries(given.name)[number].view(self.first[given.name].shape)
            if given.slotted
            else given.value(self.arena.view, number, self._at(given.name))
            for given in self.inputs
        }

    def part_of(self, entries: torch.Tensor) -> Inputs:
        made: Inputs = {}
        for given in self.inputs:
            if self._divided(given.name):
                rows = self.entries(given.name)[entries]
                made[given.name] = seen_by_oracle(self.kernel, given.name, rows, self.first[given.name])
            else:
                made[given.name] = given.value(self.arena.view, 0)
        return made
