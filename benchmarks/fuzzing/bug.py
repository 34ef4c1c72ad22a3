"""A planted bug: a few replacements in a kernel's sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Device = Literal["cpu", "cuda"]
KernelName = Literal["attention", "rmsnorm", "swiglu", "int8_gemm"]
CodePath = Literal["binding", "cpu", "cuda", "mma_sync", "wgmma", "triton"]
"""What is changed: what both devices run, the CPU's code, the launch and what all GPU paths share, or one GPU path."""
Kind = Literal[
    "mask",  # which keys or elements count
    "tail",  # what is left after whole tiles
    "offset",  # where is read or written
    "size",  # only beyond some size
    "layout",  # views that are strided or misaligned
    "barrier",  # threads that must wait for each other
    "wait",  # copies and products that must have ended
    "stream",  # work that is queued where it should not be, and memory that streams share
    "rescaling",  # of sums so far, in an online softmax
    "rounding",  # precision
    "formula",  # what is computed
    "special value",  # NaN, Inf, subnormal numbers, the ends of a range
    "data-dependent",  # values that few inputs have
    "rare",  # one call or element in many
    "initial value",  # what is read before it is written
    "input",  # inputs that are changed
    "speed",  # no result: benchmarks/explain
]


@dataclass(frozen=True)
class Edit:
    """`old` becomes `new` in a file of the kernel's repository."""

    file: str
    old: str
    new: str
    times: int = 1
    """How often `old` stands there, exactly."""

    def applied(self, text: str) -> str:
        """The file's new contents. Raises ValueError where `old` is not there as often as it should be."""
        found = text.count(self.old)
        if found != self.times:
            raise ValueError(f"{self.file}: {self.old!r} stands there {found} times, not {self.times}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Bug:
    name: str
    kernel: KernelName
    path: CodePath
    kind: Kind
    what: str
    """What it does, in a sentence."""
    edits: tuple[Edit, ...]
    equivalent: str = ""
    """Why no result differs; empty where some does."""

    @property
    def id(self) -> str:
        return f"{self.kernel}/{self.path}/{self.name}"

    @property
    def devices(self) -> tuple[Device, ...]:
        """Where it can be seen."""
        return {"binding": ("cpu", "cuda"), "cpu": ("cpu",)}.get(self.path, ("cuda",))  # type: ignore[return-value]


def control(kernel: KernelName, path: CodePath) -> Bug:
    """The kernel as it is, which must pass everything."""
    return Bug("unmodified", kernel, path, "formula", "nothing is changed", (), "it is the kernel as it is")


def planted(bug: Bug, tree: Path) -> Mapping[Path, str]:
    """The contents of the files that the bug changes. Raises ValueError where an edit does not apply."""
    texts: dict[Path, str] = {}
    for edit in bug.edits:
        path = tree / edit.file
        texts[path] = edit.applied(texts[path] if path in texts else path.read_text(encoding="utf-8"))
    return texts
