"""Finds the compiler's first error in what ninja printed, which the others follow from, and what compilers warn of."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import chain
from posixpath import normpath

from kernelgate.bench.record import MAX_WARNING, MAX_WARNINGS, CompilerWarning

STATUS = re.compile(r"\[(?P<done>\d+)/(?P<total>\d+)\] (?P<step>.*)")
"""What ninja prints when a step has ended."""

FAILED = re.compile(r"FAILED: (?:\[code=(?P<code>-?\d+)\] )?(?P<output>\S+)")
"""The line before the failed step's command; ninja holds back a step's output until it ends, so steps never mix."""

# csrc/a.cpp:12:5: error: …          g++; also its preprocessor under nvcc
# csrc/a.cuh(12): error: …           nvcc's front end; also "catastrophic error" and "error #20014-D"
LOCATED = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<nvcc_line>\d+)\)): "
    r"(?:(?P<kind>fatal|catastrophic|internal compiler) )?error(?: #[\w-]+)?: (?P<text>.+)"
)
# ptxas error   : …    ptxas /tmp/x.ptx, line 21; error   : …    nvcc fatal   : …    nvlink error   : …
CUDA_TOOL = re.compile(r"(?P<tool>ptxas|nvlink|nvcc|fatbinary)\b.*?\b(?P<kind>error|fatal)\s*: (?P<text>.+)")
# g++: error: …    cc1plus: fatal error: …    ccache: error: …          (collect2 only repeats that the linker failed)
DRIVER = re.compile(r"(?:\S*/)?(?P<tool>[^\s/:]+): (?:fatal |internal compiler )?[Ee]rror: (?P<text>.+)")
DRIVERS = re.compile(r"cc1plus|as|ccache|.*g\+\+.*")
# /usr/bin/ld: csrc/a.cpp.o: in function `f':
# a.cpp:(.text+0x1): undefined reference to `g()'          csrc/a.cpp:7: undefined …, where there is debug information
LINKER_OBJECT = re.compile(r"\S*\bld: (?P<object>[^\s:]+)\.o:(?P<heading> in function .*)?")
LINKER = re.compile(
    r"(?:\S*\bld: )?(?:[^\s(]+:)?\(\.[^\s()]+\): (?P<text>.+)"
    r"|[^\s:]+:\d+: (?P<located>(?:undefined reference|multiple definition) .+)"
    r"|\S*\bld: (?!warning)(?P<plain>.+)"
)
NINJA = re.compile(r"ninja: (?:error|fatal): (?P<text>.+)")

# csrc/a.cpp:12:5: warning: unused variable 'x' [-Wunused-variable]                  g++, also on what nvcc hands to it
# csrc/a.cuh(12): warning #177-D: variable "x" was declared but never referenced     nvcc's front end
WARNING = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<nvcc_line>\d+)\)): "
    r"warning(?: (?P<number>#[\w-]+))?: (?P<text>.+)"
)
# ptxas warning : …    ptxas /tmp/x.ptx, line 21; warning : …    nvlink warning : …
CUDA_WARNING = re.compile(r"(?P<tool>ptxas|nvlink)\b.*?\bwarning\s*: (?P<text>.+)")
MAX_WARNINGS_READ, MAX_PRINTED = 10_000, 10_000
NUMBER = re.compile(r"_[0-9a-f]{12}$")
"""At the end of a namespace, another one for each build."""

# What a compiler says that broke down, or whoever started it; an author's words are in quotes, or behind a place.
BROKEN = re.compile(
    r".*(?:internal compiler error|signal terminated program|died due to signal|\bKilled\b|[Oo]ut of memory"
    r"|terminate called|MemoryError|[Cc]annot allocate memory|[Mm]emory allocation failure|virtual memory exhausted"
    r"|No space left on device|Disk quota exceeded|File too large|Read-only file system|Too many open files"
    r"|[Cc]annot fork|Resource temporarily unavailable|assertion fail|failed to map segment"
    r"|error while loading shared libraries"
    r"|: (?:not found|Permission denied|cannot execute)\b)"
)
QUOTED = re.compile(r"[`'][^']*'|\"[^\"]*\"")
# The same of an error behind a place in the sources, which names only how far the compiler was.
LACKING = re.compile(
    r"out of memory|error while writing .{1,99}|(?:error writing to|when writing output to) \S{0,300}: "
    r"(?:No space left on device|Disk quota exceeded|Cannot allocate memory|File too large|Read-only file system"
    r"|Too many open files)"
)
ENDED = {signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ}
"""Signals that come from outside: no source makes a compiler end so."""
# What stands before everything that concerns a file: csrc/a.cpp:1:2: …    csrc/a.cuh(12): …    csrc/a.h: In function …
PLACE = re.compile(r"(?:\S*\bld: )?(?:(?P<file>\S.*?)(?::\d+(?::\d+)?|\(\d+\)): |(?P<context>\S.*?): (?:In|At) )")

MAX_LINE = 2000
EXCERPT_LINES = 40
"""As much of what compilers print as a reader can use."""
SYSTEM_HEADERS = ("../tools/", "/usr/include/", "/usr/lib/gcc/", "/usr/local/include/")
"""Of compilers and libraries: what stands there may be quoted."""
NOT_QUOTED = "is none of the commit's files, so that it is not quoted"
HERE = "/proc/self/cwd/"
"""How line tables name the folder in which sources are compiled."""


@dataclass(frozen=True)
class FirstError:
    source: str
    """The file whose step failed, such as csrc/gemm_sm89.cu, or kernel.so where linking did."""
    text: str
    """`file:line: error: …`, the file as git names it; the file alone where the tool names no line."""
    in_sources: bool
    """Whether a compiler names a place in the sources, so that they are at fault; else it may be the machine."""
    broken: bool = False
    excerpt: tuple[str, ...] = ()
    """What was printed of it, without what stands in other files than the sources and their compilers' headers."""


@dataclass
class CompilerOutput:
    """Reads what ninja prints, line by line, and keeps the first error of the first step that failed, and warnings. A
    header's warning, which every unit repeats, is one."""

    files: Collection[str]
    """The sources: what stands in other files is not theirs."""
    namespace: str
    """Of the operators; warnings leave its NUMBER out, so that those of two commits can be compared."""
    printed: dict[str, list[str]] = field(default_factory=dict)
    """By step, such as csrc/gemm_sm89.cu, what it printed: as far as that is kept."""
    _step: str = ""
    """That ended last."""
    _failed: str = ""
    """The source of the step that failed; empty until one has."""
    _lines: list[str] = field(default_factory=list)
    """What that step printed, from its first error on; before that its first lines."""
    _found: FirstError | None = None
    _ended: bool = False
    _killed: bool = False
    _skip_command: bool = False
    _place: str = ""
    _warnings: set[tuple[str, int, str]] = field(default_factory=set)

    def read(self, line: str) -> None:
        line = line[:MAX_LINE].replace(HERE, "")
        if step := STATUS.match(line):
            self._step = step["step"]
        else:
            self._read_printed(line)
        if not self._failed:
            if match := FAILED.match(line):
                self._failed = self._place = match["output"].removesuffix(".o")
                self._killed = was_ended(int(match["code"] or 0))
                self._skip_command = True
            elif match := NINJA.match(line):
                self._failed, self._ended = "build.ninja", True
                self._found = FirstError(self._failed, f"build.ninja: error: ninja: {match['text']}", False, True)
        elif self._skip_command:
            self._skip_command = False
        elif step or line.startswith("ninja: "):
            self._ended = True
        elif not self._ended:
            self._read_failed_step(line)

    def _read_printed(self, line: str) -> None:
        if len(printed := self.printed.setdefault(self._step, [])) < MAX_PRINTED:
            printed.append(line)
        if match := WARNING.match(line):
            number = f" [{match['number']}]" if match["number"] else ""
            self._warn(normpath(match["file"]), int(match["line"] or match["nvcc_line"]), f"{match['text']}{number}")
        elif match := CUDA_WARNING.match(line):
            self._warn(self._step, 0, f"{match['tool']}: {match['text']}")

    def _warn(self, file: str, line: int, text: str) -> None:
        if file in self.files and len(self._warnings) < MAX_WARNINGS_READ:
            self._warnings.add((file, line, text.replace(self.namespace, NUMBER.sub("", self.namespace))[:MAX_WARNING]))

    def _read_failed_step(self, line: str) -> None:
        if linked := LINKER_OBJECT.match(line):
            self._place = linked["object"]
        if self._found is None and not (linked and linked["heading"]):
            self._found = error_in(line, self._failed, self._place, self.files)
            if self._found:
                self._lines.clear()
        if line.strip() and len(self._lines) < EXCERPT_LINES:
            self._lines.append(line)

    @property
    def error(self) -> FirstError:
        """Where no line is known as an error, the first of the step that failed."""
        source = self._failed or "build.ninja"
        excerpt = tuple(chain.from_iterable(map(Quoting(self.files), self._lines)))
        said = excerpt[0].strip() if excerpt else "it failed without output"
        broken = not excerpt or any(map(broke_down, excerpt))
        found = self._found or FirstError(source, f"{source}: error: {said}", False, broken)
        if self._killed:
            found = replace(found, in_sources=False, broken=True)
        return replace(found, excerpt=excerpt)

    @property
    def warnings(self) -> tuple[CompilerWarning, ...]:
        """By file and line: compilers run side by side, and print in any order."""
        return tuple(
            CompilerWarning(file=file, line=line or None, text=text)
            for file, line, text in sorted(self._warnings)[:MAX_WARNINGS]
        )


def broke_down(line: str) -> bool:
    """Whether a compiler, or whoever started it, says that it broke down, or lacked memory or room on a disk."""
    return bool(BROKEN.match(QUOTED.sub("", line)))


def was_ended(code: int) -> bool:
    """Whether a signal from outside ended a process, by its exit code or that of the shell around it."""
    return -code in ENDED or code - 128 in ENDED


@dataclass
class Quoting:
    """Called with line after line: that line, or what stands for it. What stands in other files, which a source may
    include, or name by #line, and compilers quote, is nobody's business."""

    files: Collection[str]
    _shown: bool = True

    def __call__(self, line: str) -> list[str]:
        if match := PLACE.match(line):
            file = normpath(match["file"] or match["context"])
            self._shown = _may_be_quoted(file, self.files)
            if not self._shown:
                return [f"{file}: {NOT_QUOTED}"]
        elif STATUS.match(line) or FAILED.match(line):  # of another step
            self._shown = True
        return [line] if self._shown else []


def _may_be_quoted(file: str, files: Collection[str]) -> bool:
    return file in files or file.startswith(SYSTEM_HEADERS)


def error_in(line: str, source: str, place: str, files: Collection[str]) -> FirstError | None:
    """What a line says of an error, while compiling `source`; `place` is the file that the linker is at."""
    if match := LOCATED.match(line):
        # csrc/a/b/../c.h, as a header is named by its includer's folder, is csrc/a/c.h to everybody else.
        file = normpath(match["file"])
        where = f"{file}:{match['line'] or match['nvcc_line']}"
        text = match["text"]
        if match["kind"] == "internal compiler" or (match["kind"] and LACKING.fullmatch(text)):
            return FirstError(source, f"{where}: error: {text}", False, True)
        if not _may_be_quoted(file, files):
            return FirstError(source, f"{source}: error: in {where}, which {NOT_QUOTED}", False)
        return FirstError(source, f"{where}: error: {text}", file in files)
    broken = broke_down(line)
    if match := CUDA_TOOL.match(line):
        own = match["tool"] in ("ptxas", "nvlink") and match["kind"] == "error"
        return FirstError(source, f"{place}: error: {match['tool']}: {match['text']}", own and not broken, broken)
    if (match := DRIVER.match(line)) and DRIVERS.fullmatch(match["tool"]):
        return FirstError(source, f"{place}: error: {match['tool']}: {match['text']}", False, broken)
    if match := LINKER.match(line):
        said = match["text"] or match["located"] or match["plain"]
        return FirstError(source, f"{place}: error: {said}", place in files and not broken, broken)
    if broken and not line[:1].isspace() and not PLACE.match(line):
        return FirstError(source, f"{source}: error: {line.strip()}", False, True)
    return None
