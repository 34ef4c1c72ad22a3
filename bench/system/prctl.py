"""What a process tells Linux about itself: prctl(2)."""

from __future__ import annotations

import ctypes
import signal

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36


def end_with_parent() -> None:
    """This process is killed when the thread that started it ends. Who calls this then looks whether it has already."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def keep_private() -> None:
    """No other process of this user may look into this one's memory; root may."""
    _prctl(_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """From now on whatever loses its parent below this process becomes this process's child."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
