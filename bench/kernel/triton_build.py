"""Builds a package's library: its sources, and Triton's cache with its kernels compiled for each target. Needs no GPU.

Which kernels there are, and for which kinds of arguments, the card's own `call` shows: a worker (triton_compile.py)
makes it for every case, with a GPU that is not there. Without Triton the sources alone are copied.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic import Field

from kernelgate.bench.build import archs, machine_code, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.imports import followed
from kernelgate.bench.build.library import CACHE, PACKAGE, Built, Library, Manifest
from kernelgate.bench.build.machine_code import MachineCode
from kernelgate.bench.build.sources import Package
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, OFFSET, WAY, Trial
from kernelgate.bench.system import interpreter, isolation
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

WORKER = "kernelgate.bench.kernel.triton_compile:run"
SOURCES = Path("/proc/self/fd/99")
"""A package's folder while it is compiled, for Triton writes paths of sources into machine code: the same for every
build, a package cannot change it as it can the current folder, and ptxas, which notes when a source changed, has none.
"""
FUZZ_SEED = 0
"""Of the fuzz list that kernels are compiled for: other seeds draw other sizes, of the same kinds mostly."""
UNSEEN = re.compile(rb"(?<!\bre)\.compile\b|\b(?:ASTSource|CompiledKernel|JITFunction)\b")
"""In sources that may launch kernels past `kernel[grid](…)`, where the build does not see them."""
READ_BY_TRITON = re.compile(r"TRITON_(?!CACHE_DIR$|HOME$).*|DISABLE_LLVM_OPT|PTXAS_OPTIONS|NVPTX_ENABLE_DUMP")
"""Variables of the environment, when it compiles."""
GRADIENT = ("torch.fx.experimental.symbolic_shapes",)
"""What torch imports for the first gradient that is given one: 487 modules, and 2 s of a process's first call."""
RISKY = 64
"""Risky trials that kernels are compiled for at most: each takes up to a second, and maybe a compile."""
MOST_SHARES, CORES_A_SHARE = 4, 4
"""Processes of one target at most, and cores for each: other libraries are compiled meanwhile."""


class CompileRequest(Message):
    """All of a package's kernels for one target. Paths are absolute."""

    library: Path
    """The folder that becomes a library's, with the package's sources and Triton's cache."""
    package: str
    card: Path
    cases: dict[str, dict[str, AxisValue]]
    """Axes by the id of a case or trial. Timed ones first, so that what they launch is known as theirs."""
    timed: frozenset[str]
    """What is not timed is fuzzed: a kernel that cannot be compiled for it is the fuzzer's to report."""
    target: str | None = None
    """Such as "sm_90"; for None nothing is compiled."""
    turn: float = 0.0
    """With which of what @triton.autotune chooses from it begins, as a share. Where that is not 0, it fills the cache
    for another process, which calls the same timed cases and tells what they launch."""


class PackageKernel(Message):
    """One Triton kernel that a timed case launches, compiled for one target and one kind of arguments."""

    name: str
    """With the configuration where there are several, and with the case where an earlier one has the name."""
    target: str
    entry: str
    """Its folder in the cache."""
    case: str
    """The id of the first case that needs it."""
    config: str | None
    """One of several that @triton.autotune chooses from when it measures."""


class Compiled(Message):
    """Reports of a process and of its cases, which are added up."""

    operators: frozenset[str] = frozenset()
    """What the package registered with torch, as "my_ops::scale": sides that share one cannot share a process."""
    imports: tuple[str, ...] = ()
    """The installed modules that importing the package imports, in that order."""
    kernels: tuple[PackageKernel, ...] = ()
    launched: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By target and timed case, as "sm_90/ID", the folders of the cache that its call launches, each once: how often
    and in which order its Python decides. A case is missing where that may depend on more than the build sees."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """By case, what stopped its call, so that its kernels are not in the cache: "my_kernels/swiglu.py:12: …"."""
    error: str | None = None
    """A kernel that a timed case launches has an error, or the package cannot be imported."""
    done: bool = False


def build_package(
    sources: Mapping[str, bytes], card: CardFacts, spec: Package, sha: str | None, limits: TimeLimits
) -> Library:
    """The library of these files, compiled unless the cache holds it."""
    triton = interpreter.installed().triton
    if triton is None:
        say(f"triton is not installed: the kernels of {card.name} are not compiled (pip install triton)")
    asked = (archs.asked() or archs.at_hand()) if triton else ()
    targets = tuple(map(archs.sm, sorted({(target[0], target[1]) for target in asked})))
    counted = followed(sources, spec, card.file.read_bytes())
    decisive = {  # the card decides for which cases kernels are compiled
        "files": counted.digests(sources),
        "card": [card.name, card.sha256],
        "package": spec.name,
        "manifest": sorted(Manifest.model_fields),
        "targets": targets,
        "triton": triton,
        "environment": sorted((name, value) for name, value in os.environ.items() if READ_BY_TRITON.fullmatch(name)),
    }
    follows = not any(UNSEEN.search(sources[name]) for name in counted.whole)
    of = sha[:7] if sha else "the working tree"

    def make(work: Path) -> Built:
        build_cache.write_all(work / PACKAGE, sources)
        (work / CACHE).mkdir()
        file = card.file.absolute()
        of_card = CompileRequest(library=work.absolute(), package=spec.name, card=file, **cases(card))
        made = compile_package(of_card, targets or (None,), limits, of)
        for why, case in {why: case for case, why in reversed(made.skipped.items())}.items():
            say(f"not compiled beforehand of {of}: {case}: {why}")
        code = facts(work / CACHE, made.kernels) if targets else MachineCode((), "it was compiled for no GPU")
        return Built(
            card=card.name,
            kind="package",
            namespace=spec.name,
            operators=tuple(sorted(made.operators)),
            imports=(*made.imports, *(GRADIENT if b"autograd" in file.read_bytes() else ())),
            targets=targets,
            kernels=code.kernels,
            facts_missing=code.missing,
            host=build_cache.digest({**decisive, "files": counted.digests(sources, host=True)}),
            code=_code(work / CACHE, made) if follows else {},
        )

    return build_cache.cached(build_cache.digest(decisive)[:32], make).of(card.name, sha)


def compile_package(
    request: CompileRequest, targets: Sequence[str | None], limits: TimeLimits, of: str = "the working tree"
) -> Compiled:
    """Fills the cache of a library, by a few processes for each target, which share its cases. Raises CompileError at
    the first error, and CannotCompileError past the time limit or where a worker is gone."""
    deadline = time.monotonic() + limits.total_s
    reports: list[Compiled] = []
    shares = _shares(request, targets)
    progress = track(f"compile {request.package} of {of}", len(shares), limit_s=limits.total_s)
    with progress as advance, ExitStack() as stack:
        apart = isolation.of_sources().writing(request.library)
        workers = [stack.enter_context(WorkerProcess(WORKER, apart=apart)) for _ in shares]
        for share, worker in zip(shares, workers, strict=True):
            worker.send(share)
        for at, (share, worker) in enumerate(zip(shares, workers, strict=True)):
            report = Compiled()
            while not report.done:
                try:
                    report = worker.receive(Compiled, max(0.0, deadline - time.monotonic()))
                except WorkerError as error:
                    if time.monotonic() >= deadline:
                        text = f"{request.package} took longer to compile than {limits.total_s:g} s"
                        raise CannotCompileError(text) from None
                    report = _left_out(share, worker, error)
                if report.error is not None:
                    log, name = build_cache.log_of(request.library), f"the package {request.package}"
                    files.write(log, f"{report.error}\n")
                    if broken := toolchain.breakdown(0, (report.error,), request.library):
                        raise CannotCompileError(f"{name} could not be compiled: {broken}")
                    raise CompileError(name, share.target, report.error, log, (report.error,))
                reports.append(report)
            advance(", ".join(dict.fromkeys(str(one.target) for one in shares[at + 1 :])))
    return Compiled(
        operators=frozenset(name for report in reports for name in report.operators),
        imports=tuple(dict.fromkeys(name for report in reports for name in report.imports)),
        kernels=_named(kernel for report in reports for kernel in report.kernels),
        launched=dict(pair for report in reports for pair in report.launched.items()),
        skipped=dict(pair for report in reports for pair in report.skipped.items()),
    )


def _shares(request: CompileRequest, targets: Sequence[str | None]) -> list[CompileRequest]:
    """What each process compiles. All of a target call every timed case, each beginning with another one and with other
    configurations: whoever comes second finds a kernel in the cache."""
    most = max(1, min(MOST_SHARES, (os.cpu_count() or 1) // CORES_A_SHARE, len(request.cases)))
    parts = most if any(targets) else 1
    timed, fuzzed = ([one for one in request.cases if (one in request.timed) is kind] for kind in (True, False))
    ids = [(*timed[at:], *timed[:at], *fuzzed[at::parts]) for at in range(parts)]
    shares = [{"cases": {one: request.cases[one] for one in ids[at]}, "turn": at / parts} for at in range(parts)]
    return [request.model_copy(update={**share, "target": target}) for target in targets for share in shares]


def _named(kernels: Iterable[PackageKernel]) -> tuple[PackageKernel, ...]:
    """Each kernel of a target once, of the first case that has it, by a name of its own."""
    made: dict[tuple[str, str], PackageKernel] = {}
    taken: set[tuple[str, str]] = set()
    for kernel in kernels:
        if (kernel.target, kernel.entry) not in made:
            here = f"{kernel.name} at {kernel.case}"
            names = chain((kernel.name, here), (f"{here} #{number}" for number in count(2)))
            name = next(one for one in names if (kernel.target, one) not in taken)
            taken.add((kernel.target, name))
            made[kernel.target, kernel.entry] = kernel.model_copy(update={"name": name})
    return tuple(made.values())


def _left_out(request: CompileRequest, worker: WorkerProcess, error: WorkerError) -> Compiled:
    """The rest of a target's cases, where a call has ended its process: by taking the CPU's memory for a GPU's, say."""
    if (end := re.match(r"the process (was killed by \w+)", str(error))) is None:
        raise CannotCompileError(f"{request.package} cannot be compiled: {error}") from None
    ids = list(request.cases)
    first = 0 if worker.doing.loading else ids.index(worker.doing.doing)
    place = re.search(rf'File "{SOURCES}/(.+)", line (\d+)', worker.printed())  # faulthandler prints what led there
    why = (f"{place[1]}:{place[2]}: " if place else "") + f"the process that made this call {end[1]}"
    return Compiled(skipped=dict.fromkeys(ids[first:], why), done=True)


def cases(card: CardFacts) -> dict[str, Any]:
    """Every case that may be timed, the target first, what is fuzzed, and of what is risky besides one of each kind."""
    timed = {case.id: case.axes for name, suite in card.suites.items() if name != "cpu" for case in suite}
    listed = fuzz_trials.trials(FUZZ_SEED, card, "cuda")
    known = set(map(_kind, listed))
    risky = {_kind(trial): trial for trial in fuzz_trials.risks(FUZZ_SEED, card, "cuda")}  # none is huge
    new = [trial for kind, trial in risky.items() if kind not in known][:RISKY]
    fuzzed = {trial.id: trial.axes for trial in (*listed, *new)}
    return {"cases": {**timed, **fuzzed, **timed}, "timed": frozenset(timed)}


def _kind(trial: Trial) -> tuple[object, ...]:
    """What Triton may compile another kernel for: words, booleans, whether a number is 1 or a multiple of 16, and its
    power of two, from which block sizes follow. Of the ways of calling one shifts addresses."""
    kinds: dict[str, object] = {}
    for axis, value in trial.axes.items():
        if isinstance(value, int) and not isinstance(value, bool):
            kinds[axis] = value == 1, value % 16 == 0, (value - 1).bit_length()
        elif axis not in (DISTRIBUTION, WAY):
            kinds[axis] = 0.0 if isinstance(value, float) else value
    return (*sorted(kinds.items()), trial.way == OFFSET)


def _code(cache: Path, made: Compiled) -> dict[str, dict[str, str]]:
    """By target and timed case, a digest of all that a call launches."""
    code: dict[str, dict[str, str]] = {}
    for launched, entries in made.launched.items():
        target, _, case = launched.partition("/")
        parts = {"launched": [machine_code.cached_launch(cache / entry) for entry in entries]}
        code.setdefault(target, {})[case] = build_cache.digest(parts)
    return code


def facts(cache: Path, kernels: Sequence[PackageKernel]) -> MachineCode:
    """What is known of the kernels; a missing tool or a damaged file costs all facts. Of one that @triton.autotune
    chooses, nothing: which will run the GPU shows, and that another spills is no fault."""
    if not (wanted := [kernel for kernel in kernels if kernel.config is None]):
        tuned = "@triton.autotune chooses the kernel when it measures"
        return MachineCode((), tuned if kernels else "no Triton kernel was compiled for a timed case")
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda one: machine_code.read_cached(cache / one.entry, one.target, one.name), wanted)
            return MachineCode(tuple(sorted(found, key=lambda kernel: (kernel.target, kernel.name))))
    except KernelgateError as error:
        return MachineCode((), str(error))
