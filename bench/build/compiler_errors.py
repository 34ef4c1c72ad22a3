"""Finds the compiler's first error in what ninja printed: the one that the others follow from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from posixpath import normpath

STATUS = re.compile(r"\[(?P<done>\d+)/(?P<total>\d+)\] (?P<step>.*)")
"""What ninja prints when a step has ended."""

FAILED = re.compile(r"FAILED: (?:\[code=-?\d+\] )?(?P<output>\S+)")
"""The line before the failed step's command; ninja holds back a step's output until it ends, so steps never mix."""

# csrc/a.cpp:12:5: error: …          g++; also its preprocessor under nvcc
# csrc/a.cuh(12): error: …           nvcc's front end; also "catastrophic error" and "error #20014-D"
LOCATED = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<nvcc_line>\d+)\)): "
    r"(?:fatal |catastrophic |internal )?(?:compiler )?error(?: #[\w-]+)?: (?P<text>.+)"
)
# ptxas error   : …    ptxas /tmp/x.ptx, line 21; error   : …    nvcc fatal   : …    nvlink error   : …
CUDA_TOOL = re.compile(r"(?P<tool>ptxas|nvlink|nvcc|fatbinary)\b.*?\b(?:error|fatal)\s*: (?P<text>.+)")
# g++: error: …    cc1plus: fatal error: …          (collect2 only repeats that the linker failed)
DRIVER = re.compile(r"(?:\S*/)?(?P<tool>\S*g\+\+\S*|cc1plus|as): (?:fatal |internal compiler )?[Ee]rror: (?P<text>.+)")
# /usr/bin/ld: csrc/a.cpp.o: in function `f':
# a.cpp:(.text+0x1): undefined reference to `g()'
LINKER_OBJECT = re.compile(r"\S*\bld: (?P<object>[^\s:]+)\.o:(?P<heading> in function .*)?")
LINKER = re.compile(r"(?:\S*\bld: )?(?:\S+:)?\(\.\S+\): (?P<text>.+)|\S*\bld: (?!warning)(?P<plain>.+)")
NINJA = re.compile(r"ninja: (?:error|fatal): (?P<text>.+)")


@dataclass(frozen=True)
class FirstError:
    source: str
    """The file whose step failed, such as csrc/gemm_sm89.cu, or kernel.so where linking did."""
    text: str
    """`file:line: error: …`, the file as git names it; the file alone where the tool names no line."""


def first_error(log: str) -> FirstError:
    """The first error of the first step that failed; where no line is known as one, that step's first line."""
    source, lines = _first_failed_step(log.splitlines())
    place = source
    for line in lines:
        linked = LINKER_OBJECT.match(line)
        if linked:
            place = linked["object"]
        if not (linked and linked["heading"]) and (text := _error(line, place)):
            return FirstError(source, text)
    message = next((line for line in lines if line.strip()), "it failed without output")
    return FirstError(source, f"{source}: error: {message.strip()}")


def _error(line: str, place: str) -> str | None:
    if match := LOCATED.match(line):
        # csrc/a/b/../c.h, as a header is named by its includer's folder, is csrc/a/c.h to everybody else.
        return f"{normpath(match['file'])}:{match['line'] or match['nvcc_line']}: error: {match['text']}"
    if match := CUDA_TOOL.match(line) or DRIVER.match(line):
        return f"{place}: error: {match['tool']}: {match['text']}"
    if match := NINJA.match(line):
        return f"{place}: error: ninja: {match['text']}"
    if match := LINKER.match(line):
        return f"{place}: error: {match['text'] or match['plain']}"
    return None


def _first_failed_step(lines: list[str]) -> tuple[str, list[str]]:
    """What failed, and what it printed. Where ninja itself failed, all that it said."""
    for start, line in enumerate(lines):
        if match := FAILED.match(line):
            printed = lines[start + 2 :]  # after the command
            ends = (at for at, later in enumerate(printed) if STATUS.match(later) or later.startswith("ninja: "))
            return match["output"].removesuffix(".o"), printed[: next(ends, len(printed))]
    return "build.ninja", lines
