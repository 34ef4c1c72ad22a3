"""Errors that a user can fix; anything else is a bug and keeps its traceback. And how an error is quoted."""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError  # --help does without


def first_line(error: BaseException) -> str:
    """What an error says first; the name of its kind where it says nothing."""
    return str(error).strip().split("\n")[0] or type(error).__name__


def why(error: Exception) -> str:
    """What a process says about an error that it ends with: of a bug, or of a kernel's own code, also the kind."""
    said = first_line(error)
    return said if isinstance(error, KernelgateError | OSError) else f"{type(error).__name__}: {said}"


def unexpected(error: BaseException) -> str:
    """What is said of an error that nobody foresaw; its traceback is written to a file, which the sentence names."""
    kind, first = type(error).__name__, first_line(error)
    said = f"unexpected {kind}" + ("" if first == kind else f" ({first})")
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="kernelgate-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError as full:
        return f"{said}; its traceback could not be written ({full.strerror})"
    return f"{said}, which is a fault of kernelgate's: please report it with {file.name}, its traceback"


def one_line(text: str, kept: str = "", instead: str = " ") -> str:
    """The text without line breaks and without what a terminal would obey, but for what is `kept`."""
    return "".join(c if c.isprintable() or c in kept else instead for c in text)


def faults(error: ValidationError, most: int = 3) -> str:
    """What does not fit a schema, and where, in one line; what the names of keys hold is made harmless."""
    found = error.errors(include_url=False, include_input=False)
    places = [".".join(str(part)[:80] for part in fault["loc"])[:200] or "the file" for fault in found[:most]]
    named = [f"{place}: {fault['msg']}" for place, fault in zip(places, found, strict=False)]
    rest = f"; and {len(found) - most} more" if len(found) > most else ""
    return one_line("; ".join(named)) + rest


class KernelgateError(Exception):
    """Says what was wrong, where, and what to do. The command line prints it and exits with `exit_code`."""

    exit_code = 3


class UsageError(KernelgateError):
    """The command line is wrong."""

    exit_code = 64


class OutputError(KernelgateError):
    """A file or folder that was asked for cannot be written."""

    exit_code = 74


class PreemptedError(KernelgateError):
    """The machine was taken away. What was measured is kept; to be gone on with, here or on another machine."""

    exit_code = 75


class RecordError(KernelgateError):
    """A run record is broken or does not fit the question."""


class BuildError(KernelgateError):
    """A commit has no library."""

    exit_code = 1


class CannotCompileError(BuildError):
    """This machine cannot compile a commit: a tool is missing or breaks down, takes too long or lacks what was asked.

    It says nothing about the sources.
    """

    exit_code = KernelgateError.exit_code


class NoKernelError(BuildError):
    """A commit or folder has no kernel sources, so that there is nothing to compile, fuzz or time."""

    exit_code = 2


class CompileError(BuildError):
    """The compilers ran and refused a commit's sources."""

    def __init__(self, name: str, target: str | None, first: str, log: Path, excerpt: tuple[str, ...] = ()) -> None:
        super().__init__(f"{name} does not compile{f' for {target}' if target else ''}: {first} (all of it: {log})")
        self.target = target
        """Such as "sm_89" where only that target's translation unit is known to fail; None where all do."""
        self.first = first
        """The compiler's first error, `csrc/file:line: error: …`."""
        self.log = log
        """All that was printed, as far as it was kept."""
        self.excerpt = excerpt
        """What was printed of that error, for people who may not read the machine's other files."""


class CardError(BuildError):
    """A card says something that it cannot mean, or its kernel does not fit it."""

    def __init__(self, file: str, line: int | None, member: str, text: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {member}: {text}" if member else f"{where}: {text}")
        self.file, self.line, self.member, self.text = file, line, member, text


class NoDeviceError(KernelgateError):
    """This machine lacks the GPU, driver or tool that was asked for."""
