"""Repositories in miniature: sources that compile in a moment, cards for them, and git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernelgate.bench.build import build
from kernelgate.bench.build.library import Library
from kernelgate.bench.build.sources import Extension, read_sources

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}

# An extension that torch can call, and its card -----------------------------------------------------------------------

SCALE = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;

void scale(Tensor out, Tensor x, double factor) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(out.mutable_data_ptr())[i] = factor * static_cast<const float*>(x.const_data_ptr())[i];
  }
}

STABLE_TORCH_LIBRARY(KERNELGATE_NAMESPACE, m) { m.def("scale(Tensor(a!) out, Tensor x, float factor) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(KERNELGATE_NAMESPACE, CPU, m) { m.impl("scale", TORCH_BOX(&scale)); }
"""
SCALE_CARD = """\
from kernelgate import Extension, Kernel


class Scale(Kernel):
    build = Extension("csrc/scale*")
    cases = [dict(N=64, dtype="fp32")]

    def inputs(self, case, draw):
        return dict(x=draw(case.N), factor=2.5)

    def call(self, ops, case, out, x, factor):
        ops.scale(out, x, factor)

    def oracle(self, case, x, factor):
        return factor * x
"""
SCALE_FILES = {"csrc/scale.cpp": SCALE, ".ci/kernels/scale.py": SCALE_CARD}

# A library that is told apart without torch ---------------------------------------------------------------------------

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
#ifdef KERNELGATE_CUDA
         "cuda "
#endif
#ifdef KERNELGATE_SM80
         "sm_80 "
#endif
#ifdef KERNELGATE_SM89
         "sm_89 "
#endif
#ifdef KERNELGATE_SM90
         "sm_90 "
#endif
#ifdef KERNELGATE_SM90A
         "sm_90a "
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
CPU_FILES = {"csrc/binding.cpp": BINDING, "csrc/answer.h": ANSWER}
GPU_FILES = {
    **CPU_FILES,
    "csrc/kernel.cuh": KERNEL_HEADER,
    "csrc/answer_sm80.cu": "void nothing() {}\n",
    "csrc/answer_sm89.cu": KERNEL,
}
CARD = "answer"
SPEC = Extension("csrc")


def write(tree: Path, files: Mapping[str, str]) -> Path:
    """Files by path, written below `tree`."""
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    return tree


def compiled(tree: Path, spec: Extension = SPEC, sha: str | None = None, namespace: str | None = None) -> Library:
    """The library of the sources that `spec` names."""
    return build.build(read_sources(tree, "here", CARD, spec), sha, namespace=namespace)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A checkout whose only commit, on main, has these files."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, files)
    return folder


def commit(repo: Path, files: Mapping[str, str] | None = None) -> str:
    """Commits these files and whatever else has changed; the sha."""
    write(repo, files or {})
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--allow-empty", "--message=m")
    return git(repo, "rev-parse", "HEAD")
