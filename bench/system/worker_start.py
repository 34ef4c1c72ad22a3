"""python -P -m kernelgate.bench.system.worker_start MODULE: runs a worker's module, sure to end with its leader.

Loading torch takes seconds, in which the leader may be killed; so this comes first.
"""

from __future__ import annotations

import runpy
import select
import signal
import sys

from kernelgate.bench.system import orphans


def leader_is_gone() -> bool:
    """Whether standard input, which the leader holds, has no writer any more."""
    poll = select.poll()
    poll.register(0, select.POLLHUP)
    return bool(poll.poll(0))


def main() -> None:
    orphans.end_with_parent()
    if leader_is_gone():  # before the line above
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the leader's
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
