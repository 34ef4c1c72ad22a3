"""Holds a GPU's clock while it is timed, and lets go of it whatever happens.

A process of its own lets go: it waits until the pipe from its parent closes, which it does even where that is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, cast

from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import nvml, progress
from kernelgate.bench.system.worker_process import child_environment

DEFAULT = "default"
RELEASE_S = 30.0
HELD, FREE = b"1", b"0"
"""What the watchdog is told. A clock that somebody else holds is none of its business."""


@contextmanager
def locked(uuid: str | None, wanted: bool) -> Iterator[str]:
    """Until the block ends, the SM clock stays at its base frequency, where the driver lets this user say so.

    Yields what is so, for the record: "locked 1500 MHz", "default", or "default (why)".
    """
    if not wanted:
        yield DEFAULT
        return
    with _watchdog(uuid) as tell:
        tell(HELD)  # before it is: whoever ends this process in between leaves no clock held
        try:
            with nvml.opened(uuid) as gpu:
                said = gpu.lock_clock()
        except NoDeviceError as error:
            said = str(error)
        if said.startswith("locked"):
            yield said
        else:
            tell(FREE)
            yield f"{DEFAULT} ({said})"


@contextmanager
def _watchdog(uuid: str | None) -> Iterator[Callable[[bytes], int]]:
    """A process that lets go of the clock when the block ends, or this process, if the last it was told is `HELD`."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, uuid or ""],
        stdin=subprocess.PIPE,
        bufsize=0,
        env=child_environment(),
        start_new_session=True,  # Ctrl-C is for its parent
    ) as watchdog:
        pipe = cast(IO[bytes], watchdog.stdin)
        try:
            yield pipe.write
        finally:
            pipe.close()
            try:
                watchdog.wait(RELEASE_S)
            except subprocess.TimeoutExpired:
                watchdog.kill()


def main() -> None:
    """Waits for the end of its parent's pipe, and lets go of the clock if it was held."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    last = FREE
    while told := os.read(0, 1024):
        last = told[-1:]
    if last != HELD:
        return
    try:
        with nvml.opened(sys.argv[1] or None) as gpu:
            gpu.unlock_clock()
    except NoDeviceError as error:
        progress.say(f"the GPU's clock may still be held: {error}; release it with nvidia-smi --reset-gpu-clocks")


if __name__ == "__main__":
    main()
