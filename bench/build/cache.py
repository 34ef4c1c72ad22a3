"""What lies in the build cache: who uses an entry, and which ones go when room is made.

Whoever takes an entry holds its lock until the process ends, so that it is not removed below a library that is loaded.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build.library import MANIFEST
from kernelgate.bench.system import lock

LOCKS = "locks"
LOGS = "logs"
USED = ".used"
"""Ends the name of an entry's lock, whose time says when the entry was last taken. It stays when the entry goes."""
_KEY = re.compile(r"[0-9a-f]{32}")
_held: dict[Path, int] = {}
"""The open locks of this process."""


@dataclass(frozen=True)
class CacheEntry:
    folder: Path
    size: int
    """Bytes."""
    last_used: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class Pruned:
    removed: tuple[CacheEntry, ...]
    kept: tuple[CacheEntry, ...]
    in_use: tuple[CacheEntry, ...]
    """Of those that stay, what should have gone and is being used."""


def hold(entry: Path) -> None:
    """From now on and until this process ends, nobody removes the entry, whether it is there yet or not.

    Called before the entry is looked at. In a cache that only others may write there is nothing to hold on to.
    """
    if entry in _held:
        return
    with suppress(OSError):
        file = _lock(entry)
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(handle, fcntl.LOCK_SH)
        os.utime(handle)
        _held[entry] = handle


def prune(cache: Path, unused_s: float, most_bytes: float) -> Pruned:
    """Removes libraries that nobody took for so long; then, of the rest, those that waited longest, until it fits.

    Logs go with their library. Cards, locks and the corpus of fuzz cases stay. Raises OSError where the cache may not
    be written.
    """
    now, left = time.time(), sorted(entries(cache), key=lambda one: one.last_used)
    size = sum(one.size for one in left)
    removed, in_use = [], []
    for one in left:
        if now - one.last_used <= unused_s and size <= most_bytes:
            break
        if _removed(one.folder):
            removed.append(one)
            size -= one.size
        else:
            in_use.append(one)
    kept = tuple(one for one in left if one not in removed)
    return Pruned(tuple(removed), kept, tuple(in_use))


def entries(cache: Path) -> Iterator[CacheEntry]:
    """All libraries of the cache, also damaged ones."""
    for folder in sorted(cache.glob("*")):
        if _KEY.fullmatch(folder.name) and folder.is_dir():
            with suppress(FileNotFoundError):  # another process makes room, too
                size = sum(path.lstat().st_size for path in folder.rglob("*"))
                taken = _lock(folder) if _lock(folder).exists() else folder
                yield CacheEntry(folder, size, taken.stat().st_mtime)


def _removed(entry: Path) -> bool:
    with _alone(entry) as alone:
        if alone:
            (entry / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is no library
            shutil.rmtree(entry, ignore_errors=True)
            (entry.parent / LOGS / f"{entry.name}.log").unlink(missing_ok=True)
    return alone


@contextmanager
def _alone(entry: Path) -> Iterator[bool]:
    """Whether nobody holds the entry; then nobody takes it until the block ends."""
    file = _lock(entry)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield lock.taken(handle)
    finally:
        os.close(handle)


def _lock(entry: Path) -> Path:
    return entry.parent / LOCKS / f"{entry.name}{USED}"
