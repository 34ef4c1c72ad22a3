"""Makes a card's calls with a GPU that is not there, so that Triton compiles what they launch: the worker's part.

A process of its own for each target, forked once torch and Triton are loaded: a package may ask for the compute
capability when it is imported, and keep what it hears.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib.util
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy
import torch

from kernelgate.bench.build import archs
from kernelgate.bench.build.package import SOURCES, SOURCES_FD, PackageKernel
from kernelgate.bench.core.dtypes import canonical
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import loading, operands
from kernelgate.bench.kernel.calls import Bound
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.draw import TORCH_DTYPES, Draw
from kernelgate.bench.kernel.fuzz_domain import OFFSET
from kernelgate.bench.kernel.fuzz_list import WAY
from kernelgate.bench.kernel.package import autotune
from kernelgate.bench.kernel.package import errors as triton_errors
from kernelgate.bench.kernel.package import importer as package_import
from kernelgate.bench.kernel.package.importer import PackageImportError
from kernelgate.bench.kernel.package.pretend_gpu import pretend
from kernelgate.bench.kernel.package.probe import watch
from kernelgate.bench.kernel.package.protocol import (
    CompileCase,
    CompileRequest,
    Imported,
    NotCompiled,
    SkippedCases,
    TargetDone,
)
from kernelgate.bench.system import orphans
from kernelgate.bench.system.worker import Leader, Message

SIDE = "build"
CHANGES_THE_CACHE = (
    "TRITON_INTERPRET",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_CACHE_MANAGER",
    "TRITON_KERNEL_DUMP",
    "TRITON_KERNEL_OVERRIDE",
)
"""Variables of Triton for which it compiles nothing, or keeps it elsewhere."""
_CASE = "kernelgate calls case {}"
"""Printed before each case, for the process that may find this one gone."""

Send = Callable[[Message], None]


class BlankDraw(Draw):
    """Zeros in place of real numbers: compiling needs no values, and untouched zeros cost neither time nor memory."""

    def __call__(self, *shape: int, dtype: str | None = None) -> torch.Tensor:
        name = canonical(dtype or case_axes.dtype(self.case))
        wanted = TORCH_DTYPES.get(name or "")
        if wanted is None or not wanted.is_floating_point:
            return super().__call__(*shape, dtype=dtype)
        return _untouched(shape, wanted)

    def normal(self, *shape: int) -> torch.Tensor:
        return _untouched(shape, torch.float32)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:  # noqa: ARG002 - as Draw has them
        return _untouched(shape, torch.float32)


def _untouched(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that the system makes when they are read, as torch.zeros does not."""
    if 0 in shape:
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.from_numpy(numpy.zeros(prod(shape) * dtype.itemsize, numpy.uint8)).view(dtype).view(shape)


@dataclass
class Compiler:
    """Compiles what is launched instead of launching it, and tells of each kernel once."""

    target: str
    send: Send
    case: CompileCase
    config: str | None = None
    """Of an autotuned kernel that is about to be launched."""
    failures: list[tuple[BaseException, Any]] = field(default_factory=list)
    """Errors of kernels in the present case, with the kernel; some are caught by who launched it."""
    entries: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def install(self) -> None:
        """From now on `kernel[grid](…)` compiles in this process."""
        from triton.runtime.jit import JITFunction

        launch = JITFunction.run

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ARG001 - as Triton's
            try:
                compiled = launch(kernel, *args, grid=grid, warmup=True, **kwargs)
            except Exception as error:
                self.failures.append((error, kernel))
                raise
            if compiled is not None:
                self.note(kernel.__name__, Path(next(iter(compiled.metadata_group.values()))))
            return compiled

        JITFunction.run = run

    def note(self, function: str, file: Path) -> None:
        entry = file.parent.name
        if entry in self.entries:
            return
        self.entries.add(entry)
        self.send(
            PackageKernel(
                name=self._name(function) if self.case.timed else function,
                function=file.name.partition(".")[0],
                target=self.target,
                entry=entry,
                case=self.case.id,
                timed=self.case.timed,
                config=self.config,
            )
        )

    def _name(self, function: str) -> str:
        basis = f"{function}[{self.config}]" if self.config else function
        here = f"{basis} at {self.case.id}"
        name, number = (basis if basis not in self.names else here), 1
        while name in self.names:
            number += 1
            name = f"{here} #{number}"
        self.names.add(name)
        return name


@contextmanager
def _configs(compiler: Compiler) -> Iterator[None]:
    """Timed calls compile all configurations that @triton.autotune would time, fuzzed ones the one that is fuzzed."""

    def before(config: str | None) -> None:
        compiler.config = config

    timed = compiler.case.timed
    with autotune.every_config(before) if timed else autotune.one_config(compiler.case.id):
        yield


# ----------------------------------------------------------------------------------------------------------------------
# One target
# ----------------------------------------------------------------------------------------------------------------------


@dataclass
class TargetWork:
    """All calls of a card for one target, in a process that does nothing else."""

    request: CompileRequest
    compiler: Compiler
    printed: IO[bytes]
    """What standard error goes to."""
    skipped: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def run(self) -> NotCompiled | TargetDone:
        alias = package_import.alias_of(self.request.package, SIDE)
        pretend(archs.target(self.compiler.target.removeprefix("sm_")), alias)
        operators = watch(alias)
        try:
            kernel = loading.load(self.request.card)
            package = package_import.load(
                self.request.folder, self.request.package, SIDE, importer=type(kernel).__module__
            )
        except PackageImportError as error:
            if isinstance(error.__cause__, ImportError | SyntaxError):
                return self._not_compiled(error.place, error.text)
            # It may be right where there is a GPU.
            self._skip(error.place, error.text, self.request.cases)
        except KernelgateError as error:
            return self._not_compiled("", str(error))
        else:
            self.compiler.send(Imported(operators=operators()))
            fault = self._call_all(kernel, package) if mentions_triton(self.request.folder) else None
            if fault is not None:
                return fault
        skipped = tuple(
            SkippedCases(place=place, text=text, cases=tuple(cases)) for (place, text), cases in self.skipped.items()
        )
        return TargetDone(target=self.compiler.target, operators=operators(), skipped=skipped)

    def _call_all(self, kernel: Kernel, package: ModuleType) -> NotCompiled | None:
        self.compiler.install()
        for number, case in enumerate(_in_order(self.request)):
            self.compiler.case, self.compiler.config = case, None
            self.compiler.failures.clear()
            start = self.printed.seek(0, os.SEEK_END)
            print(_CASE.format(number), file=sys.stderr, flush=True)
            try:
                with _configs(self.compiler):
                    call(kernel, package, CaseAxes(case.axes))
            except (Exception, SystemExit) as error:
                place, text, of_kernel = self._explain(error, start)
                if of_kernel and case.timed:
                    return self._not_compiled(place, text)
                self._skip(place, text, [case])
        return None

    def _skip(self, place: str, text: str, cases: Iterable[CompileCase]) -> None:
        self.skipped.setdefault((place, text), []).extend(case.id for case in cases)

    def _explain(self, error: BaseException, start: int) -> tuple[str, str, bool]:
        """Place, text, and whether compiling a kernel raised it."""
        for failure, kernel in self.compiler.failures:
            if failure in _chain(error):
                self.printed.seek(start)
                printed = self.printed.read().decode(errors="replace")
                return *triton_errors.explain(failure, kernel, self.request.folder, printed), True
        place = package_import.place(error, self.request.folder) or package_import.place(
            error, self.request.card.parent
        )
        return place, f"{type(error).__name__}: {triton_errors.short(str(error))}", False

    def _not_compiled(self, place: str, text: str) -> NotCompiled:
        return NotCompiled(target=self.compiler.target, place=place, text=text)


def _in_order(request: CompileRequest) -> list[CompileCase]:
    """Timed cases first, so that what they launch is known as theirs."""
    return sorted(request.cases, key=lambda case: not case.timed)


def mentions_triton(folder: Path) -> bool:
    """Whether there may be anything to compile: otherwise a call would compute on the CPU what is meant for a GPU."""
    return any(b"triton" in path.read_bytes() for path in folder.rglob("*.py"))


def call(kernel: Kernel, package: ModuleType, case: CaseAxes) -> None:
    """One call of the card, on inputs of the right shapes."""
    given = operands.inputs(kernel, case, BlankDraw(case, "cpu", 0))
    shapes = operands.output_shapes(kernel, case, given)
    outs = operands.empty_outputs(kernel, shapes, "cpu")
    bound = Bound.of(kernel, package)
    bound.prepared(case, given, outs)()
    if case.get(WAY) != OFFSET:
        return
    for name in [name for name, _ in operands.tensors({**given, **outs})]:
        inputs, outputs = (operands.changed_by_name(values, partial(_off, name)) for values in (given, outs))
        with suppress(Exception):  # it may refuse that
            bound.prepared(case, inputs, outputs)()


def _off(which: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that is meant one element off an aligned address, for which Triton compiles another kernel."""
    if name != which:
        return tensor
    return torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ----------------------------------------------------------------------------------------------------------------------
# All targets
# ----------------------------------------------------------------------------------------------------------------------


def compile_targets(request: CompileRequest, send: Send) -> None:
    """As many targets at once as there are processors."""
    waiting = list(request.targets)
    running: dict[int, tuple[str, IO[bytes]]] = {}
    """By process: the target, and what the process prints."""
    locked = _one_at_a_time(send)
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            target = waiting.pop(0)
            output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this process
            running[_fork(request, target, locked, output)] = target, output
        pid, status = os.wait()
        target, output = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read().decode(errors="replace")
        if code < 0:
            locked(_killed(request, target, signal.Signals(-code).name, printed))
        elif code > 0:
            sys.exit(printed)


def _fork(request: CompileRequest, target: str, send: Send, printed: IO[bytes]) -> int:
    leader = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        orphans.end_with_parent()
        if os.getppid() != leader:  # it died before the line above
            os._exit(1)
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
        faulthandler.enable(printed)
        compiler = Compiler(target, send, request.cases[0])
        send(TargetWork(request, compiler, printed).run())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _killed(request: CompileRequest, target: str, name: str, printed: str) -> TargetDone:
    """Where a call ended its process, it and the cases after it are left out.

    It may have taken the CPU's memory for a GPU's. faulthandler has printed the lines that led there.
    """
    started = re.findall(_CASE.format(r"(\d+)"), printed)
    cases = _in_order(request)[int(started[-1]) if started else 0 :]
    frames = [(Path(file), line) for file, line in re.findall(r'File "(.+)", line (\d+)', printed)]
    places = [f"{file.relative_to(request.folder)}:{line}" for file, line in frames if request.folder in file.parents]
    text = f"the process that made this call was ended by {name}"
    skipped = SkippedCases(place=next(iter(places), ""), text=text, cases=tuple(case.id for case in cases))
    return TargetDone(target=target, operators=(), skipped=(skipped,))


def _one_at_a_time(send: Send) -> Send:
    """`send` for several processes that share a pipe: what is longer than the pipe's buffer is not written at once."""
    lock = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this process

    def locked(message: Message) -> None:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        try:
            send(message)
        finally:
            fcntl.lockf(lock, fcntl.LOCK_UN)

    return locked


def run(request: CompileRequest, leader: Leader) -> None:
    """Fills the cache of a package, target after target."""
    for name in CHANGES_THE_CACHE:
        os.environ.pop(name, None)
    os.environ |= {"TRITON_CACHE_DIR": str(request.cache), "TRITON_STORE_BINARY_ONLY": "1"}
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch.compile would compile for the CPU
    sys.dont_write_bytecode = True  # the folder is a library's
    torch.set_num_threads(1)  # a process with threads of OpenMP cannot be forked
    if mentions_triton(request.folder) and importlib.util.find_spec("triton"):
        from triton.runtime import cache

        cache.triton_key()  # reads all of Triton once, not once in each fork
    os.dup2(os.open(request.folder, os.O_DIRECTORY), SOURCES_FD, inheritable=False)
    compile_targets(request.model_copy(update={"folder": SOURCES}), leader.send)
