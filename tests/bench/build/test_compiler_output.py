"""What compilers, assembler, linker and ninja print when they fail, as recorded, and the one line that matters."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from kernelgate.bench.build import library
from kernelgate.bench.build.compiler_output import CompilerOutput
from kernelgate.bench.build.library import Sides
from kernelgate.bench.record import CompilerWarning
from tests.miniature import BINDING, CPU_FILES, compiled, write

FILES = {
    *(f"csrc/{name}" for name in ("a.cpp", "a.cu", "a.cuh", "b.cpp", "bad.cpp", "c.h", "und.cpp", "a/d.h")),
    *(f"csrc/fa_s512_{name}" for name in ("sm80.cuh", "sm89.cu")),
}
"""The commit's files."""


def read(log: str, files: Collection[str] = FILES, namespace: str = "") -> CompilerOutput:
    """What ninja printed, line by line."""
    search = CompilerOutput(files, namespace)
    for line in log.splitlines():
        search.read(line)
    return search


def failed(step: str, *printed: str) -> str:
    """What ninja prints of one failed step."""
    lines = (f"[1/9] {step}", f"FAILED: [code=1] {step}.o", f"compiler -c {step} -o {step}.o", *printed)
    return "\n".join((*lines, "ninja: build stopped: subcommand failed."))


def linking(*printed: str) -> str:
    return failed("kernel.so", *printed).replace("kernel.so.o", "kernel.so")


CASES = {
    "nvcc, in a header": (
        failed(
            "csrc/fa_s512_sm89.cu",
            'csrc/fa_s512_sm80.cuh(3): warning #177-D: variable "unused" was declared but never referenced',
            'csrc/fa_s512_sm80.cuh(212): error: identifier "undefined_thing" is undefined',
            'csrc/fa_s512_sm80.cuh(213): error: identifier "other" is undefined',
        )
        + failed("csrc/a.cpp", "csrc/a.cpp:1:1: error: 'later' does not name a type"),
        'csrc/fa_s512_sm80.cuh:212: error: identifier "undefined_thing" is undefined',
    ),
    "g++, older ninja": (
        failed("csrc/bad.cpp", "csrc/c.h:1:32: error: expected ';' before '}' token").replace("[code=1] ", ""),
        "csrc/c.h:1: error: expected ';' before '}' token",
    ),
    "a header of the folder above": (
        failed("csrc/a/b/c.cu", "csrc/a/b/../d.h:1:2: error: #error broken"),
        "csrc/a/d.h:1: error: #error broken",
    ),
    "ptxas, shared memory": (
        failed("csrc/a.cu", "ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x20000 bytes)"),
        "csrc/a.cu: error: ptxas: Entry function '_Z1kPf' uses too much shared data (0x20000 bytes)",
    ),
    "ptxas, an instruction": (
        failed("csrc/a.cu", "ptxas /tmp/tmpxft_6_ptx.ptx, line 21; error   : Unknown modifier '.instr'"),
        "csrc/a.cu: error: ptxas: Unknown modifier '.instr'",
    ),
    "nvcc, out of memory": (
        failed("csrc/a.cu", "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"),
        "csrc/a.cu: error: nvcc: 'cicc' died due to signal 9 (Kill signal)",
    ),
    "g++, out of memory": (
        failed("csrc/a.cpp", "g++: fatal error: Killed signal terminated program cc1plus"),
        "csrc/a.cpp: error: g++: Killed signal terminated program cc1plus",
    ),
    "a compiler that is gone": (
        failed("csrc/a.cu", "/bin/sh: 1: /opt/nvcc: not found"),
        "csrc/a.cu: error: /bin/sh: 1: /opt/nvcc: not found",
    ),
    "a compiler that says nothing": (failed("csrc/a.cu"), "csrc/a.cu: error: it failed without output"),
    "linker, undefined": (
        linking("/usr/bin/ld: csrc/und.cpp.o: in function `f':", "und.cpp:(.text+0x1): undefined reference to `g()'"),
        "csrc/und.cpp: error: undefined reference to `g()'",
    ),
    "ninja itself": (
        "ninja: error: 'csrc/a.cpp', needed by 'csrc/a.cpp.o', missing and no known rule to make it\n",
        "build.ninja: error: ninja: 'csrc/a.cpp', needed by 'csrc/a.cpp.o', missing and no known rule to make it",
    ),
}


def test_first_error() -> None:
    assert {name: read(log).error.text for name, (log, _) in CASES.items()} == {
        name: expected for name, (_, expected) in CASES.items()
    }


PASSWORDS = """\
In file included from csrc/a.cpp:1:
/etc/passwd:1:5: error: found ':' in nested-name-specifier
    1 | root:x:0:0:root:/root:/bin/bash
      |     ^
/etc/passwd:1:1: error: 'root' does not name a type
    1 | root:x:0:0:root:/root:/bin/bash
csrc/a.cpp:9:1: error: 'own' was not declared
    9 | own;
"""


@pytest.mark.parametrize(
    "file",
    ["/etc/passwd", "csrc/../../../etc/passwd", "/usr/include/../../etc/passwd", "../tools/../../a", "/srv/a b:c(1)"],
)
def test_what_stands_in_a_file_of_the_machine_is_not_quoted(file: str) -> None:
    printed = PASSWORDS.replace("/etc/passwd", file)
    found = read(failed("csrc/a.cpp", *printed.splitlines())).error
    assert "root:" not in str(found)
    assert "own;" in str(found.excerpt)
    assert found.text.startswith("csrc/a.cpp:9: error") or "is none of the commit's files" in found.text


AT_FAULT = {
    "the linker": linking("/usr/bin/ld: csrc/und.cpp.o:(.data.rel+0x0): undefined reference to `g()'"),
    "the linker, with debug information": linking(
        "/usr/bin/ld: csrc/b.cpp.o: in function `f':",
        "/proc/self/cwd/csrc/a.cuh:5: multiple definition of `f'; csrc/a.cpp.o:/proc/self/cwd/csrc/a.cuh:5: first here",
    ),
    "words of a breakdown": failed("csrc/a.cpp", "csrc/a.cpp:1:2: error: #error Killed: out of memory"),
    "a header that is called like one": failed(
        "csrc/a.cpp",
        "csrc/a.cpp:1:2: fatal error: error writing to x: No space left on device: No such file or directory",
    ),
    "a long header that is called like one": failed(
        "csrc/a.cpp", f"csrc/a.cpp:1:2: fatal error: error writing to {'x' * 1907}: No space left on device and more"
    ),
    "a warning that is written like one": failed(
        "csrc/a.cpp", "csrc/a.cpp:1:2: warning: error: #warning Killed", "csrc/a.cpp:9:1: error: the real one"
    ),
}
BREAKDOWNS = {
    "g++ killed": CASES["g++, out of memory"][0],
    "cicc killed": CASES["nvcc, out of memory"][0],
    "silence": CASES["a compiler that says nothing"][0],
    "a bug of g++": failed("csrc/a.cpp", "csrc/a.cpp:1:2: internal compiler error: Segmentation fault"),
    "memory": failed("csrc/a.cpp", "", "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes"),
    # As recorded with a temporary folder of 4 kB to 7 MB, and with ulimit -v.
    "a full disk, at a line": failed(
        "csrc/a.cpp", "csrc/a.cpp:6:117: fatal error: error writing to /tmp/ccsDWEZK.s: No space left on device"
    ),
    "a full disk, at nvcc's line": failed(
        "csrc/a.cu", "csrc/a.cuh(9): catastrophic error: error while writing generated file: No space left on device"
    ),
    "a full disk, before nvcc gives up": failed(
        "csrc/a.cu",
        "<built-in>: fatal error: when writing output to : No space left on device",
        "nvcc fatal   : Failed",
    ),
    "a full disk, in the assembler": failed(
        "csrc/a.cpp", "as: BFD (GNU Binutils for Debian) 2.40 assertion fail ../../bfd/elf.c:3108"
    ),
    "a full disk, in the linker": linking("/usr/bin/ld: final link failed: No space left on device"),
    "memory, at nvcc's line": failed("csrc/a.cu", "csrc/a.cuh(189): catastrophic error: out of memory", "  int out;"),
    "killed after it printed an error": failed("csrc/a.cpp", "csrc/a.cpp:9:1: error: half a sour").replace(
        "code=1", "code=137"
    ),
}


@pytest.mark.parametrize("log", AT_FAULT.values(), ids=AT_FAULT.keys())
def test_the_sources_are_at_fault_where_a_compiler_names_a_place_in_them(log: str) -> None:
    found = read(log).error
    assert (found.in_sources, found.broken) == (True, False), found


@pytest.mark.parametrize("log", BREAKDOWNS.values(), ids=BREAKDOWNS.keys())
def test_a_compiler_that_breaks_down_does_not_blame_the_sources(log: str) -> None:
    found = read(log).error
    assert (found.in_sources, found.broken) == (False, True), found


PRINTED = """\
[1/4] csrc/a.cu
csrc/b/a.cuh(3): warning #68-D: integer conversion resulted in a change of sign
  __attribute__((global)) void k(int* p) { if (threadIdx.x < -1) p[1]=2; }
                                                             ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/proc/self/cwd/csrc/b/../a.cu: In function 'int host(int)':
csrc/b/../a.cu:6:32: warning: comparison of integers of different signedness [-Wsign-compare]
ptxas warning : Local memory used for function '_Z3fibi', size of stack frame: 24 bytes
[2/4] csrc/a.cpp
In file included from csrc/a.cpp:1:
csrc/b/a.cuh(3): warning #68-D: integer conversion resulted in a change of sign
../tools/torch/x.h:6:32: warning: not ours [-Wall]
/etc/passwd:1:1: warning: root
csrc/a.cpp:9: warning: 'gemm_0123456789ab::helper' defined but not used [-Wunused-function]
csrc/a.cpp:10: error: no warning: this is an error
[3/4] kernel.so
/usr/bin/ld: warning: something of the linker
nvcc warning : Support for offline compilation is deprecated
"""


def test_each_warning_of_the_sources_is_kept_once() -> None:
    """Without the build's namespace, which is another one in each commit."""
    found = read(PRINTED, ("csrc/a.cu", "csrc/b/a.cuh", "csrc/a.cpp"), "gemm_0123456789ab").warnings
    assert [(one.file, one.line, one.text) for one in found] == [
        ("csrc/a.cpp", 9, "'gemm::helper' defined but not used [-Wunused-function]"),
        ("csrc/a.cu", None, "ptxas: Local memory used for function '_Z3fibi', size of stack frame: 24 bytes"),
        ("csrc/a.cu", 6, "comparison of integers of different signedness [-Wsign-compare]"),
        ("csrc/b/a.cuh", 3, "integer conversion resulted in a change of sign [#68-D]"),
    ]


@pytest.mark.usefixtures("cache")
def test_a_planted_warning_is_in_the_record_from_the_cache_too(tmp_path: Path) -> None:
    planted = f"{BINDING}static int forgotten = 1;\n"
    tree = write(tmp_path / "a checkout", {**CPU_FILES, "csrc/binding.cpp": planted})
    head = compiled(tree)
    line = planted.count("\n")
    assert head.manifest.warnings == (
        CompilerWarning(
            file="csrc/binding.cpp", line=line, text="'forgotten' defined but not used [-Wunused-variable]"
        ),
    )
    again = compiled(tree)
    assert again.cached
    (build,) = library.build_records(Sides(None, again))
    assert (build.warnings, build.tree) == (head.manifest.warnings, "changed")
    assert compiled(write(tree, CPU_FILES)).manifest.warnings == ()
