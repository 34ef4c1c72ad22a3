"""One commit's compiled kernel: a folder, all that crosses from the machine that compiles to the one that measures.

`library.json` says what it is. An extension has `kernel.so`, whose operators have a namespace of its own, so that base
and head can live in one process, and `sources/`, to be quoted. A package has its sources in `package/` and what Triton
made of them for each target in `cache/`. `card/<name>.py` is the commit's own card, for its `call`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kernelgate.bench import record
from kernelgate.bench.build import archs
from kernelgate.bench.build.machine_code import with_occupancy
from kernelgate.bench.build.sources import Binding
from kernelgate.bench.core.errors import KernelgateError, faults
from kernelgate.bench.record import CompilerWarning, KernelFacts
from kernelgate.bench.system import interpreter
from kernelgate.bench.system.worker import Message

LIBRARY = "kernel.so"
MANIFEST = "library.json"
CARD = "card"
PACKAGE = "package"
CACHE = "cache"
SOURCES = "sources"
"""Of an extension: the files that it was compiled from, for people to be shown lines of them."""
REGISTRIES = {"pybind": "pybind11 of C++ types", "tvm_ffi": "TVM-FFI of names"}
"""What sources may register that both sides cannot, by their binding."""
PIN = "@sha256:"
"""Between a folder of libraries and the digest that it must have."""
ABSENT = "absent.json"
"""In a folder of libraries: why cards have none; empty where the commit has no cards."""


class Built(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """What a build says of the library that it has made."""

    card: Annotated[str, Field(pattern=r"^[\w.-][\w. -]*$")]
    """The name of the card that it is of, and of a file; in the cache, of the first card that named the build."""
    kind: Literal["extension", "package"] = "extension"
    binding: Binding = "torch"
    """How an extension is called; of what the project built itself "installed"."""
    namespace: str
    """Of the operators in torch.ops; of a module of pybind11, and of a package, its name."""
    shared_namespace: bool = False
    """Whether another commit's library registers the same names, so that the two cannot share a process."""
    operators: tuple[str, ...] = ()
    """What importing a package registers with torch, such as "my_ops::scale"; not what installed packages do."""
    imports: tuple[str, ...] = ()
    """The installed modules that importing a package imports, in that order. Empty where the package sets variables of
    the environment, which these may read."""
    torch: str | None = None
    """The one version of torch that can load it; None where any from 2.11 on can."""
    targets: tuple[str, ...]
    """Such as ("sm_89", "sm_90"); empty for a library with the CPU path alone."""
    kernels: tuple[KernelFacts, ...]
    """Without occupancy, which is a GPU's. No default: a library without it is built again."""
    facts_missing: str | None = None
    warnings: tuple[CompilerWarning, ...] | None = None
    """What the compilers warn of in the sources; null of a package."""
    host: str | None = None
    """A digest of what the host runs of it; null where that is not known."""
    code: dict[str, dict[str, str]] = {}
    """By target, and by the id of a timed case, or "" for all, a digest of the machine code that a call launches. A
    case that is not there launches what is not known."""
    sources: dict[str, tuple[str, ...]] = {}
    """The repository's files that each target's code was compiled from; empty for a package."""


class Manifest(Built, frozen=True):
    sha: str | None
    """The commit, or null for a working tree with changes, and in the cache, which knows contents alone."""
    key: str
    """The content address: a hash over the sources, the recipe and the compilers."""
    seconds: record.NonNegative
    sha256: str
    """Of the library file, or of all files of a package."""
    card_sha256: str | None = None


@dataclass(frozen=True)
class Library:
    folder: Path
    manifest: Manifest
    cached: bool
    card_file: Path | None = None
    python: Path = field(default_factory=interpreter.current)

    @property
    def path(self) -> Path:
        """The file that is loaded, or the folder that is imported from."""
        return self.folder / (LIBRARY if self.manifest.kind == "extension" else PACKAGE)

    @property
    def card(self) -> Path | None:
        """The commit's own card; None in the cache, which knows contents alone."""
        return self.card_file or (card_in(self.folder, self.manifest) if self.manifest.card_sha256 else None)

    def of(self, card: str, sha: str | None) -> Library:
        """The same, said to be of a card and a commit: a cache knows contents alone, and cards may share a build."""
        return replace(self, manifest=self.manifest.model_copy(update={"card": card, "sha": sha}))

    def same_as(self, other: Library) -> bool:
        """Whether nothing that is measured differs: Python, card, and sources and recipe, or what these became."""
        mine, others = self.manifest, other.manifest
        same_binary = mine.key == others.key or mine.sha256 == others.sha256
        return self.python == other.python and mine.card_sha256 == others.card_sha256 and same_binary


def imports(libraries: Mapping[record.Side, Library]) -> tuple[str, ...]:
    """What a process can import before it has these libraries, in whatever order it will load them."""
    names = (name for _, library in sorted(libraries.items()) for name in library.manifest.imports)
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Sides:
    """One card's libraries that a call names. Without a base, the head is timed alone."""

    base: Library | None
    head: Library
    why_alone: str | None = None
    """Why there is no base although one was asked for."""
    pinned: Library | None = None
    """A fixed commit that is timed beside a head without a base, night after night."""

    @property
    def named(self) -> dict[str, Library]:
        """By side: both, or the head alone, or the head and `commit:SHA`."""
        beside = {} if self.pinned is None else {f"commit:{self.pinned.manifest.sha}": self.pinned}
        return {**({} if self.base is None else {"base": self.base}), "head": self.head, **beside}

    @property
    def clash(self) -> str | None:
        """Why both cannot share a process: what one registers would answer for the other, without a word."""
        if self.base is None or self.base.same_as(self.head):
            return None
        old, new = self.base.manifest, self.head.manifest
        if self.base.python != self.head.python:
            return "each runs in a Python of its own"
        if new.binding == "installed":
            return "each is what the project built itself, under one name"
        if new.kind == "package":
            both = sorted(set(old.operators) & set(new.operators))
            more = f" and {len(both) - 3} more" if len(both) > 3 else ""
            return f"both register the operator {', '.join(both[:3])}{more}" if both else None
        if new.binding in REGISTRIES:
            shared = old.shared_namespace and new.shared_namespace
            return f"both tell {REGISTRIES[new.binding]}, of which it knows each once in a process" if shared else None
        return f"both register their operators as torch.ops.{new.namespace}" if old.namespace == new.namespace else None


@dataclass(frozen=True)
class Libraries:
    """What one commit was compiled to: a library for each card."""

    built: Mapping[str, Library]
    absent: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Why a card has none, where that was to be borne."""


def read_all(folder: Path) -> Libraries:
    """The library in `folder`, or those in its folders. Raises KernelgateError as `read` does, and for
    FOLDER@sha256:DIGEST where it holds anything else."""
    name, pin, wanted = str(folder).rpartition(PIN)
    if pin:
        folder = Path(name)
        if (digest := folder_digest(folder)) != wanted:
            said = f"its files have the digest {digest}, not {wanted or 'one that was given'}"
            raise KernelgateError(f"{name} is not what was built: {said}; nothing of it was loaded")
    alone = (folder / MANIFEST).exists()
    found = [read(folder)] if alone else [read(path.parent) for path in sorted(folder.glob(f"*/{MANIFEST}"))]
    absent: dict[str, str] = {}
    if (folder / ABSENT).exists():
        try:
            absent = TypeAdapter(dict[str, str]).validate_json((folder / ABSENT).read_bytes())
        except ValidationError as error:
            raise KernelgateError(f"{folder / ABSENT} cannot be read: {faults(error)}") from None
    elif not found:
        raise KernelgateError(f"{folder} holds no compiled kernel: there is no {MANIFEST} in it or in a folder of it")
    return Libraries({library.manifest.card: library for library in found}, absent)


class LibraryAt(Message):
    """Where a worker process finds a library and its commit's card."""

    folder: Path
    card: Path | None

    @classmethod
    def of(cls, library: Library) -> LibraryAt:
        card = library.card
        return cls(folder=library.folder.absolute(), card=card.absolute() if card else None)

    def read(self) -> Library:
        return replace(read(self.folder), card_file=self.card)


def read(folder: Path) -> Library:
    """The library in `folder`. Raises KernelgateError where a file is missing, malformed, or not the one described."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        digest, card = content_digest(folder, manifest.kind), None
        if manifest.card_sha256 is not None:
            card = hashlib.sha256(card_in(folder, manifest).read_bytes()).hexdigest()
    except OSError as error:
        raise KernelgateError(f"{folder} holds no compiled kernel: {error.filename}: {error.strerror}") from None
    except ValidationError as error:
        raise KernelgateError(f"{folder / MANIFEST} is not a library manifest: {faults(error)}") from None
    if (digest, card) != (manifest.sha256, manifest.card_sha256):
        wrong = card_in(folder, manifest) if digest == manifest.sha256 else Library(folder, manifest, True).path
        raise KernelgateError(f"{wrong} is not the one that {MANIFEST} describes; build it again")
    return Library(folder, manifest, cached=True)


def manifest_in(folder: Path) -> Manifest | None:
    """What a library's folder says of it; None where the file is another program's of this name."""
    with suppress(OSError, ValidationError):
        return Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    return None


def card_in(folder: Path, manifest: Manifest) -> Path:
    """Where a folder that was handed over has the commit's own card."""
    return folder / CARD / f"{manifest.card}.py"


def sources_in(library: Library) -> Path:
    """What the library was made of, by the commit's paths (of a package, by those of imports). It may be missing."""
    return library.folder / (SOURCES if library.manifest.kind == "extension" else PACKAGE)


def content_digest(folder: Path, kind: Literal["extension", "package"]) -> str:
    """The sha256 of what is loaded: the file's, or that over all of a package's files and their names."""
    if kind == "extension":
        return hashlib.sha256((folder / LIBRARY).read_bytes()).hexdigest()
    paths = (path for part in (PACKAGE, CACHE) for path in (folder / part).rglob("*"))
    return folder_digest(folder, (path for path in paths if "__pycache__" not in path.relative_to(folder).as_posix()))


def folder_digest(folder: Path, paths: Iterable[Path] | None = None) -> str:
    """The sha256 over files of a folder and their names; over all of them what was built, and nothing beside it."""
    whole = hashlib.sha256()
    for path in sorted(path for path in (folder.rglob("*") if paths is None else paths) if path.is_file()):
        name = path.relative_to(folder).as_posix()
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return whole.hexdigest()


def code_on(library: Library, device: record.Device) -> dict[str, str]:
    """By case, or "" for all, the digests of code that calls launch on this device; of the host's on a CPU."""
    manifest = library.manifest
    if device.compute_capability is None:
        return {"": manifest.host} if manifest.kind == "extension" and manifest.host else {}
    if manifest.kind == "package":  # Triton compiles for the very GPU
        return manifest.code.get(f"sm_{device.compute_capability.replace('.', '')}", {})
    major, minor = map(int, device.compute_capability.split("."))
    every = {name: archs.target(name.removeprefix("sm_")) for name in sorted(manifest.code)}
    fitting = [manifest.code[name][""] for name, target in every.items() if archs.runs_on(target, (major, minor))]
    return {"": " ".join(fitting)} if fitting else {}


def build_records(sides: Sides, device: record.Device | None = None) -> tuple[record.Build, ...]:
    """The libraries as a run record holds them. `device`: what they are called on."""
    return tuple(build_record(library, side, device) for side, library in sides.named.items())


def build_record(library: Library, side: record.Side, device: record.Device | None = None) -> record.Build:
    manifest = library.manifest
    return record.Build(
        card=manifest.card,
        side=side,
        sha=manifest.sha,
        key=manifest.key,
        call_hash=manifest.card_sha256,
        tree="clean" if manifest.sha else "changed",
        seconds=manifest.seconds,
        cached=library.cached,
        targets=manifest.targets,
        library_sha256=manifest.sha256,
        python=str(library.python),
        host=manifest.host,
        code=code_on(library, device) if device else {},
        kernels=tuple(map(with_occupancy, manifest.kernels)),
        warnings=manifest.warnings,
    )


def facts_missing(sides: Sides) -> tuple[str, ...]:
    """Why nothing is known of a side's kernels, a sentence each; a library for the CPU alone has none to know of."""
    return tuple(
        f"{side}: {library.manifest.facts_missing}"
        for side, library in sides.named.items()
        if library.manifest.targets and library.manifest.facts_missing
    )
