"""Runs a command that may hang: reports its output line by line, a heartbeat while it is silent, and a time limit."""

from __future__ import annotations

import io
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from kernelgate.bench.system import orphans

T = TypeVar("T")

MAX_LINE = 1 << 16
"""Bytes of a line, about; what is longer comes in pieces."""
MAX_LAST = 200
"""Characters of the last line that an error quotes."""
POLL_S = 0.1
"""Between two looks whether a silent command is gone, or for what a thread started whose result is wanted no more."""


@dataclass(frozen=True)
class TimeLimits:
    silence_s: float = 60.0
    """After this long without output, and again each time, `on_silence` is called."""
    total_s: float = 600.0


LIMITS = TimeLimits()


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[bytes]
    pipe: io.FileIO
    """Its output, errors included."""

    rest: bytearray = field(default_factory=bytearray)
    """Of its output: the line that has not ended yet."""

    def follow(
        self,
        limits: TimeLimits,
        on_line: Callable[[str], None],
        on_silence: Callable[[float], None],
        until: str | None = None,
    ) -> None:
        """`on_line` gets each line of its output as it comes, up to the line `until`, or to the end. Time counts from
        this call on.

        Past the limit it is ended, and TimeoutError says what it said last: "last line: …" or "it printed nothing".
        """
        start = heard = warned = time.monotonic()
        last = ""
        while True:
            now = time.monotonic()
            if now - start >= limits.total_s:
                last = self.rest.decode(errors="replace").strip() or last
                orphans.end_session(self.process.pid)
                raise TimeoutError(f"last line: {last[:MAX_LAST]}" if last else "it printed nothing")
            if now - warned >= limits.silence_s:
                warned = now
                on_silence(now - heard)
            gone = self.process.poll() is not None  # what it started may hold its output for ever
            printed = bool(select.select([self.pipe], [], [], POLL_S)[0])
            if not printed and not gone:
                continue
            chunk = self.pipe.read(1 << 16) if printed else b""
            heard = warned = time.monotonic()
            *lines, rest = bytes(self.rest + chunk).split(b"\n")
            if rest and (not chunk or len(rest) > MAX_LINE):
                lines.append(rest)
                rest = b""
            self.rest[:] = rest
            texts = [line.decode(errors="replace").rstrip("\r") for line in lines]
            for text in texts:
                last = text.strip() or last
                on_line(text)
            if not chunk or until in texts:
                return


@contextmanager
def running(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]) -> Iterator[Running]:
    """Starts a command. No process that it started survives the block, nor this process."""
    output, theirs = os.pipe()
    with os.fdopen(output, "rb", buffering=0) as pipe:
        with os.fdopen(theirs, "wb") as end:
            process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=end, stderr=end, start_new_session=True
            )
        try:
            with orphans.ended_with_us(process.pid):
                try:
                    yield Running(process, pipe)
                finally:
                    orphans.end_session(process.pid)
        finally:
            orphans.end_session(process.pid)  # an interrupt may come before the watchdog is there
            process.wait()


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limits: TimeLimits,
    on_line: Callable[[str], None],
    on_silence: Callable[[float], None],
) -> int:
    """The exit code of a command, which is followed until it ends."""
    with running(command, cwd=cwd, env=env) as started:
        started.follow(limits, on_line, on_silence)
        return started.process.wait()


_JOBS: ContextVar[Path | None] = ContextVar("jobs", default=None)


def job_server() -> Path | None:
    """The FIFO by which what runs in calls of `side_by_side` shares the cores, as GNU make's job server has it: who
    reads a byte of it may start one more process than its first, and writes it back. None outside of such calls."""
    return _JOBS.get()


@contextmanager
def _jobs_shared(among: int) -> Iterator[None]:
    """As many processes at a time as ninja starts by itself, by all of these calls; the outermost ones count."""
    if job_server():
        yield
        return
    cores = len(os.sched_getaffinity(0))
    with TemporaryDirectory(prefix="kernelgate-jobs-") as folder:
        os.mkfifo(fifo := Path(folder, "jobs"))
        with fifo.open("r+b", buffering=0) as held:
            held.write(b"+" * max(0, cores + (2 if cores > 2 else 1) - among))
            before = _JOBS.set(fifo)
            try:
                yield
            finally:
                _JOBS.reset(before)


def side_by_side(calls: Sequence[Callable[[], T]], most: int) -> list[T]:
    """What the calls return, `most` of them at a time, each in a thread of its own.

    Once one raises, or this thread is interrupted, all that they have started is ended and that error raised.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    before, at_once = orphans.children(), max(1, min(most, len(calls)))
    with _jobs_shared(at_once), ThreadPoolExecutor(at_once) as pool:
        made: list[Future[T]] = []
        try:
            made += (pool.submit(copy_context().run, call) for call in calls)
            left = {*made}
            while left:  # a signal that another thread takes does not wake this one, which handles it
                done, left = wait(left, POLL_S, FIRST_EXCEPTION)
                for future in done:
                    future.result()
            return [future.result() for future in made]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in made):  # `wait` never counts what was cancelled as done
                orphans.end_new_children(before)
                wait(made, POLL_S)
            raise
