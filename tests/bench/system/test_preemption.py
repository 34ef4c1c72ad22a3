"""The notice before a machine is taken away, in processes of their own: SIGALRM is this one's timeout."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, time
import rich.console  # as in a measurement, which has said something before
from kernelgate.bench.system import preemption
from kernelgate.bench.system.preemption import NoticeOverError
preemption.RESERVE_S = preemption.NOTICE_S - 0.2
def asked():
    os.kill(os.getpid(), signal.SIGTERM)
"""
SCRIPTS = {
    "what is in flight finishes, and nothing begins after it": (
        """
with preemption.awaited() as notice:
    notice.heed()
    asked()
    print("finished")
    try:
        notice.heed()
    except NoticeOverError:
        print("nothing more")
    time.sleep(0.4)
print("no alarm is left")
""",
        "finished\nnothing more\nno alarm is left\n",
    ),
    "what does not finish is dropped": (
        """
with preemption.awaited() as notice:
    asked()
    try:
        time.sleep(60)
    except NoticeOverError:
        print("dropped", notice.given)
""",
        "dropped True\n",
    ),
    "a second SIGTERM is the end": (
        """
preemption.RESERVE_S = 0.0
with preemption.awaited() as notice:
    asked()
    try:
        asked()
        time.sleep(5)  # shorter than the notice
    except NoticeOverError:
        print("dropped")
""",
        "dropped\n",
    ),
    "one that was ignored stays so": (
        """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with preemption.awaited() as notice:
    asked()
    print(notice.given)
""",
        "False\n",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_notice(name: str) -> None:
    script, expected = SCRIPTS[name]
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_afterwards_it_ends_the_process_as_ever() -> None:
    script = "with preemption.awaited():\n    pass\nasked()"
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGTERM
