"""Builds a package's library: its sources, and Triton's cache with its kernels compiled for each target. Needs no GPU.

Which kernels there are, and for which kinds of arguments, the card's own `call` shows: a worker (triton_compile.py)
makes it for every case, with a GPU that is not there. A machine without Triton copies the sources alone and says so.

Triton's cache has a folder for each compiled kernel, named by its key: in it `<kernel>.cubin` is the machine code,
`<kernel>.json` what a launch must know, `__grp__<kernel>.json` lists both by absolute paths. A library's cache has that
list by names, so that it can be carried to another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from pydantic import Field, ValidationError

from kernelgate.bench.build import archs, machine_code
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.library import CACHE, PACKAGE, Library, Manifest, content_digest
from kernelgate.bench.build.machine_code import Disassembler, MachineCode
from kernelgate.bench.build.sources import Package
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError
from kernelgate.bench.kernel import fuzz_risk, fuzz_trials
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, OFFSET, WAY, Trial
from kernelgate.bench.record import KernelFacts
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

WORKER = "kernelgate.bench.kernel.triton_compile"
INDEX = "kernels.json"
"""In the cache: the report of all kernels."""
SOURCES_FD = 99
SOURCES = Path(f"/proc/self/fd/{SOURCES_FD}")
"""What a package's folder is called while it is compiled, for Triton writes paths of sources into machine code: the
same for every build. Unlike the current folder, a package cannot change it, and ptxas, which would note when a source
was changed, has none.
"""
IMPORT_S = 120.0
"""For a package to be imported where nothing is compiled."""
FUZZ_SEED = 0
"""Of the fuzz list that kernels are compiled for: other seeds draw other sizes, of the same kinds mostly."""
RISKY = 64
"""Risky trials that kernels are compiled for at most: each takes up to a second and, where it is of a new kind, the
compiling of a kernel. Huge ones are left out, which take the memory of a GPU, and layouts that only change strides."""


class CompileCase(Message):
    """One call whose kernels are compiled."""

    id: str
    """Of a fuzzed case, what triton_runtime.one_config is given when it is fuzzed."""
    axes: dict[str, AxisValue]
    timed: bool
    """What is not timed is fuzzed: a kernel that cannot be compiled for it is the fuzzer's to report."""


class CompileRequest(Message):
    """All of a package's kernels, for all targets; without any, what importing it registers. All paths are absolute."""

    folder: Path
    """What is on the import path for the package."""
    package: str
    card: Path
    """The file of the commit's own card."""
    cases: tuple[CompileCase, ...]
    """Timed ones first, so that what they launch is known as theirs."""
    targets: tuple[str, ...]
    """Such as ("sm_80", "sm_90")."""
    cache: Path
    """Becomes TRITON_CACHE_DIR; need not exist."""


class PackageKernel(Message):
    """One Triton kernel, compiled for one target and one kind of arguments."""

    name: str
    """Unique among the timed kernels of a target: the kernel's, with the case where an earlier case has another one."""
    function: str
    """The kernel's own name, which its files have."""
    target: str
    entry: str
    case: str
    """The id of the first case that needs it."""
    timed: bool
    config: str | None
    """One of several that @triton.autotune chooses from when it measures; None where there is no choice."""


class TargetReport(Message):
    """What a target's process has to say anew: reports are added up."""

    target: str = ""
    operators: tuple[str, ...] = ()
    """What the package registered with torch, as "my_ops::scale"; where another side registers one of them too, the two
    cannot share a process."""
    kernels: tuple[PackageKernel, ...] = ()
    skipped: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The ids of cases whose kernels are not in the cache, by what stopped their calls: file, line and text, such as
    "my_kernels/swiglu.py:12: ValueError: …"."""
    error: str | None = None
    """A kernel that a timed case launches has an error, or the package cannot be imported."""
    done: bool = False


def build_package(
    sources: Mapping[str, bytes], card: CardFacts, spec: Package, sha: str | None, limits: TimeLimits
) -> Library:
    """The library of these files, compiled unless the cache holds it.

    For what TORCH_CUDA_ARCH_LIST asks for, else the L4 and the GPU at hand: Triton compiles for any of them. Raises
    CompileError at a kernel's first error, and another KernelgateError where it cannot be tried.
    """
    triton = triton_version()
    if triton is None:
        say(f"triton is not installed: the kernels of {card.name} are not compiled (pip install triton)")
    asked = (archs.asked() or archs.at_hand()) if triton else ()
    targets = tuple(map(archs.sm, sorted({(target[0], target[1]) for target in asked})))
    decisive = {  # the card decides for which cases kernels are compiled
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sources.items()},
        "card": [card.name, card.sha256],
        "package": spec.name,
        "targets": targets,
        "triton": triton,
        "environment": sorted((name, value) for name, value in os.environ.items() if _changes_code(name)),
    }
    key = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]

    def make(work: Path) -> Manifest:
        build_cache.write_all(work / PACKAGE, sources)
        (work / CACHE).mkdir()
        begun = time.monotonic()
        request = CompileRequest(
            folder=(work / PACKAGE).absolute(),
            package=spec.name,
            card=card.file.absolute(),
            cases=tuple(cases(card)),
            targets=targets,
            cache=(work / CACHE).absolute(),
        )
        operators, skipped = compile_package(request, limits) if targets else (probe(request), {})
        for why, ids in skipped.items():
            say(f"not compiled beforehand: {', '.join(ids[:3])}: {why}")
        code = facts(work / CACHE) if targets else MachineCode((), "it was compiled for no GPU")
        return Manifest(
            card=card.name,
            kind="package",
            namespace=spec.name,
            operators=operators,
            sha=None,
            targets=targets,
            key=key,
            seconds=time.monotonic() - begun,
            sha256=content_digest(work, "package"),
            kernels=code.kernels,
            facts_missing=code.missing,
        )

    return build_cache.cached(key, make).of_commit(sha)


def triton_version() -> str | None:
    """The installed Triton, such as "3.9.0-1f0c8d2e9a7b"; None without one.

    The second half is a hash over its files, for Triton finds in a cache what the very same files compiled: a wheel for
    another version of Python is another Triton.
    """
    try:
        triton = metadata.distribution("triton")
    except metadata.PackageNotFoundError:
        return None
    hashes = sorted(f"{path} {path.hash.value}" for path in triton.files or () if path.hash and "triton" in path.parts)
    return f"{triton.version}-{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:12]}"


def _changes_code(variable: str) -> bool:
    """Whether Triton reads this variable when it compiles."""
    of_triton = variable.startswith("TRITON_") and variable not in ("TRITON_CACHE_DIR", "TRITON_HOME")
    return of_triton or variable in ("DISABLE_LLVM_OPT", "PTXAS_OPTIONS", "NVPTX_ENABLE_DUMP")


def probe(request: CompileRequest) -> tuple[str, ...]:
    """What importing the package registers with torch; nothing where it cannot be imported here."""
    with WorkerProcess(f"{WORKER}:registered") as worker:
        try:
            return worker.ask(request, TargetReport, IMPORT_S).operators
        except WorkerError as error:
            say(f"the operators of the package {request.package} are not known: {error}")
            return ()


def compile_package(request: CompileRequest, limits: TimeLimits) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Fills the request's cache, which becomes that of a library; what the package registers, and what was left out.

    Raises CompileError at the first error, and CannotCompileError past the time limit or where the worker is gone.
    """
    kernels: list[PackageKernel] = []
    operators: set[str] = set()
    skipped: dict[str, tuple[str, ...]] = {}
    waiting = [*request.targets]
    deadline = time.monotonic() + limits.total_s
    told = track(f"compile {request.package}", len(waiting), alike=False, limit_s=limits.total_s)
    with told as advance, WorkerProcess(f"{WORKER}:run") as worker:
        try:
            worker.send(request)
            while waiting:
                report = worker.receive(TargetReport, max(0.0, deadline - time.monotonic()))
                if report.error is not None:
                    log = build_cache.log_of(request.cache.parent)
                    log.parent.mkdir(parents=True, exist_ok=True)
                    log.write_text(f"{report.error}\n", encoding="utf-8")
                    name = f"the package {request.package}"
                    raise CompileError(name, report.target, report.error, log, (report.error,))
                kernels += report.kernels
                operators.update(report.operators)
                for why, ids in report.skipped.items():
                    skipped[why] = tuple(dict.fromkeys((*skipped.get(why, ()), *ids)))
                if report.done:
                    waiting.remove(report.target)
                    advance(", ".join(waiting))
        except WorkerError as error:
            if time.monotonic() >= deadline:
                text = f"{request.package} took longer to compile than {limits.total_s:g} s"
                raise CannotCompileError(text) from None
            raise CannotCompileError(f"{request.package} cannot be compiled: {error}") from None
    finish(request.cache, sorted(kernels, key=lambda kernel: (kernel.target, kernel.name, kernel.entry)))
    return tuple(sorted(operators)), skipped


def cases(card: CardFacts) -> Iterator[CompileCase]:
    """Every case that may be timed, the target first, what is fuzzed, and of what is risky besides one of each kind."""
    timed = {case.id: case for name, suite in card.suites.items() if name != "cpu" for case in suite}
    for case in timed.values():
        yield CompileCase(id=case.id, axes=case.axes, timed=True)
    listed = fuzz_trials.trials(FUZZ_SEED, card, "cuda")
    kinds = {_kind(trial) for trial in listed}
    risks = fuzz_risk.risks(FUZZ_SEED, card, "cuda")  # none that is huge
    risky = {_kind(trial): trial for trial in risks if _kind(trial) not in kinds}
    for trial in (*listed, *list(risky.values())[:RISKY]):
        yield CompileCase(id=trial.id, axes=trial.axes, timed=False)


def _kind(trial: Trial) -> tuple[object, ...]:
    """What Triton may compile another kernel for: words and booleans, and of a number whether it is 1, whether it is a
    multiple of 16, and its power of two, from which block sizes follow. Of the ways of calling one shifts addresses."""
    kinds: dict[str, object] = {}
    for axis, value in trial.axes.items():
        if isinstance(value, int) and not isinstance(value, bool):
            kinds[axis] = value == 1, value % 16 == 0, (value - 1).bit_length()
        elif axis not in (DISTRIBUTION, WAY):
            kinds[axis] = 0.0 if isinstance(value, float) else value
    return (*sorted(kinds.items()), trial.way == OFFSET)


def finish(cache: Path, kernels: Sequence[PackageKernel]) -> None:
    """Makes a library's cache of the folder in which Triton has just compiled `kernels`."""
    cache.mkdir(parents=True, exist_ok=True)
    for listing in cache.glob("*/__grp__*.json"):
        names = json.loads(listing.read_bytes())["child_paths"]
        listing.write_text(json.dumps({"child_paths": {name: name for name in names}}), encoding="utf-8")
    (cache / INDEX).write_text(TargetReport(kernels=tuple(kernels)).model_dump_json(include={"kernels"}, indent=2))


def facts(cache: Path) -> MachineCode:
    """What is known of the kernels that timed cases launch; a missing tool or a damaged file costs all facts.

    Of a kernel that @triton.autotune chooses from several, nothing: which of them will run is known on the GPU alone,
    and that another one spills is no fault.
    """
    try:
        report = TargetReport.model_validate_json((cache / INDEX).read_bytes())
        kernels = [kernel for kernel in report.kernels if kernel.timed]
        wanted = [kernel for kernel in kernels if kernel.config is None]
        if not wanted:
            tuned = "@triton.autotune chooses the kernel when it measures"
            return MachineCode((), tuned if kernels else "no Triton kernel was compiled for a timed case")
        tools = machine_code.find_tools()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda kernel: _facts(cache / kernel.entry, kernel, tools), wanted)
            return MachineCode(tuple(sorted(found, key=lambda kernel: (kernel.target, kernel.name))))
    except (OSError, ValidationError) as error:
        return MachineCode((), f"{cache / INDEX} cannot be read: {error}")
    except KernelgateError as error:
        return MachineCode((), str(error))


def _facts(entry: Path, kernel: PackageKernel, tools: Disassembler) -> KernelFacts:
    cubin = entry / f"{kernel.function}.cubin"
    try:
        launch = json.loads((entry / f"{kernel.function}.json").read_bytes())
        changed = {
            "target": kernel.target,  # for sm_90 Triton compiles sm_90a
            "name": kernel.name,
            "dynamic_shared_bytes": int(launch["shared"]),
            "threads": 32 * int(launch["num_warps"]),
        }
        found = next((known for known in machine_code.read(cubin, tools) if known.name == launch["name"]), None)
    except (OSError, ValueError, KeyError) as error:
        raise KernelgateError(f"{entry} is not what Triton writes: {type(error).__name__}: {error}") from None
    if found is None:
        raise KernelgateError(f"{cubin} has no kernel {launch['name']}")
    return found.model_copy(update=changed)
