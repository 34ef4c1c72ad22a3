"""Triton's cache while measuring: a private copy of what the build compiled, so that nothing is compiled here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build import package
from kernelgate.bench.build.library import CACHE
from kernelgate.bench.system import temporary

VARIABLE = "TRITON_CACHE_DIR"


@dataclass(frozen=True)
class SharedCache:
    """A folder that every side's kernels are found in."""

    folder: Path | None
    known: frozenset[Path] = frozenset()

    def compiled(self) -> tuple[str, ...]:
        """The kernels that were compiled since: the build had not made them."""
        return () if self.folder is None else package.compiled_since(self.known, self.folder)


@contextmanager
def shared(libraries: Sequence[Path]) -> Iterator[SharedCache]:
    """Until the block ends, Triton has what these libraries' builds compiled. Nothing happens for extensions."""
    caches = [folder / CACHE for folder in libraries if (folder / CACHE).is_dir()]
    if not caches:
        yield SharedCache(None)
        return
    before = os.environ.get(VARIABLE)
    with temporary.folder("kernelgate-triton-") as folder:
        known = package.install(caches, folder)
        os.environ[VARIABLE] = str(folder)
        try:
            yield SharedCache(folder, known)
        finally:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before
