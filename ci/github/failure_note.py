"""Writes down why a verb failed, where KERNELGATE_FAILURE names a file: the report then says whose fault it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import (
    CannotCompileError,
    CardError,
    CompileError,
    KernelgateError,
    NoDeviceError,
    NoKernelError,
)
from kernelgate.ci.github.untrusted_artifact import MAX_LOG, FailureNote

VARIABLE = "KERNELGATE_FAILURE"
MAX_MESSAGE = 4000
MAX_LINE = 2000


def note(error: KernelgateError, verb: str, environment: Mapping[str, str] = os.environ) -> None:
    """The first failure of a job is written down; a later one follows from it. Raises OutputError."""
    name = environment.get(VARIABLE)
    if not name or Path(name).exists():
        return
    attempt = environment.get("GITHUB_RUN_ATTEMPT", "")
    compiling = error if isinstance(error, CompileError) else None
    text = FailureNote.model_validate(
        {
            "schema": "kernelgate.failure/1",
            "fault": _fault(error, verb),
            "message": (compiling.first if compiling else str(error))[:MAX_MESSAGE] or type(error).__name__,
            "verb": verb[:40] or None,
            "target": compiling.target if compiling else None,
            "log": tuple(line[:MAX_LINE] for line in compiling.excerpt[:MAX_LOG]) if compiling else (),
            "run_attempt": int(attempt) if attempt.isdecimal() and int(attempt) else None,
        }
    ).model_dump_json(by_alias=True)
    files.write(Path(name), text + "\n")


def _fault(error: KernelgateError, verb: str) -> str:
    # What compiles reads the card of the commit; what measures, that of the default branch.
    if isinstance(error, CompileError | NoKernelError) or (isinstance(error, CardError) and verb == "build"):
        return "build"
    return "runner" if isinstance(error, NoDeviceError | CannotCompileError) else "ours"
