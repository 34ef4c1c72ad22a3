"""What compilers warn of is kept with the library: lines as g++ 12 and nvcc 13.2 print them, and a planted warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import library
from kernelgate.bench.build.compiler_output import CompilerOutput
from kernelgate.bench.build.library import Sides
from kernelgate.bench.record import CompilerWarning
from tests.miniature import BINDING, CPU_FILES, compiled, write

FILES = ("csrc/a.cu", "csrc/b/a.cuh", "csrc/a.cpp")
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


def found(text: str) -> list[tuple[str, int | None, str]]:
    search = CompilerOutput(FILES, "gemm_0123456789ab", "gemm")
    for line in text.splitlines():
        search.read(line)
    return [(one.file, one.line, one.text) for one in search.warnings]


def test_each_warning_of_the_sources_is_kept_once() -> None:
    """Without the build's namespace, which is another one in each commit."""
    assert found(PRINTED) == [
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
    assert build.warnings == head.manifest.warnings
    assert compiled(write(tree, CPU_FILES)).manifest.warnings == ()
