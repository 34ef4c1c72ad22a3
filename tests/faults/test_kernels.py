"""Kernels in C++ that fail in every way that was thought of: fuzz names the failure, and nothing of them stays.

One library has all of them; the card's axis `fault` chooses. What is caught only where kernels are timed is in
tests/bench/timing/test_paired.py and tests/cheats.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, trial_process
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import commit
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.system import lock
from tests import miniature, registered
from tests.bench.machine import CPU
from tests.processes import marked

pytestmark = pytest.mark.nightly

HEADERS = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <sys/types.h>
#include <unistd.h>

using torch::stable::Tensor;
"""
KERNEL = """
void scale(Tensor out, Tensor x, double factor, int64_t fault) {
  const int64_t n = x.numel();
  float* to = static_cast<float*>(out.mutable_data_ptr());
  float* from = const_cast<float*>(static_cast<const float*>(x.const_data_ptr()));
  static int calls = 0;
  ++calls;
  const auto work = [&] {
    for (int64_t i = 0; i < n; ++i) to[i] = factor * from[i];
  };
  switch (fault) {
    default: work(); return;
CASES  }
}

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) {
  m.def("scale(Tensor(a!) out, Tensor x, float factor, int fault) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, m) { m.impl("scale", TORCH_BOX(&scale)); }
"""
CARD = """\
build = Extension("csrc/scale*")
cases = cpu_cases = [dict(N=64, dtype="fp32", fault=fault) for fault in range(COUNT)]
def inputs(self, case, draw):
    return dict(x=draw(case.N), factor=2.5, fault=case.fault)
def call(self, ops, case, out, x, factor, fault):
    ops.scale(out, x, factor, fault)
def oracle(self, case, x, factor, fault):
    return factor * x
"""
FAILS = {
    "a null pointer": ("*(volatile int*)0 = 1;", "the process was killed by SIGSEGV"),
    "abort": ("abort();", "the process was killed by SIGABRT"),
    "exit 0": ("_exit(0);", "the process exited early with code 0"),
    "exit 77": ("exit(77);", "the process exited early with code 77"),
    "an exception": (
        'throw std::runtime_error("N must be a multiple of 7");',
        "the kernel raised an error: N must be a multiple of 7",
    ),
    "a check": ('STD_TORCH_CHECK(n == 7, "N must be 7, not ", n);', "N must be 7, not 64"),
    "an exception in a thread": (
        'std::thread([] { throw std::runtime_error("thrown in a thread"); }).join();',
        "what():  thrown in a thread",
    ),
    "NaN": ("work(); to[5] = NAN;", "NaN"),
    "nothing is written": ("", "were not written|was not written|never written"),
    "one in eight is wrong": ("work(); for (int64_t i = 0; i < n; i += 8) to[i] += 1;", "wrong|times what is allowed"),
    "the second call writes nothing": ("if (calls % 2) work();", "written|times what is allowed|NaN or Inf"),
    "an input is changed": ("work(); from[0] += 1;", "its input x"),
    "before the output": ("work(); to[-1] = 0;", "memory outside the output"),
    "a process is left, and a crash": (
        "if (fork() == 0) { for (;;) pause(); } abort();",
        "the process was killed by SIGABRT",
    ),
    "a hang": ("for (;;) pause();", "did not answer for 30 s and was killed"),
}
PASSES = {
    "none": "work();",
    "a process is left": "work(); if (fork() == 0) { for (;;) pause(); }",
    "another folder, no variables": 'work(); (void)!chdir("/"); clearenv();',
    "200 MB of errors": "work(); static char text[1 << 20]; for (int i = 0; i < 200; ++i) "
    "(void)!write(2, text, sizeof text);",
    "messages of its own": 'work(); (void)!write(1, "{\\"kind\\":\\"loaded\\"}\\n", 18);',
    "a leak": "work(); volatile char* kept = (char*)malloc(1 << 20); kept[0] = 1;",
}
CODES = [*(code for code, _ in FAILS.values()), *PASSES.values()]
NUMBERS = {name: at + 1 for at, name in enumerate([*FAILS, *PASSES])}


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, CardFacts]:
    folder = tmp_path_factory.mktemp("repository")
    branches = "".join(f"    case {at + 1}: {{ {code} return; }}\n" for at, code in enumerate(CODES))
    card = registered.write_card(folder / ".ci/kernels", "scale", CARD.replace("COUNT", str(len(CODES) + 1)))
    miniature.write(folder, {"csrc/scale.cpp": HEADERS + KERNEL.replace("CASES", branches)})
    return commit.build_tree(folder).built["scale"], registered.facts(card)


def tried(name: str, subject: tuple[Library, CardFacts], folder: Path, monkeypatch: pytest.MonkeyPatch) -> record.Check:
    library, card = subject
    monkeypatch.setattr(lock.tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(trial_process, "PATIENCE_S", 30.0 if name == "a hang" else 120.0)
    (case,) = [case for case in card.suites["cpu"] if case.axes["fault"] == NUMBERS[name]]
    return fuzz.run(library, card, 1, CPU, [case.id])


@pytest.mark.parametrize("name", FAILS)
def test_a_kernel_that_fails_is_named_with_what_it_did(
    name: str, subject: tuple[Library, CardFacts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tried(name, subject, tmp_path, monkeypatch)
    assert done.status == "failed"
    message = done.results[0].message or ""
    assert re.search(FAILS[name][1] if "|" in FAILS[name][1] else re.escape(FAILS[name][1]), message)
    assert "\n" not in message
    assert marked(f"TMPDIR={tmp_path}") == []


@pytest.mark.parametrize("name", PASSES)
def test_a_kernel_that_is_right_passes_whatever_else_it_does(
    name: str, subject: tuple[Library, CardFacts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(name, subject, tmp_path, monkeypatch).status == "passed"
    assert marked(f"TMPDIR={tmp_path}") == []


LOADING = {
    "a crash": ("import os; os.abort()", "cannot be loaded: the process was killed by SIGABRT"),
    "an exit": ("import os; os._exit(3)", "cannot be loaded: the process exited early with code 3"),
    "no operator": ("", "scale"),
    "another signature": ("@operator('scale(Tensor x) -> Tensor')\ndef scale(x):\n    return x", "scale"),
}


@pytest.mark.parametrize("name", LOADING)
def test_a_library_that_cannot_be_used_is_one_sentence(
    name: str, subject: tuple[Library, CardFacts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    code, says = LOADING[name]
    library = registered.build(tmp_path / "library", f"loads_{abs(hash(name))}", code, "scale")
    card = subject[1]
    try:
        done = fuzz.run(library, card, 1, CPU, [card.suites["cpu"][0].id])
    except KernelgateError as error:
        said = str(error)
    else:
        assert done.status == "failed"
        said = done.results[0].message or ""
    assert says in said
    assert "\n" not in said
