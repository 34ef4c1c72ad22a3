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

from kernelgate.bench.errors import KernelgateError

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


def load(library: Library) -> ForwardOut:
    """Loads the library into this process and returns its `forward_out`."""
    import torch

    try:
        torch.ops.load_library(str(library.path))  # type: ignore[no-untyped-call]
        operator: ForwardOut = getattr(torch.ops, library.manifest.namespace).forward_out
    except (OSError, AttributeError, RuntimeError) as error:
        raise KernelgateError(f"{library.path} cannot be loaded by torch {torch.__version__}: {error}") from None
    return operator
