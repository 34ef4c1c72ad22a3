"""Whether a process that a test started still runs."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """False for a zombie, too."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
