"""Runs ninja on a recipe: shows and keeps what it prints, and tells a fault of the sources from one of the machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build import toolchain
from kernelgate.bench.build.compiler_output import MAX_LINE, STATUS, ErrorSearch, FirstError, WarningSearch
from kernelgate.bench.build.library import LIBRARY
from kernelgate.bench.build.recipe import Recipe
from kernelgate.bench.build.sources import target_of
from kernelgate.bench.core.errors import CannotCompileError, CompileError, UsageError
from kernelgate.bench.record import CompilerWarning
from kernelgate.bench.system import supervise
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import TimeLimits

MAX_SHOWN = 400
"""Lines of compilers' output that are shown; all are in the log, …"""
MAX_LOG = 64 << 20
"""… of at most so many characters."""
SOURCES = "sources"
"""In the folder where a library is made: the sources, and what compilers make of them."""
SOURCE_TIME_S = 946_684_800
"""When the copies of sources were last changed, for line tables hold that, too: 2000-01-01."""


@dataclass(frozen=True)
class CompileJob:
    """What messages call a compile, and where everything that is printed goes."""

    label: str
    """Such as "gemm of a1b2c3d for sm_89"."""
    name: str
    """Of the commit, such as "a1b2c3d"."""
    log: Path


def compile_in(tree: Path, recipe: Recipe, job: CompileJob, limits: TimeLimits) -> tuple[CompilerWarning, ...]:
    """Compiles in `tree`, a folder of which nothing is there yet. Returns when tree/kernel.so is there, with what the
    compilers warn of.

    Raises CompileError, and CannotCompileError where it is the machine's.
    """
    _write_sources(recipe, tree)
    toolchain.link(recipe.toolchain, tree.parent)
    start = time.monotonic()
    unfinished = [*recipe.units, LIBRARY]
    job.log.parent.mkdir(parents=True, exist_ok=True)
    search = ErrorSearch(recipe.sources.files.keys())
    warned = WarningSearch(recipe.sources.files.keys(), recipe.namespace, recipe.sources.card)
    told = track(f"compile {job.label}", len(unfinished), alike=False, limit_s=limits.total_s)
    with job.log.open("w", encoding="utf-8") as file, told as advance:
        shown, kept = 0, 0

        def on_line(line: str) -> None:
            nonlocal shown, kept
            search.read(line)
            warned.read(line)
            kept += len(line) + 1
            if kept <= MAX_LOG:
                print(line, file=file)
            step = STATUS.match(line)
            if step and step["step"] in unfinished:
                unfinished.remove(step["step"])
                advance(" ".join(unfinished))
            elif line and shown < MAX_SHOWN:
                shown += 1
                more = f" … (what follows is in {job.log})" if shown == MAX_SHOWN else ""
                say(f"{time.monotonic() - start:6.1f} s  {line[:MAX_LINE]}{more}")

        def on_silence(seconds: float) -> None:
            say(f"still compiling {' '.join(unfinished)}: silent for {seconds:.0f} s")

        try:
            code = _ninja(recipe, tree, limits, on_line, on_silence)
        except TimeoutError as overdue:
            raise CannotCompileError(
                f"{job.name} took longer to compile than the limit of {limits.total_s:g} s and was ended; "
                f"unfinished: {' '.join(unfinished)}; {overdue} "
                f"(output so far: {job.log}); `build --time-limit` allows more"
            ) from None
    if code < 0:
        raise CannotCompileError(f"{job.name} could not be compiled: ninja was ended by {signal.Signals(-code).name}")
    error = search.result()
    if code == 0 and not (tree / LIBRARY).is_file():
        error = FirstError(LIBRARY, f"{LIBRARY}: error: the compilers ended without an error, and made nothing", False)
    elif code == 0:
        return warned.result()
    if error.broken:
        raise CannotCompileError(f"{job.name} could not be compiled: {error.text} (all of it: {job.log})")
    if not error.in_sources:
        _check_machine(recipe, tree, limits)
    raise CompileError(job.name, target_of(error.source), error.text, job.log, error.excerpt)


def _ninja(
    recipe: Recipe, tree: Path, limits: TimeLimits, on_line: Callable[[str], None], on_silence: Callable[[float], None]
) -> int:
    """The exit code of ninja in `tree`: $MAX_JOBS compilers at a time, as torch's own builds have it.

    Compilers' messages are English, ninja's status has the form that STATUS reads, and PWD is what compilers write into
    line tables in front of relative paths: a name of any current folder. Raises UsageError for another MAX_JOBS.
    """
    jobs = os.environ.get("MAX_JOBS", "")
    if jobs and (not jobs.isdecimal() or int(jobs) == 0):
        raise UsageError(f"MAX_JOBS={jobs!r} is not how many compilers may run at a time: set a number from 1 on")
    kept = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # make's job server is not ours
    own = {"LC_ALL": "C", "NINJA_STATUS": "[%f/%t] ", "CCACHE_NOHASHDIR": "1", "PWD": "/proc/self/cwd"}
    try:
        return supervise.run(
            [recipe.toolchain.ninja, *(("-j", jobs) if jobs else ())],
            cwd=tree,
            env=kept | own,
            limits=limits,
            on_line=on_line,
            on_silence=on_silence,
        )
    except OSError as error:
        if str(error.filename) != str(recipe.toolchain.ninja):
            raise
        raise CannotCompileError(f"{recipe.toolchain.ninja} cannot be run: {error.strerror}") from None


def _check_machine(recipe: Recipe, tree: Path, limits: TimeLimits) -> None:
    """Raises CannotCompileError where the same compilers do not even compile sources that are empty."""
    empty = tree.parent / "empty" / SOURCES
    plain = recipe.without_contents()
    _write_sources(plain, empty)
    toolchain.link(plain.toolchain, empty.parent)
    search = ErrorSearch(plain.sources.files.keys())
    with suppress(TimeoutError):
        if _ninja(plain, empty, limits, search.read, lambda _: None) == 0 and (empty / LIBRARY).is_file():
            return
    names = " and ".join(name for name, _ in recipe.environment)
    raise CannotCompileError(
        "this machine's compilers refuse even an empty source: "
        f"{search.result().text}{f' ({names} are set, which they read)' if names else ''}"
    )


def _write_sources(recipe: Recipe, tree: Path) -> None:
    for path, contents in recipe.sources.files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(contents)
        os.utime(tree / path, (SOURCE_TIME_S, SOURCE_TIME_S))
    (tree / "build.ninja").write_text(recipe.ninja_file, encoding="utf-8")
