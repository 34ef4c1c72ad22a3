"""Processes that would outlive whoever started them: kept apart, found, and ended.

A process group is not enough: ninja gives each of its jobs one of its own. So sessions are looked for in /proc.

`python -I -S orphans.py NUMBER` ends a session when its own standard input closes without a word. This module reads
nothing but the standard library, so that this starts in a moment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, NamedTuple, cast

GRACE_S = 3.0
"""Between SIGTERM and SIGKILL; and for a killed process to be gone."""
WATCHDOG_S = 30.0
"""For a watchdog to do what it is there for."""
_POLL_S = 0.01
_DONE = b"."


class _Process(NamedTuple):
    """What proc_pid_stat(5) says first, of a process or a thread."""

    pid: int
    name: str
    state: str
    parent: int
    session: int
    terminal: int


def _processes(pids: Iterable[int] | None = None) -> Iterator[_Process]:
    """Of these all that are there; by default of all processes."""
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pids is None else pids:  # noqa: PTH208
        with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            # pid (name) state parent group session terminal …, where the name may hold spaces and parentheses.
            head, _, rest = file.read().rpartition(")")
            state, parent, _, session, terminal = rest.split()[:5]
            yield _Process(pid, head.partition("(")[2], state, int(parent), int(session), int(terminal))


# ---- Sessions --------------------------------------------------------------------------------------------------------


def session_members(leader: int) -> list[int]:
    """The living processes of the session that `leader` started."""
    return [one.pid for one in _processes() if one.session == leader and one.state not in ("Z", "X")]


def end_session(leader: int) -> None:
    """Ends a session: asks first, and kills what still runs after a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        send(session_members(leader), number)
        _wait(leader)


def kill_followers(leader: int, mark: str) -> None:
    """Kills all of a session but its leader, and whatever has begun with this value of a variable."""
    found = session_members(leader)
    for one in _processes():
        with suppress(OSError), open(f"/proc/{one.pid}/environ", "rb") as file:  # noqa: PTH123
            found += [one.pid] * (f"={mark}\0".encode() in file.read())
    send([pid for pid in found if pid != leader], signal.SIGKILL)
    _wait(leader, spared=leader)


@contextmanager
def watchdog(command: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Callable[[bytes], int]]:
    """A process that outlives this one, and is told bytes: it hears no more when the block ends, or this process."""
    # A session of its own: Ctrl-C is for its parent.
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, env=env, start_new_session=True) as process:
        pipe = cast(IO[bytes], process.stdin)
        try:
            yield pipe.write
        finally:
            pipe.close()
            try:
                process.wait(WATCHDOG_S)
            except subprocess.TimeoutExpired:
                process.kill()


def last_told() -> bytes:
    """Of a watchdog: the last byte that it was told, once its parent's pipe has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    last = b""
    while told := os.read(0, 1024):
        last = told[-1:]
    return last


@contextmanager
def ended_with_us(leader: int) -> Iterator[None]:
    """Until the block ends, the session is killed should this process be."""
    with watchdog([sys.executable, "-I", "-S", __file__, str(leader)]) as tell:
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                tell(_DONE)


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wake_parent() -> None:
    """What ran here may have stopped it, for which both would wait for ever; at a terminal, somebody sees that."""
    if not _at_terminal(parent := os.getppid()):
        with suppress(OSError):
            os.kill(parent, signal.SIGCONT)


@cache
def _at_terminal(pid: int) -> bool:
    """Asked once: a process writes an answer while it is timed. True where that cannot be known."""
    return all(one.terminal != 0 for one in _processes([pid]))


def _wait(leader: int, spared: int | None = None) -> None:
    """Until nobody else is left, or for the grace."""
    deadline = time.monotonic() + GRACE_S
    while {*session_members(leader)} - {spared} and time.monotonic() < deadline:
        time.sleep(_POLL_S)


# ---- What a library has started and left behind, and would compute beside later measurements -------------------------


def children() -> frozenset[int]:
    return frozenset(one.pid for one in _processes() if one.parent == os.getpid())


def family(pid: int) -> list[int]:
    """A process and all that descend from it, whatever session they are in, where Linux says so."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):  # noqa: PTH208
                with suppress(OSError), open(f"/proc/{one}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
                    found += map(int, file.read().split())
    return found


def threads(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        with suppress(OSError):
            yield from map(int, os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208


def computing(threads: Iterable[int]) -> bool:
    """Whether one of these threads runs: what ends gives its memory back, and no signal stops that."""
    return any(one.state == "R" for one in _processes(threads))


def scheduling(threads: Iterable[int]) -> dict[int, tuple[frozenset[int], int, int]]:
    """Of each thread, what any process of this user may change: its cores, its class and its priority."""
    found = {}
    for one in threads:
        with suppress(OSError):
            cores, kind = frozenset(os.sched_getaffinity(one)), os.sched_getscheduler(one)
            found[one] = cores, kind, os.getpriority(os.PRIO_PROCESS, one)
    return found


def end_new_children(known: frozenset[int]) -> tuple[str, ...]:
    """Ends every child that is not known, and those that it leaves in turn. Returns their names."""
    names: list[str] = []
    while new := [one for one in _processes() if one.parent == os.getpid() and one.pid not in known]:
        for process in new:
            names.append(process.name)
            send([process.pid], signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process.pid, 0)
    return tuple(names)


# ---- What a process tells Linux about itself: prctl(2) ---------------------------------------------------------------

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36


def end_with_parent() -> None:
    """This process is killed when the thread that started it ends. Who calls this then looks whether it has already."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def keep_private() -> None:
    """No other process of this user may look into this one's memory; root may."""
    _prctl(_SET_DUMPABLE, 0)


def watch_stops() -> Callable[[], int]:
    """How often this process was stopped, as far as it went on: what stops it can neither be caught nor kept off."""
    went_on: list[int] = []
    signal.signal(signal.SIGCONT, lambda number, _: went_on.append(number))
    return lambda: len(went_on)


def adopt_orphans() -> None:
    """From now on whatever loses its parent below this process becomes this process's child."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__" and last_told() != _DONE:
    send(session_members(int(sys.argv[1])), signal.SIGKILL)
