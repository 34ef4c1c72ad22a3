"""Programs that a test makes up, and which processes that it started still run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path


def program(path: Path, body: str, shell: str = "/bin/sh") -> Path:
    """A script that can be run, whatever folders it takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{shell}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def wait_for(condition: Callable[[], bool], limit_s: float = 90.0, what: str = "waited too long") -> None:
    deadline, pause_s = time.monotonic() + limit_s, 0.01
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)
        pause_s = min(0.1, 1.5 * pause_s)  # what is waited for wants the cores


def alive(pid: int) -> bool:
    """False for a zombie, too."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def named(mark: str) -> list[str]:
    """The command lines of processes that hold this text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [one for one in found if mark in one]


def marked(mark: str) -> list[int]:
    """The processes but this one that run and have this text in their variables, whoever their parent is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number = int(entry.name)
            if number != os.getpid() and mark.encode() in (entry / "environ").read_bytes() and alive(number):
                found.append(number)
    return found
