"""One commit's compiled kernel: a folder with `kernel.so` and `library.json`.

The folder is all that crosses from the machine that compiles to the machine that measures. The library registers two
operators under its own namespace, so that base and head can live in one process:

    forward(Tensor q, Tensor k, Tensor v, float scale, bool causal) -> Tensor
    forward_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, float scale, bool causal) -> ()

with contiguous q, k, v, out of shape (B, H, S, 64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelgate.bench import record
from kernelgate.bench.build.occupancy import with_occupancy
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.record import KernelFacts

if TYPE_CHECKING:
    import torch

LIBRARY = "kernel.so"
MANIFEST = "library.json"

ForwardOut = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor", float, bool], None]
"""(q, k, v, out, scale, causal)"""


class Manifest(BaseModel):
    """What `library.json` says of the library beside it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespace: str
    sha: str | None
    """The commit, or null for a working tree with changes, and in the cache, which knows contents alone."""
    targets: tuple[str, ...]
    """Such as ("sm_89", "sm_90"); empty for a library with the CPU path alone."""
    key: str
    """The content address: a hash over the sources, the recipe and the compilers."""
    seconds: float
    """How long compiling took."""
    sha256: str
    """Of the library file."""
    kernels: tuple[KernelFacts, ...]
    """What the compiler made of each kernel; without occupancy, which is a GPU's. No default: a manifest of the time
    before this field is refused, so that its library is built again."""
    facts_missing: str | None = None
    """Why `kernels` is empty."""


@dataclass(frozen=True)
class Library:
    folder: Path
    manifest: Manifest
    cached: bool
    """True where nothing had to be compiled."""

    @property
    def path(self) -> Path:
        return self.folder / LIBRARY


@dataclass(frozen=True)
class Sides:
    """The libraries that a call names. Without a base, the head is timed alone."""

    base: Library | None
    head: Library

    @property
    def named(self) -> dict[str, Library]:
        """Both, or the head alone, by side."""
        return {"head": self.head} if self.base is None else {"base": self.base, "head": self.head}


def read(folder: Path) -> Library:
    """The library in `folder`. Raises KernelgateError where a file is missing, malformed, or not the one described."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        digest = hashlib.sha256((folder / LIBRARY).read_bytes()).hexdigest()
    except OSError as error:
        raise KernelgateError(f"{folder} holds no compiled kernel: {error.filename}: {error.strerror}") from None
    except ValidationError as error:
        raise KernelgateError(f"{folder / MANIFEST} is not a library manifest: {error}") from None
    if digest != manifest.sha256:
        raise KernelgateError(f"{folder / LIBRARY} is not the file that {MANIFEST} describes; build it again")
    return Library(folder, manifest, cached=True)


def build_records(sides: Sides, card: str) -> tuple[record.Build, ...]:
    """The libraries as a run record holds them: the one place where a `Build` is made."""
    return tuple(build_record(library, side, card) for side, library in sides.named.items())


def build_record(library: Library, side: record.Side, card: str) -> record.Build:
    manifest = library.manifest
    return record.Build(
        card=card,
        side=side,
        sha=manifest.sha,
        key=manifest.key,
        tree="clean" if manifest.sha else "changed",
        seconds=manifest.seconds,
        cached=library.cached,
        targets=manifest.targets,
        library_sha256=manifest.sha256,
        kernels=tuple(map(with_occupancy, manifest.kernels)),
    )


def facts_missing(sides: Sides) -> tuple[str, ...]:
    """Why nothing is known of a side's kernels, a sentence each; a library for the CPU alone has none to know of."""
    return tuple(
        f"{side}: {library.manifest.facts_missing}"
        for side, library in sides.named.items()
        if library.manifest.targets and library.manifest.facts_missing
    )


def load(library: Library) -> ForwardOut:
    """Loads the library into this process and returns its `forward_out`."""
    import torch

    try:
        torch.ops.load_library(str(library.path))  # type: ignore[no-untyped-call]
        operator: ForwardOut = getattr(torch.ops, library.manifest.namespace).forward_out
    except (OSError, AttributeError, RuntimeError) as error:
        raise KernelgateError(f"{library.path} cannot be loaded by torch {torch.__version__}: {error}") from None
    return operator
