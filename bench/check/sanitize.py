"""compute-sanitizer over small cases: out-of-bounds and uninitialised accesses, races, misused barriers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build.library import Library
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.kernel import watched_call
from kernelgate.bench.kernel.cards import CardFacts, ChosenCase
from kernelgate.bench.kernel.watched_call import WatchedCall, Watching
from kernelgate.bench.system import cuda_tools, progress, supervise
from kernelgate.bench.system.supervise import Running, TimeLimits
from kernelgate.bench.system.worker_process import ROOT, child_environment

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TIMEOUT_S = 300.0
FOUND = 7
"""The exit code that compute-sanitizer is told to give where it finds something."""
SANITIZER = "compute-sanitizer"

# "=========     at kernel(float *, int)+0xc0 in file.cu:7", also "… access at kernel(float *)+0xa0 in race.cu:6".
_AT = re.compile(r"at (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>\S+?):(?P<line>\d+))?$")
_HEAD = re.compile(
    r"^(?:Invalid |Uninitialized |Barrier error|Error: |Warning: |Potential |Misaligned |Malloc|Unused |Device-side)"
)
_MARK = "========="


@dataclass(frozen=True)
class SanitizerFinding:
    tool: str
    what: str
    kernel: str
    file: str | None
    line: int | None
    """None where the library was compiled without -lineinfo."""
    times: int = 1

    def __str__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        often = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.tool}: {self.what}, in {self.kernel}{where}{often}"


def library(built: Library, cases: Sequence[ChosenCase], tools: Sequence[str] = TOOLS) -> tuple[SanitizerFinding, ...]:
    """What the tools find in a compiled kernel, on cases of its card."""
    found: list[SanitizerFinding] = []
    sanitizer = cuda_tools.find(SANITIZER)
    pairs = [(tool, chosen) for tool in tools for chosen in cases]
    watching = [
        Watching(_words(sanitizer, tool), WatchedCall.of(built, chosen.card, chosen.case)) for tool, chosen in pairs
    ]
    with (
        _started_by(sanitizer),
        watched_call.warm(watching) as processes,
        progress.track("sanitize", len(pairs)) as advance,
    ):
        for at, (tool, chosen) in enumerate(pairs):
            found += _found(tool, processes.go(at))
            advance(f"{tool}, {chosen.case.id}")
    return merged(found)


def default_cases(card: CardFacts) -> tuple[ChosenCase, ...]:
    """Those that the card names for it; else its smallest, since the tools slow a kernel down a hundredfold."""
    smallest = sorted(card.suites["pr"], key=lambda case: case.bytes or 0.0)[:1]
    return tuple(ChosenCase(card, case) for case in card.sanitize or smallest)


def program(sanitizer: Path, tool: str, words: Sequence[str | Path]) -> tuple[SanitizerFinding, ...]:
    """What one tool finds in a program. Raises KernelgateError where it could not look."""
    command = (*_words(sanitizer, tool), *words)
    with _started_by(sanitizer), supervise.running(command, cwd=ROOT, env=child_environment()) as running:
        return _found(tool, running)


def _words(sanitizer: Path, tool: str) -> tuple[str | Path, ...]:
    return (sanitizer, "--tool", tool, "--error-exitcode", str(FOUND))


@contextmanager
def _started_by(sanitizer: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise KernelgateError(f"{sanitizer} cannot be started: {error.strerror}") from None


def _found(tool: str, running: Running) -> tuple[SanitizerFinding, ...]:
    lines: list[str] = []
    try:
        code = running.follow(
            TimeLimits(silence_s=60.0, total_s=TIMEOUT_S),
            lines.append,
            lambda seconds: progress.say(f"{tool} has printed nothing for {seconds:.0f} s"),
        )
    except TimeoutError as error:
        raise KernelgateError(f"{tool} was stopped after {TIMEOUT_S:.0f} s without finishing; {error}") from None
    found = parse(tool, lines)
    if not found and code != 0:
        last = next(
            (line.removeprefix(_MARK).strip() for line in reversed(lines) if line.strip(_MARK + " ")), "nothing"
        )
        raise KernelgateError(f"{tool} could not run: it exited with {code}; last line: {last}")
    return found


def parse(tool: str, lines: Iterable[str]) -> tuple[SanitizerFinding, ...]:
    """The findings in compute-sanitizer's output, equal ones counted once."""
    found: list[SanitizerFinding] = []
    head: str | None = None
    for raw in lines:
        if not raw.startswith(_MARK):
            continue
        text = raw.removeprefix(_MARK).strip()
        if _HEAD.match(text):
            head = text
            where = _AT.search(text)
            if where is None:
                continue
            head = text[: where.start()].strip()
        else:
            where = _AT.match(text)
        if head is None or where is None:
            continue
        line = where["line"]
        found.append(SanitizerFinding(tool, _what(head), where["kernel"], where["file"], int(line) if line else None))
        head = None
    return merged(found)


def _what(head: str) -> str:
    return head.removeprefix("Error: ").removesuffix("access").rstrip(" .").replace("between Write", "at a write")


def merged(found: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
    counts: dict[tuple[str, str, str, str | None, int | None], int] = {}
    for one in found:
        key = (one.tool, one.what, one.kernel, one.file, one.line)
        counts[key] = counts.get(key, 0) + one.times
    return tuple(SanitizerFinding(*key, times=times) for key, times in counts.items())
