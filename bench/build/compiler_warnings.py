"""Finds what compilers warn of in the sources, in what ninja printed of steps that went well."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from posixpath import normpath

from kernelgate.bench.build.compiler_errors import HERE, MAX_LINE, STATUS
from kernelgate.bench.record import MAX_WARNING, MAX_WARNINGS, CompilerWarning

# csrc/a.cpp:12:5: warning: unused variable 'x' [-Wunused-variable]                  g++, also on what nvcc hands to it
# csrc/a.cuh(12): warning #177-D: variable "x" was declared but never referenced     nvcc's front end
LOCATED = re.compile(
    r"(?P<file>[^\s:()]+)(?::(?P<line>\d+)(?::\d+)?|\((?P<nvcc_line>\d+)\)): "
    r"warning(?: (?P<number>#[\w-]+))?: (?P<text>.+)"
)
# ptxas warning : …    ptxas /tmp/x.ptx, line 21; warning : …    nvlink warning : …
CUDA_TOOL = re.compile(r"(?P<tool>ptxas|nvlink)\b.*?\bwarning\s*: (?P<text>.+)")
MAX_READ = 10_000
"""Different warnings that are read at all."""


@dataclass
class WarningSearch:
    """Reads what ninja prints, line by line. A header's warning, which every unit repeats, is one."""

    files: Collection[str]
    """The sources: what stands in other files is not theirs."""
    namespace: str
    """Of the operators, which is another one for each build, …"""
    card: str
    """… so that warnings name the card in its place, and those of two commits can be compared."""
    _step: str = ""
    _found: set[tuple[str, int, str]] = field(default_factory=set)

    def read(self, line: str) -> None:
        line = line[:MAX_LINE].replace(HERE, "")
        if step := STATUS.match(line):
            self._step = step["step"]
        elif match := LOCATED.match(line):
            number = f" [{match['number']}]" if match["number"] else ""
            self._add(normpath(match["file"]), int(match["line"] or match["nvcc_line"]), f"{match['text']}{number}")
        elif match := CUDA_TOOL.match(line):
            self._add(self._step, 0, f"{match['tool']}: {match['text']}")

    def _add(self, file: str, line: int, text: str) -> None:
        if file in self.files and len(self._found) < MAX_READ:
            self._found.add((file, line, text.replace(self.namespace, self.card)[:MAX_WARNING]))

    def result(self) -> tuple[CompilerWarning, ...]:
        """By file and line: compilers run side by side, and print in any order."""
        return tuple(
            CompilerWarning(file=file, line=line or None, text=text)
            for file, line, text in sorted(self._found)[:MAX_WARNINGS]
        )
