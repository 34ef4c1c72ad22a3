"""Compiles a package's Triton kernels on a machine without a GPU: the messages, and the part of the process that leads.

Which kernels there are, and for which kinds of arguments, the card's own `call` shows: the worker (compiler.py)
makes it for every case, with a GPU that is not there (pretend_gpu.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kernelgate.bench.build import package
from kernelgate.bench.build.package import PackageKernel
from kernelgate.bench.core.errors import BuildError, CannotCompileError
from kernelgate.bench.system.supervise import LIMITS, TimeLimits
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

WORKER = "kernelgate.bench.kernel.package.compiler:run"


class CompileCase(Message):
    """One call whose kernels are compiled."""

    id: str
    """Of a fuzzed case, what autotune.one_config is given when it is fuzzed."""
    axes: dict[str, bool | int | float | str]
    timed: bool
    """What is not timed is fuzzed: a kernel that cannot be compiled for it is the fuzzer's to report."""


class CompileRequest(Message):
    """All of a package's kernels, for all targets. Every path is absolute."""

    folder: Path
    """What is on the import path for the package."""
    package: str
    card: Path
    """The file of the commit's own card."""
    cases: Annotated[tuple[CompileCase, ...], Field(min_length=1)]
    """The target case first."""
    targets: tuple[str, ...]
    """Such as ("sm_80", "sm_90")."""
    cache: Path
    """Becomes TRITON_CACHE_DIR; need not exist."""


class NotCompiled(Message):
    """A kernel that a timed case launches has an error, or the package cannot be imported: the end."""

    kind: Literal["not_compiled"] = "not_compiled"
    target: str
    place: str
    """File and line, such as "my_kernels/swiglu.py:12", from the folder that is on the import path; may be empty."""
    text: str


class Imported(Message):
    """The package is there; its cases are called next."""

    kind: Literal["imported"] = "imported"
    operators: tuple[str, ...]
    """What the package registered with torch, as "my_ops::scale"."""


class SkippedCases(Message):
    """Calls that failed otherwise than by a kernel's error in a timed case: what they launch is not in the cache."""

    place: str
    """As in NotCompiled."""
    text: str
    cases: tuple[str, ...]


class TargetDone(Message):
    """All cases were called for a target."""

    kind: Literal["done"] = "done"
    target: str
    operators: tuple[str, ...]
    """Those registered in calls, too."""
    skipped: tuple[SkippedCases, ...]


_MESSAGE: TypeAdapter[PackageKernel | NotCompiled | Imported | TargetDone] = TypeAdapter(
    Annotated[PackageKernel | NotCompiled | Imported | TargetDone, Field(discriminator="kind")]
)


class PackageError(BuildError):
    """A package does not compile, or cannot be imported where there is no GPU."""

    def __init__(self, target: str, place: str, text: str) -> None:
        super().__init__(f"{place}: {text}" if place else text)
        self.target = target


@dataclass(frozen=True)
class CompiledPackage:
    """What a cache holds now."""

    kernels: tuple[PackageKernel, ...]
    operators: tuple[str, ...]
    """What the package registers with torch; where another side registers one of them too, the two cannot share a
    process."""
    skipped: tuple[SkippedCases, ...]
    """For the person who waits: these calls' kernels are compiled where there is a GPU."""


def compile_package(
    request: CompileRequest, on_kernel: Callable[[PackageKernel], None], limits: TimeLimits = LIMITS
) -> CompiledPackage:
    """Fills the request's cache, which becomes that of a library. `on_kernel` is called as kernels are done.

    Raises PackageError at the first error, and CannotCompileError past the time limit or where the worker is gone.
    """
    kernels: list[PackageKernel] = []
    operators: set[str] = set()
    skipped: dict[tuple[str, str], list[str]] = {}
    waiting = set(request.targets)
    deadline = time.monotonic() + limits.total_s
    with WorkerProcess(WORKER) as worker:
        try:
            worker.send(request)
            while waiting:
                message = worker.receive(_MESSAGE, max(0.0, deadline - time.monotonic()))
                if isinstance(message, NotCompiled):
                    raise PackageError(message.target, message.place, message.text)
                if isinstance(message, PackageKernel):
                    kernels.append(message)
                    on_kernel(message)
                    continue
                operators.update(message.operators)
                if isinstance(message, Imported):
                    continue
                waiting.remove(message.target)
                for one in message.skipped:
                    skipped.setdefault((one.place, one.text), []).extend(one.cases)
        except WorkerError as error:
            if time.monotonic() >= deadline:
                raise CannotCompileError(
                    f"{request.package} took longer to compile than {limits.total_s:g} s"
                ) from None
            raise CannotCompileError(f"{request.package} cannot be compiled: {error}") from None
    kernels.sort(key=lambda one: (one.target, one.name, one.entry))
    package.finish(request.cache, kernels)
    merged = tuple(
        SkippedCases(place=place, text=text, cases=tuple(dict.fromkeys(cases)))
        for (place, text), cases in skipped.items()
    )
    return CompiledPackage(tuple(kernels), tuple(sorted(operators)), merged)
