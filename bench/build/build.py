"""Compiles a card's sources, once: libraries are kept under a hash of everything that decides what they will be.

Needs no GPU. A machine without nvcc compiles the CPU path alone and says so.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kernelgate.bench.build import archs, cache, machine_code, toolchain
from kernelgate.bench.build.archs import ARCH_LIST, Target, sm
from kernelgate.bench.build.compiler_output import HERE, MAX_LINE, STATUS, CompilerOutput, FirstError, Quoting
from kernelgate.bench.build.library import LIBRARY, SOURCES, Built, Library, card_in
from kernelgate.bench.build.machine_code import MachineCode
from kernelgate.bench.build.sources import NAMESPACES, TARGET_UNIT, Extension, Sources, target_of
from kernelgate.bench.build.toolchain import LINKS, NVCC_HOST, Toolchain
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import CannotCompileError, CompileError, KernelgateError, OutputError, UsageError
from kernelgate.bench.record import CompilerWarning
from kernelgate.bench.system import cuda_tools, isolation, supervise
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import LIMITS, TimeLimits
from kernelgate.bench.system.worker import open_variables

MAX_SHOWN, MAX_LOG = 400, 64 << 20
"""Lines of compilers' output that are shown, and characters of it that the log has."""
CUDA_MACROS = "c10/cuda/impl/cuda_cmake_macros.h"
"""A torch that is built for the CPU lacks it; all of its headers for CUDA include it."""
NO_CUDA_HEADER = re.compile(rf"{CUDA_MACROS}|\b(?:cuda(_runtime\w*)?|cu(blas|sparse|solver)\w*)\.h: No such file")
"""What compilers say of torch's headers for CUDA where torch is built for the CPU."""
FIRST_STABLE = (2, 11)
"""The first torch with a stable ABI that libraries are compiled for."""
JOB_SERVER = "ninja: Jobserver mode detected"
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
        said = "install that version, or name the one that will load the library in the card"
        text = (
            f"the card {sources.card} is compiled for torch {wanted}, but torch {installed} is installed here: {said}"
        )
        raise CannotCompileError(text)
    if sources.binding == "tvm_ffi" and tools.tvm_ffi is None:
        raise CannotCompileError(f"{sources.card} is bound by TVM-FFI, which is missing: pip install apache-tvm-ffi")
    chosen = _targets(sources, tools)
    variables = tuple((name, os.environ[name]) for name in COMPILER_VARIABLES if name in os.environ)
    how = Recipe(sources.for_targets(chosen), chosen, tools, namespace, variables)
    try:
        return cache.cached(how.key, lambda work: _compile(how, work, sha, limits)).of(sources.card, sha)
    except CompileError as error:
        if (tools.torch.include / CUDA_MACROS).is_file() or not NO_CUDA_HEADER.search(error.first):
            raise
        said = "build where a torch with CUDA is installed, or, for cpu_cases, name in the card the C++ sources alone"
        text = f"{error.first}: the torch that is installed here, {installed}, is built for the CPU: {said}"
        raise CannotCompileError(text) from None


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
    """What TORCH_CUDA_ARCH_LIST asks for; without it, what serves the L4 and the GPU at hand as far as possible. None
    for the CPU alone."""
    wanted, gpus = archs.asked(), archs.at_hand()
    if not (available := sources.available(wanted or gpus)):
        return ()
    if tools.cuda is None:
        missing, install = tools.cuda_missing, cuda_tools.TOOLS["nvcc"].install
        if wanted or not sources.host_units:
            why = f"{ARCH_LIST} is set" if wanted else f"{sources.card} has CUDA sources alone"
            raise CannotCompileError(f"{why}, but {missing}; install it: {install}")
        say(f"{missing}: only the CPU path is compiled (for a GPU: {install})")
        return ()
    if wanted:
        return archs.demanded(wanted, available, sources.card)
    for major, minor in gpus:
        if not archs.serving([(major, minor)], available):
            has = ", ".join(map(sm, available))
            say(f"no target of {sources.card} runs on compute capability {major}.{minor}; it has: {has}")
    return archs.serving(gpus, available)


def _compile(how: Recipe, work: Path, sha: str | None, limits: TimeLimits) -> Built:
    warnings = compile_in(work / TREE, how, sha, limits)
    (work / TREE / LIBRARY).rename(work / LIBRARY)
    cache.write_all(work / SOURCES, how.sources.files)
    sources, tools = how.sources, how.toolchain
    code, device = MachineCode((), "it was compiled for the CPU alone"), dict[str, str]()
    if how.targets:
        code = machine_code.facts(work / LIBRARY)
        with suppress(KernelgateError):  # without cuobjdump nothing is known to be the same
            device = machine_code.device_digests(work / LIBRARY)
    objects = ((work / TREE / f"{unit}.o").read_bytes() for unit in how.units)
    host = machine_code.elf_digest(objects, ".nv_fatbin", how.namespace.encode())  # each build's is another one
    linked_with = (tools.torch.version, tools.gxx_version, tools.cuda.version if tools.cuda else "")
    named = bool(sources.literal_namespace or how.fixed_namespace)
    return Built(
        card=sources.card,
        binding=sources.binding,
        namespace=sources.namespace(how.namespace),
        shared_namespace=named if sources.binding == "torch" else sources.registers_once,
        torch=sources.spec.torch and tools.torch.version,
        targets=tuple(map(sm, how.targets)),
        kernels=code.kernels,
        facts_missing=code.missing,
        warnings=warnings,
        host=hashlib.sha256("\0".join((host, *sources.spec.flags, *linked_with)).encode()).hexdigest(),
        code={target: {"": digest} for target, digest in device.items()},
        sources=sources.files_by_target(how.targets),
    )


def _subject(card: str, sha: str | None, names: Sequence[str]) -> str:
    return f"{card} of {sha[:7] if sha else 'the working tree'} for {', '.join(names) or 'the CPU alone'}"


def compile_in(tree: Path, recipe: Recipe, sha: str | None, limits: TimeLimits) -> tuple[CompilerWarning, ...]:
    """Leaves tree/kernel.so; what compilers warn of. Raises CompileError, or CannotCompileError for the machine."""
    name, log = sha[:7] if sha else "the working tree", cache.log_of(tree.parent)
    _write_sources(recipe, tree)
    start = time.monotonic()
    unfinished = [*recipe.units, LIBRARY]
    log.parent.mkdir(parents=True, exist_ok=True)
    output = CompilerOutput(recipe.sources.files.keys(), recipe.namespace)
    quoted = Quoting(recipe.sources.files.keys())
    label = f"compile {_subject(recipe.sources.card, sha, [*map(sm, recipe.targets)])}"
    told = track(label, len(unfinished), limit_s=limits.total_s)
    with log.open("w", encoding="utf-8") as file, told as advance:
        shown, kept = 0, 0

        def on_line(line: str) -> None:
            nonlocal shown, kept
            if line.startswith(JOB_SERVER):
                return
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

        def ninja(*wanted: str) -> int:
            return _ninja(recipe, tree, limits, on_line, on_silence, wanted)

        try:
            code = _compiled(recipe, tree, ninja, on_line, output)
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


def _compiled(
    recipe: Recipe, tree: Path, ninja: Callable[..., int], on_line: Callable[[str], None], output: CompilerOutput
) -> int:
    """The exit code of ninja, which is called with what it is to make. A unit of several libraries is compiled once:
    this build takes it from the cache, or from the build that is at it, such as the other side's."""
    keys = {unit: recipe.unit_key(unit) for unit in recipe.units}

    def take(units: Iterable[str]) -> set[str]:
        there = set()
        for unit in units:
            if (printed := cache.taken(keys[unit], tree / f"{unit}.o")) is not None:
                there.add(unit)
                for line in (f"[1/1] {unit}", *printed.splitlines()):
                    on_line(line)
        return there

    with cache.claimed(keys.values()) as own:
        there = take(keys)
        elsewhere = [unit for unit, key in keys.items() if unit not in there and key not in own]
        mine = [unit for unit in keys if unit not in there and unit not in elsewhere]
        _write_ninja(recipe, tree, {*there, *elsewhere})
        code = ninja(*(f"{unit}.o" for unit in mine if elsewhere)) if mine or not elsewhere else 0
        for unit in mine if code == 0 else ():
            rule = tree / f"{unit}.o.d"
            if rule.is_file() and _files_read(rule) <= recipe.sources.reached([unit]):
                cache.keep(keys[unit], tree / f"{unit}.o", "\n".join(output.printed.get(unit, ())))
    if code or not elsewhere:
        return code
    for unit in elsewhere:
        cache.wait(keys[unit])
    _write_ninja(recipe, tree, there | take(elsewhere))
    return ninja()


def _files_read(rule: Path) -> set[str]:
    """Of the sources, what a compiler has read, by the rule for make that it wrote of it."""
    words = rule.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").partition(":")[2].split()
    return {name for name in map(posixpath.normpath, words) if not name.startswith(("/", "../"))}


def _shown(steps: Sequence[str]) -> str:
    """Those that ninja runs first."""
    return " ".join(steps[:4]) + (f" and {len(steps) - 4} more" if steps[4:] else "")


def _ninja(
    recipe: Recipe,
    tree: Path,
    limits: TimeLimits,
    on_line: Callable[[str], None],
    on_silence: Callable[[float], None],
    wanted: Sequence[str] = (),
) -> int:
    """The exit code of ninja in `tree`: $MAX_JOBS compilers at a time, as torch's own builds have it, else as many as
    ninja starts, of all builds that run side by side; with messages in English and the status that STATUS reads. PWD is
    what compilers write into line tables in front of relative paths: a name of any current folder. Raises UsageError
    for another MAX_JOBS."""
    jobs, server = os.environ.get("MAX_JOBS", ""), supervise.job_server()
    if jobs and (not jobs.isdecimal() or int(jobs) == 0):
        raise UsageError(f"MAX_JOBS={jobs!r} is not how many compilers may run at a time: set a number from 1 on")
    environment = {name: value for name, value in open_variables().items() if name != "MAKEFLAGS"}  # its job server
    environment |= {"LC_ALL": "C", "NINJA_STATUS": "[%f/%t] ", "CCACHE_NOHASHDIR": "1"}
    if server and not jobs:
        environment["MAKEFLAGS"] = f"--jobserver-auth=fifo:{server}"
    command, apart = [recipe.toolchain.ninja, *(("-j", jobs) if jobs else ()), *wanted], isolation.of_sources()
    if apart.words:  # bwrap takes PWD for where to start, and sets it anew
        command = ["/usr/bin/env", "PWD=/proc/self/cwd", *command]
    else:
        environment |= {"PWD": "/proc/self/cwd"}
    command = apart.writing(tree.parent, *([server] if server else ())).around(command)
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
    _write_ninja(plain, empty)
    output = CompilerOutput(plain.sources.files.keys(), "")
    with suppress(TimeoutError):
        if _ninja(plain, empty, limits, output.read, lambda _: None) == 0 and (empty / LIBRARY).is_file():
            return
    names = " and ".join(name for name, _ in recipe.environment)
    also = f" ({names} are set, which they read)" if names else ""
    raise CannotCompileError(f"this machine's compilers refuse even an empty source: {output.error.text}{also}")


def _write_sources(recipe: Recipe, tree: Path) -> None:
    """And the links to what compiles them."""
    cache.write_all(tree, recipe.sources.files)
    for path in recipe.sources.files:
        os.utime(tree / path, (SOURCE_TIME_S, SOURCE_TIME_S))
    toolchain.link(recipe.toolchain, tree)


def _write_ninja(recipe: Recipe, tree: Path, there: Collection[str] = ()) -> None:
    (tree / "build.ninja").write_text(recipe.ninja_file(there), encoding="utf-8")


# ---- The recipe: translation units, flags, and the build.ninja that says so ------------------------------------------

NINJA_WORD = re.compile(r"(?:--orig_src_path_name=)?\$(?:in|out(?:\.d)?|gencode|defined)")
FILES = ("-MD", "-MF", "$out.d", "-c", "$in", "-o", "$out")

# Hidden symbols, and none that are unique in the process: base and head have the same names and must not share statics.
STANDARD, CLASSIC_STANDARD = "-std=c++17", "-std=c++20"
"""Torch's classic headers take no older one from 2.14 on, and torch compiles whatever includes them by it."""
COMPILE = ("-O3", STANDARD)
HOST = ("-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-Wall")
CXX_FLAGS = (*COMPILE, *HOST, "-Wextra")
STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020b000000000000"
"""Asks torch's headers for the stable ABI of 2.11."""
NVCC_FLAGS = (*COMPILE, "--expt-relaxed-constexpr", "-lineinfo", "-Xcompiler", ",".join(HOST))
# Intermediate files have names in the library: beside the object, they bear its name rather than a process's number.
# And what is local to a unit is named after the unit's path, which otherwise is absolute.
REPRODUCIBLE = ("--objdir-as-tempdir", "-Xcudafe", "--orig_src_path_name=$in")
LINK_FLAGS = (
    "-shared",
    "-Wl,-z,defs",  # what is undefined is found here rather than when the library is loaded
    "-Wl,-Bsymbolic",
    "-Wl,--exclude-libs,ALL",  # the static CUDA runtime must not be replaced by the one that torch has loaded
    *("-Xlinker", "--no-as-needed", "-ltorch", "-Xlinker", "--as-needed"),
    *("-ltorch_cpu", "-lc10", "-lpthread"),
)
CUDA_LINK_FLAGS = ("-l:libcudart_static.a", "-lrt", "-ldl")
CLASSIC_LINK_FLAGS = ("-ltorch_python",)
CUDA_FLAGS = "CUDAFLAGS"
"""The variable with further words for nvcc, as CMake and make know it."""
# Variables that change what compilers do: the others do so without standing on their command line.
COMPILER_VARIABLES = (
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", CUDA_FLAGS),
)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what kernel.so will be."""

    sources: Sources
    targets: tuple[Target, ...]
    toolchain: Toolchain
    fixed_namespace: str | None
    """None: taken from the key, so that equal sources are compiled once whichever side they are."""
    environment: tuple[tuple[str, str], ...]
    """Those of COMPILER_VARIABLES that are set."""

    @cached_property
    def key(self) -> str:
        """The content address: 128 bits over sources, commands and compilers. No path of this machine enters it."""
        fixed = self.fixed_namespace or ""
        return self._digest(self.sources.files, [fixed, self._commands([], "g++", fixed)])

    def unit_key(self, unit: str) -> str:
        """The same of one unit's object. With the flags of all, for a flag can have a compiler run a file."""
        rules = self._rules([], "g++")
        return self._digest(self.sources.reached([unit]), [*rules, self._unit(unit, self.namespace)])

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.sources.files.items()}

    def _digest(self, files: Iterable[str], commands: object) -> str:
        cuda = self.toolchain.cuda if self.targets else None
        parts = {
            "files": {name: self._digests[name] for name in files},
            "commands": commands,
            "environment": self.environment,
            "compilers": [self.toolchain.gxx_version, cuda and cuda.version],
            "torch": self.toolchain.torch.version,
        }
        if self.sources.spec.torch:  # with Python's own headers, of which each version has others
            parts["python"] = self.toolchain.torch.python_include.name
        if self.sources.binding == "tvm_ffi" and self.toolchain.tvm_ffi:
            parts["tvm_ffi"] = self.toolchain.tvm_ffi.version
        return cache.digest(parts)[:32]

    @property
    def namespace(self) -> str:
        return self.fixed_namespace or f"kernel_{self.key[:12]}"  # several cards may name one build

    def ninja_file(self, there: Collection[str] = ()) -> str:
        """For a folder with the sources, beside the links to the toolchain, and the objects of the units that are
        `there`. Its paths are relative: messages name files as the repository does, ccache knows them, and the library
        is the same wherever it is made."""
        ccache = [str(self.toolchain.ccache)] if self.toolchain.ccache else []
        return self._commands(ccache, str(self.toolchain.gxx), self.namespace, there)

    def _commands(self, ccache: Sequence[str], gxx: str, namespace: str, there: Collection[str] = ()) -> str:
        objects = " ".join(_path(f"{unit}.o") for unit in self.units)
        builds = (self._unit(unit, namespace) for unit in self.units if unit not in there)
        return "\n".join([*self._rules(ccache, gxx), *builds, f"build {LIBRARY}: link {objects}", ""])

    @cached_property
    def _naming(self) -> frozenset[str]:
        """The units that may register operators, as far as can be told; others are the same in every library."""
        files = self.sources.files
        naming = {name for name, data in files.items() if any(macro.encode() in data for macro in NAMESPACES)}
        return frozenset(self.units if naming - set(self.units) else naming)

    def _unit(self, unit: str, namespace: str) -> str:
        defined = " ".join(f"-D{macro}={namespace}" for macro in NAMESPACES if unit in self._naming)
        return _unit(unit, self.targets, defined)

    def _rules(self, ccache: Sequence[str], gxx: str) -> list[str]:
        """With $CUDAFLAGS after the card's own flags, so that they win. Raises UsageError where they are no words."""
        sources, targets, spec = self.sources, self.targets, self.sources.spec
        text = dict(self.environment).get(CUDA_FLAGS, "")
        try:
            given = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"CUDAFLAGS={text!r} cannot be read as words of a command line: {error}") from None
        names = [f"-DKERNELGATE_{sm(key).replace('_', '').upper()}" for key in targets]
        defines = ["-DKERNELGATE_CUDA", *names] if targets else []
        abi = [] if spec.torch else [STABLE_ABI]
        include = ["-isystem", f"{LINKS}/torch/include"]
        if spec.torch:
            include += ["-isystem", f"{LINKS}/torch/include/torch/csrc/api/include"]
            include += ["-isystem", f"{LINKS}/python/include"]
        link = [gxx, "-o", "$out", "$in", f"-L{LINKS}/torch/lib"]
        standard = {STANDARD: CLASSIC_STANDARD} if spec.torch else {}
        nvcc_flags, cxx_flags = ([standard.get(one, one) for one in flags] for flags in (NVCC_FLAGS, CXX_FLAGS))
        if sources.binding == "tvm_ffi" and self.toolchain.tvm_ffi:
            include += ["-isystem", f"{LINKS}/tvm_ffi/include"]
            link += [f"-L{LINKS}/tvm_ffi/lib", "-Xlinker", "--no-as-needed", "-ltvm_ffi", "-Xlinker", "--as-needed"]
        # Python's own symbols come from the interpreter that loads the library.
        link += [*LINK_FLAGS[:1], *LINK_FLAGS[2:], *CLASSIC_LINK_FLAGS] if spec.torch else LINK_FLAGS
        rules = []
        if targets and (cuda := self.toolchain.cuda):
            include += ["-isystem", f"{LINKS}/cuda/include"]
            others = [one for one in self.toolchain.torch.wheels if spec.torch and one != cuda.include]
            include += [word for one in others for word in ("-isystem", f"{LINKS}/wheels/{one.parent.name}")]
            link += [f"-L{LINKS}/cuda/lib", *CUDA_LINK_FLAGS]
            nvcc = [*ccache, f"{LINKS}/cuda/bin/{cuda.nvcc.name}", "-ccbin", f"{LINKS}/{NVCC_HOST}", *nvcc_flags]
            nvcc += [*defines, "$defined"]
            # Flags such as -fopenmp are g++'s alone.
            both = ["-forward-unknown-to-host-compiler", *spec.flags] if spec.flags else []
            nvcc += [*abi, *include, *both, *spec.nvcc_flags, *given, *REPRODUCIBLE]
            rules.append(_rule("nvcc", [*nvcc, "$gencode", *FILES]))
        cxx = [*ccache, gxx, *cxx_flags, *defines, "$defined", *abi, *include, *spec.flags, *FILES]
        # Last, because some flags, such as -fopenmp, name libraries.
        return [*rules, _rule("cxx", cxx), _rule("link", [*link, *spec.flags], description="$out")]

    def without_contents(self) -> Recipe:
        """The same compilers, targets and environment for empty sources, without the card's flags."""
        spec = Extension(torch=self.sources.spec.torch)
        files = {"empty.cpp": b"", **({"empty.cu": b""} if self.targets else {})}
        return replace(self, sources=replace(self.sources, spec=spec, files=files))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The translation units, slowest kind first so that no core idles at the end."""
        of_target = self.sources.target_units
        plain = self.sources.plain_units if self.targets else ()
        return (*(unit for key in self.targets for unit in of_target.get(key, ())), *plain, *self.sources.host_units)


def _unit(unit: str, targets: tuple[Target, ...], defined: str) -> str:
    build, defines = f"build {_path(unit)}.o: ", f"\n  defined = {defined}"
    if not unit.endswith(".cu"):
        return f"{build}cxx {_path(unit)}{defines}"
    match = TARGET_UNIT.fullmatch(unit)
    # Of a unit for every target, plain code serves what architecture-specific code of the same capability would.
    every = [one for one in sorted(targets) if len(one) == 2 or (one[0], one[1]) not in targets]
    numbers = [match[1]] if match else [sm(one).removeprefix("sm_") for one in every]
    codes = " ".join(f"-gencode arch=compute_{number},code=sm_{number}" for number in numbers)
    return f"{build}nvcc {_path(unit)}{defines}\n  gencode = {codes}"


def _rule(name: str, words: Iterable[str], description: str = "$in") -> str:
    """`words` are quoted for the shell, save those with ninja's own variables, which ninja quotes."""
    command = " ".join(word if NINJA_WORD.fullmatch(word) else shlex.quote(word).replace("$", "$$") for word in words)
    return f"rule {name}\n  command = {command}\n  description = {description}"


def _path(name: str) -> str:
    return re.sub(r"([$ :])", r"$\1", name)
