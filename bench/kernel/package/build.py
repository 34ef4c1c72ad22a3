"""Builds a package's library: its sources, and Triton's cache with its kernels compiled for each target.

Needs no GPU. A machine without Triton, or one that builds for no GPU, copies the sources alone and says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelgate.bench.build import archs, build, package
from kernelgate.bench.build.archs import Target, sm
from kernelgate.bench.build.library import CACHE, PACKAGE, Library, Manifest, content_digest
from kernelgate.bench.build.machine_code import MachineCode
from kernelgate.bench.build.package import PackageKernel
from kernelgate.bench.build.spec import PackageSpec
from kernelgate.bench.core.errors import CompileError, NoKernelError
from kernelgate.bench.kernel import fuzz_list, fuzz_risk
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_domain import OFFSET
from kernelgate.bench.kernel.fuzz_list import DISTRIBUTION, WAY, Trial
from kernelgate.bench.kernel.package.protocol import (
    CompileCase,
    CompiledPackage,
    CompileRequest,
    PackageError,
    compile_package,
)
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import child_environment

SILENCE_S = 5.0
PROBE_S = 120.0
FUZZ_SEED = 0
"""Of the fuzz list that kernels are compiled for: other seeds draw other sizes, of the same kinds mostly."""
RISKY = 64
"""Risky trials that kernels are compiled for at most: each takes up to a second and, where it is of a new kind, the
compiling of a kernel. Huge ones are left out, which take the memory of a GPU, and layouts that only change strides."""


@dataclass(frozen=True)
class PackageRecipe:
    """Everything that decides what a package's library will be."""

    card: CardFacts
    spec: PackageSpec
    files: Mapping[str, bytes]
    targets: tuple[Target, ...]
    triton: str | None

    @property
    def key(self) -> str:
        """The content address: 128 bits. The card decides for which cases kernels are compiled."""
        parts = {
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()},
            "card": [self.card.name, self.card.sha256],
            "package": self.spec.package,
            "targets": [*map(sm, self.targets)],
            "triton": self.triton if self.targets else None,
            "environment": sorted((name, value) for name, value in os.environ.items() if _changes_code(name)),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _changes_code(variable: str) -> bool:
    """Whether Triton reads this variable when it compiles."""
    of_triton = variable.startswith("TRITON_") and variable not in ("TRITON_CACHE_DIR", "TRITON_HOME")
    return of_triton or variable in ("DISABLE_LLVM_OPT", "PTXAS_OPTIONS", "NVPTX_ENABLE_DUMP")


def read_sources(tree: Path, card: str, spec: PackageSpec) -> dict[str, bytes]:
    """The package's files, as `package.sources` has them. Raises NoKernelError naming the card."""
    try:
        return package.sources(tree, spec.package)
    except NoKernelError as error:
        raise NoKernelError(f"the card {card}: {error}") from None


def build_package(
    files: Mapping[str, bytes], card: CardFacts, spec: PackageSpec, sha: str | None, limits: TimeLimits
) -> Library:
    """The library of these files, compiled unless the cache holds it.

    Raises CompileError at a kernel's first error, and another KernelgateError where it cannot be tried.
    """
    triton = package.triton_build()
    targets = _targets(triton, card)
    recipe = PackageRecipe(card, spec, files, targets, triton)
    found = build.cached(recipe.key, lambda entry: _make(recipe, entry, limits))
    return replace(found, manifest=found.manifest.model_copy(update={"sha": sha}))


def _targets(triton: str | None, card: CardFacts) -> tuple[Target, ...]:
    """What TORCH_CUDA_ARCH_LIST asks for, else the L4 and the GPU at hand: Triton compiles for any of them."""
    if triton is None:
        say(f"triton is not installed: the kernels of {card.name} are not compiled (pip install triton)")
        return ()
    asked = archs.parse(os.environ.get(archs.ARCH_LIST, "")) or tuple(sorted({archs.L4, *archs.gpus_at_hand()}))
    plain: set[Target] = {(one[0], one[1]) for one in asked}
    return tuple(sorted(plain))


def _make(recipe: PackageRecipe, entry: Path, limits: TimeLimits) -> Library:
    """Compiles into the cache. The caller holds the entry's lock."""
    work = build.work_folder(entry)
    shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
    try:
        for name, contents in recipe.files.items():
            (work / PACKAGE / name).parent.mkdir(parents=True, exist_ok=True)
            (work / PACKAGE / name).write_bytes(contents)
        (work / CACHE).mkdir()
        begun = time.monotonic()
        made = _compile(recipe, work, limits)
        code = package.facts(work / CACHE) if recipe.targets else MachineCode((), "it was compiled for no GPU")
        manifest = Manifest(
            card=recipe.card.name,
            kind="package",
            namespace=recipe.spec.package,
            operators=made.operators,
            sha=None,
            targets=tuple(map(sm, recipe.targets)),
            key=recipe.key,
            seconds=time.monotonic() - begun,
            sha256=content_digest(work, "package"),
            kernels=code.kernels,
            facts_missing=code.missing,
        )
        build.put_in_place(manifest, work, entry, (PACKAGE, CACHE))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Library(entry, manifest, cached=False)


def _compile(recipe: PackageRecipe, work: Path, limits: TimeLimits) -> CompiledPackage:
    if not recipe.targets:
        return CompiledPackage((), probe(work / PACKAGE, recipe.spec.package), ())
    request = CompileRequest(
        folder=(work / PACKAGE).absolute(),
        package=recipe.spec.package,
        card=recipe.card.file.absolute(),
        cases=tuple(cases(recipe.card)),
        targets=tuple(map(sm, recipe.targets)),
        cache=(work / CACHE).absolute(),
    )
    say(f"compile {recipe.card.name} for {', '.join(request.targets)}")
    begun = last = time.monotonic()

    def on_kernel(kernel: PackageKernel) -> None:
        nonlocal last
        if time.monotonic() - last > SILENCE_S:
            last = time.monotonic()
            say(f"compile {recipe.card.name}: {last - begun:.0f} s, {kernel.name} for {kernel.target}")

    try:
        made = compile_package(request, on_kernel, limits)
    except PackageError as error:
        log = work.parent / "logs" / f"{work.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{error}\n", encoding="utf-8")
        raise CompileError(f"the package {recipe.spec.package}", error.target, str(error), log, (str(error),)) from None
    for one in made.skipped:
        say(f"not compiled beforehand: {', '.join(one.cases[:3])}: {one.place} {one.text}")
    return made


def probe(folder: Path, name: str) -> tuple[str, ...]:
    """What importing the package registers with torch, found in a process of its own; nothing where it cannot be."""
    words = [sys.executable, "-P", "-m", "kernelgate.bench.kernel.package.probe", str(folder), name]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PROBE_S, check=False, env=child_environment()
        )
    except subprocess.TimeoutExpired:
        say(f"importing the package {name} did not end within {PROBE_S:g} s: its operators are not known")
        return ()
    return tuple(json.loads(done.stdout)) if done.returncode == 0 else ()


def cases(card: CardFacts) -> Iterator[CompileCase]:
    """Every case that may be timed, the target first, what is fuzzed, and of what is risky besides one of each kind."""
    timed = {case.id: case for name, suite in card.suites.items() if name != "cpu" for case in suite}
    for case in timed.values():
        yield CompileCase(id=case.id, axes=case.axes, timed=True)
    listed = fuzz_list.trials(FUZZ_SEED, card, "cuda")
    for trial in listed:
        yield CompileCase(id=trial.id, axes=trial.axes, timed=False)
    kinds = {_kind(trial) for trial in listed}
    new = (one for one in fuzz_risk.risks(FUZZ_SEED, card, "cuda") if _kind(one) not in kinds)  # none that is huge
    risky = {_kind(trial): trial for trial in new}
    for trial in list(risky.values())[:RISKY]:
        yield CompileCase(id=trial.id, axes=trial.axes, timed=False)


def _kind(trial: Trial) -> tuple[object, ...]:
    """What Triton may compile another kernel for: words and booleans, and of a number whether it is 1, whether it is a
    multiple of 16, and its power of two, from which block sizes follow. Of the ways of calling one shifts addresses."""
    axes = {axis: value for axis, value in trial.axes.items() if axis not in (DISTRIBUTION, WAY)}
    numbers = {axis: value for axis, value in axes.items() if isinstance(value, int) and not isinstance(value, bool)}
    kinds = {axis: (value == 1, value % 16 == 0, (value - 1).bit_length()) for axis, value in numbers.items()}
    scalars = {axis: 0.0 for axis, value in axes.items() if isinstance(value, float)}
    return (*sorted({**axes, **scalars, **kinds}.items()), trial.way == OFFSET)
