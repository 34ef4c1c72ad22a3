"""Libraries that cheat: one compiled library, of which each test gets a copy with other words written into it.

kernel.so holds two fixed texts, a namespace and a configuration, which are replaced in the copy. So nothing is compiled
for a test, and base and head are the same machine code at the same places.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build import build, library
from kernelgate.bench.build.library import LIBRARY, Library
from kernelgate.bench.build.sources import Extension, read_sources
from tests import registered

HERE = Path(__file__).parent
CARD = "norm"
NAMESPACE = "cheats_namespace_0000"
CONFIGURATION = b"CHEATS-CONFIGURATION:"
LENGTH = 2048
"""Bytes that the configuration has in kernel.so."""
_numbers = itertools.count(1)


@functools.cache
def compiled() -> Library:
    """The library that all others are copies of; in kernelgate's cache."""
    sources = read_sources(HERE, "tests/cheats", CARD, Extension("native", "common"))
    return build.build(sources, None, namespace=NAMESPACE)


@functools.cache
def compiled_for_gpu() -> Library:
    """The same of tests/gpu/cheats, for the GPU at hand, or for TORCH_CUDA_ARCH_LIST."""
    spec = Extension("gpu/cheats", "cheats/common")
    return build.build(read_sources(HERE.parent, "tests", CARD, spec), None, namespace=NAMESPACE)


@dataclass(frozen=True)
class Tally:
    """What a library counts in a file, over all processes that have it."""

    file: Path

    @classmethod
    def at(cls, file: Path) -> Tally:
        file.write_bytes(bytes(16))
        return cls(file)

    @property
    def calls(self) -> int:
        return int.from_bytes(self.file.read_bytes()[:8], "little")

    @property
    def cheated(self) -> int:
        """Calls that were not honest; of a cheat beside the calls, what it did."""
        return int.from_bytes(self.file.read_bytes()[8:], "little")


def native(folder: Path, words: str = "cheat=none", original: Library | None = None) -> Library:
    """A library in `folder` with these words as its configuration, and a namespace that no other has.

    `original`: what it is a copy of; the one of tests/cheats/native where it is None.
    """
    original = original or compiled()
    code = original.path.read_bytes()
    namespace = f"{NAMESPACE[:-4]}{next(_numbers):04}"
    configuration = CONFIGURATION + b" " + words.encode()
    assert len(configuration) < LENGTH, "the configuration is too long"
    at = code.index(CONFIGURATION + b" ")
    code = code[:at] + configuration.ljust(LENGTH, b"\0") + code[at + LENGTH :]
    code = code.replace(NAMESPACE.encode(), namespace.encode())
    folder.mkdir(parents=True)
    (folder / LIBRARY).write_bytes(code)
    manifest = original.manifest.model_copy(
        update={
            "namespace": namespace,
            "key": hashlib.sha256(words.encode() + namespace.encode()).hexdigest()[:32],
            "sha256": hashlib.sha256(code).hexdigest(),
            "card_sha256": None,
        }
    )
    (folder / library.MANIFEST).write_text(manifest.model_dump_json(), encoding="utf-8")
    return library.read(folder)


def package(folder: Path, cheat: str, tally: Tally) -> Library:
    """A package in `folder` of which all is in tests/cheats/package.py; `cheat` is a function of it."""
    code = (HERE / "package.py").read_text(encoding="utf-8")
    code += f"\n\nCHOSEN = {cheat}\nTALLY = {str(tally.file)!r}\nNAME = __name__\nstart()\n"
    return registered.package(folder, "cheating", code, CARD)
