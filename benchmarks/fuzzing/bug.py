"""A planted bug: a few replacements in a kernel's sources, and the repository and library that have it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench.system import supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import child_environment

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
    edits: tuple[Edit, ...] = ()
    equivalent: str = ""
    """Why no result differs; empty where some does."""
    latent: str = ""
    """Wrong by the rules of the machine, and no result was ever seen to differ (docs/fuzzing.md): why."""

    def by(self, *edits: Edit, equivalent: str = "", latent: str = "") -> Bug:
        """The bug that these edits plant."""
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


@dataclass(frozen=True)
class PathBugs:
    """Makes bugs of one code path of a kernel."""

    kernel: KernelName
    path: CodePath

    def __call__(self, name: str, kind: Kind, what: str) -> Bug:
        return Bug(name, self.kernel, self.path, kind, what)


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


# ---- its repository --------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
KERNELGATE = (sys.executable, "-P", "-m", "kernelgate.ci.commands.cli")
SOURCES: Mapping[KernelName, tuple[Path, tuple[str, ...]]] = {
    "attention": (ROOT, ("csrc/attention", ".ci/kernels", ".ci/kernelgate.toml")),
    "rmsnorm": (ROOT / "tests/repositories/rmsnorm", ("csrc", ".ci")),
    "swiglu": (ROOT / "tests/repositories/swiglu", ("my_kernels", ".ci")),
    "int8_gemm": (ROOT / "tests/repositories/int8_gemm", ("csrc", ".ci")),
}
"""Where a kernel's repository is, and what of it is needed."""
PATHS = {"mma_sync": {"FA_S512_KERNEL": "mma_sync"}}
"""Variables with which a library runs this path where it would choose another."""
LIBRARY = "library"
BUILD_LIMITS = TimeLimits(silence_s=600.0, total_s=600.0)


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
        return self.tree / LIBRARY

    @property
    def environment(self) -> dict[str, str]:
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        return {**child_environment(), **PATHS.get(self.bug.path, {}), **hidden}


def plant(bug: Bug, device: Device, folder: Path) -> Planted:
    """A copy of the kernel's repository with the bug in it; for a CPU without the CUDA sources."""
    source, parts = SOURCES[bug.kernel]
    one = Planted(bug, device, folder)
    tree = one.tree
    shutil.rmtree(tree, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", *(("*.cu",) if device == "cpu" else ()))
    for part in parts:
        if (source / part).is_dir():
            shutil.copytree(source / part, tree / part, ignore=ignored)
        else:
            (tree / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / part, tree / part)
    for path, text in planted(bug, tree).items():
        path.write_text(text, encoding="utf-8")
    return one


def build(one: Planted, targets: str = "") -> None:
    """Compiles it as `kernelgate build` does, unless kernelgate's cache holds it; for these targets, or those that the
    environment names. Raises UnbuildableError."""
    lines: list[str] = []
    environment = {**one.environment, **({"TORCH_CUDA_ARCH_LIST": targets} if targets else {})}
    code = supervise.run(
        (*KERNELGATE, "build", "-o", str(one.library)),
        cwd=one.tree,
        env=environment,
        limits=BUILD_LIMITS,
        on_line=lines.append,
        on_silence=lambda _: None,
    )
    if code != 0:
        raise UnbuildableError("\n".join(lines[-40:]) or f"kernelgate build exited with {code}")


_BUILDING = threading.Lock()
"""Several detectors may want the same kernel as it is."""


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
