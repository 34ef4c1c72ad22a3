"""Tools and variables that are there, missing, and wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.doctor import examine
from kernelgate.bench.doctor.machine import Level, MachineCheck


def passes(check: MachineCheck) -> bool:
    """What does not pass says how to fix it; what passes has nothing to fix."""
    assert (check.level is Level.PASSED) == (check.fix is None)
    return check.level is Level.PASSED


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (examine.tool_check("ninja", "1.13.2", "x"), "1.13.2"),
        (examine.ccache_check("ccache version 4.8"), "4.8"),
        (examine.ccache_check(None), "not installed; builds do without it"),
        (examine.arch_list_check("", "9.0"), "not set"),
        (examine.arch_list_check("8.9;9.0a", "9.0"), "sm_89, sm_90a"),
        (examine.arch_list_check("8.0", "8.9"), "sm_80"),
        (examine.arch_list_check("8.9", None), "sm_89"),
        (examine.max_jobs_check("3"), "3"),
        (examine.flags_check({"HOME": "/root", "CUDAFLAGS": ""}), "none is set: CUDAFLAGS, CPATH"),
        (examine.ccache_dir_check(""), "not set"),
    ],
)
def test_what_compiles(check: MachineCheck, found: str) -> None:
    assert passes(check)
    assert found in check.found


@pytest.mark.parametrize(
    ("check", "found", "fix"),
    [
        (examine.tool_check("g++", None, "nothing can"), "neither on PATH nor", "apt-get install g++"),
        (examine.tool_check("ninja", KernelgateError("ninja does not run: no"), "x"), "does not run", "pip install"),
        (examine.ccache_check(KernelgateError("ccache does not run: no")), "each compile fails", "apt-get install"),
        (examine.arch_list_check("sm_89", None), "'sm_89' is not a compute capability", "TORCH_CUDA_ARCH_LIST=8.9,"),
        (examine.arch_list_check("8.9", "9.0"), "leaves out this machine's GPU", "TORCH_CUDA_ARCH_LIST=9.0,"),
        (examine.max_jobs_check("0"), "'0' is no number of compilers", "MAX_JOBS=4"),
        (examine.max_jobs_check("all"), "'all'", "MAX_JOBS=4"),
        (examine.flags_check({"CUDAFLAGS": "-G -g"}), "CUDAFLAGS='-G -g': compiled otherwise", "unset CUDAFLAGS,"),
        (examine.flags_check({"CPATH": "/opt"}), "CPATH=/opt", "unset CPATH,"),
        (examine.ccache_dir_check(f"{__file__}/x"), "x cannot be written", "unset CCACHE_DIR"),
    ],
)
def test_what_does_not_says_how_to_fix_it(check: MachineCheck, found: str, fix: str) -> None:
    assert not passes(check)
    assert check.fix
    assert found in check.found
    assert fix in check.fix


def test_a_folder_that_ccache_would_make_is_writable(tmp_path: Path) -> None:
    assert passes(examine.ccache_dir_check(str(tmp_path / "not" / "yet")))
    (tmp_path / "file").touch()
    assert not passes(examine.ccache_dir_check(str(tmp_path / "file")))


def test_versions_are_the_tools_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("right", "echo right 1.2; echo more"), ("wrong", "exit 3")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert examine.version_of("right") == "right 1.2"
    assert examine.version_of("nowhere-to-be-found") is None
    broken = examine.version_of("wrong")
    assert isinstance(broken, KernelgateError)
    assert "does not run" in str(broken)
