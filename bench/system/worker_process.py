"""A separate process for code that may crash, hang or print anything, and the JSON-lines protocol with it.

Parent and child exchange lines of JSON: the parent writes to the child's standard input, the child to what was its
standard output; anything else that the child prints goes to its standard error, whose last lines the parent keeps.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

import kernelgate
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import orphans
from kernelgate.bench.system.isolation import NONE, Isolation

ROOT = Path(kernelgate.__file__).resolve().parent.parent
"""Where `import kernelgate` finds this very copy."""
START = "kernelgate.bench.system.worker_start"
STEADY = {
    # OpenMP threads that spin while they wait starve each other wherever another process computes too.
    "OMP_WAIT_POLICY": "passive",
    # Memory that goes back to the system and comes again costs a fault a page: eight times a kernel's time in some
    # processes, and none in others.
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_MMAP_MAX_": "0",
    # cuBLAS repeats its bits on several streams only with a workspace of fixed size: 32 MiB, torch's own on sm_90.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
"""Variables of a child's environment, for times and results that repeat."""
WITHHELD = re.compile(
    r"^(?:GITHUB|ACTIONS|RUNNER|AWS|AZURE|GOOGLE)_|TOKEN|SECRET|PASSWORD|CREDENTIAL|KEY$"
    r"|^KERNELGATE_FAILURE$|^SSH_AUTH_SOCK$"
)
"""Names of variables that no child gets: where a workflow's later steps take their orders from, and what opens doors.
All others may be a kernel's own."""
_LAST_LINES = 400
_LOOK_S = 0.5
"""How often a child that is silent is looked at: what it has started may hold its output open when it is gone."""

M = TypeVar("M")
Model = TypeVar("Model", bound=BaseModel)


class Message(BaseModel):
    """One line of JSON between parent and child."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChildError(KernelgateError):
    """The child exited, stopped answering or sent an invalid message. The text continues "the process …"."""


# ----------------------------------------------------------------------------------------------------------------------
# The parent's end
# ----------------------------------------------------------------------------------------------------------------------


def child_environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """These variables without those that are withheld, for a child that imports this very copy of kernelgate."""
    path = os.pathsep.join(filter(None, (str(ROOT), variables.get("PYTHONPATH"))))
    given = {name: value for name, value in variables.items() if not WITHHELD.search(name)}
    return {**given, "PYTHONPATH": path}


class Child:
    """A running `python -m MODULE`. Leaving the `with` block kills it, and what it has started in its session."""

    def __init__(self, module: str, fds: Sequence[int] = (), apart: Isolation = NONE) -> None:
        """`fds`: files that the child inherits. `apart`: how it is kept from what is not its business."""
        self._apart = apart
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the `with` block
        # -P: a folder named `bench` in the current directory, say of a checkout under test, must not stand in for ours.
        self._process = subprocess.Popen(
            apart.around([sys.executable, "-P", "-m", START, module]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=fds,
            env={**STEADY, **child_environment()},
            start_new_session=True,
        )
        self._to = cast(IO[bytes], self._process.stdin)
        self._from = cast(IO[bytes], self._process.stdout)
        self._pending = b""

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        orphans.kill_followers(self._process.pid)
        if self._apart.words:  # bwrap ends when what it has started has, and collects it
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(orphans.GRACE_S)
        self._process.kill()
        self._process.wait()
        orphans.kill_followers(self._process.pid)  # what was started in between
        with suppress(BrokenPipeError):
            self._to.close()
        self._from.close()
        self._stderr.close()

    def send(self, message: BaseModel) -> None:
        """Raises ChildError where the child is gone."""
        try:
            self._to.write(message.model_dump_json().encode() + b"\n")
            self._to.flush()
        except BrokenPipeError:
            raise ChildError(self._ended()) from None

    def receive(self, kind: TypeAdapter[M], patience_s: float) -> M:
        """The child's next message. Raises ChildError where none arrives in time or it is invalid."""
        line = self._line(time.monotonic() + patience_s)
        if line is None:
            raise ChildError(f"did not answer for {patience_s:g} s and was killed{self._last_lines()}")
        if not line:
            raise ChildError(self._ended())
        try:
            return kind.validate_json(line)
        except ValidationError:
            raise ChildError(f"sent {line[:80]!r}, which is not a valid message{self._last_lines()}") from None

    def _line(self, deadline: float) -> bytes | None:
        """One line, b"" at the end of the stream, or None at the deadline."""
        while b"\n" not in self._pending:
            ended = self._process.poll() is not None
            wait = 0.0 if ended else min(_LOOK_S, max(0.0, deadline - time.monotonic()))
            if not select.select([self._from], [], [], wait)[0]:
                if ended:
                    return b""
                if time.monotonic() >= deadline:
                    return None
                continue
            chunk = os.read(self._from.fileno(), 1 << 20)
            if not chunk:
                return b""
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _ended(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return f"closed its output{self._last_lines()}"
        return f"{exit_status(self._apart.exit_code(code))}{self._last_lines()}"

    def _last_lines(self) -> str:
        """The last lines of its standard error, to be appended to a sentence."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 4 * _LAST_LINES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        words = " / ".join(line.strip() for line in lines if line.strip())[-_LAST_LINES:]
        return f"; last lines of stderr: {words}" if words else ""


def exit_status(code: int) -> str:
    if code >= 0:
        return f"exited early with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


# ----------------------------------------------------------------------------------------------------------------------
# The child's end
# ----------------------------------------------------------------------------------------------------------------------


class Parent:
    """The other end, seen from the child."""

    def __init__(self) -> None:
        """Takes over standard input and output."""
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # a kernel's output must not mix with messages

    def send(self, message: BaseModel) -> None:
        self._out.write(message.model_dump_json(by_alias=True).encode() + b"\n")
        self._out.flush()

    def receive(self, kind: type[Model]) -> Model:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(1)
        return kind.model_validate_json(line)
