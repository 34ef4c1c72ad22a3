"""One measurement at a time on one device of this machine, first come first served; temporary folders that a killed
process leaves behind and the next one removes; and which machine this is.

The operating system releases a lock when its holder dies.
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
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import device_queue
from kernelgate.bench.system.device_queue import Ticket
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

    The files stand in the temporary folder, so processes that measure one device must share that folder. Raises
    KernelgateError where the device is still held after `wait_s`.
    """
    handle = _open(path(uuid))
    queue = -1
    try:
        queue = _open(path(uuid).with_suffix(".queue"))
        with device_queue.ticket(queue) as mine:
            _wait(handle, uuid, wait_s, mine)
        os.ftruncate(handle, 0)
        note = {"pid": os.getpid(), "since": datetime.now().astimezone().isoformat(timespec="seconds")}
        os.pwrite(handle, json.dumps(note).encode(), 0)
        _log_holding(-1)
        begun = time.monotonic()
        try:
            yield
        finally:
            _log_holding(1)
            device_queue.remember(queue, time.monotonic() - begun)
    finally:
        for each in {handle, queue} - {-1}:
            os.close(each)


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


def _open(file: Path) -> int:
    """Opens for all users of the machine: one may create the file, any may hold it."""
    try:
        return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise KernelgateError(f"{file} cannot be opened ({error.strerror}); remove it, or set TMPDIR") from None
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        file.chmod(0o666)  # past the umask: whoever measures the device next may be another user
    except OSError as error:
        raise KernelgateError(f"{file} cannot be made ({error.strerror}); set TMPDIR to a writable folder") from None
    return handle


def holder(uuid: str | None) -> str | None:
    """Who measures the device now, such as "process 12 since 2026-11-26T17:00:00+00:00"; None where nobody does."""
    if not path(uuid).exists():
        return None
    handle = _open(path(uuid))
    try:
        return None if taken(handle) else _holder(handle)
    finally:
        os.close(handle)


def waited_s(line: str) -> tuple[float, bool] | None:
    """For how long a process has waited for a device, if this line of its output says so, and whether that is over."""
    found = _WAITED.search(line)
    return (float(found[2]), found[1] == "waited ") if found else None


_waits: list[float] = []


def waited_in_all_s() -> float:
    """For how long this process has waited for devices, which counts against no budget."""
    return sum(_waits)


def stopwatch() -> Callable[[], float]:
    """The seconds since it was started, without those in which this process waited for a device."""
    begun = time.monotonic() - waited_in_all_s()
    return lambda: time.monotonic() - waited_in_all_s() - begun


def _wait(handle: int, uuid: str | None, wait_s: float, mine: Ticket) -> None:
    begun, name = time.monotonic(), uuid or "the CPU"
    reminded, told = -_REMIND_S, -1
    while (ahead := mine.ahead) or not taken(handle):
        waited = time.monotonic() - begun
        if waited >= wait_s:
            why = f"{_occupied(handle, name)}; gave up after {waited:.0f} s: end that process or try again later"
            raise KernelgateError(why)
        if waited - reminded >= _REMIND_S or ahead != told:
            reminded, told = waited, ahead
            place = device_queue.in_words(ahead, mine.estimate_s(_held_s(handle)))
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
    return f"{name} is being measured by {_holder(handle)}"


def taken(handle: int) -> bool:
    """Takes the lock of an open file for this process alone, without waiting; whether nobody else held it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> str:
    try:
        note = json.loads(os.pread(handle, 1000, 0))
        return f"process {note['pid']} since {note['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _held_s(handle: int) -> float | None:
    try:
        since = datetime.fromisoformat(json.loads(os.pread(handle, 1000, 0))["since"])
        return (datetime.now().astimezone() - since).total_seconds()
    except (ValueError, KeyError, TypeError):
        return None


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


BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_identity(boot: Path = BOOT) -> str | None:
    """Twelve characters that stand for this host and this boot of it; None where the system tells no boot."""
    try:
        text = f"{platform.node()} {boot.read_text(encoding='ascii').strip()}"
    except (OSError, UnicodeDecodeError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:12]
