"""Real compilers on a miniature of csrc/ that compiles in a moment and can be broken on purpose."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import archs, build, library, toolchain
from kernelgate.bench.build.library import LIBRARY, MANIFEST, Library
from kernelgate.bench.errors import BuildError, CompileError, KernelgateError, NoKernelError, UsageError
from kernelgate.bench.system import cuda_tools, supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.ci import cli
from tests.processes import alive

GXX = str(shutil.which("g++"))

ANSWER = """\
#pragma once
// Unique in a process, were it not for how libraries are built: base and head would share it.
inline int& answer() {
  static int value = ANSWER;
  return value;
}
"""
BINDING = """\
#define ANSWER 42
#include "answer.h"
#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int the_answer() { return answer(); }
EXPORT const char* the_namespace() { return TEXT_OF(KERNELGATE_NAMESPACE); }
EXPORT const char* the_targets() {
  return ""
#ifdef FA_S512_SM80
         "sm_80 "
#endif
#ifdef FA_S512_SM89
         "sm_89 "
#endif
      ;
}
"""
KERNEL = """\
#include "kernel.cuh"
"""
KERNEL_HEADER = """\
#pragma once
namespace {
__global__ void kernel(float* out) { out[threadIdx.x] = 1.0F; }
}
void process() { kernel<<<1, 1>>>(nullptr); }
"""


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *identity, *words], cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()


def write(tree: Path, **files: str) -> None:
    """Files of csrc/; `__` in a name stands for the dot."""
    (tree / "csrc").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (tree / "csrc" / name.replace("__", ".")).write_text(text, encoding="utf-8")


def commit(tree: Path, **files: str) -> str:
    write(tree, **files)
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--allow-empty", "--message=m")
    return git(tree, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "the cache"
    monkeypatch.setenv(build.CACHE, str(folder))
    monkeypatch.delenv(archs.ARCH_LIST, raising=False)
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ())
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout whose HEAD has a kernel for the CPU alone."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, binding__cpp=BINDING, answer__h=ANSWER)
    return folder


@pytest.fixture
def gpu_tree(tree: Path) -> Path:
    """The same with sm_80 and sm_89."""
    commit(
        tree,
        fa_s512_sm80__cu=KERNEL,
        fa_s512_sm89__cu=KERNEL.replace("process", "process_89"),
        kernel__cuh=KERNEL_HEADER,
    )
    (tree / "csrc" / "fa_s512_sm80.cu").write_text("void nothing() {}\n", encoding="utf-8")
    commit(tree)
    return tree


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a g++ of our own first on PATH: it answers --version as the real one does, then runs `script`."""

    def install(script: str) -> Path:
        path = tmp_path / "compiler" / "g++"
        path.parent.mkdir()
        path.write_text(f'#!/bin/bash\n[ "$1" = --version ] && exec {GXX} --version\n{script}\n', encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path.parent

    return install


@pytest.fixture
def no_compiling(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, whoever starts ninja fails the test."""

    def forbid() -> None:
        monkeypatch.setattr(supervise, "run", lambda *_, **__: pytest.fail("something was compiled"))

    return forbid


def loaded(built: Library) -> ctypes.CDLL:
    import torch  # noqa: F401  its libraries are those that ours names

    dll = ctypes.CDLL(str(built.path))
    dll.the_namespace.restype = dll.the_targets.restype = ctypes.c_char_p
    return dll


# ----------------------------------------------------------------------------------------------------------------------
# What is built
# ----------------------------------------------------------------------------------------------------------------------


def test_a_commit_becomes_a_library_that_can_be_loaded(tree: Path, cache: Path) -> None:
    built = build.build_commit(tree)
    assert not built.cached
    assert built.folder.parent == cache
    assert built.manifest.sha == git(tree, "rev-parse", "HEAD")
    assert built.manifest.targets == ()
    assert built.manifest.seconds > 0
    dll = loaded(built)
    assert dll.the_answer() == 42
    assert dll.the_namespace().decode() == built.manifest.namespace == f"fa_s512_{built.manifest.key[:12]}"
    assert sorted(path.name for path in cache.iterdir()) == sorted([built.manifest.key, "building", "locks", "logs"])
    assert not list((cache / "building").iterdir())


def test_the_checkout_is_neither_read_nor_touched(tree: Path) -> None:
    sha = git(tree, "rev-parse", "HEAD")
    commit(tree, answer__h="#error the next commit")
    write(tree, binding__cpp="#error not committed", new__cpp="#error not tracked")
    status = git(tree, "status", "--porcelain", "--branch", "--untracked-files=all")
    assert loaded(build.build_commit(tree, sha)).the_answer() == 42
    assert git(tree, "status", "--porcelain", "--branch", "--untracked-files=all") == status
    assert len(git(tree, "worktree", "list").splitlines()) == 1


def test_the_working_tree_has_a_sha_only_while_it_is_heads(tree: Path) -> None:
    assert build.build_tree(tree).manifest.sha == git(tree, "rev-parse", "HEAD")
    write(tree, binding__cpp=BINDING.replace("42", "43"))
    changed = build.build_tree(tree)
    assert changed.manifest.sha is None
    assert loaded(changed).the_answer() == 43


def test_a_folder_outside_of_git_is_built_too(tmp_path: Path) -> None:
    write(tmp_path / "unpacked", binding__cpp=BINDING, answer__h=ANSWER)
    assert build.build_tree(tmp_path / "unpacked").manifest.sha is None
    with pytest.raises(KernelgateError, match="is not a git repository"):
        build.build_commit(tmp_path / "unpacked")


def test_two_libraries_with_equal_names_run_their_own_code(tree: Path) -> None:
    base = build.build_commit(tree)
    write(tree, binding__cpp=BINDING.replace("42", "43"))
    head = build.build_tree(tree)
    assert base.manifest.namespace != head.manifest.namespace
    libraries = [loaded(base), loaded(head), loaded(base)]
    assert [each.the_answer() for each in libraries] == [42, 43, 42]


def test_a_chosen_namespace_makes_another_library(tree: Path) -> None:
    ours, installed = build.build_tree(tree), build.build_tree(tree, namespace="fa_s512")
    assert installed.manifest.namespace == loaded(installed).the_namespace().decode() == "fa_s512"
    assert installed.manifest.key != ours.manifest.key


# ----------------------------------------------------------------------------------------------------------------------
# Nothing is compiled twice
# ----------------------------------------------------------------------------------------------------------------------


def test_equal_sources_are_compiled_once(tree: Path, no_compiling: Callable[[], None]) -> None:
    first = build.build_commit(tree)
    (tree / "README").write_text("no source", encoding="utf-8")
    second_sha = commit(tree)
    no_compiling()
    second, working_tree = build.build_commit(tree), build.build_tree(tree)
    assert (first.cached, second.cached, working_tree.cached) == (False, True, True)
    assert first.folder == second.folder == working_tree.folder
    assert second.manifest.sha == working_tree.manifest.sha == second_sha != first.manifest.sha
    assert second.manifest.seconds == first.manifest.seconds
    assert library.read(first.folder).manifest.sha is None


@pytest.mark.parametrize("damage", ["library", "manifest", "missing library", "missing manifest"])
def test_a_damaged_entry_is_built_again(tree: Path, damage: str, capfd: pytest.CaptureFixture[str]) -> None:
    first = build.build_commit(tree)
    if damage == "library":
        first.path.write_bytes(first.path.read_bytes()[:-1] + b"!")
    elif damage == "manifest":
        (first.folder / MANIFEST).write_text("{", encoding="utf-8")
    else:
        (first.folder / (LIBRARY if damage == "missing library" else MANIFEST)).unlink()
    second = build.build_commit(tree)
    assert not second.cached
    assert capfd.readouterr().err.count(f"{first.folder} is damaged, or of an earlier kernelgate: ") == 1
    assert build.build_commit(tree).cached
    assert loaded(second).the_answer() == 42


def test_an_entry_of_the_time_before_facts_is_built_again(tree: Path) -> None:
    first = build.build_commit(tree)
    content = json.loads((first.folder / MANIFEST).read_text(encoding="utf-8"))
    del content["kernels"]
    (first.folder / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(KernelgateError, match="is not a library manifest"):
        library.read(first.folder)
    assert not build.build_commit(tree).cached


def test_what_a_killed_build_left_is_no_hindrance(tree: Path, cache: Path) -> None:
    key = build.build_commit(tree).manifest.key
    shutil.rmtree(cache / key)
    (cache / "building" / key / "csrc").mkdir(parents=True)
    (cache / "building" / key / "kernel.so").write_text("half a library", encoding="utf-8")
    (cache / "building" / key / "csrc" / "left.cpp").write_text("#error left", encoding="utf-8")
    assert loaded(build.build_commit(tree)).the_answer() == 42


def test_of_two_builds_at_once_one_compiles(tree: Path, compiler: Callable[[str], Path]) -> None:
    compiler(f'sleep 0.5; exec {GXX} "$@"')
    imports = "from pathlib import Path; from kernelgate.bench.build import build"
    code = f"{imports}; print(build.build_tree(Path({str(tree)!r})).cached)"
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert sorted(out.strip() for out, _ in said) == ["False", "True"], said
    assert "another process compiles the same sources; waiting for it" in said[0][1] + said[1][1]


def test_ccache_is_put_before_the_compiler(tree: Path, tmp_path: Path, compiler: Callable[[str], Path]) -> None:
    folder = compiler(f'exec {GXX} "$@"')
    ccache = folder / "ccache"
    ccache.write_text(f'#!/bin/bash\necho "$1 $CCACHE_NOHASHDIR" >> "{tmp_path}/calls"\nexec "$@"\n', encoding="utf-8")
    ccache.chmod(0o755)
    build.build_commit(tree)
    assert (tmp_path / "calls").read_text(encoding="utf-8") == f"{folder}/g++ 1\n"  # linking is not cached


def test_an_export_carries_its_commit(tree: Path, tmp_path: Path) -> None:
    built = build.build_commit(tree)
    for _ in range(2):  # over itself, too
        exported = build.export(built, tmp_path / "carried")
    assert library.read(tmp_path / "carried") == library.Library(exported.folder, built.manifest, cached=True)
    assert sorted(path.name for path in exported.folder.iterdir()) == [LIBRARY, MANIFEST]


def test_a_cache_that_cannot_be_written(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(build.CACHE, str(tmp_path / "file" / "cache"))
    with pytest.raises(KernelgateError, match=r"the cache cannot be written: .*; set KERNELGATE_CACHE"):
        build.build_commit(tree)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({build.CACHE: "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/kernelgate"),
        ({"XDG_CACHE_HOME": "", build.CACHE: ""}, "/home/someone/.cache/kernelgate"),
    ],
)
def test_cache_folder(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (build.CACHE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/someone", **variables}.items():
        monkeypatch.setenv(name, value)
    assert build.cache_folder() == Path(expected)


# ----------------------------------------------------------------------------------------------------------------------
# Targets
# ----------------------------------------------------------------------------------------------------------------------


def test_targets_of_the_arch_list(gpu_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archs.ARCH_LIST, "8.9;8.0")
    built = build.build_commit(gpu_tree)
    assert built.manifest.targets == ("sm_80", "sm_89")
    assert loaded(built).the_targets() == b"sm_80 sm_89 "
    cuda = toolchain.find().cuda
    assert cuda is not None
    cubins = subprocess.run(
        [cuda.nvcc.parent / "cuobjdump", "--list-elf", built.path], capture_output=True, text=True, check=True
    ).stdout
    assert "sm_89" in cubins
    assert "sm_90" not in cubins


def test_a_target_that_the_commit_lacks(gpu_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archs.ARCH_LIST, "8.9;9.0")
    with pytest.raises(BuildError, match=r"asks for sm_90, but .* it has: sm_80, sm_89"):
        build.build_commit(gpu_tree)
    monkeypatch.setenv(archs.ARCH_LIST, "9.0a")
    with pytest.raises(BuildError, match=r"asks for sm_90a, but .* it has: sm_80, sm_89"):
        build.build_commit(gpu_tree)
    monkeypatch.setenv(archs.ARCH_LIST, "9.0f")
    with pytest.raises(UsageError, match=r"'9.0f' is not supported"):
        build.build_commit(gpu_tree)


def test_without_an_arch_list_the_l4_and_the_gpu_at_hand_are_served(
    gpu_tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ((8, 6), (12, 0)))
    assert build.build_commit(gpu_tree).manifest.targets == ("sm_80", "sm_89")
    said = capfd.readouterr().err
    assert "no target of csrc/ runs on compute capability 12.0; it has: sm_80, sm_89" in said
    assert "8.6" not in said


def test_a_commit_that_no_l4_can_run_says_so(gpu_tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    git(gpu_tree, "rm", "--quiet", "csrc/fa_s512_sm80.cu")
    git(gpu_tree, "mv", "csrc/fa_s512_sm89.cu", "csrc/fa_s512_sm90.cu")
    commit(gpu_tree)
    assert build.build_commit(gpu_tree).manifest.targets == ()
    assert "no target of csrc/ runs on compute capability 8.9; it has: sm_90" in capfd.readouterr().err


def test_without_nvcc_the_cpu_path_is_compiled(
    gpu_tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda_tools, "candidates", lambda *_: iter(()))
    built = build.build_commit(gpu_tree)
    assert built.manifest.targets == ()
    assert loaded(built).the_targets() == b""
    assert "nvcc, which compiles CUDA, is neither on PATH" in (said := capfd.readouterr().err)
    assert "only the CPU path is compiled (for a GPU: pip install nvidia-cuda-nvcc" in said

    monkeypatch.setenv(archs.ARCH_LIST, "8.9")
    with pytest.raises(BuildError, match=r"TORCH_CUDA_ARCH_LIST is set, but nvcc, .* pip install nvidia-cuda-nvcc"):
        build.build_commit(gpu_tree)


# ----------------------------------------------------------------------------------------------------------------------
# What is known of the kernels travels with the library
# ----------------------------------------------------------------------------------------------------------------------

LAUNCHES = """\
#include <cstdint>
struct alignas(32) KernelgateLaunch {
  char kernel[112];
  std::int32_t version, target, dynamic_shared_bytes, threads;
};
[[maybe_unused]] __attribute__((section("kernelgate_launches"), used, aligned(32))) static const KernelgateLaunch
    kernelgate_launch_0 = {"kernel", 1, 89, 6144, 96};
"""


@pytest.fixture
def carried(gpu_tree: Path, tmp_path: Path) -> Library:
    """A library that says what its launches ask for, carried to a folder beside which there is nothing else."""
    commit(gpu_tree, fa_s512_sm89__cu=LAUNCHES + KERNEL.replace("process", "process_89"))
    build.export(build.build_commit(gpu_tree), tmp_path / "elsewhere")
    shutil.rmtree(gpu_tree)
    return library.read(tmp_path / "elsewhere")


def test_facts_are_read_without_sources(carried: Library) -> None:
    (found,) = library.build_records(library.Sides(None, carried), "attention")
    (kernel,) = found.kernels
    assert (found.card, found.side, found.sha, found.targets) == ("attention", "head", carried.manifest.sha, ("sm_89",))
    assert (found.key, found.library_sha256) == (carried.manifest.key, carried.manifest.sha256)
    assert (kernel.name, kernel.target, kernel.threads) == ("kernel", "sm_89", 96)
    assert (kernel.spill_bytes, kernel.static_shared_bytes, kernel.dynamic_shared_bytes) == (0, 0, 6144)
    assert kernel.registers
    assert kernel.instructions["STG"] == 1
    # 7 KiB per block of 100 KiB, the system's kilobyte counted: 14 blocks of 3 warps, of 48.
    assert kernel.occupancy_pct == {"L4 and L40S": 87.5}
    assert kernel.occupancy_limits == {"L4 and L40S": "shared memory"}
    assert carried.manifest.kernels[0].occupancy_pct == {}


def test_the_verb_reads_no_sources(
    carried: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["resources", "--alone", "--head-library", str(carried.folder), "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["resources"]
    assert (kernel["dynamic_shared_bytes"], kernel["threads"]) == (6144, 96)


def test_a_kernel_that_says_nothing_of_its_launch_has_no_occupancy(gpu_tree: Path) -> None:
    (found,) = library.build_records(library.Sides(None, build.build_commit(gpu_tree)), "attention")
    (kernel,) = found.kernels
    assert kernel.registers
    assert (kernel.dynamic_shared_bytes, kernel.threads, kernel.occupancy_pct) == (None, None, {})


def test_a_library_for_the_cpu_alone_has_no_kernels_and_misses_none(tree: Path) -> None:
    built = build.build_commit(tree)
    assert (built.manifest.kernels, built.manifest.facts_missing) == ((), "it was compiled for the CPU alone")
    assert library.facts_missing(library.Sides(built, built)) == ()


def test_facts_that_were_missing_are_read_once_the_tools_are_there(
    gpu_tree: Path, monkeypatch: pytest.MonkeyPatch, no_compiling: Callable[[], None]
) -> None:
    find = cuda_tools.candidates
    monkeypatch.setattr(cuda_tools, "candidates", lambda name, *_: iter(()) if name == "nvdisasm" else find(name, *_))
    built = build.build_commit(gpu_tree)
    assert built.manifest.kernels == ()
    (missing,) = library.facts_missing(library.Sides(None, built))
    assert missing.startswith("head: nvdisasm, which is needed by cuobjdump, is neither on PATH")
    assert missing.endswith("install it: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm")
    monkeypatch.undo()
    monkeypatch.setenv(build.CACHE, str(built.folder.parent))
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ())
    no_compiling()
    again = build.build_commit(gpu_tree)
    assert (again.manifest.sha256, again.manifest.facts_missing) == (built.manifest.sha256, None)
    assert len(again.manifest.kernels) == 1
    assert library.read(built.folder).manifest.kernels == again.manifest.kernels


def test_a_library_without_facts_is_refused_by_the_verb(
    gpu_tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build.machine_code, "facts", lambda _: build.MachineCode((), "cuobjdump is missing"))
    monkeypatch.chdir(gpu_tree)
    assert cli.run(["resources", "--alone"]) == 3
    assert "the registers and instructions of head are unknown: cuobjdump is missing" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------------------------------
# What goes wrong
# ----------------------------------------------------------------------------------------------------------------------


def test_a_failed_compile_shows_the_first_error(tree: Path, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sha = commit(tree, answer__h=ANSWER.replace("return value;", "int unused;\n  return valve;\n  return nor_this;"))
    with pytest.raises(CompileError) as caught:
        build.build_commit(tree)
    error = caught.value
    assert error.first.startswith("csrc/answer.h:6: error: 'valve' was not declared in this scope")
    assert error.target is None
    assert str(error) == f"{sha[:7]} does not compile: {error.first} (all of it: {error.log})"
    assert error.exit_code == 1
    assert "nor_this" in error.log.read_text(encoding="utf-8")
    assert "nor_this" in capfd.readouterr().err
    assert not list(cache.glob(f"*/{MANIFEST}"))
    assert not list((cache / "building").iterdir())

    commit(tree, answer__h=ANSWER)
    assert loaded(build.build_commit(tree)).the_answer() == 42


def test_a_failed_kernel_names_its_target(gpu_tree: Path) -> None:
    commit(gpu_tree, kernel__cuh=KERNEL_HEADER.replace("threadIdx.x", "threadIndex.x"))
    with pytest.raises(
        CompileError, match=r"does not compile for sm_89: csrc/kernel.cuh:3: error: identifier"
    ) as caught:
        build.build_commit(gpu_tree)
    assert caught.value.target == "sm_89"


def test_too_much_shared_memory_is_found_while_building(gpu_tree: Path) -> None:
    greedy = KERNEL_HEADER.replace("{ out[", "{ __shared__ float tile[99999]; tile[threadIdx.x] = 1; out[").replace(
        "= 1.0F", "= tile[threadIdx.x ^ 1]"
    )
    commit(gpu_tree, kernel__cuh=greedy)
    says = r"csrc/fa_s512_sm89.cu: error: ptxas: .*uses too much shared data"
    with pytest.raises(CompileError, match=says):
        build.build_commit(gpu_tree)


def test_an_undefined_symbol_is_found_while_building(tree: Path) -> None:
    commit(tree, binding__cpp=BINDING + "int elsewhere();\nEXPORT int more() { return elsewhere(); }\n")
    with pytest.raises(CompileError, match=r"csrc/binding.cpp: error: undefined reference to `elsewhere\(\)'"):
        build.build_commit(tree)


def test_a_warning_is_shown_and_stops_nothing(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    commit(tree, binding__cpp=BINDING + "static int unused() { return 1; }\n")
    build.build_commit(tree)
    assert "'int unused()' defined but not used" in capfd.readouterr().err


def test_a_silent_compiler_is_reported(
    tree: Path, compiler: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    compiler(f'sleep 0.4; exec {GXX} "$@"')
    build.build_commit(tree, limits=TimeLimits(silence_s=0.2, total_s=60))
    assert "still compiling csrc/binding.cpp kernel.so: silent for 0 s" in capfd.readouterr().err


def test_a_compile_over_its_limit_is_ended(
    tree: Path, tmp_path: Path, compiler: Callable[[str], Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "GRACE_S", 0.2)
    compiler(f"trap '' TERM; echo $$ > '{tmp_path}/pid'; echo started; sleep 1000 & wait; sleep 1000")
    with pytest.raises(
        BuildError,
        match=r"the limit of 2 s and was ended; unfinished: csrc/binding.cpp kernel.so .* allows more",
    ):
        build.build_commit(tree, limits=TimeLimits(total_s=2))
    assert not alive(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert not list((cache / "building").iterdir())


def test_an_interrupted_build_leaves_nothing(
    tree: Path, tmp_path: Path, compiler: Callable[[str], Path], cache: Path
) -> None:
    """Ctrl-C."""
    compiler(f"echo $$ > '{tmp_path}/pid.new'; mv '{tmp_path}/pid.new' '{tmp_path}/pid'; exec sleep 1000")
    (tmp_path / "temporary").mkdir()
    words = [sys.executable, "-m", "kernelgate.ci.cli", "build", "--ref", "HEAD"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(words, cwd=tree, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not alive(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert not list((cache / "building").iterdir())
    assert not list((tmp_path / "temporary").iterdir())


def test_a_commit_without_a_kernel(tree: Path) -> None:
    git(tree, "rm", "-r", "--quiet", "csrc")
    commit(tree)
    with pytest.raises(NoKernelError, match="has no csrc/"):
        build.build_commit(tree)
    commit(tree, readme__md="no sources")
    with pytest.raises(NoKernelError, match=r"has no csrc/\*\*/\*.cpp"):
        build.build_commit(tree)


# ----------------------------------------------------------------------------------------------------------------------
# The verb
# ----------------------------------------------------------------------------------------------------------------------


def test_verb(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tree / "csrc")
    sha = git(tree, "rev-parse", "HEAD")

    assert cli.run(["build"]) == 0
    out, err = capfd.readouterr()
    assert out == f"{build.build_commit(tree).path}\n"
    assert f"{sha[:7]} for the CPU alone: compiled in " in err
    assert f"compile {sha[:7]} for the CPU alone: 2/2" in err

    assert cli.run(["build", "--ref", "HEAD", "--output", str(tmp_path / "out")]) == 0
    out, err = capfd.readouterr()
    assert out == f"{tmp_path / 'out' / LIBRARY}\n"
    assert f"{sha[:7]} for the CPU alone: cached, compiled in " in err
    assert json.loads((tmp_path / "out" / MANIFEST).read_text(encoding="utf-8"))["sha"] == sha


def test_verb_exit_codes(tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tree)
    write(tree, answer__h="#error broken\n")
    assert cli.run(["build"]) == 1
    assert (
        "kernelgate: the working tree does not compile: csrc/answer.h:1: error: #error broken" in capfd.readouterr().err
    )
    assert cli.run(["build", "--ref", "nowhere"]) == 3
    assert "has no commit 'nowhere'" in capfd.readouterr().err
    assert cli.run(["build", "--time-limit", "0"]) == 64
    shutil.rmtree(tree / "csrc")
    assert cli.run(["build"]) == 2
