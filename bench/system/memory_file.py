"""A file in memory that processes of one machine share, without a name by which anybody else could open it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def opened() -> Iterator[int]:
    """Its descriptor, for children to inherit."""
    fd = os.memfd_create("kernelgate", 0)
    try:
        yield fd
    finally:
        os.close(fd)
