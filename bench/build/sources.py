"""A card's sources: what the card says of them, which files take part in a compile, and for which targets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from kernelgate.bench.build.archs import Target, sm, target, with_plain_code
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import BuildError, NoKernelError

HOST_UNITS = (".cpp", ".cc", ".cxx")
HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inl", ".inc")
SUFFIXES = frozenset({*HOST_UNITS, *HEADERS, ".cu"})
TARGET_UNIT = re.compile(r"(?:.+/)?[^/]+_sm(\d{2,3}a?)\.cu")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
NAME = re.compile(r"(?!-)[\w./-]+")
CLASSIC = re.compile(r"torch/(?:all|custom_class|extension|library|python|script|torch|types)\.h|(?:ATen|c10)/.+")
"""Headers that are not of the stable ABI: torch's own refuse to be compiled with it."""
INCLUDE_FOLDER = re.compile(r"-(?:I|iquote)(.*)")
OPTIONS_FILE = re.compile(r"@|-W[alp],(?:.*,)?@|-X[^=]*=(?:.*,)?@|(?:-optf|--options-file)(?:=|$)")
"""A flag that has a tool read its options from a file, whose words it then quotes as what it does not know."""
LEFT_OUT = frozenset({".pyc", ".pyo", ".so", ".pyd"})
"""What was compiled from other files is no source, and need not be of this commit."""
NAMESPACES = ("KERNELGATE_NAMESPACE", "TORCH_EXTENSION_NAME")
"""What the build defines as the namespace; the second is the name that torch's own builds define."""
CheckOut = Callable[[Iterable[str]], None]
"""Puts what these paths or patterns name into a tree that is a commit's."""
Binding = Literal["torch", "pybind", "tvm_ffi", "installed"]
"""How Python calls it: operators of torch, a module of pybind11, functions of TVM-FFI, or the project's own."""
PYBIND = re.compile(rb"^[ \t]*PYBIND11_MODULE\(\s*(\w+)\s*,", re.MULTILINE)
PYBIND_TYPE = re.compile(rb"\b(?:py|pybind11)::(?:class_|enum_|exception)\s*<")
TVM_FFI = re.compile(rb"\bTVM_FFI_DLL_EXPORT_TYPED_FUNC\(")
TVM_FFI_NAMES = re.compile(rb"\b(?:GlobalDef|ObjectDef)\b")
OTHER_BINDINGS = {b"NB_MODULE": "nanobind"}
OTHER_BINDINGS |= dict.fromkeys((b"PyMODINIT_FUNC", b"PyInit_"), "Python's C API")
REGISTERS = re.compile(
    rb"^[ \t]*(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT)?\(\s*(\w+)\s*,|\bRegisterOperators\(\)\s*\.op\(\s*\"(\w+)::",
    re.MULTILINE,
)


@dataclass(init=False)
class Extension:
    """CUDA and C++ sources that are compiled to a library which registers its operators with torch.

    `sources` are patterns below the repository's root, such as "csrc/rmsnorm*"; a folder stands for all in it. Headers
    that they include with quotes come along. `flags` go to both compilers, `nvcc_flags` to nvcc alone. `torch`: the
    version, such as "2.11", for sources that include torch/extension.h; others run on every torch from 2.11 on.
    """

    sources: tuple[str, ...]
    flags: tuple[str, ...]
    nvcc_flags: tuple[str, ...]
    torch: str | None
    kind: Literal["extension"] = "extension"

    def __init__(
        self, *sources: str, flags: Sequence[str] = (), nvcc_flags: Sequence[str] = (), torch: str | None = None
    ) -> None:
        if isinstance(flags, str) or isinstance(nvcc_flags, str):
            raise TypeError('flags are a list of words, such as ["-O3"]')
        if torch is not None and not re.fullmatch(r"\d+[\w.+-]*", str(torch)):
            raise TypeError(f'torch is a version, such as "2.11", and not {torch!r}')
        self.sources, self.flags, self.nvcc_flags, self.torch = sources, tuple(flags), tuple(nvcc_flags), torch

    def of_torch(self, version: str) -> Extension:
        return Extension(*self.sources, flags=self.flags, nvcc_flags=self.nvcc_flags, torch=version)

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.sources, *self.flags, *self.nvcc_flags, self.torch or "")


@dataclass
class Package:
    """Python sources, such as Triton kernels: a module or package below the repository's root, or in its src/, or a
    module of one, such as "my_kernels.swiglu".

    The package is copied; its Triton kernels are compiled for each target on the machine that builds.
    """

    name: str
    kind: Literal["package"] = "package"

    @property
    def root(self) -> str:
        """The package or module that lies in the repository's root or in src/."""
        return self.name.partition(".")[0]

    @property
    def places(self) -> tuple[str, ...]:
        """Where it may lie, from the repository's root."""
        return tuple(f"{folder}{self.root}{end}" for folder in ("", "src/") for end in ("", ".py"))

    def is_in(self, files: Iterable[str]) -> bool:
        """Whether the module is among these, whose paths start at the folder that it is imported from."""
        path = self.name.replace(".", "/")
        return any(one == f"{path}.py" or one.startswith(f"{path}/") for one in files)


@dataclass(init=False)
class Command:
    """The project's own build, such as "pip install --no-deps .", for what the others cannot describe.

    A shell runs it in a copy of `sources` (paths and patterns; without any, of the repository). It leaves the package
    in the folder $KERNELGATE_OUT, as `pip install` does by itself. Base and head run in processes that take turns.
    """

    line: str
    package: str
    sources: tuple[str, ...]
    kind: Literal["command"] = "command"

    def __init__(self, line: str, package: str, sources: Sequence[str] = ()) -> None:
        if isinstance(sources, str):
            raise TypeError('sources are a list of paths, such as ["setup.py", "csrc"]')
        self.line, self.package, self.sources = line, package, tuple(sources)

    @property
    def words(self) -> tuple[str, ...]:
        return (self.line, self.package, *self.sources)


@dataclass(frozen=True)
class Sources:
    """What enters a compile: path below the repository's root -> contents."""

    card: str
    spec: Extension
    files: Mapping[str, bytes]

    @cached_property
    def binding(self) -> Binding:
        found: dict[Binding, re.Pattern[bytes]] = {"pybind": PYBIND, "tvm_ffi": TVM_FFI}
        others = (name for name, made in found.items() if any(map(made.search, self.files.values())))
        return "torch" if self.registered else next(others, "torch")

    @cached_property
    def registered(self) -> set[str]:
        """The names under which operators are registered, on some path at least."""
        found = (one for data in self.files.values() for one in REGISTERS.finditer(data))
        return {one[one.lastindex or 0].decode() for one in found}

    @cached_property
    def modules(self) -> set[str]:
        """The names of modules of pybind11."""
        return {one.decode() for data in self.files.values() for one in PYBIND.findall(data)}

    @property
    def literal_namespace(self) -> str | None:
        """A name of the sources' own, and none that the build gives, under which operators are registered."""
        return min(self.registered - set(NAMESPACES), default=None)

    def namespace(self, given: str) -> str:
        """Where torch.ops has the operators: where the build asks for it, if they can. Of pybind11 the module."""
        literal = self.literal_namespace or min(self.modules - set(NAMESPACES), default=None)
        return given if literal is None or self.registered & set(NAMESPACES) else literal

    @property
    def registers_once(self) -> bool:
        """Whether pybind11 is told of C++ types, or TVM-FFI of names, of which it knows each once in a process."""
        once = PYBIND_TYPE if self.binding == "pybind" else TVM_FFI_NAMES
        return any(map(once.search, self.files.values()))

    def files_by_target(self, targets: Iterable[Target]) -> dict[str, tuple[str, ...]]:
        """By a target's name, such as "sm_90a": its translation units, and the headers here that they include."""
        units = {key: [*self.target_units.get(key, ()), *self.plain_units] for key in targets}
        return {sm(key): tuple(sorted(self.reached(names))) for key, names in units.items()}

    @property
    def host_units(self) -> tuple[str, ...]:
        return tuple(name for name in sorted(self.files) if name.endswith(HOST_UNITS) and name not in self.included)

    @property
    def plain_units(self) -> tuple[str, ...]:
        """The CUDA translation units that are compiled for every target."""
        found = (name for name in sorted(self.files) if name.endswith(".cu") and not TARGET_UNIT.fullmatch(name))
        return tuple(name for name in found if name not in self.included)

    @property
    def target_units(self) -> dict[Target, tuple[str, ...]]:
        """Those of one target each, named `…_sm<NN>.cu`."""
        units: dict[Target, tuple[str, ...]] = {}
        for name in sorted(self.files):
            if match := TARGET_UNIT.fullmatch(name):
                key = target(match[1])
                units[key] = (*units.get(key, ()), name)
        return units

    @cached_property
    def included(self) -> frozenset[str]:
        """The files that others include, such as `impl.cu`: part of these, and no translation units of their own."""
        folders = _include_folders(self.spec)
        names = (name for path, data in self.files.items() for name in _included_names(path, data, folders))
        return frozenset(name for name in names if name in self.files)

    def reached(self, units: Iterable[str]) -> frozenset[str]:
        """These files and those that they include, as far as their includes say which."""
        folders, waiting = _include_folders(self.spec), list(units)
        found = set(waiting)
        while waiting:
            includer = waiting.pop()
            names = set(_included_names(includer, self.files[includer], folders)) & self.files.keys()
            waiting += names - found
            found |= names
        return frozenset(found)

    def available(self, wanted: Iterable[Target]) -> tuple[Target, ...]:
        """What these sources can be compiled for, of what is wanted and beyond."""
        own = set(self.target_units)
        plain = {with_plain_code(one, own) for one in wanted} if self.plain_units else set()
        return tuple(sorted(own | plain))

    def for_targets(self, targets: Iterable[Target]) -> Sources:
        """Without the translation units of other targets, which must not tell two libraries apart."""
        wanted = set(targets)
        unwanted = {name for key, names in self.target_units.items() if key not in wanted for name in names}
        unwanted -= self.included
        return replace(self, files={name: data for name, data in self.files.items() if name not in unwanted})


def whole(_: Iterable[str]) -> None:
    """Of a tree in which everything is there."""


def read_sources(tree: Path, name: str, card: str, spec: Extension, check_out: CheckOut = whole) -> Sources:
    """A card's sources in a work tree, which errors call `name`, with the headers that they include. `check_out` gets
    every path before it is looked at. Raises BuildError for what cannot be compiled, or leads out of the tree."""
    files: dict[str, bytes] = {}
    if odd := next(filter(OPTIONS_FILE.match, (*spec.flags, *spec.nvcc_flags)), None):
        raise BuildError(f"{name}: the flag {odd} of the card {card} names a file of options: write them in the card")
    check_out(spec.sources)
    for pattern in spec.sources:
        try:
            found = _matches(tree, pattern)
        except ValueError as error:
            raise BuildError(f"{name}: the pattern {pattern} of the card {card} {error}") from None
        if not found:
            suffixes = " ".join(sorted(SUFFIXES))
            raise BuildError(f"{name} has no sources at {pattern}, which the card {card} names ({suffixes})")
        files |= {path.relative_to(tree).as_posix(): path.read_bytes() for path in found}
    folders = _include_folders(spec)
    waiting = list(files)
    while waiting:  # the repository's own headers that the files include, and those that these include
        pairs = ((name, one) for one in waiting for name in _included_names(one, files[one], folders))
        new = ((header, one) for header, one in pairs if header not in files and header.isprintable())
        named = {header: includer for header, includer in new if not header.startswith(("../", "/"))}
        check_out(named)
        for header, includer in named.items():
            path = tree / header
            if path.is_file() and not _inside(tree, path):
                raise BuildError(f"{includer} includes {header}, a link that leads out of the repository")
        waiting = [header for header in named if (tree / header).is_file()]
        files |= {header: (tree / header).read_bytes() for header in waiting}
    sources = Sources(card, spec, dict(sorted(files.items())))
    for file in sources.files:
        _check_file(name, sources, file)
    if not sources.host_units and not sources.plain_units:
        raise BuildError(f"{name}: the sources of the card {card} hold no .cpp or .cu that every library has")
    _check_binding(name, sources)
    return sources


def _check_binding(name: str, sources: Sources) -> None:
    """Raises BuildError for what could be compiled, and not be loaded."""
    if sources.binding == "pybind" and len(sources.modules) > 1:
        text = f"the sources of the card {sources.card} make several modules ({', '.join(sorted(sources.modules))})"
        raise BuildError(f"{name}: {text}: name those of one")
    if sources.binding != "torch" or sources.registered:
        return
    for word, what in OTHER_BINDINGS.items():
        if path := next((path for path, data in sources.files.items() if word in data), None):
            ways = (
                'use TORCH_LIBRARY or PYBIND11_MODULE, or the project\'s own build: Command("pip install --no-deps .")'
            )
            raise BuildError(f"{name}: {path} is bound to Python by {what}, which is not loaded here: {ways}")


def package_sources(tree: Path, spec: Package, check_out: CheckOut = whole) -> dict[str, bytes]:
    """The files of a package, or a module alone, by their paths below the folder that must be on the import path.
    Raises NoKernelError where there is none, and BuildError for a link out of the tree or an odd name."""
    name = spec.root
    if not all(part.isidentifier() for part in spec.name.split(".")):
        raise NoKernelError(f"Package({spec.name!r}): this is no name of a module, such as my_kernels.swiglu")
    check_out(spec.places)
    for root in (tree, tree / "src"):
        whole = sorted((root / name).rglob("*"))
        paths = [path for path in whole if _is_source(path.relative_to(root)) and path.is_file()]
        if not any(path.suffix == ".py" for path in paths):
            paths = [root / f"{name}.py"] if (root / f"{name}.py").is_file() else []
        named = {path.relative_to(root).as_posix(): path for path in paths}
        for relative, path in named.items():
            if not relative.isprintable():  # nor is what is no UTF-8
                raise BuildError(f"the file {relative!r} needs another name, of letters and digits")
            if not _inside(tree, path):
                raise BuildError(f"{relative} is a link that leads out of the repository")
        if named:
            return {relative: path.read_bytes() for relative, path in named.items()}
    places = f"{name}/ with Python files, {name}.py, src/{name}/ and src/{name}.py"
    raise NoKernelError(f"{tree} has no package {name}: looked for {places}")


def _is_source(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return path.suffix not in LEFT_OUT and not hidden


def target_of(unit: str) -> str | None:
    """ "sm_89" for csrc/kernel_sm89.cu; None for a translation unit that every library has."""
    match = TARGET_UNIT.fullmatch(unit)
    return sm(target(match[1])) if match else None


def _matches(tree: Path, pattern: str) -> list[Path]:
    """The sources that a pattern names; a folder stands for all in it. Raises ValueError saying what is wrong."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise ValueError("leads out of the repository")
    try:
        found = sorted(tree.glob(pattern)) if Path(pattern).parts else [tree]
    except ValueError as error:
        raise ValueError(f"is no pattern: {error}") from None
    listed = dict.fromkeys(inner for path in found for inner in (path, *(path.rglob("*") if path.is_dir() else ())))
    taken = [path for path in listed if path.suffix in SUFFIXES or path.is_dir()]
    outside = next((path for path in sorted(taken) if not _inside(tree, path)), None)
    if outside is not None:
        raise ValueError(f"leads out of the repository through the link {outside.relative_to(tree)}")
    return [path for path in taken if path.suffix in SUFFIXES and path.is_file()]


def _inside(tree: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(tree.resolve())


def _check_file(name: str, sources: Sources, path: str) -> None:
    """Refuses a name that a command line could take for something else, includes from outside of the repository, and
    headers beyond the stable ABI where the card names no torch."""
    if not NAME.fullmatch(path):
        raise BuildError(f"{name}: the source {path!r} needs another name, of letters, digits and . _ - / alone")
    folders = _include_folders(sources.spec)
    for match in INCLUDE.finditer(contents := sources.files[path]):
        header = match[2].decode(errors="replace")
        candidates = (*_candidates(path, match, folders), posixpath.normpath(header))
        line = contents.count(b"\n", 0, match.start()) + 1
        said = f"{name}: {path}:{line} includes {header}"
        if header.startswith("/") or all(one.startswith("../") for one in candidates):
            raise BuildError(f"{said}, which lies outside of the repository")
        if sources.spec.torch is None and sources.binding != "pybind" and CLASSIC.fullmatch(header):
            raise BuildError(
                f"{said}, but the card {sources.card} is compiled to the stable ABI, for every torch from 2.11 on: "
                "include <torch/csrc/stable/library.h> instead, or name the torch that will load the library: "
                f'Extension(…, torch="2.11"); see {page("cards.md#torchextensionh")}'
            )


def _included_names(includer: str, contents: bytes, folders: Iterable[str]) -> Iterator[str]:
    """Every path below the repository's root that an include of this file may mean."""
    for match in INCLUDE.finditer(contents):
        yield from _candidates(includer, match, folders)


def _candidates(includer: str, include: re.Match[bytes], folders: Iterable[str]) -> Iterator[str]:
    own = [posixpath.dirname(includer)] if include[1] == b'"' else []
    for folder in (*own, *folders):
        yield posixpath.normpath(posixpath.join(folder, include[2].decode(errors="replace")))


def _include_folders(spec: Extension) -> tuple[str, ...]:
    """The folders of the repository in which the card's flags let compilers look for headers."""
    words = pairwise((*spec.flags, *spec.nvcc_flags, ""))
    named = ((INCLUDE_FOLDER.fullmatch(word), after) for word, after in words)
    return tuple(match[1] or after for match, after in named if match)
