"""Makes a card's calls with a GPU that is not there, so that Triton compiles what they launch: the worker's part.

A process of its own for each target: a package may ask for the compute capability when it is imported, and keep what it
hears.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import torch

from kernelgate.bench.build import archs
from kernelgate.bench.build.library import CACHE, PACKAGE
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
    Compiled,
    CompileRequest,
    PackageKernel,
)
from kernelgate.bench.system.worker import Doing, Leader

SIDE = "build"
MAX_TEXT = 500
DISABLED = (
    *("TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE", "TRITON_CACHE_MANAGER"),
    *("TRITON_KERNEL_DUMP", "TRITON_KERNEL_OVERRIDE"),
)
"""Variables of Triton for which it compiles nothing, or keeps it elsewhere."""
_DIAGNOSTIC = re.compile(r"^(?P<file>\S+?):(?P<line>\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)
"""Of the compiler behind the front end, which prints on standard error."""
_PTXAS = re.compile(r"^ptxas.*?error\s*: (?P<text>.*)$", re.MULTILINE)


def run(request: CompileRequest, leader: Leader) -> Compiled:
    """Calls every case with a GPU of the target; without a target, says what importing the package registers."""
    sys.dont_write_bytecode = True  # the folder is a library's
    alias, folder = loading.alias_of(request.package, SIDE), request.library / PACKAGE
    if request.target is None:
        operators = watch_operators(alias)
        loading.load_package(folder, request.package, SIDE)
        return Compiled(operators=operators())
    for name in DISABLED:
        os.environ.pop(name, None)
    os.environ |= {"TRITON_CACHE_DIR": str(request.library / CACHE), "TRITON_STORE_BINARY_ONLY": "1"}
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch.compile would compile for the CPU
    os.dup2(os.open(folder, os.O_DIRECTORY), SOURCES_FD, inheritable=False)
    faulthandler.enable()
    pretend(archs.target(request.target.removeprefix("sm_")), alias)
    operators = watch_operators(alias)
    try:
        kernel = loading.load(request.card)
        package = loading.load_package(SOURCES, request.package, SIDE, importer=type(kernel).__module__)
    except PackageImportError as error:
        why = _said(error.place, error.text)
        if isinstance(error.__cause__, ImportError | SyntaxError):
            return Compiled(error=why)
        return Compiled(skipped={case.id: why for case in request.cases}, done=True)  # it may be right on a GPU
    except KernelgateError as error:
        return Compiled(error=str(error))
    leader.send(Compiled(operators=operators()))
    # Where there is nothing to compile, a call would compute on the CPU what is meant for a GPU.
    mentions_triton = any(b"triton" in path.read_bytes() for path in folder.rglob("*.py"))
    launches = _Launches(request.target, leader)
    for case in request.cases if mentions_triton else ():
        leader.send(Doing(doing=case.id))
        try:
            with launches.of(case):
                call(kernel, package, CaseAxes(case.axes))
        except (Exception, SystemExit) as error:
            failed = launches.failure_behind(error)
            if failed and case.timed:
                return Compiled(error=failed)
            place = loading.place(error, SOURCES, request.card.parent)
            why = failed or _said(place, f"{type(error).__name__}: {_short(str(error))}")
            leader.send(Compiled(skipped={case.id: why}))
    return Compiled(operators=operators(), done=True)


class _Launches:
    """From when it is made, `kernel[grid](…)` compiles in this process. Each kernel is told of once."""

    def __init__(self, target: str, leader: Leader) -> None:
        from triton.runtime.jit import JITFunction

        self._target, self._leader = target, leader
        self._failures: list[tuple[BaseException, Any]] = []
        """Errors of kernels in the present case, with the kernel; some are caught by who launched it."""
        self._told: set[str] = set()
        """The entries of the cache, and the names."""
        launch = JITFunction.run

        def compile_instead(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ARG001
            try:
                compiled = launch(kernel, *args, grid=grid, warmup=True, **kwargs)
            except Exception as error:
                self._failures.append((error, kernel))
                raise
            if compiled is not None:
                self._tell(kernel.__name__, compiled)
            return compiled

        JITFunction.run = compile_instead

    def of(self, case: CompileCase) -> AbstractContextManager[None]:
        """While the case is called: a timed one compiles all configurations that @triton.autotune would time, another
        one the configuration that is fuzzed."""
        self._case, self._config = case, None
        self._failures.clear()
        self._begin = os.fstat(2).st_size
        if case.timed:
            return triton_runtime.every_config(partial(setattr, self, "_config"))
        return triton_runtime.one_config(case.id)

    def failure_behind(self, error: BaseException | None) -> str | None:
        """Place and text of the kernel's error that led to this one; None where no kernel's did."""
        while error is not None:
            if kernel := next((kernel for failure, kernel in self._failures if failure is error), None):
                printed = os.pread(2, os.fstat(2).st_size - self._begin, self._begin)
                return _said(*explain(error, kernel, printed.decode(errors="replace")))
            error = error.__cause__ or error.__context__
        return None

    def _tell(self, function: str, compiled: Any) -> None:
        file, name, case = Path(next(iter(compiled.metadata_group.values()))), function, self._case
        entry = file.parent.name
        if entry in self._told:
            return
        if case.timed:
            name = f"{function}[{self._config}]" if self._config else function
            here = f"{name} at {case.id}"
            names = chain((name, here), (f"{here} #{number}" for number in count(2)))
            name = next(one for one in names if one not in self._told)
        self._told |= {entry, name} if case.timed else {entry}
        made = PackageKernel(
            name=name,
            function=file.name.partition(".")[0],
            target=self._target,
            entry=entry,
            case=case.id,
            timed=case.timed,
            config=self._config,
            shared_bytes=compiled.metadata.shared,
            threads=32 * compiled.metadata.num_warps,
        )
        self._leader.send(Compiled(kernels=(made,)))


def _said(place: str, text: str) -> str:
    return f"{place}: {text}" if place else text


def call(kernel: Kernel, package: Any, case: CaseAxes) -> None:
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


def watch_operators(alias: str) -> Callable[[], frozenset[str]]:
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
    return lambda: frozenset(known_names() - before - others)


def explain(error: Any, kernel: Any, printed: str) -> tuple[str, str]:
    """Place and text of an error that compiling `kernel`, a triton.JITFunction, raised.

    The place is a line of the package, such as "my_kernels/swiglu.py:12", or of another file, with its whole path.
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
        place = _at(function, getattr(error.node, "lineno", 1)) if function is not None else ""
        return place, _short(error.error_message or str(error.__cause__ or error))
    if isinstance(error, PTXASError):
        match = _PTXAS.search(str(error))
        return _at(kernel, 1), f"ptxas: {match['text']}" if match else _short(str(error))
    if match := _DIAGNOSTIC.search(printed):
        return _below(match["file"], int(match["line"])), _short(match["text"])
    return loading.place(error, SOURCES) or _at(kernel, 1), f"{type(error).__name__}: {_short(str(error))}"


def _short(text: str) -> str:
    """The first line that says something."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "no message")[:MAX_TEXT]


def _at(function: Any, line: int) -> str:
    """The place of a line of the function, counted from 1 at its `def`."""
    decorators = next((at for at, text in enumerate(function.raw_src) if text.lstrip().startswith("def ")), 0)
    return _below(function.fn.__code__.co_filename, function.starting_line_number + decorators + line - 1)


def _below(file: str, line: int) -> str:
    return f"{file.removeprefix(f'{SOURCES}/')}:{line}"
