"""Examines a machine: may it compile, does torch start, and do the checkout's kernels work on it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build.build import COMPILER_VARIABLES
from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import (
    BuildError,
    CannotCompileError,
    KernelgateError,
    NoDeviceError,
    UsageError,
    first_line,
)
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.measure import machine
from kernelgate.bench.measure.machine import MachineCheck, failed, judged, passed, warning
from kernelgate.bench.system import cuda_tools, environment, git, interpreter, isolation, nvml, progress

# ---- Compilers -------------------------------------------------------------------------------------------------------

PATIENCE_S = 10.0
INSTALL = {
    "g++": "apt-get install g++",
    "ninja": "pip install ninja",
    "ccache": "apt-get install ccache",
    "nvcc": f"{cuda_tools.TOOLS['nvcc'].install}, or measure libraries that were compiled elsewhere "
    "(bench --base-library DIR --head-library DIR)",
}

OPTIONAL = frozenset({"ccache"})


def compile_checks(capability: str | None) -> list[MachineCheck]:
    """All but torch. `capability`: the GPU's, such as "9.0"; None where there is none."""
    try:
        tools = toolchain.find()
        nvcc: str | KernelgateError = "found" if tools.cuda else KernelgateError(tools.cuda_missing)
    except KernelgateError as error:
        nvcc = error
    return [
        tool_check("g++", version_of("g++"), "nothing can be compiled here"),
        tool_check("ninja", version_of("ninja"), "nothing can be compiled here"),
        tool_check("ccache", version_of("ccache"), "each compile fails with it"),
        tool_check("nvcc", nvcc, "GPU kernels cannot be compiled here"),
        arch_list_check(os.environ.get(archs.ARCH_LIST, ""), capability),
        max_jobs_check(os.environ.get("MAX_JOBS", "")),
        flags_check(os.environ),
        ccache_dir_check(os.environ.get("CCACHE_DIR", "")),
    ]


def torch_check(found: record.Environment, has_gpu: bool) -> MachineCheck:
    if has_gpu and environment.kind(found) == "cpu":
        fix = (
            "install a torch that is built for CUDA no newer than the driver's (nvidia-smi shows it): "
            "https://pytorch.org/get-started/locally"
        )
        return failed("torch", f"torch {found.torch} does not see the GPU", fix)
    return passed("torch", f"torch {found.torch} on {found.device.name}")


def tool_check(name: str, version: str | KernelgateError | None, without: str) -> MachineCheck:
    """`version`: None where the tool is not there, an error where it does not run."""
    if isinstance(version, str):
        return passed(name, version)
    if version is None and name in OPTIONAL:
        return passed(name, f"not installed; builds do without it ({INSTALL[name]})")
    found = "is neither on PATH nor beside Python" if version is None else str(version)
    return warning(name, f"{found}: {without}", INSTALL[name])


def arch_list_check(value: str, capability: str | None) -> MachineCheck:
    """Whether it can be read, and whether what is compiled for it runs here."""
    name = archs.ARCH_LIST
    if not value.strip():
        return passed(name, "not set: compiled for the L4 and the GPU at hand")
    try:
        targets = archs.parse(value)
    except UsageError as error:
        return warning(name, str(error), f"export {name}={capability or '8.9'}, or unset {name}")
    here = archs.target(capability.replace(".", "")) if capability else None
    if here and not archs.serving([(here[0], here[1])], targets):
        found = f"{value!r} leaves out this machine's GPU, of compute capability {capability}"
        return warning(name, found, f"export {name}={capability}, or unset {name}")
    return passed(name, ", ".join(map(archs.sm, targets)))


def max_jobs_check(value: str) -> MachineCheck:
    fine = value or "not set: ninja takes a little more than one for each core"
    right = not value or (value.isdecimal() and int(value) > 0)
    wrong = None if right else f"{value!r} is no number of compilers"
    return judged("MAX_JOBS", fine, wrong, "export MAX_JOBS=4 or another number from 1 on, or unset it")


def flags_check(variables: Mapping[str, str]) -> MachineCheck:
    """What changes compiled code on this machine alone."""
    known = tuple(dict.fromkeys(("CUDAFLAGS", *COMPILER_VARIABLES)))
    names = [name for name in known if variables.get(name)]
    found = " ".join(f"{name}={shlex.quote(variables[name])}" for name in names)
    fix = f"unset {' '.join(names)}, or put flags into the card, where everybody compiles with them"
    wrong = found and f"{found}: compiled otherwise here than elsewhere"
    return judged("compiler variables", f"none is set: {', '.join(known)}", wrong, fix)


def ccache_dir_check(value: str) -> MachineCheck:
    folder = Path(value).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    right = not value or (nearest.is_dir() and os.access(nearest, os.W_OK))
    fine = value or "not set: ccache keeps its results in the user's cache folder"
    wrong = None if right else f"{value} cannot be written"
    return judged("CCACHE_DIR", fine, wrong, "export CCACHE_DIR=~/.cache/ccache, or unset CCACHE_DIR")


def version_of(name: str) -> str | KernelgateError | None:
    """The first line of what `--version` prints; None where there is no such tool, an error where it does not run."""
    if (tool := toolchain.on_path(name)) is None:
        return None
    try:
        done = subprocess.run([tool, "--version"], capture_output=True, timeout=PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return KernelgateError(f"{tool} does not run: {first_line(error)}")
    return done.stdout.decode(errors="replace").split("\n")[0].strip()


# ---- The checkout's kernels: compiled, loaded, and called on their smallest cases ------------------------------------

SMOKE = "smoke"
"""The suite that a card may have for this, for every device."""


def kernel_checks(repo: Path, machine: record.Environment) -> list[MachineCheck]:
    """One for each card of the checkout; one that says so where there is none."""
    try:
        found = cards.of_checkout(repo)
        why = "" if found.cards or found.mistakes else f"{repo} has no cards in {cards.FOLDER}/"
    except KernelgateError as error:
        why = str(error)
    if why:
        fix = "run this in a checkout that has cards, to see whether its kernels work here"
        return [warning("kernels", f"none was tried: {why}", fix)]
    mistakes = [warning("cards", str(one), "correct the card") for one in found.mistakes]
    return [*mistakes, *(kernel_check(git.root(repo), card, machine) for card in found.cards)]


def kernel_check(root: Path, card: CardFacts, machine: record.Environment) -> MachineCheck:
    """What does not compile may be the sources' fault; a library that does not load, or is wrong, makes unfit."""
    name = f"kernel {card.name}"
    try:
        library = commit.build_card(commit.Tree(root, "the working tree"), card)
    except CannotCompileError as error:
        return warning(name, str(error), "see g++, ninja, nvcc and the variables above")
    except BuildError as error:
        fix = "correct the sources; a commit that compiled: kernelgate build --ref COMMIT"
        return warning(name, str(error), fix)
    if (case := smallest_case(card, environment.kind(machine))) is None:
        return passed(name, f"compiles; {fuzz.nothing_to_fuzz(card, environment.kind(machine))}")
    try:
        fault = fuzz.try_case(library, card, case, machine)
    except KernelgateError as error:
        fix = "compile it again for this machine: kernelgate build; the torch beside it must be 2.11 or newer"
        return failed(name, str(error), fix)
    if fault:
        machines = (
            "where another commit's kernel fails too (fuzz --ref), it is the machine: driver, torch, memory errors"
        )
        return failed(name, f"{case.id}: {fault}", f"kernelgate fuzz; {machines}")
    return passed(name, f"compiles, loads, and is right on {case.id}")


def smallest_case(card: CardFacts, device: environment.DeviceKind) -> CaseFacts | None:
    """By the bytes that it moves, of the suite `smoke`; else of all cases that the card names for such a device."""
    if SMOKE in card.suites:
        return min(card.suites[SMOKE], key=lambda case: case.bytes or 0.0, default=None)
    suites = {name: cases for name, cases in card.suites.items() if (name == "cpu") == (device == "cpu")}
    named = [case for cases in suites.values() for case in cases]
    named += card.sanitize if device == "cuda" else ()
    return min(named, key=lambda case: case.bytes or 0.0, default=None)


def examine(
    repo: Path,
    root: Path = Path("/"),
    gpu_wanted: bool = False,
    siblings: Callable[[record.Device], Sequence[MachineCheck]] = lambda _: (),
) -> tuple[MachineCheck, ...]:
    """The GPU through its driver, torch in a fresh process, the machine under `root`, and the kernels of `repo`.

    `gpu_wanted`: for a runner. A machine without a GPU fails, instead of being one that measures the CPU kernel, and
    nothing is compiled: a runner is handed libraries. `siblings`: what is known of it beside other runners.
    """
    checks: list[MachineCheck] = []
    with progress.track("doctor", 3 if gpu_wanted else 4) as advance:
        has_gpu = True
        try:
            with nvml.opened() as gpu:
                checks += machine.gpu_checks(gpu.facts(), root, os.geteuid())
        except NoDeviceError as absent:
            has_gpu = False
            checks.append(machine.gpu_absent(root, absent, gpu_wanted))
        advance("torch")
        known: record.Environment | None = None
        try:
            known = environment.describe()
            checks.append(torch_check(known, has_gpu))
        except KernelgateError as error:
            checks.append(failed("torch", str(error), f"{interpreter.current()} -m pip install torch"))
        advance("the machine")
        folders = (Path.cwd(), Path(tempfile.gettempdir()))
        checks += [
            machine.disk_check({folder: shutil.disk_usage(folder).free for folder in folders}),
            machine.governor_check(root),
            machine.load_check(environment.text_of(root / "proc/loadavg"), os.cpu_count() or 1),
            machine.lock_check(known.device.uuid if known else None),
        ]
        if gpu_wanted:
            checks.append(machine.isolation_check(isolation.unusable(isolation.command_line({}))))
            checks += siblings(known.device) if known else ()
        else:
            advance("kernels")
            checks += compile_checks(known.device.compute_capability if known else None)
            checks += kernel_checks(repo, known) if known else []
        advance("")
    return tuple(checks)
