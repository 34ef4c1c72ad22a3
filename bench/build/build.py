"""Compiles a card's sources, once: libraries are kept under a hash of everything that decides what they will be.

Needs no GPU. A machine without nvcc compiles the CPU path alone and says so.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kernelgate.bench.build import archs, cache, library, machine_code, ninja, toolchain
from kernelgate.bench.build.archs import ARCH_LIST, Target, sm
from kernelgate.bench.build.library import (
    CACHE,
    LIBRARY,
    MANIFEST,
    PACKAGE,
    SOURCES,
    Library,
    Manifest,
    card_in,
    sources_in,
)
from kernelgate.bench.build.machine_code import MachineCode
from kernelgate.bench.build.ninja import CompileJob
from kernelgate.bench.build.recipe import COMPILER_VARIABLES, Recipe, namespace_of
from kernelgate.bench.build.sources import Sources, files_by_target, literal_namespace
from kernelgate.bench.build.toolchain import Toolchain
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import CannotCompileError, KernelgateError
from kernelgate.bench.system import cuda_tools
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import LIMITS, TimeLimits

CACHE_VARIABLE = "KERNELGATE_CACHE"
BUILDING = "building"
"""In the cache: the folders where libraries are made, each of whose locks is held meanwhile."""


def build(sources: Sources, sha: str | None, *, namespace: str | None = None, limits: TimeLimits = LIMITS) -> Library:
    """The library of these sources, compiled unless the cache holds it. `sha`: the commit that they are of.

    `namespace` is where torch.ops will have the operators; None takes one from the contents. Raises CompileError where
    the sources do not compile, and another KernelgateError where that cannot be tried.
    """
    tools = toolchain.find()
    _check_torch(sources, tools)
    chosen = _targets(sources, tools)
    variables = tuple((name, os.environ[name]) for name in COMPILER_VARIABLES if name in os.environ)
    recipe = Recipe(sources.for_targets(chosen), chosen, tools, namespace, variables)
    found = cached(recipe.key, lambda entry: _compile(recipe, entry, sha, limits))
    _keep_sources(recipe.sources, found.folder)
    return replace(found, manifest=found.manifest.model_copy(update={"sha": sha}))


def _keep_sources(sources: Sources, entry: Path) -> None:
    """Beside the library in the cache. The entry's name is a hash over them: what is there already is the same."""
    if (entry / SOURCES).exists():
        return
    unfinished = entry / f".{SOURCES}.{os.getpid()}"
    with suppress(OSError):  # a cache that only others may write, or one where another process was first
        for name, contents in sources.files.items():
            (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / name).write_bytes(contents)
        unfinished.rename(entry / SOURCES)
    shutil.rmtree(unfinished, ignore_errors=True)


def describe(built: Library) -> str:
    """Such as "rmsnorm of a1b2c3d for sm_89, sm_90: compiled in 11.9 s"."""
    manifest = built.manifest
    how = f"{'cached, ' if built.cached else ''}compiled in {manifest.seconds:.1f} s"
    return f"{_subject(manifest.card, manifest.sha, manifest.targets)}: {how}"


def with_card(built: Library, card: Path) -> Library:
    """The library together with its commit's card, whose contents the cache keeps, too."""
    data = card.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    kept = cache_folder() / "cards" / digest / card.name
    if not kept.exists() or kept.read_bytes() != data:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            unfinished = kept.with_name(f".{card.name}.{os.getpid()}")
            unfinished.write_bytes(data)
            unfinished.replace(kept)
        except OSError as error:
            raise _not_writable(error) from None
    return replace(built, manifest=built.manifest.model_copy(update={"card_sha256": digest}), card_file=kept)


def export(built: Library, folder: Path) -> Library:
    """A copy of the library in `folder`, to be carried to the machine that measures. Raises OutputError."""
    if built.manifest.kind == "package":
        for part in (PACKAGE, CACHE):
            shutil.rmtree(folder / part, ignore_errors=True)
            for file in sorted(one for one in (built.folder / part).rglob("*") if one.is_file()):
                if "__pycache__" not in file.parts:
                    files.write(folder / file.relative_to(built.folder), file.read_bytes())
    else:
        files.write(folder / LIBRARY, built.path.read_bytes())  # a process may have the old file mapped
        _export_sources(sources_in(built), folder / SOURCES)
    if built.card is not None:
        files.write(card_in(folder, built.manifest), built.card.read_bytes())
    files.write(folder / MANIFEST, built.manifest.model_dump_json(indent=2) + "\n")
    return replace(built, folder=folder, card_file=None)


def _export_sources(held: Path, folder: Path) -> None:
    """Puts a copy in place of what is there, which may be the very folder that is copied."""
    contents = {file.relative_to(held): file.read_bytes() for file in sorted(held.rglob("*")) if file.is_file()}
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in contents.items():
        files.write(folder / name, data)


def cache_folder() -> Path:
    """$KERNELGATE_CACHE, or kernelgate/ in the user's cache folder. Raises KernelgateError where there is neither."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "kernelgate"
    try:
        return Path.home() / ".cache" / "kernelgate"
    except RuntimeError:
        raise KernelgateError(
            f"there is no home folder for the cache (HOME is not set): set {CACHE_VARIABLE} to a folder that can be "
            "written to"
        ) from None


def cached(key: str, make: Callable[[Path], Library]) -> Library:
    """The cache's entry for a key, made where there is none, by one process at a time."""
    entry = cache_folder() / key
    cache.hold(entry)
    found = _cached(entry)
    if found is None:
        with _locked(cache_folder() / cache.LOCKS / key):
            found = _cached(entry) or _made(entry, make)
    return found


def _made(entry: Path, make: Callable[[Path], Library]) -> Library:
    """A new entry, made in a folder of its own, which is gone afterwards. The caller holds the entry's lock."""
    _remove_unfinished(entry.parent)
    return make(entry)


def _remove_unfinished(place: Path) -> None:
    """What killed builds have left: folders whose lock nobody holds."""
    for folder in (place / BUILDING).glob("*"):
        with suppress(OSError), (place / cache.LOCKS / folder.name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)


def _check_torch(sources: Sources, tools: Toolchain) -> None:
    wanted, installed = sources.spec.torch, tools.torch.version
    if wanted and wanted != installed and not f"{installed.split('+')[0]}.".startswith(f"{wanted}."):
        raise CannotCompileError(
            f"the card {sources.card} is compiled for torch {wanted}, but torch {installed} is installed "
            "here: install that version, or name the one that will load the library in the card"
        )


def _targets(sources: Sources, tools: Toolchain) -> tuple[Target, ...]:
    """What TORCH_CUDA_ARCH_LIST asks for; without it, what serves the L4 and the GPU at hand as far as possible."""
    wanted = archs.parse(os.environ.get(ARCH_LIST, ""))
    wanted_here = wanted or tuple(sorted({archs.L4, *archs.gpus_at_hand()}))
    available = sources.available(wanted_here)
    install = cuda_tools.TOOLS["nvcc"].install
    if wanted and not available:
        return ()  # a kernel for the CPU alone
    if wanted and tools.cuda is None:
        raise CannotCompileError(f"{ARCH_LIST} is set, but {tools.cuda_missing}; install it: {install}")
    if wanted:
        return archs.demanded(wanted, available, sources.card)
    if available and tools.cuda is None:
        if not sources.host_units:
            raise CannotCompileError(
                f"{sources.card} has CUDA sources alone, but {tools.cuda_missing}; install it: {install}"
            )
        say(f"{tools.cuda_missing}: only the CPU path is compiled (for a GPU: {install})")
        return ()
    gpus = [(one[0], one[1]) for one in wanted_here]
    has = ", ".join(map(sm, available))
    for major, minor in gpus:
        if available and not archs.serving([(major, minor)], available):
            say(f"no target of {sources.card} runs on compute capability {major}.{minor}; it has: {has}")
    return archs.serving(gpus, available)


def _cached(entry: Path) -> Library | None:
    """None for a damaged entry, too, and for one whose manifest is of an earlier form."""
    try:
        found = _with_facts(library.read(entry))
    except KernelgateError:
        return None
    return None if found.manifest.kind == "extension" and found.manifest.warnings is None else found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock file until the block ends; waits for another process that holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise _not_writable(error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process compiles the same sources; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _not_writable(error: OSError) -> KernelgateError:
    return KernelgateError(
        f"the cache cannot be written: {error.filename}: {error.strerror}; set {CACHE_VARIABLE} to a folder that can be"
    )


def _compile(recipe: Recipe, entry: Path, sha: str | None, limits: TimeLimits) -> Library:
    """Compiles into the cache. The caller holds the entry's lock."""
    work = work_folder(entry)
    tree = work / ninja.SOURCES
    log = entry.parent / cache.LOGS / f"{entry.name}.log"
    _remove(work)  # of a run that was killed
    try:
        start = time.monotonic()
        subject = _subject(recipe.sources.card, sha, [*map(sm, recipe.targets)])
        warnings = ninja.compile_in(tree, recipe, CompileJob(subject, _name(sha), log), limits)
        digest = hashlib.sha256((tree / LIBRARY).read_bytes()).hexdigest()
        seconds = time.monotonic() - start
        code = _facts(tree / LIBRARY, recipe.targets)
        manifest = Manifest(
            card=recipe.sources.card,
            namespace=namespace_of(recipe),
            shared_namespace=bool(literal_namespace(recipe.sources) or recipe.fixed_namespace),
            torch=recipe.sources.spec.torch and recipe.toolchain.torch.version,
            sha=None,
            targets=tuple(map(sm, recipe.targets)),
            key=recipe.key,
            seconds=seconds,
            sha256=digest,
            kernels=code.kernels,
            facts_missing=code.missing,
            warnings=warnings,
            sources=files_by_target(recipe.sources, recipe.targets),
        )
        put_in_place(manifest, tree, entry, (LIBRARY,))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Library(entry, manifest, cached=False)


def _facts(path: Path, targets: Sequence[object]) -> MachineCode:
    return machine_code.facts(path) if targets else MachineCode((), "it was compiled for the CPU alone")


def _with_facts(found: Library) -> Library:
    """A library from a time when this machine could not read machine code gets its facts once it can."""
    if found.manifest.facts_missing is None or not found.manifest.targets or found.manifest.kind == "package":
        return found
    code = machine_code.facts(found.path)
    if code.missing == found.manifest.facts_missing:
        return found
    manifest = found.manifest.model_copy(update={"kernels": code.kernels, "facts_missing": code.missing})
    with suppress(OSError):  # a cache that only others may write
        write_manifest(manifest, found.folder)
    return replace(found, manifest=manifest)


def _name(sha: str | None) -> str:
    return sha[:7] if sha else "the working tree"


def _subject(card: str, sha: str | None, names: Sequence[str]) -> str:
    return f"{card} of {_name(sha)} for {', '.join(names) or 'the CPU alone'}"


def work_folder(entry: Path) -> Path:
    """Where a cache entry is made before it is put in place."""
    if os.path.lexists(entry):
        say(f"{entry} is damaged, or of an earlier kernelgate: compiling it again")
    return entry.parent / BUILDING / entry.name


def put_in_place(manifest: Manifest, work: Path, entry: Path, parts: Sequence[str]) -> None:
    """Makes a cache entry of the finished parts of a work folder."""
    finished = work / ".entry"  # no source lies there
    finished.mkdir()
    for part in parts:
        (work / part).rename(finished / part)
    write_manifest(manifest, finished)
    _remove(entry)  # where it was damaged
    finished.rename(entry)


def _remove(path: Path) -> None:
    """Whatever it is: a folder, a file, or a link, which may lead nowhere."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def write_manifest(manifest: Manifest, folder: Path) -> None:
    # Renamed into place, because another process may be reading the old one.
    unfinished = folder / f".{MANIFEST}.{os.getpid()}"
    unfinished.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    unfinished.replace(folder / MANIFEST)
