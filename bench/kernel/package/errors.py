"""Where a Triton kernel's error is, as file and line, and what it says in one line."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

from kernelgate.bench.kernel.package.importer import place

MAX_TEXT = 500
_DIAGNOSTIC = re.compile(r"^(?P<file>\S+?):(?P<line>\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)
"""Of the compiler behind the front end, which prints on standard error."""
_PTXAS = re.compile(r"^ptxas.*?error\s*: (?P<text>.*)$", re.MULTILINE)


def explain(error: BaseException, kernel: Any, folder: Path, printed: str) -> tuple[str, str]:
    """Place and text of an error that compiling `kernel`, a triton.JITFunction, raised.

    The place is a line below `folder`, such as "my_kernels/swiglu.py:12", or of another file, with its whole path.
    `printed` is what went to standard error meanwhile.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import PTXASError

    if isinstance(error, CompilationError):
        return _front_end(error, folder)
    here = _at(kernel, 1, folder)
    if isinstance(error, PTXASError):
        found = _PTXAS.search(str(error))
        return here, f"ptxas: {found['text']}" if found else short(str(error))
    if found := _DIAGNOSTIC.search(printed):
        return _below(found["file"], int(found["line"]), folder), short(found["text"])
    return place(error, folder) or here, f"{type(error).__name__}: {short(str(error))}"


def short(text: str) -> str:
    """The first line that says something."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "no message")[:MAX_TEXT]


def _front_end(error: Any, folder: Path) -> tuple[str, str]:
    """Of a chain of errors, one for each function on the way, the innermost is the one to fix."""
    from triton.compiler.errors import CompilationError

    inner = error
    while isinstance(inner.__cause__, CompilationError):
        inner = inner.__cause__
    text = inner.error_message or str(inner.__cause__ or inner)
    function = next((one for one in _functions() if one.src == inner.src), None)
    line = getattr(inner.node, "lineno", 1)
    return _at(function, line, folder) if function is not None else "", short(text)


def _functions() -> list[Any]:
    """Every function that Triton may compile."""
    from triton.runtime.jit import JITCallable

    return [one for one in gc.get_objects() if issubclass(type(one), JITCallable)]


def _at(function: Any, line: int, folder: Path) -> str:
    """The place of a line of the function, counted from 1 at its `def`."""
    decorators = next((at for at, text in enumerate(function.raw_src) if text.lstrip().startswith("def ")), 0)
    return _below(function.fn.__code__.co_filename, function.starting_line_number + decorators + line - 1, folder)


def _below(file: str, line: int, folder: Path) -> str:
    path = Path(file)
    known = path.is_relative_to(folder.absolute())
    return f"{path.relative_to(folder.absolute()).as_posix() if known else path}:{line}"
