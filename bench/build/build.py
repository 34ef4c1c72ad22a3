"""Compiles a card's sources, once: libraries are kept under a hash of everything that decides what they will be.

Needs no GPU. A machine without nvcc compiles the CPU path alone and says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kernelgate.bench.build import archs, cache, machine_code, toolchain
from kernelgate.bench.build.archs import ARCH_LIST, Target, sm
from kernelgate.bench.build.compiler_output import HERE, MAX_LINE, STATUS, CompilerOutput, FirstError, Quoting
from kernelgate.bench.build.library import LIBRARY, SOURCES, Library, Manifest, card_in, content_digest
from kernelgate.bench.build.machine_code import MachineCode
from kernelgate.bench.build.recipe import COMPILER_VARIABLES, Recipe, namespace_of
from kernelgate.bench.build.sources import Sources, files_by_target, literal_namespace, registers_once, target_of
from kernelgate.bench.build.toolchain import Toolchain
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError, OutputError, UsageError
from kernelgate.bench.record import CompilerWarning
from kernelgate.bench.system import cuda_tools, isolation, supervise
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import LIMITS, TimeLimits
from kernelgate.bench.system.worker import open_variables

MAX_SHOWN, MAX_LOG = 400, 64 << 20
"""Lines of compilers' output that are shown, and characters of it that the log has."""
CUDA_HEADER = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]((?:ATen|c10)/cuda/[^>"\n]+)', re.MULTILINE)
FIRST_STABLE = (2, 11)
"""The first torch with a stable ABI that libraries are compiled for."""
TREE = "tree"
"""In the folder where a library is made: the sources, and what compilers make of them."""
SOURCE_TIME_S = 946_684_800
"""When the copies of sources were last changed, for line tables hold that, too: 2000-01-01."""


def build(sources: Sources, sha: str | None, *, namespace: str | None = None, limits: TimeLimits = LIMITS) -> Library:
    """The library of these sources, of the commit `sha`, compiled unless the cache holds it. `namespace`: where
    torch.ops will have the operators, else one from the contents. Raises CompileError where the sources do not compile,
    and another KernelgateError where that cannot be tried."""
    tools = toolchain.find()
    wanted, installed = sources.spec.torch, tools.torch.version
    old = tuple(map(int, installed.split(".")[:2])) < FIRST_STABLE
    if wanted is None and (sources.binding == "pybind" or old):  # it is of one torch, whatever the card says
        sources = replace(sources, spec=sources.spec.of_torch(installed))
    if wanted and wanted != installed and not f"{installed.split('+')[0]}.".startswith(f"{wanted}."):
        raise CannotCompileError(
            f"the card {sources.card} is compiled for torch {wanted}, but torch {installed} is installed "
            "here: install that version, or name the one that will load the library in the card"
        )
    of_cuda = tools.torch.include / "c10/cuda/impl/cuda_cmake_macros.h"  # a torch that is built for the CPU lacks it
    for path, data in () if of_cuda.is_file() else sources.files.items():
        if found := CUDA_HEADER.search(data):
            raise CannotCompileError(
                f"{path} includes {found[1].decode()}, and the torch that is installed here, {installed}, is "
                "built for the CPU: build where a torch with CUDA is installed"
            )
    if sources.binding == "tvm_ffi" and tools.tvm_ffi is None:
        raise CannotCompileError(f"{sources.card} is bound by TVM-FFI, which is missing: pip install apache-tvm-ffi")
    chosen = _targets(sources, tools)
    variables = tuple((name, os.environ[name]) for name in COMPILER_VARIABLES if name in os.environ)
    how = Recipe(sources.for_targets(chosen), chosen, tools, namespace, variables)
    return cache.cached(how.key, lambda work: _compile(how, work, sha, limits)).of(sources.card, sha)


def describe(built: Library) -> str:
    """Such as "rmsnorm of a1b2c3d for sm_89, sm_90: compiled in 11.9 s"."""
    manifest = built.manifest
    how = f"{'cached, ' if built.cached else ''}compiled in {manifest.seconds:.1f} s"
    return f"{_subject(manifest.card, manifest.sha, manifest.targets)}: {how}"


def with_card(built: Library, card: Path) -> Library:
    """The library together with its commit's card, whose contents the cache keeps, too."""
    data = card.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    kept = cache.cache_folder() / "cards" / digest / card.name
    if not kept.exists() or kept.read_bytes() != data:
        try:
            files.write(kept, data)
        except OutputError as error:
            raise cache.not_writable(error) from None
    return replace(built, manifest=built.manifest.model_copy(update={"card_sha256": digest}), card_file=kept)


def export(built: Library, folder: Path) -> Library:
    """A copy of the library in `folder`, to be carried to the machine that measures. Raises OutputError."""
    parts = [part for part in cache.PARTS[built.manifest.kind] if part != LIBRARY]
    held = [file for part in parts for file in sorted((built.folder / part).rglob("*")) if file.is_file()]
    contents = {file.relative_to(built.folder): file.read_bytes() for file in held if "__pycache__" not in file.parts}
    if built.manifest.kind == "extension":
        files.write(folder / LIBRARY, built.path.read_bytes())  # a process may have the old file mapped
    for part in parts:  # what is copied may be this very folder
        shutil.rmtree(folder / part, ignore_errors=True)
    for name, data in contents.items():
        files.write(folder / name, data)
    if built.card is not None:
        files.write(card_in(folder, built.manifest), built.card.read_bytes())
    cache.write_manifest(built.manifest, folder)
    return replace(built, folder=folder, card_file=None)


def _targets(sources: Sources, tools: Toolchain) -> tuple[Target, ...]:
    """What TORCH_CUDA_ARCH_LIST asks for; without it, what serves the L4 and the GPU at hand as far as possible."""
    wanted = archs.asked()
    available = sources.available(wanted or archs.at_hand())
    install = cuda_tools.TOOLS["nvcc"].install
    if wanted:
        if not available:
            return ()  # a kernel for the CPU alone
        if tools.cuda is None:
            raise CannotCompileError(f"{ARCH_LIST} is set, but {tools.cuda_missing}; install it: {install}")
        return archs.demanded(wanted, available, sources.card)
    if available and tools.cuda is None:
        if not sources.host_units:
            raise CannotCompileError(
                f"{sources.card} has CUDA sources alone, but {tools.cuda_missing}; install it: {install}"
            )
        say(f"{tools.cuda_missing}: only the CPU path is compiled (for a GPU: {install})")
        return ()
    gpus = archs.at_hand()
    for major, minor in gpus if available else ():
        if not archs.serving([(major, minor)], available):
            has = ", ".join(map(sm, available))
            say(f"no target of {sources.card} runs on compute capability {major}.{minor}; it has: {has}")
    return archs.serving(gpus, available)


def _compile(how: Recipe, work: Path, sha: str | None, limits: TimeLimits) -> Manifest:
    start = time.monotonic()
    warnings = compile_in(work / TREE, how, sha, limits)
    (work / TREE / LIBRARY).rename(work / LIBRARY)
    cache.write_all(work / SOURCES, how.sources.files)
    seconds, sources, tools = time.monotonic() - start, how.sources, how.toolchain
    code, device = MachineCode((), "it was compiled for the CPU alone"), dict[str, str]()
    if how.targets:
        code = machine_code.facts(work / LIBRARY)
        with suppress(KernelgateError):  # without cuobjdump nothing is known to be the same
            device = machine_code.device_digests(work / LIBRARY)
    objects = [work / TREE / f"{unit}.o" for unit in how.units]
    linked_with = (tools.torch.version, tools.gxx_version, tools.cuda.version if tools.cuda else "")
    named = bool(literal_namespace(sources) or how.fixed_namespace)
    return Manifest(
        card=sources.card,
        binding=sources.binding,
        namespace=namespace_of(how),
        shared_namespace=named if sources.binding == "torch" else registers_once(sources),
        torch=sources.spec.torch and tools.torch.version,
        sha=None,
        targets=tuple(map(sm, how.targets)),
        key=how.key,
        seconds=seconds,
        sha256=content_digest(work, "extension"),
        kernels=code.kernels,
        facts_missing=code.missing,
        warnings=warnings,
        host=machine_code.host_digest(objects, how.namespace, (*sources.spec.flags, *linked_with)),
        code={target: {"": digest} for target, digest in device.items()},
        sources=files_by_target(sources, how.targets),
    )


def _subject(card: str, sha: str | None, names: Sequence[str]) -> str:
    return f"{card} of {sha[:7] if sha else 'the working tree'} for {', '.join(names) or 'the CPU alone'}"


def compile_in(tree: Path, recipe: Recipe, sha: str | None, limits: TimeLimits) -> tuple[CompilerWarning, ...]:
    """Leaves tree/kernel.so; what the compilers warn of. Raises CompileError, or CannotCompileError where it is the
    machine's."""
    name, log = sha[:7] if sha else "the working tree", cache.log_of(tree.parent)
    _write_sources(recipe, tree)
    start = time.monotonic()
    unfinished = [*recipe.units, LIBRARY]
    log.parent.mkdir(parents=True, exist_ok=True)
    output = CompilerOutput(recipe.sources.files.keys(), recipe.namespace)
    quoted = Quoting(recipe.sources.files.keys())
    label = f"compile {_subject(recipe.sources.card, sha, [*map(sm, recipe.targets)])}"
    told = track(label, len(unfinished), alike=False, limit_s=limits.total_s)
    with log.open("w", encoding="utf-8") as file, told as advance:
        shown, kept = 0, 0

        def on_line(line: str) -> None:
            nonlocal shown, kept
            output.read(line)
            kept += len(line) + 1
            if kept <= MAX_LOG:
                print(line, file=file)
            step = STATUS.match(line)
            if step and step["step"] in unfinished:
                unfinished.remove(step["step"])
                advance(_shown(unfinished))
                return
            for told in quoted(line[:MAX_LINE].replace(HERE, "")) if line and shown < MAX_SHOWN else ():
                shown += 1
                more = f" … (what follows is in {log})" if shown == MAX_SHOWN else ""
                say(f"{time.monotonic() - start:6.1f} s  {told}{more}")

        def on_silence(seconds: float) -> None:
            say(f"still compiling {_shown(unfinished)}: silent for {seconds:.0f} s")

        try:
            code = _ninja(recipe, tree, limits, on_line, on_silence)
        except TimeoutError as overdue:
            raise CannotCompileError(
                f"{name} took longer to compile than the limit of {limits.total_s:g} s and was ended; "
                f"unfinished: {_shown(unfinished)}; {overdue} "
                f"(output so far: {log}); `build --time-limit` allows more"
            ) from None
    error = output.error
    if code == 0 and not (tree / LIBRARY).is_file():
        error = FirstError(LIBRARY, f"{LIBRARY}: error: the compilers ended without an error, and made nothing", False)
    elif code == 0:
        return output.warnings
    if broken := error.text if error.broken and code > 0 else toolchain.breakdown(code, (), tree):
        raise CannotCompileError(f"{name} could not be compiled: {broken} (all of it: {log})")
    if not error.in_sources:
        _check_machine(recipe, tree, limits)
    raise CompileError(name, target_of(error.source), error.text, log, error.excerpt)


def _shown(steps: Sequence[str]) -> str:
    """Those that ninja runs first."""
    return " ".join(steps[:4]) + (f" and {len(steps) - 4} more" if steps[4:] else "")


def _ninja(
    recipe: Recipe, tree: Path, limits: TimeLimits, on_line: Callable[[str], None], on_silence: Callable[[float], None]
) -> int:
    """The exit code of ninja in `tree`: $MAX_JOBS compilers at a time, as torch's own builds have it, with messages in
    English and the status that STATUS reads. PWD is what compilers write into line tables in front of relative paths:
    a name of any current folder. Raises UsageError for another MAX_JOBS."""
    jobs = os.environ.get("MAX_JOBS", "")
    if jobs and (not jobs.isdecimal() or int(jobs) == 0):
        raise UsageError(f"MAX_JOBS={jobs!r} is not how many compilers may run at a time: set a number from 1 on")
    environment = {name: value for name, value in open_variables().items() if name != "MAKEFLAGS"}  # its job server
    environment |= {"LC_ALL": "C", "NINJA_STATUS": "[%f/%t] ", "CCACHE_NOHASHDIR": "1"}
    command, apart = [recipe.toolchain.ninja, *(("-j", jobs) if jobs else ())], isolation.of_sources()
    if apart.words:  # bwrap takes PWD for where to start, and sets it anew
        command = ["/usr/bin/env", "PWD=/proc/self/cwd", *command]
    else:
        environment |= {"PWD": "/proc/self/cwd"}
    command = apart.around(command, [tree.parent])
    try:
        return supervise.run(command, cwd=tree, env=environment, limits=limits, on_line=on_line, on_silence=on_silence)
    except OSError as error:
        if str(error.filename) != str(recipe.toolchain.ninja):
            raise
        raise CannotCompileError(f"{recipe.toolchain.ninja} cannot be run: {error.strerror}") from None


def _check_machine(recipe: Recipe, tree: Path, limits: TimeLimits) -> None:
    """Raises CannotCompileError where the same compilers do not even compile sources that are empty."""
    empty = tree.parent / "empty" / TREE
    plain = recipe.without_contents()
    _write_sources(plain, empty)
    output = CompilerOutput(plain.sources.files.keys(), "")
    with suppress(TimeoutError):
        if _ninja(plain, empty, limits, output.read, lambda _: None) == 0 and (empty / LIBRARY).is_file():
            return
    names = " and ".join(name for name, _ in recipe.environment)
    also = f" ({names} are set, which they read)" if names else ""
    raise CannotCompileError(f"this machine's compilers refuse even an empty source: {output.error.text}{also}")


def _write_sources(recipe: Recipe, tree: Path) -> None:
    """And what compiles them."""
    cache.write_all(tree, recipe.sources.files)
    for path in recipe.sources.files:
        os.utime(tree / path, (SOURCE_TIME_S, SOURCE_TIME_S))
    (tree / "build.ninja").write_text(recipe.ninja_file, encoding="utf-8")
    toolchain.link(recipe.toolchain, tree)
