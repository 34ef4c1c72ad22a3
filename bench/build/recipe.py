"""How a card's sources become kernel.so: translation units, flags, and the build.ninja that says so."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kernelgate.bench.build import cache
from kernelgate.bench.build.archs import Target, sm
from kernelgate.bench.build.library import LIBRARY
from kernelgate.bench.build.sources import (
    HOST_UNITS,
    NAMESPACES,
    TARGET_UNIT,
    Extension,
    Sources,
    literal_namespace,
    own_module,
    registered,
)
from kernelgate.bench.build.toolchain import LINKS, NVCC_HOST, Toolchain
from kernelgate.bench.core.errors import UsageError

NINJA_WORD = re.compile(r"(?:--orig_src_path_name=)?\$(?:in|out|gencode)")

# Hidden symbols, and none that are unique in the process: base and head have the same names and must not share statics.
COMPILE = ("-O3", "-std=c++17")
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
        cuda = self.toolchain.cuda if self.targets else None
        parts = {
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in self.sources.files.items()},
            "commands": self._commands([], "g++", self.fixed_namespace or ""),
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

    @property
    def ninja_file(self) -> str:
        """For a folder with the sources, beside the links to the toolchain. Its paths are relative: messages name files
        as the repository does, ccache knows them, and the library is the same wherever it is made."""
        ccache = [str(self.toolchain.ccache)] if self.toolchain.ccache else []
        return self._commands(ccache, str(self.toolchain.gxx), self.namespace)

    def _commands(self, ccache: Sequence[str], gxx: str, namespace: str) -> str:
        """With $CUDAFLAGS after the card's own flags, so that they win. Raises UsageError where they are no words."""
        sources, targets, spec = self.sources, self.targets, self.sources.spec
        text = dict(self.environment).get(CUDA_FLAGS, "")
        try:
            given = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"CUDAFLAGS={text!r} cannot be read as words of a command line: {error}") from None
        registers = [f"-D{macro}={namespace}" for macro in NAMESPACES]
        names = [f"-DKERNELGATE_{sm(key).replace('_', '').upper()}" for key in targets]
        defines = ["-DKERNELGATE_CUDA", *names] if targets else []
        abi = [] if spec.torch else [STABLE_ABI]
        include = ["-isystem", f"{LINKS}/torch/include"]
        if spec.torch:
            include += ["-isystem", f"{LINKS}/torch/include/torch/csrc/api/include"]
            include += ["-isystem", f"{LINKS}/python/include"]
        link = [gxx, "-o", "$out", "$in", f"-L{LINKS}/torch/lib"]
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
            nvcc = [*ccache, f"{LINKS}/cuda/bin/{cuda.nvcc.name}", "-ccbin", f"{LINKS}/{NVCC_HOST}", *NVCC_FLAGS]
            # Where device code does not register operators, ccache need not tell namespaces apart.
            device = [data for name, data in sources.files.items() if not name.endswith(HOST_UNITS)]
            nvcc += defines
            nvcc += registers if any(macro.encode() in data for macro in NAMESPACES for data in device) else []
            # Flags such as -fopenmp are g++'s alone.
            both = ["-forward-unknown-to-host-compiler", *spec.flags] if spec.flags else []
            nvcc += [*abi, *include, *both, *spec.nvcc_flags, *given, *REPRODUCIBLE]
            rules.append(_rule("nvcc", [*nvcc, "$gencode", "-c", "$in", "-o", "$out"]))
        cxx = [*ccache, gxx, *CXX_FLAGS, *defines, *registers, *abi, *include, *spec.flags, "-c", "$in", "-o", "$out"]
        # Last, because some flags, such as -fopenmp, name libraries.
        rules += [_rule("cxx", cxx), _rule("link", [*link, *spec.flags], description="$out")]
        objects = " ".join(_path(f"{unit}.o") for unit in self.units)
        builds = (_compile(unit, targets) for unit in self.units)
        return "\n".join([*rules, *builds, f"build {LIBRARY}: link {objects}", ""])

    def without_contents(self) -> Recipe:
        """The same compilers, targets and environment for empty sources, without the card's flags."""
        spec = Extension(torch=self.sources.spec.torch)
        files = {"empty.cpp": b"", **({"empty.cu": b""} if self.targets else {})}
        return replace(self, sources=replace(self.sources, spec=spec, files=files))

    @property
    def units(self) -> tuple[str, ...]:
        """The translation units, slowest kind first so that no core idles at the end."""
        of_target = self.sources.target_units
        plain = self.sources.plain_units if self.targets else ()
        return (*(unit for key in self.targets for unit in of_target.get(key, ())), *plain, *self.sources.host_units)


def namespace_of(recipe: Recipe) -> str:
    """Where torch.ops will have the operators: sources that can register them where the build asks for it do so. Of
    pybind11 the module's name."""
    literal = literal_namespace(recipe.sources) or own_module(recipe.sources)
    return recipe.namespace if literal is None or registered(recipe.sources) & set(NAMESPACES) else literal


def _compile(unit: str, targets: tuple[Target, ...]) -> str:
    build = f"build {_path(unit)}.o: "
    if not unit.endswith(".cu"):
        return f"{build}cxx {_path(unit)}"
    match = TARGET_UNIT.fullmatch(unit)
    # Of a unit for every target, plain code serves what architecture-specific code of the same capability would.
    every = [one for one in sorted(targets) if len(one) == 2 or (one[0], one[1]) not in targets]
    numbers = [match[1]] if match else [sm(one).removeprefix("sm_") for one in every]
    codes = " ".join(f"-gencode arch=compute_{number},code=sm_{number}" for number in numbers)
    return f"{build}nvcc {_path(unit)}\n  gencode = {codes}"


def _rule(name: str, words: Iterable[str], description: str = "$in") -> str:
    """`words` are quoted for the shell, save those with ninja's own variables, which ninja quotes."""
    command = " ".join(word if NINJA_WORD.fullmatch(word) else shlex.quote(word).replace("$", "$$") for word in words)
    return f"rule {name}\n  command = {command}\n  description = {description}"


def _path(name: str) -> str:
    return re.sub(r"([$ :])", r"$\1", name)
