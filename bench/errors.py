"""What goes wrong in ways that a user can mend. Anything else is a bug and keeps its traceback."""

from __future__ import annotations


class KernelgateError(Exception):
    """Says what was wrong, where, and what to do. The command line prints it and exits with `exit_code`."""

    exit_code = 3


class UsageError(KernelgateError):
    """The words of the call are off."""

    exit_code = 64


class RecordError(KernelgateError):
    """A run record is broken or does not fit the question."""


class BuildError(KernelgateError):
    """A commit does not compile, or nothing here can compile it."""

    exit_code = 1


class NoDeviceError(KernelgateError):
    """This machine lacks the GPU, driver or tool that was asked for."""
