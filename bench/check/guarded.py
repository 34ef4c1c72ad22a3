"""Tensors between guards, filled with a pattern: what a kernel leaves unwritten and what it writes beside is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from kernelgate.bench.kernel import compare

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
    """How a tensor lies in memory."""

    strides: tuple[int, ...] | None = None
    """In elements; None without gaps."""
    offset: int = 0
    """Elements from an address that is aligned to GUARD_BYTES."""


@dataclass(frozen=True)
class Guarded:
    """A tensor between guards."""

    buffer: torch.Tensor
    """All of it, as integers of the dtype's width."""
    tensor: torch.Tensor
    pattern: int

    def untouched(self) -> torch.Tensor:
        """Where the tensor still holds the pattern."""
        return bits(self.tensor) == self.pattern

    def guards_changed(self) -> bool:
        """Whether something wrote before or after the tensor."""
        guard = GUARD_BYTES // self.buffer.element_size()
        edges = torch.cat((self.buffer[:guard], self.buffer[-guard:]))
        return bool((edges != self.pattern).any())

    def poison(self) -> None:
        """Fills it with the pattern again."""
        self.buffer.fill_(self.pattern)


def same_bits(made: Mapping[str, torch.Tensor], first: Mapping[str, torch.Tensor]) -> bool:
    """Whether these tensors have the bits that `first` holds, by name."""
    return all(torch.equal(bits(tensor), first[name]) for name, tensor in made.items())


def guarded(
    shape: Sequence[int], dtype: torch.dtype, device: str, which: int, place: MemoryLayout | None = None
) -> Guarded:
    """A tensor filled with one of the two patterns, between guards that hold it, too."""
    place = place or MemoryLayout()
    pattern = PATTERNS[dtype][which]
    width = compare.bits_dtype(dtype)
    guard = GUARD_BYTES // width.itemsize
    lengths = place.strides if place.strides is not None else torch.empty(shape, device="meta").stride()
    empty = 0 in shape
    needed = 0 if empty else 1 + sum((size - 1) * step for size, step in zip(shape, lengths, strict=True))
    first = guard + place.offset
    buffer = torch.full((guard + first + needed,), pattern, dtype=width, device=device)
    tensor = buffer.view(dtype)[first : first + needed].as_strided(tuple(shape), lengths, first)
    return Guarded(buffer, tensor, pattern)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as integers of its width."""
    return tensor.view(compare.bits_dtype(tensor.dtype))
