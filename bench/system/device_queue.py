"""Who waits for a device, first come first served, and how long that may take.

A waiter's ticket is a lock on one byte of a file, which the operating system releases when the waiter dies: no ticket
is ever stale, whoever's it was. The file's text is for how long the device was held, the last times.
"""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

KEPT, LEAST_S = 20, 1.0
"""How many durations are kept, and from how many seconds on: a check of the machine is no measurement."""
_LOCK = struct.Struct("hhqqi4x")
"""`struct flock`: type, whence, start, length, process."""
_ALL = 1 << 40


@dataclass(frozen=True)
class Ticket:
    handle: int
    number: int

    @property
    def ahead(self) -> int:
        """How many wait who came before."""
        return len(list(_tickets(self.handle, 0, self.number)))

    def estimate_s(self, held_s: float | None) -> float | None:
        """How long it takes until the device is this waiter's; None where nobody knows how long it is held.

        `held_s`: for how long it is held by now.
        """
        if not (known := _durations(self.handle)):
            return None
        each = statistics.median(known)
        return self.ahead * each + (max(0.0, each - held_s) if held_s is not None else 0.0)


@contextmanager
def ticket(handle: int) -> Iterator[Ticket]:
    """The last place in the queue, until the block ends. `handle`: of the queue's file, which nobody else uses."""
    with _alone(handle):
        number = 1 + max(_tickets(handle, 0, _ALL), default=-1)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
    try:
        yield Ticket(handle, number)
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
    minutes = round(estimate_s / 60)
    about = "less than a minute" if minutes < 1 else "about a minute" if minutes == 1 else f"about {minutes} minutes"
    return f"{place}{ending}, {about}"
