"""`kernelgate init` in repositories planted here: what it finds, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.kernel import cards
from kernelgate.ci.commands.cli import run
from tests.called import EndsWith
from tests.miniature import git, repository

SETUP = """\
import glob, os, torch
from setuptools import setup
from torch.utils.cpp_extension import CppExtension, CUDAExtension
os.system("touch OWNED")
this_dir = os.path.dirname(os.path.abspath(__file__))
cc_flag = ["-gencode", "arch=compute_90,code=sm_90"]
def with_threads(flags):
    return flags + ["--threads", "4"]
extension = CppExtension
extra = {"cxx": ["-O3", "-DFAST"]}
sources = [os.path.join("csrc", "norms.cpp")]
macros = [("SIZE", 4)]
if torch.cuda.is_available():
    extension = CUDAExtension
    sources = sources + glob.glob(os.path.join(this_dir, "csrc", "*.cu"))
    macros += [("WITH_CUDA", None)]
    extra["nvcc"] = with_threads(["-O2", "--use_fast_math"] + cc_flag)
    extra["cxx"].append("-fopenmp")
folders = [os.path.join(this_dir, "include")]
built = extension("_C", sources, define_macros=macros, extra_compile_args=extra, include_dirs=folders)
setup(name="norms", ext_modules=[built])
"""
PYBIND = """\
#include <torch/extension.h>
// PYBIND11_MODULE(commented, m) { m.def("commented", &commented); }
void norm_fwd(const at::Tensor& x, const c10::optional<at::Tensor>& bias, at::Tensor& out, double eps,
              bool fast = true) {}
std::vector<at::Tensor> norm_bwd(const at::Tensor &x, const at::Tensor &dout, at::Tensor &dx) { return {}; }
int64_t version() { return 3; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("norm_fwd", &norm_fwd, "Forward");
  m.def("norm_bwd", &norm_bwd);
  m.def("version", &version);
}
"""
NORMS = {"setup.py": SETUP, "csrc/norms.cpp": PYBIND, "csrc/norms_kernel.cu": "// half", "include/norms.h": ""}
CMAKE = """\
project(norms LANGUAGES CXX CUDA)  # add_library(commented csrc/gone.cu)
set(ROOT ${PROJECT_SOURCE_DIR}/csrc CACHE PATH "here")
set(NORM_FLAGS "-O3" "-Xcompiler" "-fPIC" "-Xptxas" "-dlcm=ca" "--threads=8")
file(GLOB KERNELS ${ROOT}/*_kernel.*)
if(SLOW)
  list(APPEND NORM_FLAGS -maxrregcount=128)
endif()
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr")
add_our_library(_C MODULE ${KERNELS} csrc/norms.cpp "${cutlass_SOURCE_DIR}/gemm.cu")
target_compile_options(_C PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:${NORM_FLAGS} -use_fast_math> $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
target_include_directories(_C PRIVATE include ${TORCH_INCLUDE_DIRS} ${cutlass_SOURCE_DIR}/include)
target_compile_definitions(_C PRIVATE FAST WIDTH=$<BOOL:${WIDE}>)
target_link_options(_C PRIVATE -Wl,--as-needed)
"""
MODEL = """\
#include <torch/extension.h>
void gemm(std::optional<torch::Tensor> a, std::optional<torch::Tensor> b, std::optional<torch::Tensor> out, int k = 4);
torch::Tensor stacked(std::vector<torch::Tensor> parts);
class Model { torch::Tensor forward(torch::Tensor x); };
torch::Tensor norm(torch::Tensor x, float eps = 1e-5f, int mode = DEFAULT, std::optional<int> width = std::nullopt);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Model>(m, "Model").def(py::init<>()).def("forward", &Model::forward);
  py::class_<Model> other(m, "Other");
  other.def("forward", &Model::forward);
  m.def("norm", &norm).def("stacked", &stacked);
  auto inner = m.def_submodule("inner");
  m.def_submodule("ops", "Kernels").def("gemm", &gemm);
  inner.def("norm", &norm);
}
"""
LIBRARY = """\
#include <torch/csrc/stable/library.h>
STABLE_TORCH_LIBRARY(my_ops, m) {
  m.def("rms_norm(Tensor(a!) out, Tensor x, Tensor weight, "
        "float eps, bool fast=False) -> ()");
}
TORCH_LIBRARY_FRAGMENT(my_ops, m) { m.def("split(Tensor x, Tensor? mask) -> (Tensor, Tensor)"); }
TORCH_LIBRARY_FRAGMENT(my_ops, m) { m.class_<Model>("Model").def("forward", [](Tensor x) { return x; }); }
"""
FFI = """\
#include "tvm_ffi_utils.h"
auto softmax(TensorView x, TensorView out, Optional<TensorView> scale) noexcept -> void;
Array<int64_t> softmax_plan(TensorView workspace, int64_t rows);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(softmax, softmax);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(plan, softmax_plan);
"""
TRITON = """\
import torch
import triton
import triton.language as tl
raise RuntimeError("nobody runs this")
@triton.jit
def helper(x):
    return x
@triton.jit
def _swiglu_kernel(a, b, c, n, BLOCK: tl.constexpr):
    tl.store(c, helper(tl.load(a)))
def _loop(a):
    pass
_loop = triton.jit(_loop)
def swiglu_forward(a, b, scale, eps=1e-6):
    c = torch.empty_like(a)
    _swiglu_kernel[(a.shape[0],)](a, b, c, c.numel(), BLOCK=1024)
    return b.view(-1), c
def no_kernel(a):
    return a.shape
class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, bias: torch.Tensor | None = None):
        kernel = _loop if bias is None else _swiglu_kernel
        kernel[(1,)](x)
        return x
    @staticmethod
    def backward(ctx, dy):
        _loop[(1,)](dy)
"""
OPERATOR = """\
import triton
from tritonbench.utils.triton_op import BenchmarkOperator, register_benchmark
class Operator(BenchmarkOperator):
    @register_benchmark(baseline=True)
    def plain(self, x):
        return lambda: x
    @register_benchmark()
    def fast_softmax(self, x):
        return lambda: x
    @register_benchmark()
    def scaled_softmax(self, x):
        return lambda: x * self.scale
    def get_input_iter(self):
        yield torch.randn(4096, 512)
"""
TASK = """\
lang: "py"
benchmarks:
  - {"num_rows": 64, "size": 1024, "seed": 3, "kind": "normal"}
  - {"num_rows": 64, "size": 1024, "seed": 4, "kind": "dense"}
"""
REFERENCE = """\
import torch
def generate_input(num_rows, size, seed):
    return torch.rand(num_rows, size), torch.rand(size)
def ref_kernel(data):
    x, weight = data
    return x * weight
"""


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Plants files, and calls `kernelgate init` there: its exit code and what it answers."""

    def call(files: Mapping[str, str] | None = None, *words: str) -> tuple[int, Any]:
        if files is not None:
            git(repository(tmp_path, files), "branch", "--move", "trunk")
        monkeypatch.chdir(tmp_path)
        code = run(["init", "--json", *words])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else said.err

    return call


def card(folder: Path, name: str) -> str:
    return " ".join((folder / ".ci" / "kernels" / f"{name}.py").read_text(encoding="utf-8").split())


def found(said: Any) -> dict[str, str]:
    return {one["name"]: one["how"] for one in said["kernels"]}


def test_pybind_is_found_with_the_flags_of_setup_py(init: Any, tmp_path: Path) -> None:
    code, said = init(NORMS)
    assert (code, found(said)) == (0, {"norm_fwd": "PYBIND11_MODULE", "norm_bwd": "PYBIND11_MODULE"})
    forward = card(tmp_path, "norm_fwd")
    assert '"csrc/norms.cpp", "csrc/norms_kernel.cu"' in forward
    assert 'flags=["-DFAST", "-DSIZE=4", "-DWITH_CUDA", "-Iinclude"]' in forward
    assert 'nvcc_flags=["-O2", "--use_fast_math"]' in forward, "the build has -O3 by itself"
    assert "def call(self, ops, case, out, x):" in forward
    assert "ops.norm_fwd(x, None, out, 1e-6, True)" in forward, "pybind11 knows no defaults of C++"
    assert any("-fopenmp" in one for one in said["left"]), "a flag that is left out is said"
    assert any(one.endswith("where every branch of its conditions was taken") for one in said["left"])
    assert "def call(self, ops, case, dx, x, dout):" in card(tmp_path, "norm_bwd")
    assert not (tmp_path / "OWNED").exists(), "setup.py was run"


@pytest.mark.parametrize(
    ("sources", "lists"), [(["ops.cpp"], ["cpu_cases"]), (["ops.cpp", "ops.cu"], ["cases", "cpu_cases"])]
)
def test_what_runs_on_the_cpu_is_timed_there(sources: list[str], lists: list[str], init: Any, tmp_path: Path) -> None:
    library = """TORCH_LIBRARY(my_ops, m) { m.def(TORCH_SELECTIVE_SCHEMA("my_ops::scale(Tensor x) -> Tensor")); }
TORCH_LIBRARY_IMPL(my_ops, CPU, m) { m.impl("scale", &scale); }
"""
    setup = f"from torch.utils.cpp_extension import CppExtension\nCppExtension('ops', {sources})"
    _, said = init({"ops.cpp": library, "ops.cu": "", "setup.py": setup})
    assert found(said) == {"scale": "TORCH_LIBRARY"}
    assert re.findall(r"(\w*cases) = ", card(tmp_path, "scale")) == lists


def test_flags_of_cmake(init: Any, tmp_path: Path) -> None:
    code, said = init({**NORMS, "setup.py": "", "CMakeLists.txt": CMAKE})
    forward = card(tmp_path, "norm_fwd")
    assert code == 0
    assert 'Extension( "csrc/norms_kernel.cu", "csrc/norms.cpp", flags=["-Iinclude", "-DFAST"], nvcc_flags=[' in forward
    flags = ("--expt-relaxed-constexpr", "-Xptxas=-dlcm=ca", "-maxrregcount=128", "-use_fast_math")
    assert f"nvcc_flags=[{', '.join(map(json.dumps, flags))}]" in forward
    [branches, elsewhere] = [one for one in said["left"] if "CMakeLists.txt:9" in one and "norm_fwd" in one]
    assert "every branch of its conditions was taken" in branches
    foreign = "${cutlass_SOURCE_DIR}/gemm.cu -fopenmp ${cutlass_SOURCE_DIR}/include -DWIDTH=$<BOOL:${WIDE}>"
    assert all(one in elsewhere for one in foreign.split()), elsewhere
    assert "TORCH" not in elsewhere, "kernelgate's own build has them"


def test_of_a_module_with_types_and_submodules_functions_are_found(init: Any, tmp_path: Path) -> None:
    _, said = init({"csrc/model.cpp": MODEL})
    lines = {one["name"]: one["line"] for one in said["kernels"] if one["file"] == "csrc/model.cpp"}
    assert lines == {"norm": 10, "stacked": 10, "gemm": 12, "norm_2": 13}
    assert "return ops.norm(x, 1e-5, 1, None)" in card(tmp_path, "norm")
    assert any(one.endswith("the value of mode") for one in said["left"]), "its default is no constant"
    assert "return ops.inner.norm(" in card(tmp_path, "norm_2")
    gemm = card(tmp_path, "gemm")
    assert "def call(self, ops, case, out, a, b): ops.ops.gemm(a, b, out, 4)" in gemm, "it has no other tensors"
    assert init(None, "--check")[1]["out_of_date"] == []


def test_kernels_that_nothing_binds_are_named(init: Any) -> None:
    code = "// __global__ void no();\n__global__ void a(float* x) {\n}\n__global__ void b();\n__global__ void b() {}\n"
    _, said = init({"csrc/ops.cu": code, "test/test.cu": code})
    [one] = said["skipped"]
    assert one.startswith("csrc/ops.cu:2: 2 __global__ functions: what binds this to Python is none of what init reads")
    assert init({"csrc/ops.cpp": LIBRARY})[1]["skipped"] == [], "some are bound, and others may be called by them"


def test_schemas_become_calls(init: Any, tmp_path: Path) -> None:
    _, said = init({"csrc/ops.cpp": LIBRARY})
    assert found(said) == {"rms_norm": "STABLE_TORCH_LIBRARY", "split": "TORCH_LIBRARY_FRAGMENT"}
    assert said["skipped"] == [], "a method of a type is no kernel"
    assert "ops.rms_norm(out, x, weight, 1e-6)" in card(tmp_path, "rms_norm")
    assert "return ops.split(x, None)" in card(tmp_path, "split")
    assert "out0=Output(case.M, case.N), out1=" in card(tmp_path, "split")
    assert any(
        one.endswith("which sources belong to csrc/ops.cpp? No setup.py or CMakeLists.txt here lists them")
        for one in said["left"]
    )


def test_exports_of_tvm_ffi(init: Any, tmp_path: Path) -> None:
    _, said = init({"csrc/softmax_binding.cu": FFI})
    assert found(said) == {"softmax": "TVM_FFI_DLL_EXPORT_TYPED_FUNC"}, "what plans a launch is no kernel"
    assert "def call(self, ops, case, out, x): " in card(tmp_path, "softmax")


def test_what_launches_a_triton_kernel(init: Any, tmp_path: Path) -> None:
    _, said = init({"src/my_kernels/__init__.py": "", "src/my_kernels/swiglu.py": TRITON, "tests/test_it.py": TRITON})
    assert found(said) == {"swiglu_forward": "@triton.jit", "swi_glu": "autograd.Function"}
    forward = card(tmp_path, "swiglu_forward")
    assert 'build = Package("my_kernels.swiglu")' in forward
    assert "return ops.swiglu_forward(a, b, 1)" in forward, "what has a default is left to it"
    assert "return ops.SwiGLU.apply(x)" in card(tmp_path, "swi_glu")
    assert [one.split(": ")[1] for one in said["skipped"]] == ["SwiGLU.backward"]


GIVEN = """import triton
@triton.jit
def add_kernel(x, out):
    pass
def _launch(kernel, x, out):
    kernel[(1,)](x, out)
def add(x, out):
    _launch(add_kernel, x, out)
def compiled():
    return add_kernel.warmup(grid=(1,))
def no_kernel(functions, x):
    return functions, len(x.add_kernel())
class Model:
    def forward(self, x):
        return self.layers[0](x)
"""


def test_what_is_given_a_kernel_and_what_only_compiles_one_is_named(init: Any) -> None:
    _, said = init({"given.py": GIVEN})
    assert not said["kernels"]
    found = [one.split(": ")[:2] for one in said["skipped"]]
    assert found == [["given.py:6", "_launch"], ["given.py:8", "add"], ["given.py:10", "compiled"]]


def test_operators_of_tritonbench_and_tasks_of_kernelbot(init: Any, tmp_path: Path) -> None:
    task = {"problems/scale/task.yml": TASK, "problems/scale/reference.py": REFERENCE, "problems/scale/sub.py": TRITON}
    _, said = init({"my_bench/operators/softmax/operator.py": OPERATOR, **task})
    operators = {"softmax_fast_softmax": "tritonbench", "softmax_scaled_softmax": "tritonbench"}
    assert found(said) == {**operators, "scale": "task.yml"}
    fast, scaled = (card(tmp_path, name) for name in operators)
    assert "return ops.Operator.fast_softmax(None, x)()" in fast
    assert "SimpleNamespace" not in fast
    assert "# OPEN: scale of the operator: types.SimpleNamespace(...) in place of None" in scaled
    assert "from Operator.plain(), my_bench/operators/softmax/operator.py:5" in fast
    assert "shapes and dtypes of x, from Operator.get_input_iter(), my_bench/operators/softmax/operator.py:13" in fast
    written = card(tmp_path, "scale")
    assert written.count("dict(numrows=64, size=1024") == 1, "an axis has letters and digits, and two cases differ"
    assert "ops.custom_kernel((x, weight,))" in written.replace("weight))", "weight,))")
    assert "problems/scale/reference.py:4" in written


@pytest.mark.parametrize(
    "files", [NORMS, {"csrc/ops.cpp": LIBRARY}, {"my_kernels/__init__.py": "", "my_kernels/a.py": TRITON}]
)
def test_a_written_card_is_read_and_called_unfinished_until_everything_is_said(
    files: Mapping[str, str], init: Any, tmp_path: Path
) -> None:
    _, said = init(files)
    unfinished = cards.of_checkout(tmp_path)
    assert not unfinished.cards
    assert {f"{Path(one.file).name}:{one.line}" for one in unfinished.mistakes} == {
        ":".join(one.split(":")[:2]).removeprefix(".ci/kernels/") for one in said["left"]
    }
    assert all("unfinished: " in one.text for one in unfinished.mistakes)
    for path in (tmp_path / ".ci" / "kernels").glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "# OPEN:" not in line), encoding="utf-8")
    assert cards.of_checkout(tmp_path).mistakes == ()


def test_workflows_call_by_tag_and_watch_the_sources_of_the_branch(init: Any, tmp_path: Path) -> None:
    init(NORMS, "--tool", "my-org/kernelgate@v0")
    workflows = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / ".github/workflows").glob("*.yml")}
    assert len(workflows) == 7
    assert all("uses: my-org/kernelgate/.github/workflows/" in text and "@v0\n" in text for text in workflows.values())
    assert "branches: [trunk]" in workflows["baseline.yml"]
    assert "paths: [csrc/**, setup.py, .ci/**]" in workflows["baseline.yml"]
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "out/\n"


def test_nothing_is_overwritten(init: Any, tmp_path: Path) -> None:
    own = {".ci/kernels/norm_fwd.py": "mine", ".github/workflows/report.yml": "mine", ".gitignore": "build"}
    _, said = init({**NORMS, **own})
    assert not {*own} & {one for one in said["written"] if one != ".gitignore"}
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in own} == {
        **own,
        ".gitignore": "build\nout/\n",
    }
    assert init()[1]["written"] == []


def test_check_says_what_is_out_of_date_and_writes_nothing(init: Any, tmp_path: Path) -> None:
    init(NORMS)
    code, said = init(None, "--check")
    assert (code, said["out_of_date"]) == (0, [])
    (tmp_path / ".ci/kernels/norm_bwd.py").unlink()
    (tmp_path / ".github/workflows/profile.yml").unlink()
    report = tmp_path / ".github/workflows/report.yml"
    report.write_text(report.read_text(encoding="utf-8").replace("contents: read", "contents: write"), encoding="utf-8")
    (tmp_path / "csrc/norms_kernel.cu").unlink()
    code, said = init(None, "--check")
    assert code == 1
    stale = "\n".join(said["out_of_date"])
    assert "csrc/norms.cpp:9: norm_bwd (PYBIND11_MODULE) has no card: kernelgate init norm_bwd" in stale
    assert ".github/workflows/profile.yml is missing" in stale
    assert ".github/workflows/report.yml:19: differs" in stale
    assert "there is no csrc/norms_kernel.cu any more" in stale
    assert not (tmp_path / ".github/workflows/profile.yml").exists()


def test_of_many_kernels_the_named_ones_get_cards(init: Any, tmp_path: Path, ends_with: EndsWith) -> None:
    many = "".join(f'  m.def("scale{at}(Tensor x) -> Tensor");\n' for at in range(20))
    code, said = init({"csrc/ops.cpp": f"TORCH_LIBRARY(my_ops, m) {{\n{many}}}\n"})
    assert (code, len(said["kernels"]), said["written"]) == (0, 20, [])
    assert init(None, "scale7")[0] == 0
    assert [path.name for path in (tmp_path / ".ci/kernels").glob("*.py")] == ["scale7.py"]
    code, said = init(None, "nothing")
    assert code == 64
    assert "no kernel here is called nothing" in said
    code, said = init(None, "scael7")
    assert "of 20 found: scale7" in said
    assert "scale11" not in said
    told = ends_with(0, "init", "scale7").out
    assert "scale7: TORCH_LIBRARY" in told
    assert "scale11" not in told, "only what was named"


def test_of_two_kernels_of_one_name_the_other_is_named_too(init: Any, tmp_path: Path, ends_with: EndsWith) -> None:
    defined = "".join(f'  m.def("{name}(Tensor x) -> Tensor");\n' for name in ("total", "total_1"))
    bound = f"TORCH_LIBRARY(my_ops, m) {{\n{defined}}}\n"
    init({"csrc/ops.cpp": bound, "csrc/deep/er/ops.cpp": bound.replace("my_ops", "more_ops")}, "total")
    told = ends_with(0, "init", "total").out
    assert "  not this total: TORCH_LIBRARY, csrc/deep/er/ops.cpp:2; `kernelgate init total_2` names it\n" in told
    assert "not this" not in ends_with(0, "init", "total", "total_2").out
    assert (tmp_path / ".ci/kernels/total_2.py").exists()


def test_a_repository_without_kernels_is_told_so(init: Any, tmp_path: Path, ends_with: EndsWith) -> None:
    code, said = init({"README.md": "Words.", "odd.py": "triton, and no Python: ("})
    assert (code, said["kernels"], said["written"]) == (2, [], [])
    assert not (tmp_path / ".ci").exists()
    assert "write other cards by hand: https://" in ends_with(2, "init").out


CHAIN = """#include <torch/script.h>
API torch::Tensor
scatter(torch::Tensor src, torch::Tensor index, int64_t dim, std::optional<torch::Tensor> out) { return src; }
static auto registry = torch::RegisterOperators()
    .op("my_ops::scatter", &scatter)
    .op("my_ops::version", [] { return 3; });
"""
HEADER = """void gemm(const at::Tensor& a, const std::pair<at::Tensor, at::Tensor>& scaled, const at::Tensor& d);
static void register_apis(pybind11::module_& m) { m.def("gemm", &gemm); }
"""
OVERLOADED = """#include <torch/python.h>
#include "apis/gemm.hpp"
void quantize(torch::Tensor x, torch::Tensor output, float scale, int block);
void quantize(torch::Tensor x, torch::Tensor output, int block);
torch::Tensor quantize(torch::Tensor x, float scale);
auto cast(torch::Tensor x) { return x.to(torch::kHalf); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("quantize", py::overload_cast<torch::Tensor, torch::Tensor, int>(&quantize));
  m.def("scaled", static_cast<torch::Tensor (*)(torch::Tensor, float)>(&quantize));
  m.def("cast", &cast);
}
"""


def test_of_chains_functions_and_overloads_the_operators_are_found(init: Any, tmp_path: Path) -> None:
    setup = "from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension('ops', ['csrc/api.cpp'])"
    sources = {"csrc/api.cpp": OVERLOADED, "csrc/apis/gemm.hpp": HEADER, "csrc/scatter.cpp": CHAIN}
    _, said = init({**sources, "setup.py": setup})
    bound = dict.fromkeys(("quantize", "scaled", "cast", "gemm"), "PYBIND11_MODULE")
    assert found(said) == {"scatter": "torch::RegisterOperators", **bound}
    assert "return ops.scatter(src, index, 1, None)" in card(tmp_path, "scatter")
    assert "def call(self, ops, case, output, x): # OPEN: the value of block ops.quantize(x, output, 1)" in card(
        tmp_path, "quantize"
    )
    assert all('Extension("csrc/api.cpp", torch="' in card(tmp_path, name) for name in ("quantize", "gemm"))
    assert "return ops.scaled(x, 1)" in card(tmp_path, "scaled")
    assert "return ops.cast(x)" in card(tmp_path, "cast")
    assert "scaled=[draw(" in card(tmp_path, "gemm"), "a pair is no tensor"


WRITES = """import torch, triton
@triton.jit
def kernel(x, y):
    pass
if triton.__version__ > "2":
    def norm(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor):
        kernel[(1,)](x, y)
def attention_backward(q: torch.Tensor, o: torch.Tensor, do: torch.Tensor, dq: torch.Tensor):
    kernel[(1,)](q, dq)
def rope(q: torch.Tensor, cos: torch.Tensor):
    kernel[(1,)](q, cos)
def each(tensors: list[torch.Tensor]):
    kernel[(1,)](tensors[0], tensors[1])
def chosen(activation):
    return torch.compile(activation)
"""


def test_what_a_kernel_writes_is_known_by_its_name_or_asked(init: Any, tmp_path: Path) -> None:
    both = 'TORCH_LIBRARY(my_ops, m) { m.def("attention(Tensor! q, Tensor k) -> Tensor"); }'
    other = "import triton\n@triton.jit\ndef activation(x):\n    pass\n"
    _, said = init({"ops/__init__.py": "", "ops/norm.py": WRITES, "other.py": other, "csrc/ops.cpp": both})
    assert "def call(self, ops, case, y, x, w): ops.norm(x, w, y)" in card(tmp_path, "norm")
    backward = card(tmp_path, "attention_backward")
    assert "def call(self, ops, case, dq, q, o, do): ops.attention_backward(q, o, do, dq)" in backward
    rope = card(tmp_path, "rope")
    assert '# OPEN: it returns nothing: which inputs does it overwrite? in_place = ["q"] def inputs' in rope
    assert "def call(self, ops, case, q, cos): # OPEN" not in rope
    assert "Output" not in rope
    assert "# OPEN: it returns nothing: return what it overwrites return ops.each(tensors)" in card(tmp_path, "each")
    assert "# OPEN: it returns out, too" in card(tmp_path, "attention")
    assert [one for one in said["skipped"] if "chosen" in one] == []


FLAGS = """import os
from torch.utils.cpp_extension import CUDAExtension
cxx = ["-O3", "-g", "-Wno-psabi", "-fdiagnostics-color=always", "-DFAST" if os.getenv("FAST") else "-DSLOW"]
nvcc = ["-O0", "-G", "-Wall", "--ptxas-options=-v", "--ptxas-options=-v,--register-usage-level=10"]
folders = [f"{HOME}/include", "include", os.path.join(HERE, "csrc", "cutlass/include"), "csrc/gone"]
CUDAExtension("ops", ["csrc/norms.cpp"], include_dirs=folders, extra_compile_args={"cxx": cxx, "nvcc": nvcc})
"""
APPENDED = """import os
from torch.utils.cpp_extension import CUDAExtension
cxx = ["-DALWAYS"]
if os.getenv("FAST"):
    cxx.append("-DFAST")
CUDAExtension("ops", ["csrc/norms.cpp"], extra_compile_args=cxx)
"""


@pytest.mark.parametrize("setup", [FLAGS, APPENDED])
def test_a_flag_of_a_branch_is_asked_and_one_for_a_debugger_left_out(setup: str, init: Any, tmp_path: Path) -> None:
    (tmp_path / "csrc/cutlass").mkdir(parents=True)
    git(tmp_path / "csrc/cutlass", "init", "-q")
    git(
        tmp_path / "csrc/cutlass",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "a",
    )
    _, said = init({**NORMS, "setup.py": setup})
    left = [one for one in said["left"] if "flags" in one and "norm_fwd" in one]
    assert len(left) == 1, left
    assert left[0].endswith("where every branch of its conditions was taken")
    forward = card(tmp_path, "norm_fwd")
    if setup == APPENDED:
        assert 'flags=["-DALWAYS", "-DFAST"]' in forward
    else:
        assert 'flags=["-DFAST", "-DSLOW", "-Iinclude", "-Icsrc/cutlass/include"]' in forward
        assert "includes from csrc/gone, which is not here" in forward
        assert 'nvcc_flags=["--ptxas-options=-v,--register-usage-level=10"]' in forward


def test_a_task_of_one_tensor_gets_it_alone_and_parts_without_a_name_are_kept(init: Any, tmp_path: Path) -> None:
    one = "def ref_kernel(data):\n    return data.sort()\n"
    parts = "def ref_kernel(data):\n    x, _, weight = data\n    return x * weight\n"
    init({"a/task.yml": TASK, "a/reference.py": one, "b/task.yml": TASK, "b/reference.py": parts})
    assert "return ops.custom_kernel(data)" in card(tmp_path, "a")
    assert "return ops.custom_kernel((x, part1, weight,))" in card(tmp_path, "b")


def test_sources_that_a_function_returns_are_those_of_its_list(init: Any, tmp_path: Path) -> None:
    """What setup.py unpacks is not known; that of the lists that name this file, the one with CUDA is built, is."""
    setup = """from torch.utils.cpp_extension import CUDAExtension
def sycl(): return CUDAExtension, ["csrc/norms_sycl.cpp", "csrc/norms.cpp"], ["-fsycl"]
def cuda(): return CUDAExtension, ["csrc/norms_kernel.cu", "csrc/norms.cpp"], ["-O3"]
extension, files, flags = cuda()
extension("norms", files, extra_compile_args=flags)
"""
    code, said = init({**NORMS, "csrc/norms_sycl.cpp": "", "setup.py": setup})
    assert code == 0
    assert 'build = Extension("csrc/norms_kernel.cu", "csrc/norms.cpp", torch="' in card(tmp_path, "norm_fwd")
    assert any(one.endswith("its flags and maybe more sources, which setup.py computes") for one in said["left"])
