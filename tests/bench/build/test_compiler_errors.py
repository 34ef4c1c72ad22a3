"""What compilers, assembler, linker and ninja print when they fail, as recorded, and the one line that matters."""

from __future__ import annotations

import pytest

from kernelgate.bench.build.compiler_errors import FirstError, first_error

NVCC_HEADER = """\
[1/4] csrc/binding.cpp
[2/4] csrc/fa_s512_sm89.cu
FAILED: [code=2] csrc/fa_s512_sm89.cu.o
nvcc -O3 -Xcompiler -fPIC -c csrc/fa_s512_sm89.cu -o csrc/fa_s512_sm89.cu.o
csrc/fa_s512_sm80.cuh(3): warning #177-D: variable "unused" was declared but never referenced
    int unused;
        ^

csrc/fa_s512_sm80.cuh(212): error: identifier "undefined_thing" is undefined
    p[0] = undefined_thing;
           ^

csrc/fa_s512_sm80.cuh(213): error: identifier "other" is undefined
    p[1] = other;
           ^

2 errors detected in the compilation of "csrc/fa_s512_sm89.cu".
[3/4] csrc/other.cpp
FAILED: [code=1] csrc/other.cpp.o
g++ -c csrc/other.cpp -o csrc/other.cpp.o
csrc/other.cpp:1:1: error: 'later' does not name a type
ninja: build stopped: subcommand failed.
"""

GXX_HEADER = """\
[1/2] csrc/bad.cpp
FAILED: csrc/bad.cpp.o
g++ -c csrc/bad.cpp -o csrc/bad.cpp.o
In file included from csrc/bad.cpp:1:
csrc/c.h: In function 'int foo(int)':
csrc/c.h:1:32: error: expected ';' before '}' token
    1 | inline int foo(int x){ return x }
      |                                ^~
csrc/bad.cpp:2:26: error: 'nope' was not declared in this scope
ninja: build stopped: subcommand failed.
"""


def failed(step: str, *printed: str) -> str:
    """What ninja prints of one failed step."""
    lines = (f"[1/9] {step}", f"FAILED: [code=1] {step}.o", f"compiler -c {step} -o {step}.o", *printed)
    return "\n".join((*lines, "ninja: build stopped: subcommand failed."))


def linking(*printed: str) -> str:
    return failed("kernel.so", *printed).replace("kernel.so.o", "kernel.so")


CASES = {
    "nvcc, in a header": (NVCC_HEADER, 'csrc/fa_s512_sm80.cuh:212: error: identifier "undefined_thing" is undefined'),
    "g++, in a header, older ninja": (GXX_HEADER, "csrc/c.h:1: error: expected ';' before '}' token"),
    "a header of the folder above": (
        failed("csrc/a/b/c.cu", "csrc/a/b/../d.h:1:2: error: #error broken"),
        "csrc/a/d.h:1: error: #error broken",
    ),
    "a missing header under nvcc": (
        failed(
            "csrc/a.cu",
            "csrc/a.cu:1:10: fatal error: nothere.h: No such file or directory",
            '    1 | #include "nothere.h"',
            "compilation terminated.",
        ),
        "csrc/a.cu:1: error: nothere.h: No such file or directory",
    ),
    "a missing header in nvcc's front end": (
        failed("csrc/a.cu", 'csrc/a.cu(1): catastrophic error: cannot open source file "nothere.h"'),
        'csrc/a.cu:1: error: cannot open source file "nothere.h"',
    ),
    "nvcc, numbered": (
        failed("csrc/a.cu", 'csrc/a.cu(7): error #20014-D: calling a __host__ function("f") is not allowed'),
        'csrc/a.cu:7: error: calling a __host__ function("f") is not allowed',
    ),
    "static_assert in nvcc": (
        failed(
            "csrc/a.cu",
            'csrc/a.cuh(31): error: static assertion failed with "tile exceeds 99 KiB"',
            '          detected during instantiation of class "T<N> [with N=20]" at line 2',
        ),
        'csrc/a.cuh:31: error: static assertion failed with "tile exceeds 99 KiB"',
    ),
    "ptxas, shared memory": (
        failed(
            "csrc/fa_s512_sm89.cu",
            "ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x20000 bytes, 0xc000 max)",
        ),
        "csrc/fa_s512_sm89.cu: error: ptxas: "
        "Entry function '_Z1kPf' uses too much shared data (0x20000 bytes, 0xc000 max)",
    ),
    "ptxas, an instruction": (
        failed(
            "csrc/a.cu",
            "ptxas /tmp/tmpxft_00003415_00000000-6_ptx.ptx, line 21; error   : Unknown modifier '.instr'",
            "ptxas fatal   : Ptx assembly aborted due to errors",
        ),
        "csrc/a.cu: error: ptxas: Unknown modifier '.instr'",
    ),
    "nvcc, an architecture": (
        failed("csrc/a.cu", "nvcc fatal   : Unsupported gpu architecture 'compute_20'"),
        "csrc/a.cu: error: nvcc: Unsupported gpu architecture 'compute_20'",
    ),
    "nvcc, out of memory": (
        failed("csrc/a.cu", "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"),
        "csrc/a.cu: error: nvcc: 'cicc' died due to signal 9 (Kill signal)",
    ),
    "g++, out of memory": (
        failed(
            "csrc/a.cpp",
            "g++: fatal error: Killed signal terminated program cc1plus",
            "compilation terminated.",
        ),
        "csrc/a.cpp: error: g++: Killed signal terminated program cc1plus",
    ),
    "g++, an option": (
        failed("csrc/a.cpp", "g++: error: unrecognized command-line option '-bogus'"),
        "csrc/a.cpp: error: g++: unrecognized command-line option '-bogus'",
    ),
    "a compiler that is gone": (
        failed("csrc/a.cu", "/bin/sh: 1: /opt/nvcc: not found"),
        "csrc/a.cu: error: /bin/sh: 1: /opt/nvcc: not found",
    ),
    "a compiler that says nothing": (failed("csrc/a.cu"), "csrc/a.cu: error: it failed without output"),
    "linker, undefined": (
        linking(
            "/usr/bin/ld: csrc/und.cpp.o: in function `f':",
            "und.cpp:(.text+0x1): undefined reference to `g()'",
            "collect2: error: ld returned 1 exit status",
        ),
        "csrc/und.cpp: error: undefined reference to `g()'",
    ),
    "linker, undefined, in one line": (
        linking("/usr/bin/ld: csrc/und.cpp.o:(.data.rel+0x0): undefined reference to `g()'"),
        "csrc/und.cpp: error: undefined reference to `g()'",
    ),
    "linker, defined twice": (
        linking(
            "/usr/bin/ld: csrc/b.cpp.o: in function `f':",
            "b.cpp:(.text+0x0): multiple definition of `f'; csrc/a.cpp.o:a.cpp:(.text+0x0): first defined here",
        ),
        "csrc/b.cpp: error: multiple definition of `f'; csrc/a.cpp.o:a.cpp:(.text+0x0): first defined here",
    ),
    "linker, a library": (
        linking(
            "/usr/bin/ld: warning: csrc/a.cpp.o: missing .note.GNU-stack section implies executable stack",
            "/usr/bin/ld: cannot find -lnope: No such file or directory",
        ),
        "kernel.so: error: cannot find -lnope: No such file or directory",
    ),
    "ninja itself": (
        "ninja: error: 'csrc/missing.cpp', needed by 'csrc/missing.cpp.o', missing and no known rule to make it\n",
        "build.ninja: error: ninja: 'csrc/missing.cpp', needed by 'csrc/missing.cpp.o', "
        "missing and no known rule to make it",
    ),
}


@pytest.mark.parametrize(("log", "expected"), CASES.values(), ids=CASES.keys())
def test_first_error(log: str, expected: str) -> None:
    assert first_error(log).text == expected


@pytest.mark.parametrize(
    ("log", "source"),
    [(NVCC_HEADER, "csrc/fa_s512_sm89.cu"), (GXX_HEADER, "csrc/bad.cpp"), (linking("ld: x"), "kernel.so")],
    ids=["nvcc", "g++", "linker"],
)
def test_names_the_step_that_failed(log: str, source: str) -> None:
    assert first_error(log).source == source


def test_a_warning_is_no_error() -> None:
    log = failed("csrc/a.cpp", "csrc/a.cpp:1:1: warning: error: reading 'x'", "csrc/a.cpp:9:1: error: the real one")
    assert first_error(log) == FirstError("csrc/a.cpp", "csrc/a.cpp:9: error: the real one")
