"""Imports a card's file, and says what went wrong. A base's and a head's card of one name may share a process."""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType

from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.card import Kernel

_numbers = count()
_STABLE_CALL = " API call failed at "
_TEXT = "torch_exception_get_what_without_backtrace"
"""Of torch's library: gives the text of the error that torch turned into a number last in this thread."""


def mistake_of(path: Path, member: str, error: BaseException) -> CardError:
    """An exception of the card's own code, at the last of its lines that took part."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.absolute())]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    quoted = isinstance(error, KernelgateError) or not str(error).strip()
    kind = "" if quoted else f"{type(error).__name__}: "
    return CardError(str(path), line, member, f"{kind}{first_line(error)}")


@contextmanager
def trying(path: Path, member: str) -> Iterator[None]:
    """Until the block ends, an error is a mistake of this member of the card; a CardError already says where."""
    try:
        yield
    except CardError:
        raise
    except Exception as error:
        raise mistake_of(path, member, error) from error


def load(path: Path) -> Kernel:
    """The card in a file, with numerics pinned, whatever its module sets. Raises CardError."""
    # Here, because who reads cards without torch loads this module, too.
    from kernelgate.bench.system import environment

    card = kernel_class(load_module(path), path)()
    environment.pin_numerics()
    return card


def load_module(path: Path) -> ModuleType:
    """Runs the file as a module of a name of its own."""
    name = f"kernelgate_card_{path.stem}_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CardError(str(path), None, "", "this is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True  # the folder may be a library's, whose files are counted
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise CardError(str(path), None, "", str(error.strerror)) from None
    except (Exception, SystemExit) as error:
        raise mistake_of(path, "", error) from None
    return module


def kernel_class(module: ModuleType, path: Path) -> type[Kernel]:
    """The one subclass of Kernel that the module defines."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Kernel)]
    found = [one for one in classes if one is not Kernel and one.__module__ == module.__name__]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        text = f"a card's file defines one subclass of kernelgate.Kernel; this one has {names}"
        raise CardError(str(path), None, "", text)
    return found[0]


def line_of(tree: ast.Module, member: str) -> int | None:
    """Where a class body defines a member; else where the class begins."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in (inner for one in classes for inner in one.body):
        if isinstance(node, ast.FunctionDef) and node.name == member:
            return node.lineno
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == member for target in targets):
            return node.lineno
    return classes[0].lineno if classes else None


def error_message(error: Exception) -> Exception:
    """The error, or one with what the kernel itself says where torch puts other words before it.

    Through torch's stable ABI an exception that a kernel throws inside of `parallel_for`, or that an operator of torch
    throws in a kernel's call, arrives as "… API call failed at …"; torch keeps its own text for whoever asks, in the
    same thread and soon after.
    """
    if isinstance(error, UnicodeDecodeError):  # the text itself could not be read
        return RuntimeError(error.object.decode(errors="replace"))
    if _STABLE_CALL not in first_line(error):
        return error
    import torch

    try:
        text = getattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")), _TEXT)
    except (OSError, AttributeError):  # a torch that keeps none
        return error
    text.restype = ctypes.c_char_p
    kept: bytes = text() or b""
    return RuntimeError(kept.decode(errors="replace").strip()) if kept.strip() else error
