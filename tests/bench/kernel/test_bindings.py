"""How projects bind their kernels to Python: each kind is built and called, or refused before anything is compiled."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernelgate.bench.build import build as builder
from kernelgate.bench.build import toolchain
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.core.errors import CannotCompileError, CardError, CompileError, KernelgateError
from kernelgate.bench.kernel import commit as commits
from kernelgate.bench.kernel import operands
from kernelgate.bench.system.supervise import TimeLimits
from tests.miniature import SCALE_CARD, commit, git, repository

pytestmark = pytest.mark.usefixtures("in_process")

PYBIND = """\
#include <pybind11/pybind11.h>

static void scale(uintptr_t out, uintptr_t x, double factor, long count) {
  for (long i = 0; i < count; ++i) ((float*)out)[i] = factor * ((float*)x)[i];
}

PYBIND11_MODULE(their_own_name, m) { m.def("scale", &scale); }
"""
BY_ADDRESS = "ops.scale(out.data_ptr(), x.data_ptr(), factor, x.numel())"
PYBIND_CARD = SCALE_CARD.replace("ops.scale(out, x, factor)", BY_ADDRESS).replace(
    '"csrc/scale*"', '"csrc/scale*", flags=["-O0"]'
)
CMAKE_FAILED = (
    r"CMake Error at CMakeLists.txt:12 (target):\\n  Target x links to:\\n\\n    CUDA::cublas\\n\\nIt failed.\\n"
)
SETUP = 'from setuptools import setup\nsetup(name="theirs", version="1", packages=["theirs"])\n'
PACKAGE = "def scale(out, x, factor):\n    out.copy_(factor * x)\n"
PROJECT = {"setup.py": SETUP, "theirs/__init__.py": PACKAGE, "docs/a": "a"}


def with_build(build: str, card: str = SCALE_CARD) -> str:
    return card.replace('Extension("csrc/scale*")', build).replace("import Extension", "import Command, Extension")


def cards(tmp_path: Path, text: str) -> commits.HowToBuild:
    (tmp_path / "cards").mkdir(exist_ok=True)
    (tmp_path / "cards/scale.py").write_text(text, encoding="utf-8")
    return commits.HowToBuild(cards=tmp_path / "cards")


def scaled(library: Library) -> float:
    x, out = torch.ones(3), torch.zeros(3)
    by_address = library.manifest.binding == "pybind"
    arguments = (out.data_ptr(), x.data_ptr(), 2.0, 3) if by_address else (out, x, 2.0)
    operands.load(library).scale(*arguments)
    return float(out.sum())


def test_both_sides_of_a_module_of_one_name_share_a_process_unless_pybind11_knows_types_of_both(tmp_path: Path) -> None:
    typed = PYBIND.replace("{ m.def", '{ pybind11::class_<Plan>(m, "Plan"); m.def').replace(
        "static void", "struct Plan {};\nstatic void"
    )
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": PYBIND})
    commit(repo, {"csrc/scale.cpp": typed.replace("= factor", "= 10 * factor")})
    how = cards(tmp_path, PYBIND_CARD)
    base, head = (commits.build_commit(repo, ref, how).built["scale"] for ref in ("HEAD~1", "HEAD"))
    assert (head.manifest.binding, head.manifest.namespace) == ("pybind", "their_own_name")
    assert head.manifest.torch is not None, "what is bound so is of one torch"
    assert Sides(base, head).clash is None
    other = replace(head, manifest=head.manifest.model_copy(update={"key": "0" * 32, "sha256": "0" * 64}))
    assert Sides(head, other).clash == "both tell pybind11 of C++ types, of which it knows each once in a process"
    assert [scaled(library) for library in (base, head, base)] == [6.0, 60.0, 6.0]
    assert "their_own_name" not in sys.modules
    sha = git(repo, "rev-parse", "--short=7", "HEAD~1").strip()
    with pytest.raises(CardError, match=rf"scale\.py:12: call: .*the module has no scales; it has scale \(in {sha}\)"):
        commits.build_commit(repo, "HEAD~1", cards(tmp_path, PYBIND_CARD.replace("ops.scale(", "ops.scales(")))


def test_a_call_is_held_against_what_pybind11_says_that_a_function_takes(tmp_path: Path) -> None:
    """C++ has a default for the count, which pybind11 does not know."""
    bound = 'm.def("scale", &scale); m.def_submodule("inner").def("scale", &scale);'
    source = PYBIND.replace("long count", "long count = 3").replace('m.def("scale", &scale);', bound)
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": source})
    short = PYBIND_CARD.replace("factor, x.numel()", "factor")
    for card in (short, short.replace("ops.", "ops.inner.")):
        with pytest.raises(
            CardError, match=r"scale\.py:12: call: missing a required argument: 'arg3': the library has sc"
        ):
            commits.build_commit(repo, "HEAD", cards(tmp_path, card))
    with pytest.raises(CardError, match=r"scale\.py:12: call: .*the module has no outer; it has inner, scale"):
        commits.build_commit(repo, "HEAD", cards(tmp_path, PYBIND_CARD.replace("ops.", "ops.outer.")))
    assert commits.build_commit(repo, "HEAD", cards(tmp_path, PYBIND_CARD.replace("ops.", "ops.inner."))).built


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("PyMODINIT_FUNC PyInit_scale(void);\n", "bound to Python by Python's C API, which is not loaded here"),
        ("NB_MODULE(scale, m) {}\n", "bound to Python by nanobind, which is not loaded here"),
        ("PYBIND11_MODULE(a, m) {}\nPYBIND11_MODULE(b, m) {}\n", r"make several modules \(a, b\): name those of one"),
    ],
)
def test_what_cannot_be_loaded_is_said_before_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.setattr(builder, "build", lambda *_, **__: pytest.fail("it is compiled"))
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": source})
    with pytest.raises(CardError, match=said):
        commits.build_commit(repo, "HEAD", cards(tmp_path, PYBIND_CARD))


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has them")
@pytest.mark.parametrize(
    ("flag", "error", "said"),
    [
        ("-DWITH_CUDA", CannotCompileError, "No such file .*is built for the CPU: .*, for cpu_cases, name in the card"),
        ("-DOTHER", CompileError, "#error what is not there"),
    ],
)
def test_headers_that_a_torch_for_the_cpu_lacks_are_no_fault_of_the_sources(
    tmp_path: Path, flag: str, error: type[Exception], said: str
) -> None:
    source = f"#ifdef WITH_CUDA\n#include <c10/cuda/CUDAGuard.h>\n{PYBIND}#else\n#error what is not there\n#endif\n"
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": source})
    card = PYBIND_CARD.replace("-O0", flag)
    with pytest.raises(error, match=said):
        commits.build_commit(repo, "HEAD", cards(tmp_path, card))


TVM_FFI = """\
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

void scale(tvm::ffi::TensorView out, tvm::ffi::TensorView x, double factor) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(out.data_ptr())[i] = factor * static_cast<const float*>(x.data_ptr())[i];
  }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);
"""


def test_functions_of_tvm_ffi_are_called_and_of_both_sides_in_one_process(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": TVM_FFI})
    commit(repo, {"csrc/scale.cpp": TVM_FFI.replace("= factor", "= 10 * factor")})
    how = cards(tmp_path, SCALE_CARD)
    base, head = (commits.build_commit(repo, ref, how).built["scale"] for ref in ("HEAD~1", "HEAD"))
    assert (head.manifest.binding, head.manifest.torch, Sides(base, head).clash) == ("tvm_ffi", None, None)
    assert [scaled(library) for library in (base, head, base)] == [6.0, 60.0, 6.0]
    with pytest.raises(CardError, match=r"scale\.py:12: call: .*the module has no scales"):
        commits.build_commit(repo, "HEAD", cards(tmp_path, SCALE_CARD.replace("ops.scale(", "ops.scales(")))


def test_tvm_ffi_that_is_missing_is_named_before_the_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = replace(toolchain.find(), tvm_ffi=None)
    monkeypatch.setattr(toolchain, "find", lambda: found)
    repo = repository(tmp_path / "repo", {"csrc/scale.cpp": TVM_FFI})
    with pytest.raises(CannotCompileError, match="bound by TVM-FFI, which is missing: pip install apache-tvm-ffi"):
        commits.build_commit(repo, "HEAD", cards(tmp_path, SCALE_CARD))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", PROJECT)


@pytest.fixture
def _clean_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("theirs", None)


def built(project: Path, tmp_path: Path, build: str, ref: str = "HEAD") -> Library:
    return commits.build_commit(project, ref, cards(tmp_path, with_build(build))).built["scale"]


@pytest.mark.slow
@pytest.mark.usefixtures("_clean_imports")
def test_a_project_builds_itself_once_and_each_side_has_a_process(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "cache"))
    pip = 'Command("pip install --no-deps .", "theirs", ["setup.py", "theirs"])'
    base = built(project, tmp_path, pip)
    commit(project, {"docs/a": "b"})
    same = built(project, tmp_path, pip)
    assert (base.cached, same.cached) == (False, True), "the commit touches nothing that it is built from"
    commit(project, {"theirs/__init__.py": PACKAGE.replace("factor * x", "10 * factor * x")})
    head = built(project, tmp_path, pip)
    assert Sides(base, same).clash is None
    assert Sides(base, head).clash == "each is what the project built itself, under one name"
    assert scaled(head) == 60.0
    with pytest.raises(KernelgateError, match=r"this process has theirs from .* already"):
        operands.load(base)
    assert git(project, "status", "--porcelain") == ""


PIP_FAILED = (
    r"      error: invalid command \047bdist_wheel\047\n      [end of output]\n  \n"
    r"  note: This error originates from a subprocess, and is likely not a problem with pip.\n"
    r"error: metadata-generation-failed\n\n× Encountered error while generating package metadata.\n"
    r"╰─> See above for output.\n\nnote: This is an issue with the package mentioned above, not pip.\n"
    r"hint: See above for details.\n"
).replace("\\", r"\\")
"""As pip 23 ends; a card's Python text has it in quotes."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exit 3", r"scale does not compile: `exit 3` ended with 3: it printed nothing"),
        ("echo one; echo setup.py:1: error: no; echo two; false", r"ended with 1: setup\.py:1: error: no \(all of it"),
        (f"printf '{PIP_FAILED}'; false", r"ended with 1: error: invalid command 'bdist_wheel' \(all of it"),
        (f"printf '{CMAKE_FAILED}'; false", r"with 1: CMakeLists.txt:12: Target x links to: CUDA::cublas \(all of it"),
        ("echo hint: none; false", r"ended with 1: hint: none \(all of it"),
        ("mkdir $KERNELGATE_OUT/other", r"left no theirs in \$KERNELGATE_OUT, where there is other"),
        ("touch $KERNELGATE_OUT/__editable__.theirs.pth", "left a link to its sources, .*: install without -e"),
    ],
)
def test_a_build_that_fails_or_leaves_nothing(project: Path, tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        built(project, tmp_path, f'Command("{line}", "theirs")')
    right = built(project, tmp_path, 'Command("cp -r theirs $KERNELGATE_OUT", "theirs")')
    assert (right.path / "theirs/__init__.py").is_file()


def test_a_program_that_is_missing_is_no_fault_of_the_sources(project: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotCompileError, match=r"`no-such-tool \.` cannot be run here: .*not found; install it"):
        built(project, tmp_path, 'Command("no-such-tool .", "theirs")')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo setup.py:1: error: half a; kill -9 $$", "could not be run: it was ended by SIGKILL"),
        ("echo g++: fatal error: Killed signal terminated program cc1plus; false", "terminated program cc1plus"),
        ("echo setup.py:9:1: fatal error: error writing to /x: No space left on device; false", "No space left"),
    ],
)
def test_a_build_that_the_machine_ends_is_no_fault_of_the_sources(
    project: Path, tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(CannotCompileError, match=said):
        built(project, tmp_path, f'Command("{line}", "theirs")')


def test_a_build_past_its_limit_names_the_command_that_allows_more(project: Path, tmp_path: Path) -> None:
    how = replace(
        cards(tmp_path, with_build('Command("echo begun; sleep 60", "theirs")')), limits=TimeLimits(total_s=1)
    )
    sha = git(project, "rev-parse", "HEAD")
    again = f"`kernelgate build --ref {sha[:12]} --cards {how.cards} --time-limit 6` allows more"
    said = r"scale: `echo begun; sleep 60` took longer than the limit of 1 s and was ended; last line: begun \(.*\); "
    with pytest.raises(CannotCompileError, match=said + re.escape(again)):
        commits.build_commit(project, "HEAD", how)


@pytest.mark.parametrize("of_commit", [True, False])
def test_a_project_without_the_named_files_is_not_built_of_others(
    project: Path, tmp_path: Path, *, of_commit: bool
) -> None:
    how = cards(tmp_path, with_build('Command("cp -r theirs $KERNELGATE_OUT", "theirs", ["their*.toml", "src"])'))
    with pytest.raises(CardError, match=r"their\*\.toml, src holds nothing for the command to build from"):
        commits.build_commit(project, "HEAD", how) if of_commit else commits.build_tree(project, how)
