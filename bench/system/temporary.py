"""Temporary folders that a killed process leaves behind and the next one removes, and memory without a name."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    """A new one, removed when the block ends. It is locked meanwhile: what nobody locks, nobody needs."""
    _remove_forsaken(prefix)
    path, handle = _made(prefix)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _made(prefix: str) -> tuple[Path, int]:
    while True:  # until nobody has taken it for a forsaken one before it was locked
        path = Path(tempfile.mkdtemp(prefix=prefix))
        if (handle := _locked(path)) is not None:
            return path, handle


def _remove_forsaken(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if (handle := _locked(path)) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the folder; None where another process does, or the folder is not there or not ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink and os.fstat(handle).st_uid == os.geteuid():
            return handle
    os.close(handle)
    return None


@contextmanager
def memory_file() -> Iterator[int]:
    """Its descriptor, for children to inherit."""
    fd = os.memfd_create("kernelgate", 0)
    try:
        yield fd
    finally:
        os.close(fd)
