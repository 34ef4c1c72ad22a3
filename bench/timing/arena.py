"""Memory that the verifier owns and the measured process maps: inputs, outputs and what probes write.

On a GPU one allocation, shared by CUDA IPC; on a CPU a file in memory that both inherit.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.operands import TORCH_DTYPES
from kernelgate.bench.system import cuda_driver
from kernelgate.bench.timing.protocol import Memory, NamedInput, Place

ALIGNMENT = 256
"""Bytes: what CUDA's allocator gives. Each window begins so, because alignment changes how fast a kernel is."""
NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


class SharingError(KernelgateError):
    """Memory cannot be shared between processes here."""


@dataclass
class Arena:
    """A block of memory, seen by this process."""

    memory: Memory
    data: torch.Tensor | None
    """Its bytes; None once it is closed."""

    @property
    def address(self) -> int:
        """Of its first byte."""
        return 0 if self.data is None else self.data.data_ptr()

    def view(self, place: Place, index: int) -> torch.Tensor:
        """The tensor at `index` of a place."""
        if self.data is None:
            raise ValueError("the memory is closed")
        start = place.offset + index % place.count * place.step
        typed = self.data[start : start + place.bytes].view(TORCH_DTYPES[place.dtype])
        return typed.as_strided(place.shape, place.stride)

    def rows(self, place: Place) -> torch.Tensor:
        """All bytes of a place, a row for each index."""
        if self.data is None:
            raise ValueError("the memory is closed")
        return self.data[place.offset : place.offset + place.step * place.count].view(place.count, place.step)


_LOCAL: dict[str, torch.Tensor] = {}
"""Where the verifier works in the measured process: its memory, by handle."""


def create(device: str, size: int, fd: int | None, shared: bool) -> Arena:
    """New memory. `fd`: the file in memory, on a CPU. `shared`: whether another process is to map it.

    Raises SharingError where CUDA refuses to share it.
    """
    if device == "cpu":
        if fd is None:
            raise SharingError("there is no file in memory to share")
        if os.fstat(fd).st_size < size:  # never cut: a process that still maps the end would be killed
            os.ftruncate(fd, size)
        return open_shared(Memory(kind="file", bytes=size, fd=fd))
    if not shared:
        handle = f"local-{len(_LOCAL)}"
        _LOCAL[handle] = torch.empty(size, dtype=torch.uint8, device=device)
        return Arena(Memory(kind="local", bytes=size, handle=handle), _LOCAL[handle])
    torch.cuda.init()  # type: ignore[no-untyped-call]
    pointer = cuda_driver.allocate(size)
    try:
        handle = cuda_driver.ipc_handle(pointer).hex()
    except cuda_driver.CudaDriverError as error:
        cuda_driver.free(pointer)
        raise SharingError(str(error)) from None
    return Arena(Memory(kind="cuda", bytes=size, handle=handle), cuda_driver.as_tensor(pointer, size))


def open_shared(memory: Memory) -> Arena:
    """Memory that another process, or the verifier in this one, has created. Raises SharingError."""
    if memory.kind == "file":
        # All pages at once: else the first call that touches one would pay for it, tenfold.
        mapped = mmap.mmap(memory.fd, memory.bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
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


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def footprint(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first element to its last; an expanded one's elements share some."""
    if tensor.numel() == 0:
        return 0
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (reach + 1) * tensor.element_size()


def arguments(arena: Arena, givens: Sequence[NamedInput], window: int, slot: int) -> dict[str, object]:
    """The inputs of one call by name: those that a kernel overwrites from its slot, all others from its window."""
    made = {}
    for given in givens:
        index = slot if given.slotted else window
        made[given.name] = given.value(partial(arena.view, index=index), index)
    return made


def outputs(arena: Arena, places: Mapping[str, Place], slot: int) -> dict[str, torch.Tensor]:
    """The outputs of one call."""
    return {name: arena.view(place, slot) for name, place in places.items()}
