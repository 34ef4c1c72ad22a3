"""Runs a command that may hang: reports its output line by line, a heartbeat while it is silent, and a time limit."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

GRACE_S = 3.0
"""Between SIGTERM and SIGKILL."""


@dataclass(frozen=True)
class TimeLimits:
    silence_s: float = 60.0
    """After this long without output, and again each time, `on_silence` is called."""
    total_s: float = 600.0


LIMITS = TimeLimits()


@dataclass(frozen=True)
class Running:
    """A command that was started."""

    process: subprocess.Popen[bytes]
    pipe: io.FileIO
    """Its output, errors included."""

    def follow(self, limits: TimeLimits, on_line: Callable[[str], None], on_silence: Callable[[float], None]) -> int:
        """Its exit code; `on_line` gets each line of its output as it comes. Time counts from this call on.

        Raises TimeoutError past the limit.
        """
        _follow(self.pipe, limits, on_line, on_silence)
        return self.process.wait()


@contextmanager
def running(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]) -> Iterator[Running]:
    """Starts a command. No process that it started survives the block."""
    output, theirs = os.pipe()
    with os.fdopen(output, "rb", buffering=0) as pipe:
        with os.fdopen(theirs, "wb") as end:
            process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=end, stderr=end, start_new_session=True
            )
        try:
            yield Running(process, pipe)
        finally:
            _end_session(process)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limits: TimeLimits,
    on_line: Callable[[str], None],
    on_silence: Callable[[float], None],
) -> int:
    """The exit code of a command, which is followed until it ends."""
    with running(command, cwd=cwd, env=env) as started:
        return started.follow(limits, on_line, on_silence)


def _follow(
    pipe: io.FileIO,
    limits: TimeLimits,
    on_line: Callable[[str], None],
    on_silence: Callable[[float], None],
) -> None:
    """Reads until the command closes its output."""
    start = heard = warned = time.monotonic()
    rest = b""
    while True:
        now = time.monotonic()
        if now - start >= limits.total_s:
            raise TimeoutError
        if now - warned >= limits.silence_s:
            warned = now
            on_silence(now - heard)
        wait = min(start + limits.total_s, warned + limits.silence_s) - now
        if not select.select([pipe], [], [], wait)[0]:
            continue
        chunk = pipe.read(1 << 16)
        heard = warned = time.monotonic()
        *lines, rest = (rest + chunk).split(b"\n")
        if not chunk and rest:
            lines.append(rest)
        for line in lines:
            on_line(line.decode(errors="replace").rstrip("\r"))
        if not chunk:
            return


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Kills what still runs. A process group is not enough: ninja gives each of its jobs a group of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_S
        for pid in _session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        while _session(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
    process.wait()


def _session(leader: int) -> list[int]:
    """The living processes of the session that `leader` started."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _lives_in(leader, entry)]


def _lives_in(leader: int, entry: Path) -> bool:
    try:
        stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # proc_pid_stat(5): pid (name) state parent group session …, where the name may hold spaces and parentheses.
    state, _, _, session = stat.rpartition(")")[2].split()[:4]
    return int(session) == leader and state not in ("Z", "X")
