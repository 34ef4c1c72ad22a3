"""Sessions of processes: found, ended, and ended even where the process that would have is killed.

A process group is not enough: ninja gives each of its jobs one of its own.

`python -I -S sessions.py NUMBER` ends a session when its own standard input closes without a word. It reads nothing but
the standard library, so that it starts in a moment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, cast

GRACE_S = 3.0
"""Between SIGTERM and SIGKILL; and for a killed process to be gone."""
_POLL_S = 0.01
_DONE = b"."


def members(leader: int) -> list[int]:
    """The living processes of the session that `leader` started."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _lives_in(leader, name)]  # noqa: PTH208


def end(leader: int) -> None:
    """Ends a session: asks first, and kills what still runs after a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _send(members(leader), number)
        _wait(leader, spared=())


def kill_followers(leader: int) -> None:
    """Kills all of a session but its leader."""
    _send([pid for pid in members(leader) if pid != leader], signal.SIGKILL)
    _wait(leader, spared=(leader,))


@contextmanager
def ended_with_us(leader: int) -> Iterator[None]:
    """Until the block ends, the session is killed should this process be."""
    command = [sys.executable, "-I", "-S", __file__, str(leader)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True) as watchdog:
        pipe = cast(IO[bytes], watchdog.stdin)
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                pipe.write(_DONE)
            pipe.close()


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait(leader: int, spared: tuple[int, ...]) -> None:
    """Until nobody is left, or for the grace."""
    deadline = time.monotonic() + GRACE_S
    while set(members(leader)).difference(spared) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _lives_in(leader: int, pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            stat = file.read()
    except OSError:
        return False
    # proc_pid_stat(5): pid (name) state parent group session …, where the name may hold spaces and parentheses.
    state, _, _, session = stat.rpartition(")")[2].split()[:4]
    return int(session) == leader and state not in ("Z", "X")


def main() -> None:
    """Waits for the end of its parent's pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1) != _DONE:
        _send(members(int(sys.argv[1])), signal.SIGKILL)


if __name__ == "__main__":
    main()
