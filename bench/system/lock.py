"""One measurement at a time on one device of this machine, first come first served; temporary folders that a killed
process leaves behind and the next one removes; and which machine this is.

The operating system releases a lock when its holder dies. A waiter's ticket is a lock on one byte of a file, too: none
is ever stale, whoever's it was. That file's text is for how long the device was held, the last times.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import platform
import re
import shutil
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.progress import say

WAIT_S = 3600.0
CHECK = "device lock"
"""As `kernelgate doctor` calls it."""
HELD = "KERNELGATE_DEVICE_LOG"
"""The variable that names a file to which each process adds when it takes a device, and when it gives it back."""
_WAITED = re.compile(r"(waited |waiting for it to finish \()(\d+) s (?:for|of at most) ")
_POLL_S = 0.2
_REMIND_S = 30.0


@contextmanager
def device(uuid: str | None, wait_s: float = WAIT_S) -> Iterator[None]:
    """Holds the device (a GPU's uuid; None for the CPU) during the block; waits for who holds it, or came before.

    Whatever calls kernels on a device holds it; a command of several phases holds it through all of them, for what this
    process holds already it need not wait for. The files stand in the temporary folder, so processes that measure one
    device must share that folder. Raises KernelgateError where the device is still held after `wait_s`.
    """
    if (file := path(uuid)) in _ours:
        yield
        return
    with _opened(file) as handle, _opened(file.with_suffix(".queue")) as queue:
        with _ticket(queue) as number:
            _wait(handle, uuid, wait_s, (queue, number))
        os.ftruncate(handle, 0)
        note = {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.pwrite(handle, json.dumps(note).encode(), 0)
        _log_holding(-1)
        begun = time.monotonic()
        _ours.add(file)
        try:
            yield
        finally:
            _ours.remove(file)
            _log_holding(1)
            remember(queue, time.monotonic() - begun)


def _log_holding(sign: int) -> None:
    if file := os.environ.get(HELD):
        with suppress(OSError), Path(file).open("a", encoding="ascii") as log:  # it is counted as far as it can be
            log.write(f"{sign * time.monotonic()}\n")


@dataclass(frozen=True)
class DeviceLog:
    """How long devices are held by processes that are started with its `variables`, and by those that they start."""

    file: Path
    before_s: float = 0.0

    @property
    def variables(self) -> dict[str, str]:
        return {HELD: str(self.file)}

    def held_s(self) -> float:
        """Until now, where one is held."""
        times = [float(line) for line in self.file.read_text(encoding="ascii").split()]
        return sum(times) - time.monotonic() * sum(math.copysign(1, one) for one in times) - self.before_s


@contextmanager
def device_log() -> Iterator[DeviceLog]:
    """One for what is started during the block: a part of the caller's, where that has one."""
    if file := os.environ.get(HELD):
        whole = DeviceLog(Path(file))
        yield DeviceLog(whole.file, whole.held_s())
    else:
        with tempfile.NamedTemporaryFile(prefix="kernelgate-held-") as made:
            yield DeviceLog(Path(made.name))


def path(uuid: str | None) -> Path:
    return Path(tempfile.gettempdir()) / f"kernelgate-{re.sub('[^A-Za-z0-9-]', '_', uuid or 'cpu')}.lock"


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    """Opens for all users of the machine: one may create the file, any may hold it."""
    new = not os.path.lexists(file)
    try:
        handle = os.open(file, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if new else 0), 0o666)
        if new:
            file.chmod(0o666)  # past the umask: whoever measures the device next may be another user
    except OSError as error:
        what, then = ("made", "set TMPDIR to a writable folder") if new else ("opened", "remove it, or set TMPDIR")
        raise KernelgateError(f"{file} cannot be {what} ({error.strerror}); {then}") from None
    try:
        yield handle
    finally:
        os.close(handle)


def holder(uuid: str | None) -> str | None:
    """Who measures the device now, such as "process 12 since 2026-11-26T17:00:00+00:00"; None where nobody does."""
    if not path(uuid).exists():
        return None
    with _opened(path(uuid)) as handle:
        return None if taken(handle) else _noted(handle)[0]


def waited_s(line: str) -> tuple[float, bool] | None:
    """For how long a process has waited for a device, if this line of its output says so, and whether that is over."""
    found = _WAITED.search(line)
    return (float(found[2]), found[1] == "waited ") if found else None


_waits: list[float] = []
_ours: set[Path] = set()
"""The devices that this process holds."""


def stopwatch() -> Callable[[], float]:
    """The seconds since it was started, without those in which this process waited for a device: these count against
    no budget."""
    begun = time.monotonic() - sum(_waits)
    return lambda: time.monotonic() - sum(_waits) - begun


def _wait(handle: int, uuid: str | None, wait_s: float, ticket: tuple[int, int]) -> None:
    (queue, number), begun, name = ticket, time.monotonic(), uuid or "the CPU"
    reminded, told = -_REMIND_S, -1
    while (ahead := len(list(_tickets(queue, 0, number)))) or not taken(handle):
        waited = time.monotonic() - begun
        if waited >= wait_s:
            why = f"{_occupied(handle, name)}; gave up after {waited:.0f} s: end that process or try again later"
            raise KernelgateError(why)
        if waited - reminded >= _REMIND_S or ahead != told:
            reminded, told = waited, ahead
            place = in_words(ahead, _estimate_s(queue, ahead, _noted(handle)[1]))
            how_long = f"waiting for it to finish ({waited:.0f} s of at most {wait_s:.0f} s)"
            say(f"{_occupied(handle, name)}; {how_long}; in its queue: {place}")
        time.sleep(_POLL_S)
    _waits.append(time.monotonic() - begun)
    if told >= 0:
        say(f"waited {_waits[-1]:.0f} s for {name}")


def _occupied(handle: int, name: str) -> str:
    if taken(handle):  # for a moment, in which the first of the queue looks again
        fcntl.flock(handle, fcntl.LOCK_UN)
        return f"{name} is about to be measured by who came before"
    return f"{name} is being measured by {_noted(handle)[0]}"


def taken(handle: int) -> bool:
    """Takes the lock of an open file for this process alone, without waiting; whether nobody else held it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _noted(handle: int) -> tuple[str, float | None]:
    """Who holds the lock, and for how many seconds, as far as the file says so."""
    try:
        note = json.loads(os.pread(handle, 1000, 0))
        held = datetime.now(UTC) - datetime.fromisoformat(note["since"])
        return f"process {note['pid']} since {note['since']}", held.total_seconds()
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another process", None


# ---- Who waits for a device, and how long that may take --------------------------------------------------------------

KEPT, LEAST_S = 20, 1.0
"""How many durations are kept, and from how many seconds on: a check of the machine is no measurement."""
_LOCK = struct.Struct("hhqqi4x")
"""`struct flock`: type, whence, start, length, process."""
_ALL = 1 << 40


def _estimate_s(queue: int, ahead: int, held_s: float | None) -> float | None:
    """How long it takes until the device is whose turn comes after so many; None where nobody knows how long it is
    held. `held_s`: for how long it is held by now."""
    if not (known := _durations(queue)):
        return None
    each = statistics.median(known)
    return ahead * each + (max(0.0, each - held_s) if held_s is not None else 0.0)


@contextmanager
def _ticket(handle: int) -> Iterator[int]:
    """The last place in the queue, until the block ends. `handle`: of the queue's file, which nobody else uses."""
    with _alone(handle):
        number = 1 + max(_tickets(handle, 0, _ALL), default=-1)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
    try:
        yield number
    finally:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, number, 1, 0))


def remember(handle: int, held_s: float) -> None:
    """That the device was held for so long. Estimates are worse without it, so that no error is one of the holder's."""
    if held_s >= LEAST_S:
        with suppress(OSError), _alone(handle):
            text = json.dumps([*_durations(handle), round(held_s, 1)][-KEPT:]).encode()
            os.pwrite(handle, text, 0)
            os.ftruncate(handle, len(text))


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """For the moment in which a number is taken, or the text is written."""
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _tickets(handle: int, start: int, end: int) -> Iterator[int]:
    """The numbers from `start` to before `end` that others hold. Of several the system names any."""
    if start < end:
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, end - start, 0)
        kind, _, found, _, _ = _LOCK.unpack(fcntl.fcntl(handle, fcntl.F_OFD_GETLK, asked))
        if kind != fcntl.F_UNLCK:
            yield from _tickets(handle, start, found)
            yield found
            yield from _tickets(handle, found + 1, end)


def _durations(handle: int) -> list[float]:
    try:
        return [float(one) for one in json.loads(os.pread(handle, 4096, 0))]
    except (ValueError, TypeError):  # it is new, or being written
        return []


def in_words(ahead: int, estimate_s: float | None) -> str:
    """Such as "2nd, about 3 minutes"."""
    place = ahead + 1
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place // 10 % 10 != 1 else "th"
    if estimate_s is None:
        return f"{place}{ending}"
    minutes = max(1, round(estimate_s / 60))
    return f"{place}{ending}, about {minutes} minute{'' if minutes == 1 else 's'}"


# ---- Temporary folders -----------------------------------------------------------------------------------------------


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new one, removed when the block ends. It is locked meanwhile: what nobody locks, nobody needs."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove(path, _held(path))
    handle = None
    while handle is None:  # until nobody has taken it for a forsaken one before it was locked
        path = Path(tempfile.mkdtemp(prefix=prefix))
        handle = _held(path)
    try:
        yield path
    finally:
        _remove(path, handle)


def _remove(path: Path, handle: int | None) -> None:
    if handle is not None:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _held(path: Path) -> int | None:
    """A descriptor that holds the folder; None where another process does, or the folder is not there or not ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if taken(handle) and os.fstat(handle).st_nlink and os.fstat(handle).st_uid == os.geteuid():
        return handle
    os.close(handle)
    return None


def boot_identity() -> str | None:
    """Twelve characters that stand for this host and this boot of it; None where the system tells no boot."""
    try:
        text = f"{platform.node()} {Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}"
    except OSError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:12]
