"""Imports a card's file or a package, and says what went wrong. Base's and head's of one name may share a process.

Every side's modules have names of their own in sys.modules: the base's `my_kernels` is `my_kernels__base.my_kernels`,
which holds and begins with the name, since packages look for their own in a function's `__module__`. An absolute
`import my_kernels.swiglu` is answered by who asks: builtins.__import__ and importlib.import_module are replaced by
functions that translate the name for modules of a side and leave everyone else alone.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from itertools import count
from operator import attrgetter
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from kernelgate.bench.core.errors import CardError, KernelgateError, first_line
from kernelgate.bench.kernel.card import AxisError, Kernel

_numbers = count()
_TEXT = "torch_exception_get_what_without_backtrace"
"""Of torch's library: gives the text of the error that torch turned into a number last in this thread."""


def mistake_of(path: Path, member: str, error: BaseException) -> CardError:
    """An exception of the card's own code, at the last of its lines that took part."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.absolute())]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    quoted = isinstance(error, KernelgateError | AxisError) or not str(error).strip()
    kind = "" if quoted else f"{type(error).__name__}: "
    return CardError(str(path), line, member, f"{kind}{first_line(error)}")


tell_member: Callable[[str], object] = str
"""Where somebody waits for this process: tells which member is tried, in case that ends it."""


@contextmanager
def trying(path: Path, member: str) -> Iterator[None]:
    """Until the block ends, an error is a mistake of this member of the card; a CardError already says where."""
    tell_member(member)
    try:
        yield
    except CardError:
        raise
    except (Exception, SystemExit) as error:
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
    spec = importlib.util.spec_from_file_location(f"kernelgate_card_{path.stem}_{next(_numbers)}", path)
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
    """The error, or one with what the kernel itself says: an exception beyond torch's stable ABI arrives as "… API call
    failed at …", and torch keeps its own text for whoever asks, in the same thread and soon after."""
    if isinstance(error, UnicodeDecodeError):  # the text itself could not be read
        return RuntimeError(error.object.decode(errors="replace"))
    if " API call failed at " not in first_line(error):
        return error
    import torch

    try:
        text = getattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")), _TEXT)
    except (OSError, AttributeError):  # a torch that keeps none
        return error
    text.restype = ctypes.c_char_p
    kept: bytes = text() or b""
    return RuntimeError(kept.decode(errors="replace").strip()) if kept.strip() else error


@dataclass(frozen=True)
class SidePackage:
    folder: Path
    """What is on the import path for it."""
    name: str
    """As the package's own code writes it."""
    alias: str
    """Of the module in sys.modules that holds it."""
    importer: str | None
    """A module outside of the package, the side's card, whose imports of the package mean this one."""

    def translated(self, name: str) -> str:
        return f"{self.alias}.{name}" if name.partition(".")[0] == self.name else name


class PackageImportError(KernelgateError):
    """A package cannot be imported; `__cause__` is what its code raised."""

    def __init__(self, name: str, place: str, text: str) -> None:
        super().__init__(f"the package {name} cannot be imported: {f'{place}: ' if place else ''}{text}")
        self.place = place
        """Such as "my_kernels/swiglu.py:12"; empty where no line of the package took part."""
        self.text = text


_packages: dict[str, SidePackage] = {}
_import = builtins.__import__
_import_module = importlib.import_module


def load_package(folder: Path, name: str, side: str, importer: str | None = None) -> ModuleType:
    """The package `name` from `folder`, or the module of one, as that of `side`, which is a word. `importer`: the
    `__name__` of the side's card, which may import it, too. Of a module's package, an `__init__` that wants what is not
    installed, such as the project's compiled part, ends there. Raises PackageImportError, and KernelgateError where the
    side already has the package from another folder."""
    root, _, inside = name.partition(".")
    package = SidePackage(folder.absolute(), root, alias_of(name, side), importer)
    wanted = package.translated(name)
    known = _packages.get(package.alias)
    if known is not None and known.folder != package.folder:
        raise KernelgateError(f"{side} already has the package {root} from {known.folder}; it cannot have {folder} too")
    if known is not None:
        return _import_module(wanted)
    builtins.__import__ = _import_for_caller
    importlib.import_module = _import_module_for_caller
    _packages[package.alias] = package
    sys.dont_write_bytecode = True  # the folder is a library's, whose files are counted
    try:
        holder = sys.modules[package.alias] = ModuleType(package.alias)
        holder.__path__ = []
        spec = _spec(package)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        setattr(holder, root, module)
        if spec.loader is not None:
            try:
                spec.loader.exec_module(module)
            except ModuleNotFoundError as error:
                if not inside or (error.name or root).partition(".")[0] in (root, package.alias):
                    raise
        return _import_module(wanted)  # a module may have put another object in its place
    except BaseException as error:
        forget(package.alias)
        if not isinstance(error, Exception | SystemExit):
            raise
        text = f"{type(error).__name__}: {error}".strip().split("\n")[0]
        raise PackageImportError(name, place(error, package.folder), plain(text, package.alias)) from error


_compiled: dict[str, ModuleType] = {}


def load_compiled(path: Path, name: str, digest: str) -> ModuleType:
    """The module `name` that pybind11 made, the same for a file of the same digest. Raises KernelgateError."""
    if digest not in _compiled:
        own = f"kernelgate_{digest[:12]}.{name}"  # pybind11 answers with the module that it made under a name before
        spec = importlib.util.spec_from_file_location(own, path, loader=ExtensionFileLoader(own, str(path)))
        try:
            if spec is None or spec.loader is None:
                raise ImportError("this is no module of Python")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except Exception as error:  # pybind11 raises what it likes
            raise KernelgateError(f"{path} cannot be loaded: {first_line(error)}") from None
        _compiled[digest] = module
    return _compiled[digest]


def load_tvm_ffi(path: Path) -> Any:
    """The functions that a file exports through TVM-FFI. Raises KernelgateError where it cannot be loaded here."""
    try:
        return importlib.import_module("tvm_ffi").load_module(str(path))
    except Exception as error:  # TVM-FFI raises what it likes
        raise KernelgateError(f"{path} cannot be loaded: {first_line(error)}") from None


def load_installed(folder: Path, name: str) -> ModuleType:
    """The module `name` from what a project's own build left, under its own name: this process is for one side alone.
    Raises PackageImportError, and KernelgateError where the process has the module from elsewhere."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # the folder is a library's, whose files are counted
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise PackageImportError(name, place(error, folder), f"{type(error).__name__}: {first_line(error)}") from error
    found = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    if not Path(found).is_relative_to(folder):
        raise KernelgateError(f"this process has {name} from {found} already, so that it cannot have {folder}'s, too")
    return module


def alias_of(name: str, side: str) -> str:
    """The module in sys.modules that holds a side's package, also where `name` is a module of it."""
    return f"{name.partition('.')[0]}__{side}"


def plain(text: str, alias: str) -> str:
    """With the names that the package's own code writes."""
    return text.replace(f"{alias}.", "")


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


def variables_of(alias: str) -> set[str]:
    """The variables of the environment that lines of the package set or delete from now on."""
    said = set[str]()

    def noted(event: str, about: tuple[Any, ...]) -> None:
        if event in ("os.putenv", "os.unsetenv") and called_by(alias):
            said.add(os.fsdecode(about[0]))

    sys.addaudithook(noted)
    return said


def registered() -> set[str]:
    """The operators that torch has, without the names of overloads."""
    import torch

    return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}


def watch_operators(alias: str, folder: Path) -> Callable[[], frozenset[str]]:
    """Gives the function that tells which operators the package in `folder` has registered since, without overloads'
    names. What torch and installed packages register when they are first imported is not its own: both sides have it
    from the same file."""
    import torch

    before, others, define = registered(), set[str](), torch.library.Library.define
    own, installed = folder.resolve(), [Path(place).resolve() for place in sys.path if place]

    def noted(library: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
        if not called_by(alias):
            others.add(f"{library.ns}::{schema.partition('(')[0].partition('.')[0].strip()}")
        return define(library, schema, *args, **kwargs)  # type: ignore[no-untyped-call]

    def watched(load: Callable[..., Any], path_of: Callable[[Any], Any]) -> Callable[..., Any]:
        def loads(loader: Any, *args: Any, **kwargs: Any) -> Any:
            path = Path(str(path_of([*args, *kwargs.values()][0]))).resolve()
            if path.is_relative_to(own) or not any(map(path.is_relative_to, installed)):
                return load(loader, *args, **kwargs)
            known = registered()
            try:
                return load(loader, *args, **kwargs)
            finally:
                others.update(registered() - known)

        return loads

    torch.library.Library.define = noted  # type: ignore[method-assign, assignment]
    # The two ways by which compiled operators come into a process: torch.ops.load_library, and a module's import.
    ctypes.CDLL.__init__ = watched(ctypes.CDLL.__init__, str)  # type: ignore[method-assign]
    modules: Any = ExtensionFileLoader
    modules.create_module = watched(modules.create_module, attrgetter("origin"))
    return lambda: frozenset(registered() - before - others)


def forget(alias: str) -> None:
    """Takes a side's package out of this process, as far as nothing else refers to it."""
    _packages.pop(alias, None)
    for module in [name for name in sys.modules if name == alias or name.startswith(f"{alias}.")]:
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


def _spec(package: SidePackage) -> ModuleSpec:
    folder = package.folder / package.name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    name = package.translated(package.name)
    spec = importlib.util.spec_from_file_location(name, file) if file.is_file() else None
    if folder.is_dir():
        spec = spec or ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    if spec is None:
        text = f"{package.folder} has neither {package.name}/ nor {package.name}.py"
        raise ModuleNotFoundError(text, name=package.name)
    return spec


def _import_for_caller(
    name: str,
    globals: Mapping[str, object] | None = None,  # noqa: A002 - builtins.__import__ calls it so
    locals: Mapping[str, object] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    wanted = name
    if level == 0:  # a call of __import__ that is written out gives no globals
        wanted = _translated(name, sys._getframe(1).f_globals if globals is None else globals)
    try:
        found = _import(wanted, globals, locals, fromlist or (), level)
        return found if wanted == name or fromlist else getattr(found, name.partition(".")[0])
    except ModuleNotFoundError as error:
        _name_as_asked(error, name, wanted)
        raise


def _import_module_for_caller(name: str, package: str | None = None) -> ModuleType:
    # importlib.resources imports the package that it is asked for by name, from Python 3.12 on through functools.
    frame = sys._getframe(1)
    while str(frame.f_globals.get("__name__")).startswith(("importlib.", "functools")) and frame.f_back is not None:
        frame = frame.f_back
    wanted = _translated(name, frame.f_globals)
    try:
        return _import_module(wanted, package)
    except ModuleNotFoundError as error:
        _name_as_asked(error, name, wanted)
        raise


def _name_as_asked(error: ModuleNotFoundError, name: str, wanted: str) -> None:
    """A module that is not found has the name that its importer used: packages look at it, to learn whether an optional
    part of theirs is absent or fails."""
    if wanted != name and error.name:
        error.name = plain(error.name, wanted.partition(".")[0])


def _translated(name: str, caller: Mapping[str, object]) -> str:
    """The name in sys.modules of what a module with these globals calls `name`."""
    root = str(caller.get("__name__")).partition(".")[0]
    if package := _packages.get(root):
        return package.translated(name)
    meant = {package.translated(name) for package in _packages.values() if package.importer == root}
    if len(meant) > 1:
        raise ImportError(f"{name} is a package of both sides here: use the one that call() is handed", name=name)
    return meant.pop() if meant else name
