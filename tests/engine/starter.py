"""Runs the Python programs of a runner as forks of one process, in place of processes that first load the same modules.

That process has loaded kernelgate, of the tests' own checkout, and what it needs of others: so it serves a checkout
whose kernelgate is the same, file by file (stand_in.py). ask_starter.py asks it.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import multiprocessing
import os
import runpy
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from tests.workflows.documents import ROOT

COMMANDS = ("check", "fleet", "history", "history_verbs", "judge", "measure", "search", "steps")
LOADED = (
    *(f"kernelgate.ci.commands.{name}" for name in COMMANDS),
    *("kernelgate.ci.github.publish", "kernelgate.ci.history.past", "scipy.special"),
    *("tests.engine.reports", "tests.engine.stand_in", "unittest.mock"),
)
"""With all that they import: what the programs would, but for torch."""


@contextmanager
def running() -> Iterator[str]:
    """The name by which the process is asked."""
    name = f"kernelgate-engine-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        handle = listener.fileno()
        # As a runner has it; and threads are not forked.
        steady = {"LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        words = [sys.executable, "-P", "-m", __name__, str(handle)]
        process = subprocess.Popen(words, env=steady, stdin=subprocess.PIPE, pass_fds=(handle,))
    with process:
        yield name


def serve(handle: int) -> None:
    """Until nobody has the other end of standard input any more. Whoever asks is told how the program ended: its exit
    code, or a signal's number below 0."""
    for name in LOADED:
        importlib.import_module(name)
    assert "torch" not in sys.modules
    gc.freeze()
    programs: dict[Any, tuple[BaseProcess, socket.socket]] = {}
    with socket.socket(fileno=handle) as listener:
        while 0 not in (ready := wait([0, listener, *programs])):
            for ended in programs.keys() & set(ready):
                program, asked = programs.pop(ended)
                program.join()
                with suppress(OSError), asked:  # nobody may wait any more
                    asked.sendall(f"{program.exitcode}\n".encode())
            if listener in ready:
                asked, _ = listener.accept()
                program = started(asked)
                programs[program.sentinel] = program, asked


def started(asked: socket.socket) -> BaseProcess:
    """It does not tidy up as it ends, which would take longer than most programs."""
    _, streams, *_ = socket.recv_fds(asked, 1, 3)
    words, folder, variables = marshal.loads(asked.makefile("rb").read())  # noqa: S302 (of ask_starter.py)
    program = multiprocessing.get_context("fork").Process(target=run, args=(streams, words, folder, variables))
    program.start()
    for stream in streams:
        os.close(stream)
    return program


def run(streams: list[int], words: list[str], folder: str, variables: dict[str, str]) -> None:
    for own, stream in enumerate(streams):
        os.dup2(stream, own)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.modules.pop(words[1], None)  # loaded: it would be warned of
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
