"""The notice that a machine is about to be taken away, as clouds and batch systems give it: SIGTERM, then SIGKILL.

What is being timed is finished within the notice if it can be, else dropped. All that was finished before is kept.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from kernelgate.bench.system.progress import say

NOTICE_S: Final = 30.0
"""From SIGTERM to SIGKILL, as clouds give at least."""
RESERVE_S: Final = 15.0
"""Of it, what it takes to hear of it (5 s), to end processes, to write the record and to hand it over."""


class NoticeOverError(KeyboardInterrupt):
    """There is no time left: what is being done ends as by an interrupt, which nothing on the way may handle."""


@dataclass
class Notice:
    """Whether there was one."""

    given: bool = False

    def heed(self) -> None:
        """Raises NoticeOverError where something new would begin after the notice."""
        if self.given:
            signal.setitimer(signal.ITIMER_REAL, 0)  # which would only disturb the end
            raise NoticeOverError


@contextmanager
def awaited() -> Iterator[Notice]:
    """While it lasts, the first SIGTERM is a notice, and a second one its end. One that was ignored stays so."""
    notice = Notice()

    def end(_: int, __: FrameType | None) -> None:
        raise NoticeOverError

    def begin(number: int, frame: FrameType | None) -> None:
        if notice.given:
            end(number, frame)
        notice.given = True
        signal.setitimer(signal.ITIMER_REAL, NOTICE_S - RESERVE_S)
        say(f"SIGTERM: what is being timed has {NOTICE_S - RESERVE_S:g} s to finish")

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield notice
        return
    before = {number: signal.signal(number, do) for number, do in ((signal.SIGTERM, begin), (signal.SIGALRM, end))}
    try:
        yield notice
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
