"""Makes a card's calls with a GPU that is not there, so that Triton compiles what they launch: the worker's part.

A process of its own for each target, forked once torch and Triton are loaded: a package may ask for the compute
capability when it is imported, and keep what it hears.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import multiprocessing
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from multiprocessing import connection
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import torch

from kernelgate.bench.build import archs
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import loading, operands, triton_runtime
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.fuzz_trials import OFFSET, WAY
from kernelgate.bench.kernel.loading import PackageImportError
from kernelgate.bench.kernel.operands import Bound
from kernelgate.bench.kernel.pretend_gpu import BlankDraw, pretend
from kernelgate.bench.kernel.triton_build import (
    SOURCES,
    SOURCES_FD,
    CompileCase,
    CompileRequest,
    PackageKernel,
    TargetReport,
)
from kernelgate.bench.system import orphans
from kernelgate.bench.system.worker import Leader

SIDE = "build"
MAX_TEXT = 500
DISABLED = (
    *("TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE", "TRITON_CACHE_MANAGER"),
    *("TRITON_KERNEL_DUMP", "TRITON_KERNEL_OVERRIDE"),
)
"""Variables of Triton for which it compiles nothing, or keeps it elsewhere."""
_CASE = "kernelgate calls case {}"
"""Printed before each case, for the process that may find this one gone."""
_DIAGNOSTIC = re.compile(r"^(?P<file>\S+?):(?P<line>\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)
"""Of the compiler behind the front end, which prints on standard error."""
_PTXAS = re.compile(r"^ptxas.*?error\s*: (?P<text>.*)$", re.MULTILINE)


def run(request: CompileRequest, leader: Leader) -> None:
    """Fills the cache of a package: as many targets at once as there are processors."""
    for name in DISABLED:
        os.environ.pop(name, None)
    os.environ |= {"TRITON_CACHE_DIR": str(request.cache), "TRITON_STORE_BINARY_ONLY": "1"}
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch.compile would compile for the CPU
    sys.dont_write_bytecode = True  # the folder is a library's
    torch.set_num_threads(1)  # a process with threads of OpenMP cannot be forked
    if _mentions_triton(request.folder) and importlib.util.find_spec("triton"):
        from triton.runtime import cache

        cache.triton_key()  # reads all of Triton once, not once in each fork
    os.dup2(os.open(request.folder, os.O_DIRECTORY), SOURCES_FD, inheritable=False)
    request = request.model_copy(update={"folder": SOURCES})
    fork = multiprocessing.get_context("fork")
    lock = fork.Lock()

    def send(report: TargetReport) -> None:
        with lock:  # several processes share the pipe; what is longer than its buffer is not written at once
            leader.send(report)

    waiting = list(request.targets)
    running: dict[Any, tuple[Any, TargetWork]] = {}
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            work = TargetWork(request, waiting.pop(0), send, tempfile.TemporaryFile())  # noqa: SIM115
            process = fork.Process(target=work.apart, args=[os.getpid()], daemon=True)
            process.start()
            running[process.sentinel] = process, work
        for sentinel in connection.wait(list(running)):
            process, work = running.pop(sentinel)
            process.join()
            if code := process.exitcode:
                printed = work.read_printed()
                if code > 0:
                    sys.exit(printed)
                # By taking the CPU's memory for a GPU's, say; faulthandler has printed the lines that led there.
                started = re.findall(_CASE.format(r"(\d+)"), printed)
                places = re.findall(rf'File "{request.folder}/(.+)", line (\d+)', printed)
                why = f"the process that made this call was ended by {signal.Signals(-code).name}"
                ids = tuple(case.id for case in request.cases[int(started[-1]) if started else 0 :])
                skipped = {said(":".join(places[0]) if places else "", why): ids}
                send(TargetReport(target=work.target, skipped=skipped, done=True))


def _mentions_triton(folder: Path) -> bool:
    """Whether there may be anything to compile: otherwise a call would compute on the CPU what is meant for a GPU."""
    return any(b"triton" in path.read_bytes() for path in folder.rglob("*.py"))


@dataclass
class TargetWork:
    """All calls of a card for one target, in a process that does nothing else. Each kernel is told of once."""

    request: CompileRequest
    target: str
    send: Callable[[TargetReport], None]
    printed: IO[bytes]
    """What standard output and error go to."""
    case: CompileCase = field(init=False)
    config: str | None = None
    """Of an autotuned kernel that is about to be launched."""
    failures: list[tuple[BaseException, Any]] = field(default_factory=list)
    """Errors of kernels in the present case, with the kernel; some are caught by who launched it."""
    entries: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def apart(self, leader: int) -> None:
        """In a fork of `leader`, whose file descriptors it has."""
        orphans.end_with_parent()
        if os.getppid() != leader:  # it died before the line above
            return
        for stream in (1, 2):
            os.dup2(self.printed.fileno(), stream)
        faulthandler.enable(self.printed)
        error, skipped = None, {}
        try:
            self._compile()
        except PackageImportError as failed:
            error = said(failed.place, failed.text)
            if not isinstance(failed.__cause__, ImportError | SyntaxError):  # it may be right where there is a GPU
                skipped, error = {error: tuple(case.id for case in self.request.cases)}, None
        except KernelgateError as failed:
            error = str(failed)
        self.send(TargetReport(target=self.target, error=error, skipped=skipped, done=True))

    def _compile(self) -> None:
        request, alias = self.request, loading.alias_of(self.request.package, SIDE)
        pretend(archs.target(self.target.removeprefix("sm_")), alias)
        operators = watch_operators(alias)
        kernel = loading.load(request.card)
        package = loading.load_package(request.folder, request.package, SIDE, importer=type(kernel).__module__)
        self.send(TargetReport(operators=operators()))
        if _mentions_triton(request.folder):
            self._compile_instead_of_launching()
            for number, case in enumerate(request.cases):
                self._call(number, case, kernel, package)
        self.send(TargetReport(operators=operators()))

    def read_printed(self, start: int = 0) -> str:
        self.printed.seek(start)
        return self.printed.read().decode(errors="replace")

    def _call(self, number: int, case: CompileCase, kernel: Kernel, package: ModuleType) -> None:
        """Timed calls compile all configurations that @triton.autotune would time, others the one that is fuzzed."""
        self.case, self.config = case, None
        self.failures.clear()
        start = self.printed.seek(0, os.SEEK_END)
        print(_CASE.format(number), file=sys.stderr, flush=True)
        tuning = triton_runtime.every_config(self._next_config) if case.timed else triton_runtime.one_config(case.id)
        try:
            with tuning:
                call(kernel, package, CaseAxes(case.axes))
        except (Exception, SystemExit) as error:
            causes = [*_causes(error)]
            failed = next((failure for failure in self.failures if failure[0] in causes), None)
            if failed is None:
                place = loading.place(error, self.request.folder)
                place = place or loading.place(error, self.request.card.parent)
                why = said(place, f"{type(error).__name__}: {_short(str(error))}")
            else:
                why = said(*explain(*failed, self.request.folder, self.read_printed(start)))
            if failed and case.timed:  # who reads this ends the process
                self.send(TargetReport(target=self.target, error=why))
            self.send(TargetReport(skipped={why: (case.id,)}))

    def _next_config(self, config: str | None) -> None:
        self.config = config

    def _compile_instead_of_launching(self) -> None:
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
                self._note(kernel.__name__, Path(next(iter(compiled.metadata_group.values()))))
            return compiled

        JITFunction.run = run

    def _note(self, function: str, file: Path) -> None:
        entry, name = file.parent.name, function
        if entry in self.entries:
            return
        self.entries.add(entry)
        if self.case.timed:
            name = f"{function}[{self.config}]" if self.config else function
            here = f"{name} at {self.case.id}"
            names = chain((name, here), (f"{here} #{number}" for number in count(2)))
            name = next(one for one in names if one not in self.names)
            self.names.add(name)
        made = PackageKernel(
            name=name,
            function=file.name.partition(".")[0],
            target=self.target,
            entry=entry,
            case=self.case.id,
            timed=self.case.timed,
            config=self.config,
        )
        self.send(TargetReport(kernels=(made,)))


def said(place: str, text: str) -> str:
    return f"{place}: {text}" if place else text


def call(kernel: Kernel, package: ModuleType, case: CaseAxes) -> None:
    """One call of the card, on inputs of the right shapes.

    Where the case is of that, each tensor is one element off an aligned address, too: Triton compiles another kernel.
    """
    given = operands.inputs(kernel, case, BlankDraw(case, "cpu", 0))
    outs = operands.empty_outputs(kernel, operands.output_shapes(kernel, case, given), "cpu")
    bound = Bound(kernel, package)
    bound.prepared(case, given, outs)()

    def off(which: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
        return torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape) if name == which else tensor

    names = [name for name, _ in operands.tensors({**given, **outs})] if case.get(WAY) == OFFSET else []
    for name in names:
        inputs, outputs = (operands.changed_by_name(values, partial(off, name)) for values in (given, outs))
        with suppress(Exception):  # it may refuse that
            bound.prepared(case, inputs, outputs)()


def watch_operators(alias: str) -> Callable[[], tuple[str, ...]]:
    """From now on notes what a package registers, and gives the function that tells, without the names of overloads.

    torch registers operators of its own when parts of it are first imported; they are left out.
    """

    def known_names() -> set[str]:
        return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}

    before, others = known_names(), set[str]()
    define = torch.library.Library.define

    def noted(library: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
        if not loading.called_by(alias):
            others.add(f"{library.ns}::{schema.partition('(')[0].partition('.')[0].strip()}")
        return define(library, schema, *args, **kwargs)  # type: ignore[no-untyped-call]

    torch.library.Library.define = noted  # type: ignore[method-assign, assignment]
    return lambda: tuple(sorted(known_names() - before - others))


def registered(request: CompileRequest) -> TargetReport:
    """What importing the package registers, where nothing is compiled."""
    operators = watch_operators(loading.alias_of(request.package, SIDE))
    loading.load_package(request.folder, request.package, SIDE)
    return TargetReport(operators=operators())


def explain(error: Any, kernel: Any, folder: Path, printed: str) -> tuple[str, str]:
    """Place and text of an error that compiling `kernel`, a triton.JITFunction, raised.

    The place is a line below `folder`, such as "my_kernels/swiglu.py:12", or of another file, with its whole path.
    `printed` is what went to standard error meanwhile.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import PTXASError
    from triton.runtime.jit import JITCallable

    if isinstance(error, CompilationError):
        while isinstance(error.__cause__, CompilationError):  # one for each function on the way: the innermost is wrong
            error = error.__cause__
        functions = (value for value in gc.get_objects() if issubclass(type(value), JITCallable))
        function = next((one for one in functions if one.src == error.src), None)
        place = _at(function, getattr(error.node, "lineno", 1), folder) if function is not None else ""
        return place, _short(error.error_message or str(error.__cause__ or error))
    if isinstance(error, PTXASError):
        match = _PTXAS.search(str(error))
        return _at(kernel, 1, folder), f"ptxas: {match['text']}" if match else _short(str(error))
    if match := _DIAGNOSTIC.search(printed):
        return _below(match["file"], int(match["line"]), folder), _short(match["text"])
    place = loading.place(error, folder) or _at(kernel, 1, folder)
    return place, f"{type(error).__name__}: {_short(str(error))}"


def _short(text: str) -> str:
    """The first line that says something."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "no message")[:MAX_TEXT]


def _at(function: Any, line: int, folder: Path) -> str:
    """The place of a line of the function, counted from 1 at its `def`."""
    decorators = next((at for at, text in enumerate(function.raw_src) if text.lstrip().startswith("def ")), 0)
    return _below(function.fn.__code__.co_filename, function.starting_line_number + decorators + line - 1, folder)


def _below(file: str, line: int, folder: Path) -> str:
    path = Path(file)
    return f"{path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path}:{line}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
