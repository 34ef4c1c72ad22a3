"""A planted bug: a few replacements in a kernel's sources, and the repository and library that have it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench.system.worker import child_environment

Device = Literal["cpu", "cuda"]
KernelName = Literal["attention", "rmsnorm", "swiglu", "int8_gemm"]
CodePath = Literal["binding", "cpu", "cuda", "mma_sync", "wgmma", "triton"]
"""What is changed: what both devices run, the CPU's code, the launch and what all GPU paths share, or one GPU path."""


@dataclass(frozen=True)
class Edit:
    """`old`, which stands so many times in a file of the kernel's repository, becomes `new`."""

    file: str
    old: str
    new: str
    times: int = 1

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
    kind: str
    """What is wrong, in a word or two: "mask", "tail", "rounding"."""
    what: str
    """What it does, in a sentence."""
    file: str = ""
    """What `swap` changes."""
    edits: tuple[Edit, ...] = ()
    equivalent: str = ""
    """Why no result differs; empty where some does."""
    latent: str = ""
    """Wrong by the rules of the machine, and no bit of a result was ever seen to differ, in calls that
    benchmarks/results/fuzzing_latent.json counts: why."""

    def swap(self, old: str, new: str, times: int = 1, file: str = "", equivalent: str = "", latent: str = "") -> Bug:
        """The bug with one edit more, of its path's own file where none is named."""
        edits = (*self.edits, Edit(file or self.file, old, new, times))
        return replace(self, edits=edits, equivalent=equivalent, latent=latent)

    @property
    def changes_results(self) -> bool:
        return not (self.equivalent or self.latent)

    @property
    def id(self) -> str:
        return f"{self.kernel}/{self.path}/{self.name}"

    @property
    def devices(self) -> tuple[Device, ...]:
        """Where it can be seen."""
        return {"binding": ("cpu", "cuda"), "cpu": ("cpu",)}.get(self.path, ("cuda",))  # type: ignore[return-value]


def bugs_of(kernel: KernelName, path: CodePath, file: str = "") -> Callable[[str, str, str], Bug]:
    """Makes bugs of one code path of a kernel, by name, kind and what they do."""
    return lambda name, kind, what: Bug(name, kernel, path, kind, what, file)


def control(kernel: KernelName, path: CodePath) -> Bug:
    """The kernel as it is, which must pass everything."""
    return Bug("unmodified", kernel, path, "formula", "nothing is changed", equivalent="it is the kernel as it is")


def planted(bug: Bug, tree: Path) -> Mapping[Path, str]:
    """The contents of the files that the bug changes. Raises ValueError where an edit does not apply."""
    texts: dict[Path, str] = {}
    for edit in bug.edits:
        path = tree / edit.file
        texts[path] = edit.applied(texts[path] if path in texts else path.read_text(encoding="utf-8"))
    return texts


ROOT = Path(__file__).parents[2]
KERNELGATE = (sys.executable, "-P", "-m", "kernelgate.ci.commands.cli")
SOURCES: Mapping[KernelName, tuple[Path, tuple[str, ...]]] = {
    "attention": (ROOT, ("csrc/attention", ".ci")),
    "rmsnorm": (ROOT / "tests/repositories/rmsnorm", ("csrc", ".ci")),
    "swiglu": (ROOT / "tests/repositories/swiglu", ("my_kernels", ".ci")),
    "int8_gemm": (ROOT / "tests/repositories/int8_gemm", ("csrc", ".ci")),
}
"""Where a kernel's repository is, and what of it is needed."""
PATHS = {"mma_sync": {"FA_S512_KERNEL": "mma_sync"}}
"""Variables with which a library runs this path where it would choose another."""
BUILD_S = 600.0


class UnbuildableError(Exception):
    """What the compiler said."""


@dataclass(frozen=True)
class Planted:
    """A bug's repository."""

    bug: Bug
    device: Device
    folder: Path
    """Where all repositories of a run are."""

    @property
    def tree(self) -> Path:
        return self.folder / self.device / self.bug.id

    @property
    def library(self) -> Path:
        return self.tree / "library"

    @property
    def environment(self) -> dict[str, str]:
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        return {**child_environment(), **PATHS.get(self.bug.path, {}), **hidden}


def plant(bug: Bug, device: Device, folder: Path) -> Planted:
    """A copy of the kernel's repository with the bug in it; for a CPU without the CUDA sources."""
    source, parts = SOURCES[bug.kernel]
    tree = Planted(bug, device, folder).tree
    shutil.rmtree(tree, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", *(("*.cu",) if device == "cpu" else ()))
    for part in parts:
        shutil.copytree(source / part, tree / part, ignore=ignored)
    for path, text in planted(bug, tree).items():
        path.write_text(text, encoding="utf-8")
    return Planted(bug, device, folder)


def build(one: Planted, targets: str = "") -> None:
    """Compiles it as `kernelgate build` does, unless kernelgate's cache holds it; for these targets, or those that the
    environment names. Raises UnbuildableError."""
    environment = {**one.environment, **({"TORCH_CUDA_ARCH_LIST": targets} if targets else {})}
    words = (*KERNELGATE, "build", "-o", str(one.library))
    done = subprocess.run(
        words, cwd=one.tree, env=environment, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    if done.returncode:
        raise UnbuildableError(done.stderr[-4000:] or f"kernelgate build exited with {done.returncode}")


_BUILDING = threading.Lock()  # several detectors may want the same kernel as it is


def unmodified(one: Planted) -> Planted:
    """The same kernel without the bug, built beside it unless it is there. Raises UnbuildableError."""
    right = Planted(control(one.bug.kernel, one.bug.path), one.device, one.folder / "unmodified")
    with _BUILDING:
        if not right.library.exists():
            right = plant(right.bug, right.device, right.folder)
            build(right)
    return right


def cores() -> int:
    return len(os.sched_getaffinity(0))
