"""A function in a fresh, watched interpreter: for code that may crash, hang or print anything.

`python -P -m kernelgate.bench.system.worker MODULE:FUNCTION` runs it. Leader and worker exchange lines of JSON through
two pipes of their own; anything that the worker prints, or its Python as it starts, goes to a file, whose last lines
the leader quotes.

What the function is given follows from its annotations: a `Leader` is the other end, any other kind is a message that
is waited for. What it returns is its last answer; an error that it raises arrives as WorkerFailedError.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, Self, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kernelgate.bench.core.errors import KernelgateError, why
from kernelgate.bench.system import interpreter, isolation, orphans
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.isolation import NONE, Isolation
from kernelgate.bench.system.progress import say

MODULE = "kernelgate.bench.system.worker"
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
    r"^(?:GITHUB|ACTIONS|RUNNER|AWS|AZURE|GOOGLE)_|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR)|WEBHOOK"
    r"|(?:KEY|_PAT|DSN)$|^KERNELGATE_FAILURE$",
    re.IGNORECASE,
)
"""Names of variables that no child gets: where a workflow's later steps take their orders from, and what opens doors.
All others may be a kernel's own."""
PASSWORD = re.compile(r"://[^/\s@]*:[^/\s@]+@")
"""In an address, such as a package index's; nor does a child get such a variable, whatever its name."""
MARK = "KERNELGATE_WORKER"
"""The variable by which all that a worker starts is known, also what leaves its session."""
SHARES = "kernelgate.bench.timing."
"""Where the functions of workers are that share memory: what others left in it, a kernel could find while it is timed.
"""
_LAST_LINES = 400
_LOOK_S = 0.5
"""How often a worker that is silent is looked at: what it has started may hold its output open when it is gone."""
PIPE_BYTES = 1 << 20
"""Of a pipe to a worker: room for all that it is told before it reads, so that the leader need not wait for it."""
MAX_LINE = 1 << 26
"""Bytes of one message: far more than any has."""

M = TypeVar("M", bound=BaseModel)


class Message(BaseModel):
    """One line of JSON between leader and worker."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Doing(Message):
    """What the worker does next, so that the leader can say where it died."""

    doing: str
    loading: bool = False


class ImportAhead(Message):
    """What a worker imports before its turn: what the package that it will load would import of installed packages."""

    ahead: tuple[str, ...]

    def run(self) -> None:
        for name in self.ahead:
            with suppress(Exception, SystemExit):  # it is the package's to say, when it imports that itself
                importlib.import_module(name)
        if "triton" in sys.modules:
            with suppress(Exception):  # a hash of its files, which it keeps: half a second of the first launch
                importlib.import_module("triton.runtime.cache").triton_key()


class Failed(Message):
    """The last message of a worker whose function raised an error."""

    failed: str
    error: str
    """The name of its kind."""


class Ready(Message):
    """What takes seconds is loaded."""

    ready: Literal[True] = True


_NEWS: TypeAdapter[Doing | Failed] = TypeAdapter(Doing | Failed, config=ConfigDict(defer_build=True))


class WorkerError(KernelgateError):
    """The worker exited, stopped answering or sent an invalid message: "the process …"."""

    hung = False


class WorkerFailedError(WorkerError):
    """The worker's function raised an error; the text is that error's."""

    def __init__(self, news: Failed) -> None:
        super().__init__(news.failed)
        self.error = news.error
        """The name of its kind."""


# ---- The leader's end ------------------------------------------------------------------------------------------------


def open_variables(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """These without those that are withheld."""
    return {name: value for name, value in variables.items() if not (WITHHELD.search(name) or PASSWORD.search(value))}


def child_environment(variables: Mapping[str, str] = os.environ, python: Path | None = None) -> dict[str, str]:
    """These variables without those that are withheld, for a process that imports this very copy of kernelgate.
    `python`: its own, which may be another than this one: then PYTHONPATH stays as it is, for beside.py finds it."""
    given = open_variables(variables)
    if python not in (None, Path(sys.executable)):
        return given
    return {**given, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), variables.get("PYTHONPATH"))))}


class WorkerProcess:
    """A running worker. Leaving the `with` block kills it, and what it has started in its session."""

    def __init__(
        self, function: str, fds: Sequence[int] = (), apart: Isolation = NONE, python: Path | None = None
    ) -> None:
        """`function`: MODULE:FUNCTION. `fds`: files that it inherits. `apart`: how it is isolated. `python`: which runs
        it, by default the current one."""
        python = python or interpreter.current()
        self.doing = Doing(doing="starting", loading=True)
        """What it said last that it does."""
        self.touched = False
        """Whether another process stopped it, or gave it other cores or another priority, or it did not stand still."""
        self._left: dict[int, tuple[frozenset[int], int, int]] = {}
        self._apart, self._mark = apart, token_hex(8)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the `with` block
        (hears, to), (from_, says) = os.pipe(), os.pipe()
        self._to, self._from = os.fdopen(to, "wb"), os.fdopen(from_, "rb")
        widen(to)
        with os.fdopen(hears), os.fdopen(says, "wb"):
            self._process = subprocess.Popen(
                apart.around(interpreter.command(python, MODULE, function, str(hears), str(says))),
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=(*fds, hears, says),
                env={**STEADY, **child_environment(python=python), MARK: self._mark},
                start_new_session=True,
            )
        self._pending = b""

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def ended_itself(self) -> bool:
        """Whether it has exited or crashed, and was not killed from outside."""
        return self._process.poll() is not None and not self.killed

    @property
    def killed(self) -> bool:
        """Whether it was ended from outside, as for want of memory."""
        code = self._process.poll()
        return code is not None and self._apart.exit_code(code) in (-signal.SIGKILL, -signal.SIGTERM)

    def ended_by_work(self, error: WorkerError) -> bool:
        """Whether what it said last that it does has ended it: not its start, and not an error that it reported."""
        return self.ended_itself and not self.doing.loading and not isinstance(error, WorkerFailedError)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        orphans.kill_followers(self._process.pid, self._mark)
        if self._apart.words:  # bwrap ends when what it has started has, and collects it
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(orphans.GRACE_S)
        self._process.kill()
        self._process.wait()
        orphans.kill_followers(self._process.pid, self._mark)  # what was started in between
        with suppress(BrokenPipeError):
            self._to.close()
        self._from.close()
        self._stderr.close()

    def ask(self, message: BaseModel, kind: type[M] | TypeAdapter[M], patience_s: float) -> M:
        """The answer to a message. Raises WorkerError as `send` and `receive` do."""
        self.send(message)
        return self.receive(kind, patience_s)

    def send(self, message: BaseModel) -> None:
        """Raises WorkerError where the worker is gone."""
        try:
            self._to.write(message.model_dump_json().encode() + b"\n")
            self._to.flush()
        except BrokenPipeError:
            raise self._error(self._ended()) from None

    def receive(self, kind: type[M] | TypeAdapter[M], patience_s: float) -> M:
        """The worker's next answer. Raises WorkerError where none arrives in time or it is of another kind, and
        WorkerFailedError where the function has raised an error."""
        deadline = time.monotonic() + patience_s
        while True:
            if (line := self._line(deadline)) is None:
                error = self._error(f"did not answer for {patience_s:g} s and was killed")
                error.hung = True
                raise error
            if not line:
                raise self._error(self._ended())
            try:
                answer = parsed(line, kind)
            except ValidationError:
                raise self._error(f"sent {line[:80]!r}, which is not a valid message") from None
            if not isinstance(answer, Doing):
                return answer
            self.doing = answer

    def pause(self) -> None:
        """Until it goes on, nothing of it runs, nor of what it has started."""
        stopped: set[int] = set()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGSTOP)
        while new := set(orphans.family(self._process.pid)) - stopped:  # one may have started another meanwhile
            orphans.send(new, signal.SIGSTOP)
            stopped |= new
        threads = [*orphans.threads(stopped | {self._process.pid})]
        deadline = time.monotonic() + orphans.GRACE_S
        while (late := orphans.computing(threads)) and time.monotonic() < deadline:
            time.sleep(0.001)
        self.touched |= late
        self._left = orphans.scheduling(threads)

    def go_on(self) -> None:
        now = orphans.scheduling(self._left)
        self.touched |= any(now.get(thread, how) != how for thread, how in self._left.items())
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGCONT)
        orphans.send(orphans.family(self._process.pid), signal.SIGCONT)

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
            if not (chunk := os.read(self._from.fileno(), 1 << 20)):
                return b""
            self._pending += chunk
            if len(self._pending) > MAX_LINE and b"\n" not in chunk:
                raise self._error(f"sent a line of more than {MAX_LINE} bytes")
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _ended(self) -> str:
        try:
            return exit_status(self._apart.exit_code(self._process.wait(timeout=10)))
        except subprocess.TimeoutExpired:
            return "closed its output"

    def printed(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def _error(self, what: str) -> WorkerError:
        """What it did, with the last lines of its standard error."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 4 * _LAST_LINES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        words = " / ".join(line.strip() for line in lines if line.strip())[-_LAST_LINES:]
        return WorkerError(f"the process {what}{f'; last lines of stderr: {words}' if words else ''}")


def parsed(line: bytes | str, kind: type[M] | TypeAdapter[M]) -> M | Doing:
    """A line of a worker. Raises ValidationError, and WorkerFailedError for the last words of one that failed."""
    try:
        return _validated(kind, line)
    except ValidationError:
        news = _NEWS.validate_json(line)
    if isinstance(news, Failed):
        raise WorkerFailedError(news)
    return news


def _validated(kind: type[M] | TypeAdapter[M], line: bytes | str) -> M:
    return kind.validate_json(line) if isinstance(kind, TypeAdapter) else kind.model_validate_json(line)


def widen(pipe: int) -> None:
    """Gives a pipe the room that a long first message needs, where the system lets it."""
    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def exit_status(code: int) -> str:
    names = {one.value: one.name for one in signal.Signals}
    return f"exited early with code {code}" if code >= 0 else f"was killed by {names.get(-code, f'signal {-code}')}"


@dataclass
class WorkerPool:
    """Workers that are started before they are needed, because loading torch takes seconds, and that end together."""

    stack: ExitStack
    fds: tuple[int, int]
    """Of the memory that they share on a CPU: what kernels read, and what they write."""
    started: list[WorkerProcess] = field(default_factory=list)
    waiting: dict[tuple[str, frozenset[str], Path], list[WorkerProcess]] = field(default_factory=dict)
    """By function, by the modules that they import ahead, and by their Python."""
    changing: threading.RLock = field(default_factory=threading.RLock)
    """Several threads may take workers."""

    def take(self, function: str, ahead: tuple[str, ...] = (), python: Path | None = None) -> WorkerProcess:
        """One that imports these modules ahead, and no others."""
        with self.changing:
            self.prepare({function: 1}, ahead, python)
            return self.waiting[function, frozenset(ahead), python or interpreter.current()].pop(0)

    def prepare(self, counts: Mapping[str, int], ahead: tuple[str, ...] = (), python: Path | None = None) -> None:
        """Starts workers until so many of each function wait that import these modules `ahead`. Those that import
        others instead end: nobody needs them any more. `python`: which runs them, by default the current one."""
        python, modules = python or interpreter.current(), frozenset(ahead)
        with self.changing:
            for function, count in counts.items():
                ready = self.waiting.setdefault((function, modules, python), [])
                for (of_function, told, of), workers in self.waiting.items():
                    if ahead and told and of_function == function and (told, of) != (modules, python):
                        while workers:
                            workers.pop().__exit__()
                untold = self.waiting.get((function, frozenset(), python), []) if ahead else []
                while len(ready) < count or untold:
                    worker = untold.pop(0) if untold else self._started(function, python)
                    if ahead:
                        worker.send(ImportAhead(ahead=ahead))
                    ready.append(worker)

    def _started(self, function: str, python: Path) -> WorkerProcess:
        fds, apart = (self.fds, isolation.here()) if function.startswith(SHARES) else ((), isolation.alone())
        self.started.append(self.stack.enter_context(WorkerProcess(function, fds, apart, python)))
        return self.started[-1]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Until the block ends, those that wait take nothing of the machine."""
        waiting = [one for workers in self.waiting.values() for one in workers]
        try:
            for one in waiting:
                one.pause()
            yield
        finally:
            for one in waiting:
                one.go_on()

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(worker.pid for worker in self.started if worker.pid is not None)


@contextmanager
def memory_file() -> Iterator[int]:
    """The descriptor of memory without a name, for children to inherit."""
    fd = os.memfd_create("kernelgate", os.MFD_ALLOW_SEALING)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def worker_pool() -> Iterator[WorkerPool]:
    """Without workers yet. All that are started end with the block."""
    orphans.adopt_orphans()
    with memory_file() as read, memory_file() as written, ExitStack() as stack:
        yield WorkerPool(stack, (read, written))


@dataclass(eq=False)
class KernelWorker:
    """A worker that a kernel may crash or hang: what is asked next then gets a fresh one. Leaving the `with` block ends
    it, and what the kernel has left running."""

    workers: WorkerPool
    function: str
    request: BaseModel
    """Its first message, which it answers with Ready."""
    loads: str
    """What it loads, for people."""
    loading_s: float
    python: Path | None = None
    ahead: tuple[str, ...] = ()
    deaths: int = field(default=0, init=False)
    """Processes that were beyond use afterwards."""
    _others: frozenset[int] = field(default_factory=orphans.children, init=False)
    _worker: WorkerProcess | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def started(self) -> WorkerProcess:
        """Raises KernelgateError where what it loads cannot be loaded."""
        if self._worker is None:
            self._worker = self.workers.take(self.function, self.ahead, self.python)
            try:
                self._worker.ask(self.request, Ready, self.loading_s)
            except WorkerFailedError:
                raise
            except WorkerError as error:
                raise KernelgateError(f"{self.loads} cannot be loaded: {error}") from None
        return self._worker

    def end(self, is_dead: bool = False) -> None:
        """What is asked next gets a fresh process."""
        self.deaths += is_dead
        if self._worker is not None:
            self._worker.__exit__()
            self._worker = None
            if names := orphans.end_new_children(self._others | self.workers.pids):
                say(f"the kernel left {', '.join(names)} running, which was ended")


# ---- The worker's end ------------------------------------------------------------------------------------------------


class Leader:
    """The other end, seen from the worker."""

    def __init__(self, hears: int, says: int) -> None:
        for handle in (hears, says):
            os.set_inheritable(handle, False)
        self._in, self._out = os.fdopen(hears, "rb"), os.fdopen(says, "wb")

    def send(self, message: BaseModel) -> None:
        self._out.write(message.model_dump_json(by_alias=True).encode() + b"\n")
        self._out.flush()
        orphans.wake_parent()

    def line(self) -> bytes:
        return self._in.readline()

    def receive(self, kind: type[M] | TypeAdapter[M]) -> M:
        while (line := self.line()).startswith(b'{"ahead"'):
            ImportAhead.model_validate_json(line).run()
        if not line:
            sys.exit(1)
        return _validated(kind, line)


def serve(function: str, leader: Leader) -> None:
    module, _, name = function.partition(":")
    try:
        gc.disable()  # what is loaded, such as torch, stays to the end: to look through it takes a quarter of the time
        run = getattr(importlib.import_module(module), name)
        gc.freeze()
        gc.enable()
        kinds: dict[str, Any] = get_type_hints(run)
        del kinds["return"]
        answer = run(**{key: leader if kind is Leader else leader.receive(kind) for key, kind in kinds.items()})
    except Exception as error:
        answer = Failed(failed=why(error), error=type(error).__name__)
    if answer is not None:
        leader.send(answer)


def main() -> None:
    """Loading torch takes seconds, in which the leader may be killed; so that is looked after first."""
    orphans.end_with_parent()
    function, hears, says = sys.argv[1:]
    del sys.argv[1:]
    leader_holds = select.poll()
    leader_holds.register(int(hears), select.POLLHUP)
    if leader_holds.poll(0):  # it was gone before the first line: nobody writes any more
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the leader's
    serve(function, Leader(int(hears), int(says)))


if __name__ == "__main__":
    importlib.import_module(MODULE).main()  # as the module that functions import, not a second copy of it
