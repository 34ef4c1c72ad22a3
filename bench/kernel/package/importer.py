"""Imports a commit's package from its library folder, beside another commit's package of the same name.

Every side's modules have names of their own in sys.modules: the base's `my_kernels` is `my_kernels__base`. So relative
imports stay within a side. An absolute `import my_kernels.swiglu`, at the top or inside a function, is answered by who
asks: builtins.__import__ and importlib.import_module are replaced by functions that translate the name for modules of a
side and leave everyone else alone.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType

from kernelgate.bench.core.errors import KernelgateError


@dataclass(frozen=True)
class Origin:
    """One side's package."""

    folder: Path
    """What is on the import path for it."""
    name: str
    """As the package's own code writes it."""
    alias: str
    """In sys.modules."""
    importer: str | None
    """A module outside of the package, the side's card, whose imports of the package mean this one."""

    def translated(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        return f"{self.alias}{dot}{rest}" if root == self.name else name


class PackageImportError(KernelgateError):
    """A package cannot be imported; `__cause__` is what its code raised."""

    def __init__(self, name: str, place: str, text: str) -> None:
        super().__init__(f"the package {name} cannot be imported: {f'{place}: ' if place else ''}{text}")
        self.place = place
        """Such as "my_kernels/swiglu.py:12"; empty where no line of the package took part."""
        self.text = text


_origins: dict[str, Origin] = {}
"""By alias."""
_import = builtins.__import__
_import_module = importlib.import_module


def load(folder: Path, name: str, side: str, importer: str | None = None) -> ModuleType:
    """The package `name` from `folder`, as that of `side`, which is a word. A second call gives the same module.

    `importer`: the `__name__` of a module outside of the package that may import it, too: the side's card. Raises
    PackageImportError, and KernelgateError where the side already has the package from another folder.
    """
    origin = Origin(folder.absolute(), name, alias_of(name, side), importer)
    known = _origins.get(origin.alias)
    if known is not None and known.folder != origin.folder:
        raise KernelgateError(f"{side} already has the package {name} from {known.folder}; it cannot have {folder} too")
    if known is not None:
        return sys.modules[origin.alias]
    _install()
    _origins[origin.alias] = origin
    sys.dont_write_bytecode = True  # the folder is a library's, whose files are counted
    try:
        return _load(origin)
    except BaseException as error:
        forget(origin.alias)
        if not isinstance(error, Exception | SystemExit):
            raise
        text = f"{type(error).__name__}: {error}".strip().split("\n")[0]
        raise PackageImportError(name, place(error, origin.folder), text.replace(origin.alias, name)) from error


def alias_of(name: str, side: str) -> str:
    """What a side's package is called in sys.modules."""
    return f"{name}__{side}"


def called_by(alias: str) -> bool:
    """Whether a line of the package has led here, and not the import of another module in between."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.partition(".")[0] == alias:
            return True
        if name.startswith("importlib."):
            return False
        frame = frame.f_back
    return False


def forget(alias: str) -> None:
    """Takes a side's package out of this process, as far as nothing else refers to it."""
    _origins.pop(alias, None)
    for module in [one for one in sys.modules if one == alias or one.startswith(f"{alias}.")]:
        del sys.modules[module]


def place(error: BaseException, *folders: Path) -> str:
    """The last line below `folders` that took part in an error, such as "my_kernels/swiglu.py:12"; else empty."""
    steps = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        steps.append((error.filename, error.lineno))
    for filename, line in reversed(steps):
        for folder in folders:
            if Path(filename).is_relative_to(folder.absolute()):
                return f"{Path(filename).relative_to(folder.absolute()).as_posix()}:{line}"
    return ""


def _load(origin: Origin) -> ModuleType:
    spec = _spec(origin)
    module = importlib.util.module_from_spec(spec)
    sys.modules[origin.alias] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return sys.modules[origin.alias]  # a module may put another object in its place


def _spec(origin: Origin) -> ModuleSpec:
    folder = origin.folder / origin.name
    file = origin.folder / f"{origin.name}.py"
    spec = None
    if (folder / "__init__.py").is_file():
        search = [str(folder)]
        spec = importlib.util.spec_from_file_location(
            origin.alias, folder / "__init__.py", submodule_search_locations=search
        )
    elif folder.is_dir():
        spec = ModuleSpec(origin.alias, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    elif file.is_file():
        spec = importlib.util.spec_from_file_location(origin.alias, file)
    if spec is None:
        raise ModuleNotFoundError(f"{origin.folder} has neither {origin.name}/ nor {origin.name}.py", name=origin.name)
    return spec


# ----------------------------------------------------------------------------------------------------------------------
# Who asks
# ----------------------------------------------------------------------------------------------------------------------


def _install() -> None:
    builtins.__import__ = _import_for_the_asking
    importlib.import_module = _import_module_for_the_asking


def _import_for_the_asking(
    name: str,
    globals: Mapping[str, object] | None = None,  # noqa: A002 - builtins.__import__ calls it so
    locals: Mapping[str, object] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    if level == 0:  # a call of __import__ that is written out gives no globals
        name = _translated(name, sys._getframe(1).f_globals if globals is None else globals)
    return _import(name, globals, locals, fromlist or (), level)


def _import_module_for_the_asking(name: str, package: str | None = None) -> ModuleType:
    return _import_module(_translated(name, _caller(sys._getframe(1)).f_globals), package)


def _caller(frame: FrameType) -> FrameType:
    """Who called into importlib: importlib.resources imports the package that it is asked for by name."""
    while str(frame.f_globals.get("__name__")).startswith("importlib.") and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _translated(name: str, asking: Mapping[str, object]) -> str:
    """The name in sys.modules of what a module with these globals calls `name`."""
    asker = str(asking.get("__name__")).partition(".")[0]
    origin = _origins.get(asker)
    if origin is not None:
        return origin.translated(name)
    meant = [one.translated(name) for one in _origins.values() if one.importer == asker]
    if len(set(meant)) > 1:
        raise ImportError(f"{name} is a package of both sides here: use the one that call() is handed", name=name)
    return meant[0] if meant else name
