"""Holds a GPU's clock while it is timed, and lets go of it whatever happens.

A process of its own lets go: it waits until the pipe from its parent closes, which it does even where that is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kernelgate.bench.errors import NoDeviceError
from kernelgate.bench.system import nvml, progress
from kernelgate.bench.system.worker_process import child_environment

DEFAULT = "default"
RELEASE_S = 30.0


@contextmanager
def locked(uuid: str | None, wanted: bool) -> Iterator[str]:
    """Until the block ends, the SM clock stays at its base frequency, where the driver lets this user say so.

    Yields what is so, for the record: "locked 1500 MHz", "default", or "default (why)".
    """
    if not wanted:
        yield DEFAULT
        return
    try:
        with nvml.opened(uuid) as gpu:
            said = gpu.lock_clock()
    except NoDeviceError as error:
        said = str(error)
    if not said.startswith("locked"):
        yield f"{DEFAULT} ({said})"
        return
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, uuid or ""],
        stdin=subprocess.PIPE,
        env=child_environment(),
        start_new_session=True,  # Ctrl-C is for its parent
    ) as watchdog:
        try:
            yield said
        finally:
            if watchdog.stdin:
                watchdog.stdin.close()
            watchdog.wait(RELEASE_S)


def main() -> None:
    """Waits for the end of its parent's pipe, and lets go of the clock."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    while os.read(0, 1024):
        pass
    try:
        with nvml.opened(sys.argv[1] or None) as gpu:
            gpu.unlock_clock()
    except NoDeviceError as error:
        progress.say(f"the GPU's clock may still be held: {error}; release it with nvidia-smi --reset-gpu-clocks")


if __name__ == "__main__":
    main()
