"""The build cache: libraries by their key, each made once, held while it is used, and removed when room is made.

Whoever takes an entry holds its lock until the process ends, so that it is not removed below a library that is loaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kernelgate.bench.build import library, machine_code
from kernelgate.bench.build.library import CACHE, LIBRARY, MANIFEST, PACKAGE, SOURCES, Built, Library, Manifest
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, OutputError
from kernelgate.bench.system import lock
from kernelgate.bench.system.progress import say

CACHE_VARIABLE = "KERNELGATE_CACHE"
BUILDING = "building"
"""In the cache: the folders where libraries are made, each of whose locks is held meanwhile."""
LOCKS, LOGS = "locks", "logs"
OBJECTS, OBJECT, OUTPUT = "objects", "unit.o", "output.txt"
"""In the cache: what compilers made of translation units that several libraries have, by key, and what they printed."""
PARTS = {"extension": (LIBRARY, SOURCES), "package": (PACKAGE, CACHE)}
"""What an entry holds beside its manifest, by the kind of library."""
_KEY = re.compile(r"[0-9a-f]{32}")
_held: dict[Path, int] = {}


class CacheEntry(NamedTuple):
    folder: Path
    size: int
    """Bytes."""
    last_used: float
    """Seconds since 1970."""


class Pruned(NamedTuple):
    removed: tuple[CacheEntry, ...]
    kept: tuple[CacheEntry, ...]
    in_use: tuple[CacheEntry, ...]
    """Of those that stay, what should have gone and is being used."""


def cache_folder() -> Path:
    """$KERNELGATE_CACHE, or kernelgate/ in the user's cache folder. Raises KernelgateError where it has no name."""
    chosen = os.environ.get(CACHE_VARIABLE)
    try:
        named = chosen or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelgate"
        folder = Path(named).absolute()
        str(folder).encode()
    except RuntimeError:
        text = f"there is no home folder for the cache (HOME is not set): set {CACHE_VARIABLE} to a folder that can be"
        raise KernelgateError(f"{text} written to") from None
    except UnicodeEncodeError:
        text = f"the name of the cache, {str(folder)!a}, is no UTF-8 here: set {CACHE_VARIABLE}, or a locale of UTF-8"
        raise KernelgateError(text) from None
    return folder


def digest(parts: object) -> str:
    """The sha256 of what JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def cached(key: str, make: Callable[[Path], Built]) -> Library:
    """The cache's entry for a key, made where there is none, by one process at a time: `make` makes its parts in a
    folder that is not there yet, and gone afterwards, and describes them."""
    entry = cache_folder() / key
    hold(entry)
    if found := _read(entry):
        return found
    with _locked(entry.parent / LOCKS / key):
        return _read(entry) or _made(entry, make)


@contextmanager
def claimed(keys: Iterable[str]) -> Iterator[frozenset[str]]:
    """Of these units' keys, those that no other build compiles now: until the block ends, others wait for them."""
    with ExitStack() as held:
        handles = {key: os.open(_claim_of(key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666) for key in keys}
        for handle in handles.values():
            held.callback(os.close, handle)
        yield frozenset(key for key, handle in handles.items() if lock.taken(handle))


def taken(key: str, place: Path) -> str | None:
    """What a compiler printed of the unit whose object is now in `place`; None where the cache has none."""
    folder = cache_folder() / OBJECTS / key
    try:
        printed = (folder / OUTPUT).read_text(encoding="utf-8")
        place.write_bytes((folder / OBJECT).read_bytes())
        _lock_of(folder).touch()
    except OSError:  # what is wrong with this disk will be said by who compiles it
        return None
    return printed


def wait(key: str) -> None:
    """Until no other build compiles the unit."""
    with _claim_of(key).open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def keep(key: str, made: Path, printed: str) -> None:
    folder = cache_folder() / OBJECTS / key
    with suppress(OutputError, OSError):
        files.write(folder / OUTPUT, printed)
        files.write(folder / OBJECT, made.read_bytes())
        _lock_of(folder).touch()


def _claim_of(key: str) -> Path:
    claim = cache_folder() / OBJECTS / LOCKS / key
    claim.parent.mkdir(parents=True, exist_ok=True)
    return claim


def log_of(work: Path) -> Path:
    """Where what compilers print is kept, of the folder in which a library is made."""
    return work.parent.parent / LOGS / f"{work.name}.log"


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, data in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def not_writable(error: Exception) -> KernelgateError:
    return KernelgateError(f"the cache cannot be written: {error}; set {CACHE_VARIABLE} to a folder that can be")


def _read(entry: Path) -> Library | None:
    """None for a damaged entry, too. Facts that this machine could not read are read once it can."""
    try:
        found = library.read(entry)
    except KernelgateError:
        return None
    known = found.manifest
    if known.kind == "package" or known.facts_missing is None or not known.targets:
        return found
    code = machine_code.facts(found.path)
    manifest = known.model_copy(update={"kernels": code.kernels, "facts_missing": code.missing})
    with suppress(OutputError):  # a cache that only others may write
        write_manifest(manifest, entry)
    return replace(found, manifest=manifest)


def _made(entry: Path, make: Callable[[Path], Built]) -> Library:
    """The caller holds the entry's lock."""
    for folder in (entry.parent / BUILDING).glob("*"):  # of builds that were killed: nobody holds their lock
        with suppress(OSError), (entry.parent / LOCKS / folder.name).open("w") as file:
            if lock.taken(file.fileno()):
                remove(folder)
    if os.path.lexists(entry):
        say(f"{entry} is damaged, or of an earlier kernelgate: compiling it again")
    work, begun = entry.parent / BUILDING / entry.name, time.monotonic()
    remove(work)
    try:
        built = make(work)
        seconds, digest = time.monotonic() - begun, library.content_digest(work, built.kind)
        manifest = Manifest(**dict(built), sha=None, key=entry.name, seconds=seconds, sha256=digest)
        finished = work / "entry"
        finished.mkdir()
        for part in PARTS[manifest.kind]:
            (work / part).rename(finished / part)
        write_manifest(manifest, finished)
        remove(entry)
        finished.rename(entry)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Library(entry, manifest, cached=False)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock file until the block ends; waits for another process that holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise not_writable(error) from None
    with file:
        if not lock.taken(file.fileno()):
            say("another process compiles the same sources; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_manifest(manifest: Manifest, folder: Path) -> None:
    files.write(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")


def remove(path: Path) -> None:
    """Whatever it is: a folder, a file, or a link, which may lead nowhere."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def hold(entry: Path) -> None:
    """Until this process ends, nobody removes the entry, whether it is there yet or not. In a cache that only others
    may write there is nothing to hold on to."""
    if entry in _held:
        return
    with suppress(OSError):
        handle = _open_lock(entry)
        fcntl.flock(handle, fcntl.LOCK_SH)
        os.utime(handle)
        _held[entry] = handle


def prune(cache: Path, unused_s: float, most_bytes: float) -> Pruned:
    """Removes libraries that nobody took for so long, with their logs; then those that waited longest, until it fits.
    Raises OSError and OutputError where the cache may not be read or written."""
    every = sorted((*entries(cache), *entries(cache / OBJECTS)), key=lambda entry: entry.last_used)
    now, size = time.time(), sum(entry.size for entry in every)
    removed, in_use = list[CacheEntry](), list[CacheEntry]()
    for entry in every:
        if now - entry.last_used <= unused_s and size <= most_bytes:
            break
        gone = _removed(entry.folder)
        (removed if gone else in_use).append(entry)
        size -= entry.size if gone else 0
    return Pruned(tuple(removed), tuple(entry for entry in every if entry not in removed), tuple(in_use))


def entries(cache: Path) -> Iterator[CacheEntry]:
    """All libraries of the cache, also damaged ones."""
    for folder in sorted(cache.iterdir()) if cache.exists() else ():
        if _KEY.fullmatch(folder.name) and folder.is_dir():
            with suppress(FileNotFoundError):  # another process makes room, too
                size = sum(path.lstat().st_size for path in folder.rglob("*"))
                taken = _lock_of(folder) if _lock_of(folder).exists() else folder
                yield CacheEntry(folder, size, taken.stat().st_mtime)


def _removed(entry: Path) -> bool:
    """Removes an entry that nobody holds; nobody takes it meanwhile."""
    handle = _open_lock(entry)
    try:
        if alone := lock.taken(handle):
            (entry / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is no library
            try:
                shutil.rmtree(entry)
            except OSError as error:
                raise OutputError(f"{entry} cannot be removed: {error.strerror}") from None
            (entry.parent / LOGS / f"{entry.name}.log").unlink(missing_ok=True)
        return alone
    finally:
        os.close(handle)


def _open_lock(entry: Path) -> int:
    _lock_of(entry).parent.mkdir(parents=True, exist_ok=True)
    return os.open(_lock_of(entry), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _lock_of(entry: Path) -> Path:
    """Its time says when the entry was last taken. It stays when the entry goes."""
    return entry.parent / LOCKS / f"{entry.name}.used"
