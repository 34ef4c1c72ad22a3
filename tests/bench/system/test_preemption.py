"""The notice before a machine is taken away, in a process of its own: SIGALRM is this one's timeout."""

from __future__ import annotations

import signal
import subprocess
import sys

SCRIPT = """
import os, signal, time
import rich.console  # as in a measurement, which has said something before
from kernelgate.bench.system import preemption
from kernelgate.bench.system.preemption import NoticeOverError
def asked():
    os.kill(os.getpid(), signal.SIGTERM)
def heed(notice):
    try:
        notice.heed()
    except NoticeOverError:
        print("nothing new")
def wait():
    try:
        time.sleep(10)  # shorter than the notice
    except NoticeOverError:
        print("dropped")
before = preemption.RESERVE_S
preemption.RESERVE_S = preemption.NOTICE_S - 0.2
with preemption.awaited() as notice:
    heed(notice)
    asked()
    print("finished")
    heed(notice)
    time.sleep(0.4)
print("no alarm is left")
with preemption.awaited() as notice:
    asked()
    wait()
preemption.RESERVE_S = before
with preemption.awaited() as notice:
    asked()
    try:
        asked()
        wait()
    except NoticeOverError:
        print("the second is the end")
ignored = signal.signal(signal.SIGTERM, signal.SIG_IGN)
with preemption.awaited() as notice:
    asked()
    print(notice.given)
signal.signal(signal.SIGTERM, ignored)
asked()
"""


def test_what_is_in_flight_finishes_or_is_dropped_and_nothing_begins_after_a_notice() -> None:
    """A signal that was ignored stays so; afterwards one ends the process as ever."""
    done = subprocess.run([sys.executable, "-u", "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    said = ["finished", "nothing new", "no alarm is left", "dropped", "the second is the end", "False"]
    assert (done.stdout.splitlines(), done.returncode) == (said, -signal.SIGTERM), done.stderr
