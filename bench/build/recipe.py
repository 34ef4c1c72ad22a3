"""How the kernel's sources become kernel.so: translation units, flags, and the build.ninja that says so."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelgate.bench.build.archs import Target, sm, target
from kernelgate.bench.build.library import LIBRARY
from kernelgate.bench.build.toolchain import Toolchain, anywhere
from kernelgate.bench.errors import NoKernelError

FOLDER = "csrc"
SUFFIXES = frozenset({".cpp", ".cu", ".h", ".cuh"})
TARGET_UNIT = re.compile(rf"{FOLDER}/(?:.+/)?[^/]+_sm(\d{{2,3}}a?)\.cu")

# Hidden symbols, and none that are unique in the process: base and head have the same names and must not share statics.
COMPILE = ("-O3", "-std=c++17")
HOST = ("-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-Wall")
CXX_FLAGS = (*COMPILE, *HOST, "-Wextra", "-DTORCH_TARGET_VERSION=0x020b000000000000")
"""The last one asks torch's headers for the stable ABI of 2.11."""
NVCC_FLAGS = (*COMPILE, "--expt-relaxed-constexpr", "-lineinfo", "-Xcompiler", ",".join(HOST))
LINK_FLAGS = (
    "-shared",
    "-Wl,-z,defs",  # what is undefined is found here rather than when the library is loaded
    "-Wl,-Bsymbolic",
    "-Wl,--exclude-libs,ALL",  # the static CUDA runtime must not be replaced by the one that torch has loaded
    "-Xlinker",
    "--no-as-needed",
    "-ltorch",
    "-Xlinker",
    "--as-needed",
    "-ltorch_cpu",
    "-lc10",
    "-lpthread",
)
CUDA_LINK_FLAGS = ("-l:libcudart_static.a", "-lrt", "-ldl")
# Variables that change what compilers do without standing on their command line.
COMPILER_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


@dataclass(frozen=True)
class Sources:
    """What enters a compile: path below the repository's root -> contents."""

    files: Mapping[str, bytes]

    @property
    def units(self) -> tuple[str, ...]:
        """The translation units that every library has."""
        return tuple(name for name in sorted(self.files) if name.endswith(".cpp"))

    @property
    def target_units(self) -> dict[Target, tuple[str, ...]]:
        """Those of each target."""
        units: dict[Target, tuple[str, ...]] = {}
        for name in sorted(self.files):
            if match := TARGET_UNIT.fullmatch(name):
                key = target(match[1])
                units[key] = (*units.get(key, ()), name)
        return units

    def for_targets(self, targets: Iterable[Target]) -> Sources:
        """Without the translation units of other targets, which must not tell two libraries apart."""
        wanted = set(targets)
        unwanted = {name for key, names in self.target_units.items() if key not in wanted for name in names}
        return Sources({name: contents for name, contents in self.files.items() if name not in unwanted})


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
            "commands": _ninja_file(self.units, self.targets, anywhere(self.toolchain), self.fixed_namespace or ""),
            "environment": self.environment,
            "compilers": [self.toolchain.gxx_version, cuda and cuda.version],
            "torch": self.toolchain.torch.version,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def namespace(self) -> str:
        return self.fixed_namespace or f"fa_s512_{self.key[:12]}"

    @property
    def ninja_file(self) -> str:
        """The build.ninja for a folder that holds the sources.

        Paths in it are relative, so that messages name files as the repository does and ccache knows them anywhere.
        """
        return _ninja_file(self.units, self.targets, self.toolchain, self.namespace)

    @property
    def units(self) -> tuple[str, ...]:
        """What is compiled, slowest kind first so that no core idles at the end."""
        of_target = self.sources.target_units
        return (*(unit for key in self.targets for unit in of_target[key]), *self.sources.units)


def read_sources(tree: Path, name: str) -> Sources:
    """The kernel's sources in a work tree, which errors call `name`. Raises NoKernelError where there are none."""
    paths = (path for path in sorted((tree / FOLDER).rglob("*")) if path.suffix in SUFFIXES and path.is_file())
    sources = Sources({path.relative_to(tree).as_posix(): path.read_bytes() for path in paths})
    if not sources.units:
        raise NoKernelError(f"{name} has no {FOLDER}/**/*.cpp: there is no kernel to compile")
    return sources


def target_of(unit: str) -> str | None:
    """ "sm_89" for csrc/kernel_sm89.cu; None for a translation unit that every library has."""
    match = TARGET_UNIT.fullmatch(unit)
    return sm(target(match[1])) if match else None


def _ninja_file(units: Iterable[str], targets: Iterable[Target], toolchain: Toolchain, namespace: str) -> str:
    defines = [f"-DFA_S512_{sm(key).replace('_', '').upper()}" for key in targets]
    include = ["-isystem", str(toolchain.torch.include)]
    link = [str(toolchain.gxx), "-o", "$out", "$in", f"-L{toolchain.torch.lib}", *LINK_FLAGS]
    ccache = [str(toolchain.ccache)] if toolchain.ccache else []
    rules = []
    if defines and (cuda := toolchain.cuda):
        include += ["-isystem", str(cuda.include)]
        link += [f"-L{cuda.lib}", *CUDA_LINK_FLAGS]
        nvcc = [*ccache, str(cuda.nvcc), "-ccbin", str(toolchain.gxx), *NVCC_FLAGS, *defines]
        rules.append(_rule("nvcc", [*nvcc, "-gencode", "$gencode", "-c", "$in", "-o", "$out"]))
    gxx = [*ccache, str(toolchain.gxx), *CXX_FLAGS, *defines, f"-DKERNELGATE_NAMESPACE={namespace}", *include]
    rules += [_rule("cxx", [*gxx, "-c", "$in", "-o", "$out"]), _rule("link", link, description="$out")]
    objects = " ".join(_path(f"{unit}.o") for unit in units)
    return "\n".join([*rules, *map(_compile, units), f"build {LIBRARY}: link {objects}", ""])


def _compile(unit: str) -> str:
    build = f"build {_path(unit)}.o: "
    match = TARGET_UNIT.fullmatch(unit)
    if match is None:
        return f"{build}cxx {_path(unit)}"
    return f"{build}nvcc {_path(unit)}\n  gencode = arch=compute_{match[1]},code=sm_{match[1]}"


def _rule(name: str, words: Iterable[str], description: str = "$in") -> str:
    """`words` are quoted for the shell, save ninja's own variables, which ninja quotes."""
    command = " ".join(word if word.startswith("$") else shlex.quote(word).replace("$", "$$") for word in words)
    return f"rule {name}\n  command = {command}\n  description = {description}"


def _path(name: str) -> str:
    return re.sub(r"([$ :])", r"$\1", name)
