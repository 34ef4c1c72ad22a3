"""Reads the sections of an ELF file: a library, an object, or a cubin."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernelgate.bench.core.errors import KernelgateError

_HEADER = struct.Struct("<40xQ10xHHH")
"""Of the file header: where the section headers begin, the size of one, how many, and which one holds the names."""
_SECTION = struct.Struct("<II16xQQ24x")
"""Of a section header: its name's place among the names, its type, its offset and size in the file."""


@dataclass(frozen=True)
class ElfSection:
    name: str
    content: bytes
    size: int


def sections(file: bytes) -> Iterator[ElfSection]:
    """In the file's order. Raises KernelgateError where it is no 64-bit little-endian ELF file, or is cut off."""
    if not file.startswith(b"\x7fELF\x02\x01"):
        raise KernelgateError("not a 64-bit ELF file")
    try:
        start, size, count, names_at = _HEADER.unpack_from(file)
        headers = [_SECTION.unpack_from(file, start + size * index) for index in range(count)]
        names = headers[names_at][2] if headers else 0
        for label, kind, offset, length in headers:
            begin = names + label
            name = file[begin : file.index(b"\0", begin)].decode(errors="replace")
            held = 0 if kind == 8 else length  # SHT_NOBITS: it has a size and no content
            if offset + held > len(file):
                raise KernelgateError(f"section {name} lies beyond the end of the file")
            yield ElfSection(name, file[offset : offset + held], length)
    except (struct.error, IndexError, ValueError):
        raise KernelgateError("the section table is damaged") from None


def digest(files: Iterable[bytes], left_out: str, hidden: bytes = b"") -> str:
    """The sha256 over the sections of several files, in order. `left_out`: a part of names of sections that do not
    count. `hidden`: a name that differs between builds of the same code, such as that of a namespace."""
    whole = hashlib.sha256()
    for file in files:
        for one in sections(file):
            if left_out not in one.name:
                content = one.content.replace(hidden, b"\0" * len(hidden)) if hidden else one.content
                whole.update(f"{one.name}\0{one.size}\0{hashlib.sha256(content).hexdigest()}\0".encode())
        whole.update(b"\0")
    return whole.hexdigest()
