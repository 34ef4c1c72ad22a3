"""Imports a card's file. Two cards of one name, a base's and a head's, may live in one process."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.card import Kernel

_numbers = count()


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
    found = [one for one in vars(module).values() if _is_card(one) and one.__module__ == module.__name__]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        text = f"a card's file defines one subclass of kernelgate.Kernel; this one has {names}"
        raise CardError(str(path), None, "", text)
    card: type[Kernel] = found[0]
    return card


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


def _is_card(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, Kernel) and one is not Kernel
