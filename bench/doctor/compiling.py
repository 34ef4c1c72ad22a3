"""What compiles kernels: torch, compilers, ninja, ccache, and the variables that they read."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build.recipe import COMPILER_VARIABLES
from kernelgate.bench.core.errors import KernelgateError, UsageError, first_line
from kernelgate.bench.doctor.check import Level, MachineCheck
from kernelgate.bench.system import cuda_tools, environment

PATIENCE_S = 10.0
INSTALL = {
    "g++": "apt-get install g++",
    "ninja": "pip install ninja",
    "ccache": "apt-get install ccache",
    "nvcc": f"{cuda_tools.TOOLS['nvcc'].install}, or measure libraries that were compiled elsewhere "
    "(bench --base-library DIR --head-library DIR)",
}


def compile_checks(capability: str | None, variables: Mapping[str, str] = os.environ) -> list[MachineCheck]:
    """All but torch. `capability`: the GPU's, such as "9.0"; None where there is none."""
    return [
        tool_check("g++", version_of("g++"), "nothing can be compiled here"),
        tool_check("ninja", version_of("ninja"), "nothing can be compiled here"),
        ccache_check(version_of("ccache")),
        nvcc_check(_nvcc_missing()),
        arch_list_check(variables.get(archs.ARCH_LIST, ""), capability),
        max_jobs_check(variables.get("MAX_JOBS", "")),
        flags_check(variables),
        ccache_dir_check(variables.get("CCACHE_DIR", "")),
    ]


def torch_check(found: record.Environment | KernelgateError, has_gpu: bool) -> MachineCheck:
    if isinstance(found, KernelgateError):
        return MachineCheck("torch", Level.FAILED, str(found), "make env builds a working environment")
    if has_gpu and environment.kind(found) == "cpu":
        fix = (
            "install a torch that is built for CUDA no newer than the driver's (nvidia-smi shows it): "
            "https://pytorch.org/get-started/locally"
        )
        return MachineCheck("torch", Level.FAILED, f"torch {found.torch} does not see the GPU", fix)
    return MachineCheck("torch", Level.PASSED, f"torch {found.torch} on {found.device.name}")


def tool_check(name: str, version: str | KernelgateError | None, without: str) -> MachineCheck:
    """`version`: None where the tool is not there, an error where it does not run."""
    if isinstance(version, str):
        return MachineCheck(name, Level.PASSED, version)
    found = "is neither on PATH nor beside Python" if version is None else str(version)
    return MachineCheck(name, Level.WARNING, f"{found}: {without}", INSTALL[name])


def ccache_check(version: str | KernelgateError | None) -> MachineCheck:
    """Builds do without it."""
    if version is None:
        return MachineCheck("ccache", Level.PASSED, f"not installed; builds do without it ({INSTALL['ccache']})")
    return tool_check("ccache", version, "each compile fails with it")


def nvcc_check(missing: str | None) -> MachineCheck:
    if missing is None:
        return MachineCheck("nvcc", Level.PASSED, "found")
    return MachineCheck("nvcc", Level.WARNING, f"{missing}: GPU kernels cannot be compiled here", INSTALL["nvcc"])


def arch_list_check(value: str, capability: str | None) -> MachineCheck:
    """Whether it can be read, and whether what is compiled for it runs here."""
    name = archs.ARCH_LIST
    if not value.strip():
        return MachineCheck(name, Level.PASSED, "not set: compiled for the L4 and the GPU at hand")
    try:
        targets = archs.parse(value)
    except UsageError as error:
        return MachineCheck(name, Level.WARNING, str(error), f"export {name}={capability or '8.9'}, or unset {name}")
    here = archs.target(capability.replace(".", "")) if capability else None
    if here and not archs.serving([(here[0], here[1])], targets):
        found = f"{value!r} leaves out this machine's GPU, of compute capability {capability}"
        return MachineCheck(name, Level.WARNING, found, f"export {name}={capability}, or unset {name}")
    return MachineCheck(name, Level.PASSED, ", ".join(map(archs.sm, targets)))


def max_jobs_check(value: str) -> MachineCheck:
    if not value:
        return MachineCheck("MAX_JOBS", Level.PASSED, "not set: ninja takes a little more than one for each core")
    if value.isdecimal() and int(value) > 0:
        return MachineCheck("MAX_JOBS", Level.PASSED, value)
    found = f"{value!r} is no number of compilers"
    return MachineCheck("MAX_JOBS", Level.WARNING, found, "export MAX_JOBS=4 or another number from 1 on, or unset it")


def flags_check(variables: Mapping[str, str]) -> MachineCheck:
    """What changes compiled code on this machine alone."""
    names = [name for name in dict.fromkeys(("CUDAFLAGS", *COMPILER_VARIABLES)) if variables.get(name)]
    if not names:
        return MachineCheck("compiler variables", Level.PASSED, "none is set: CUDAFLAGS, " + ", ".join(_others()))
    found = " ".join(f"{name}={shlex.quote(variables[name])}" for name in names)
    fix = f"unset {' '.join(names)}, or put flags into the card, where everybody compiles with them"
    return MachineCheck("compiler variables", Level.WARNING, f"{found}: compiled otherwise here than elsewhere", fix)


def ccache_dir_check(value: str) -> MachineCheck:
    if not value:
        return MachineCheck("CCACHE_DIR", Level.PASSED, "not set: ccache keeps its results in the user's cache folder")
    folder = Path(value).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return MachineCheck("CCACHE_DIR", Level.PASSED, value)
    found = f"{value} cannot be written"
    return MachineCheck("CCACHE_DIR", Level.WARNING, found, "export CCACHE_DIR=~/.cache/ccache, or unset CCACHE_DIR")


def version_of(name: str) -> str | KernelgateError | None:
    """The first line of what `--version` prints; None where there is no such tool, an error where it does not run."""
    tool = toolchain.on_path(name)
    if tool is None:
        return None
    try:
        done = subprocess.run([tool, "--version"], capture_output=True, timeout=PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return KernelgateError(f"{tool} does not run: {first_line(error)}")
    return done.stdout.decode(errors="replace").split("\n")[0].strip()


def _others() -> tuple[str, ...]:
    return tuple(name for name in COMPILER_VARIABLES if name != "CUDAFLAGS")


def _nvcc_missing() -> str | None:
    try:
        tools = toolchain.find()
    except KernelgateError as error:
        return str(error)
    return None if tools.cuda else tools.cuda_missing
