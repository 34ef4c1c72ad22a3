"""A kernel's repository with a bug in it, and its library."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzzing.bug import Bug, Device, KernelName, control, planted
from kernelgate.bench.system import supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import child_environment

ROOT = Path(__file__).parent.parent.parent
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
