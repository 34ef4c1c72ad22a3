"""docs/dev_env.md, the build recipe: each mistake ends with the message that the page gives it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelgate.bench.build import toolchain
from tests import docs_code

PAGE = Path(__file__).parent.parent / "docs" / "dev_env.md"
OBJECT = "nvcc -Xcompiler -fPIC -c {0}.cu -o {0}.o"
TORCH = "-isystem $TORCH_INCLUDE -isystem $TORCH_INCLUDE/torch/csrc/api/include -isystem $PYTHON_INCLUDE"
TEMPLATE = {
    "scale.cuh": "template <typename T> void scale(T* out, int n);\n",
    "scale.cu": '#include "scale.cuh"\n'
    "template <typename T> __global__ void kernel(T* out, int n) { out[threadIdx.x] = T(n); }\n"
    "template <typename T> void scale(T* out, int n) { kernel<<<1, 32>>>(out, n); }\n",
    "binding.cpp": '#include "scale.cuh"\nvoid call(float* out) { scale(out, 3); }\n',
}
INSTANTIATED = {
    **TEMPLATE,
    "scale.cu": TEMPLATE["scale.cu"] + "template void scale<float>(float*, int);\n",
}
SEPARATE = (OBJECT.format("scale"), "g++ -fPIC -c binding.cpp -o binding.o")
LINKED = "g++ -shared {} binding.o scale.o -L$CUDA_LIB -l:libcudart_static.a -lpthread -ldl -lrt -o all.so"
HALF = "#include <cuda_fp16.h>\n#include <torch/headeronly/util/Half.h>\n"
WAIT = {"wait.cu": '__global__ void wait() { asm volatile("wgmma.fence.sync.aligned;"); }\n'}
TILE = (
    "__global__ void tile(float* out) {\n"
    "  __shared__ float tile[16384];\n"
    "  tile[threadIdx.x] = out[0];\n  __syncthreads();\n  out[0] = tile[3];\n}\n"
)


@dataclass(frozen=True)
class Compiled:
    """Sources, what is run on them, and what the last command says; nothing where it succeeds."""

    files: dict[str, str]
    lines: tuple[str, ...]
    message: str = ""


TRIED = {
    "a template": Compiled(TEMPLATE, (*SEPARATE, LINKED.format("-Wl,-z,defs")), "undefined reference to"),
    "found late": Compiled(
        TEMPLATE,
        (*SEPARATE, LINKED.format(""), "python3 -c 'import ctypes; ctypes.CDLL(\"./all.so\")'"),
        "undefined symbol",
    ),
    "instantiated": Compiled(INSTANTIATED, (*SEPARATE, LINKED.format("-Wl,-z,defs"))),
    "included": Compiled(
        {
            "kernel.cu": "__global__ void kernel(float* out) { out[0] = 1; }\n"
            "void launch(float* out) { kernel<<<1, 1>>>(out); }\n",
            "all.cu": '#include "kernel.cu"\n',
        },
        (OBJECT.format("kernel"), OBJECT.format("all"), "g++ -shared kernel.o all.o"),
        "multiple definition of",
    ),
    "a pointer": Compiled(
        {"pointer.cu": f"{HALF}void run(const half* x);\nvoid launch(const c10::Half* x) {{ run(x); }}\n"},
        ("nvcc -std=c++17 -isystem $TORCH_INCLUDE -c pointer.cu",),
        'is incompatible with parameter of type "const half *"',
    ),
    "device code": Compiled(
        {
            "add.cu": f"{HALF}template <typename T> __global__ void add(T* out, const T* x) "
            "{ out[0] = __hadd(x[0], x[1]); }\n"
            "void launch(c10::Half* out, const c10::Half* x) { add<<<1, 1>>>(out, x); }\n"
        },
        ("nvcc -std=c++17 -isystem $TORCH_INCLUDE -c add.cu",),
        'more than one instance of overloaded function "__hadd"',
    ),
    "classic headers": Compiled(
        {"mixed.cpp": "#include <torch/extension.h>\n"},
        (f"g++ -DTORCH_TARGET_VERSION=0x020b000000000000 {TORCH} -c mixed.cpp",),
        "This file should not be included when either",
    ),
    "all targets": Compiled(WAIT, ("nvcc -arch=sm_90 -c wait.cu",), "not supported on .target 'sm_90'"),
    "one target": Compiled(WAIT, ("nvcc -gencode arch=compute_90a,code=sm_90a -c wait.cu",)),
    "shared memory": Compiled({"tile.cu": TILE}, ("nvcc -arch=sm_89 -c tile.cu",), "uses too much shared data"),
}


def test_the_page_has_each_message_and_no_other() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## The build recipe\n")[1]
    told = re.findall(r"^\| [^|]+ \| `([^|]+)`[^|`]* \|", section, re.MULTILINE)
    assert told == [one.message for one in TRIED.values() if one.message]


@pytest.mark.slow
@pytest.mark.skipif(toolchain.find().cuda is None, reason="there is no nvcc")
@pytest.mark.parametrize("name", TRIED)
def test_the_compilers_say_so(name: str, tmp_path: Path) -> None:
    tried = TRIED[name]
    for file, text in tried.files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    *before, last = (docs_code.run(docs_code.ShownCommand(line, ()), tmp_path) for line in tried.lines)
    assert [done.stdout for done in before if done.returncode] == []
    assert (last.returncode != 0) == bool(tried.message), last.stdout
    assert tried.message in last.stdout
