"""Processes that a library has started and left behind: found, ended and named.

Without this, one of them could go on computing beside later measurements, or rewrite the record after it was written.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def children() -> frozenset[int]:
    """The processes whose parent this one is."""
    own = os.getpid()
    return frozenset(pid for pid in _processes() if _parent(pid) == own)


def end(known: frozenset[int]) -> tuple[str, ...]:
    """Ends every child that is not known, and those that it leaves in turn. Returns their names."""
    names: list[str] = []
    while strays := children() - known:
        for pid in sorted(strays):
            names.append(_name(pid))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return tuple(names)


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        # The name may hold spaces and parentheses; what follows the last one does not.
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() or str(pid)
    return str(pid)
