"""How a card says that its commit becomes something that can be called: plain data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class ExtensionSpec(BaseModel):
    """CUDA and C++ sources that register operators with torch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["extension"] = "extension"
    sources: tuple[str, ...]
    """Patterns below the repository's root; a folder stands for all in it."""
    flags: tuple[str, ...] = ()
    nvcc_flags: tuple[str, ...] = ()
    torch: str | None = None
    """The version of torch that sources with torch/extension.h are compiled for; None means the stable ABI."""


class PackageSpec(BaseModel):
    """Python sources with Triton kernels."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["package"] = "package"
    package: str
    """A module or package below the repository's root, or in its src/."""
