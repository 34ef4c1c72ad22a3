"""How a command ends that does not end by itself: an exit code and one sentence, never a traceback.

The numbers are those of shells (128 and the signal's) and of sysexits.h. None of them is 1, which means that the author
is to blame: a regression, a wrong result, or what does not compile.
"""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from types import FrameType

import click

import kernelgate
from kernelgate.bench.core.errors import KernelgateError, UsageError, unexpected

UNEXPECTED, INPUT_OUTPUT, CLOSED_PIPE = 70, 74, 128 + signal.SIGPIPE
STOP = 4
"""Of a session whose time or money is spent: nothing is wrong, and nothing more is to be tried."""
LACKING = {
    errno.ENOMEM: "there is too little memory (ulimit -v)",
    errno.EMFILE: "too few files may be open at once: allow 256 (ulimit -n)",
    errno.ENFILE: "this machine has too many files open",
    errno.EAGAIN: "no further process may be started (ulimit -u)",
}
EXTRAS = dict.fromkeys(("fsspec", "psycopg", "sqlalchemy", "zstandard"), "history")
EXTRAS |= {"anyio": "mcp", "mcp": "mcp"}
"""The extra that brings a package which some commands need."""
STOPPING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command as an interrupt does, so that what it started ends with it."""


class StoppedError(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def stop_on_signals() -> None:
    """From now on SIGTERM and SIGHUP unwind the command; one that was ignored, as under nohup, stays so."""

    def stop(number: int, _: FrameType | None) -> None:
        raise StoppedError(number)

    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)


def of_error(error: BaseException) -> tuple[int, str]:
    """The exit code, and what to say; nothing where the reader has gone away."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # of mcp, whose client has gone
        error = error.exceptions[0]
    if isinstance(error, click.Abort | KeyboardInterrupt):
        cause = error.__cause__ or error
        if isinstance(cause, EOFError):  # click takes a compiled file that is cut short for the end of its input
            return UNEXPECTED, f"kernelgate: {unexpected(cause)}"
        number = cause.number if isinstance(cause, StoppedError) else signal.SIGINT
        said = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        return 128 + number, f"kernelgate: {said}"
    if isinstance(error, click.ClickException):
        return UsageError.exit_code, ""
    if isinstance(error, KernelgateError):
        return error.exit_code, f"kernelgate: {error}"
    shadowed = kernelgate.stand_in(error)
    if isinstance(error, ModuleNotFoundError) and not shadowed and (extra := EXTRAS.get(str(error.name).split(".")[0])):
        needed = f"{error.name} is needed, which is not installed: pip install 'kernelgate[{extra}]'"
        return KernelgateError.exit_code, f"kernelgate: {needed}"
    lacked = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", None)
    if lacked in LACKING:
        return KernelgateError.exit_code, f"kernelgate: {LACKING[lacked]}"
    if isinstance(error, OverflowError) and "timestamp" in str(error):
        return KernelgateError.exit_code, "kernelgate: this machine's clock is centuries from now: set it"
    # click catches a closed pipe itself, and then exits with 1.
    if isinstance(error, BrokenPipeError) or (isinstance(error, SystemExit) and error.code == 1):
        return CLOSED_PIPE, ""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0, ""
    if isinstance(error, OSError) and error.errno is not None:
        code = KernelgateError.exit_code if _is_unreadable(error) else INPUT_OUTPUT
        return code, f"kernelgate: {_of_file(error)}"
    if shadowed:
        return KernelgateError.exit_code, f"kernelgate: {shadowed}"
    return UNEXPECTED, f"kernelgate: {unexpected(error)}"


def _is_unreadable(error: OSError) -> bool:
    """Of a file that is read: what is written raises OutputError, or is missing in a folder that can be looked into."""
    if error.errno != errno.EACCES or not isinstance(error.filename, str):
        return error.errno == errno.ENAMETOOLONG
    path = Path(error.filename)
    return not os.access(path, os.R_OK) and (os.access(path, os.F_OK) or not os.access(path.parent, os.X_OK))


def _of_file(error: OSError) -> str:
    why = error.strerror or errno.errorcode.get(error.errno or 0, "an error")
    why = f"{why[:1].lower()}{why[1:]}"
    if error.filename:
        return f"{error.filename}: {why}"
    if error.errno != errno.ENOENT:
        return f"the output cannot be written: {why}"
    return f"{why}: make room in one, or set TMPDIR" if "temporary" in why else "the current folder no longer exists"
