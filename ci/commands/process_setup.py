"""What a command needs of the process that it runs in: descriptors, output that takes any character, memory."""

from __future__ import annotations

import io
import mmap
import os
import resource
import sys

from kernelgate.bench.core.errors import KernelgateError

MEMORY = 256 << 20
"""Bytes of address space that judging a record takes, of libraries mostly."""


def open_descriptors() -> None:
    """Stands something in for standard streams that are closed, so that no file of ours becomes one of them."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)


def take_any_character() -> None:
    """Where the terminal or the locale is ASCII, text goes out as UTF-8; what cannot be encoded, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_alone = stream.encoding.lower() in ("ascii", "ansi_x3.4-1968", "us-ascii", "646")
            stream.reconfigure(encoding="utf-8" if ascii_alone else None, errors="backslashreplace")


def require_memory() -> None:
    """Raises KernelgateError where there is too little: OpenBLAS would end the process with 1, as a regression does."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of them maps 80 MB
    try:
        mmap.mmap(-1, MEMORY).close()
    except OSError:
        raise KernelgateError(
            f"this process may not use {MEMORY >> 20} MiB of memory: allow it 1 GiB (ulimit -v)"
        ) from None
