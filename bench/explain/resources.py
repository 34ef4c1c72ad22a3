"""What the compiler made of a kernel, read from the library with cuobjdump: no GPU, no driver.

The tools come from PATH, from NVIDIA's packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm, or /usr/local/cuda.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path

from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.build.recipe import FOLDER
from kernelgate.bench.errors import KernelgateError, NoDeviceError
from kernelgate.bench.explain.occupancy import GPUS, Occupancy, occupancy
from kernelgate.bench.record import Resources, Side
from kernelgate.bench.system import git

TIMEOUT_S = 120.0

GROUPS: dict[str, tuple[str, ...]] = {
    "HMMA": ("HMMA",),
    "HGMMA": ("HGMMA",),
    "LDGSTS": ("LDGSTS",),
    "UTMALDG": ("UTMALDG",),
    "LDSM": ("LDSM",),
    "LDG": ("LDG",),
    "STG": ("STG",),
    "LDS": ("LDS",),
    "STS": ("STS",),
    "LDL": ("LDL",),
    "STL": ("STL",),
    "MUFU": ("MUFU",),
    "BAR": ("BAR", "SYNCS"),
    "FFMA": ("FFMA",),
    "FMUL": ("FMUL",),
    "FADD": ("FADD",),
    "SHFL": ("SHFL",),
}
"""The instruction mix: what feeds and uses the tensor cores, what spills, what waits. `total` counts everything."""

_FUNCTION = re.compile(r"^\s*Function\s*:\s*(\S+)")
_USAGE = re.compile(r"^\s*Function (\S+):\s*$")
_RESOURCE = re.compile(r"(REG|STACK|SHARED):(\d+)")
_TARGET = re.compile(r"^(?:\s*code for|arch =|\.target)\s+(sm_\d+)", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Z0-9_]+)*)")
_INFO = re.compile(r"^\.nv\.info\.(\S+)")
_THREADS = re.compile(r"Value:\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x([0-9a-f]+)")
_TILE = re.compile(r"using\s+DefaultTile\s*=\s*TileOf<(\d+),\s*(\d+),\s*(\d+),\s*(\d+)>")


@dataclass(frozen=True)
class Tools:
    cuobjdump: Path
    folders: str
    """PATH for it: it starts nvdisasm by itself."""


@dataclass
class _Kernel:
    registers: int | None = None
    stack: int | None = None
    static_shared: int | None = None
    threads: int | None = None
    local_store_bytes: int = 0
    mix: Counter[str] = field(default_factory=Counter)


def find_tools() -> Tools:
    """Raises NoDeviceError saying what to install."""
    folders = [os.environ.get("PATH", "")]
    packages = util.find_spec("nvidia")
    for folder in (packages and packages.submodule_search_locations) or ():
        folders += [str(path) for path in sorted(Path(folder).glob("cu*/bin"), reverse=True)]
    folders += [str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin"))]
    path = os.pathsep.join(folders)
    cuobjdump, nvdisasm = shutil.which("cuobjdump", path=path), shutil.which("nvdisasm", path=path)
    if cuobjdump is None or nvdisasm is None:
        lacking = "cuobjdump" if cuobjdump is None else "nvdisasm"
        raise NoDeviceError(
            f"{lacking} is neither on PATH nor among the Python packages; "
            "pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
        )
    return Tools(Path(cuobjdump), path)


def read(library: Path, side: Side, tools: Tools, source: Path | None = None) -> tuple[Resources, ...]:
    """Every kernel for every target in a library, cubin or program; none where it holds no device code.

    `source` is the csrc/ it was compiled from: dynamic shared memory, which the launch asks for, stands there alone.
    """
    found: list[Resources] = []
    dynamic = dynamic_shared(source) if source is not None else None
    for target in _targets(library, tools):
        kernels = _parse(library, target, tools)
        names = demangled(list(kernels))
        for mangled, kernel in kernels.items():
            found.append(_resources(side, target, names[mangled], kernel, dynamic))
    return tuple(sorted(found, key=lambda one: (one.target, one.kernel)))


def dynamic_shared(csrc: Path) -> int | None:
    """What a launch of the attention kernel asks for: the queries, and K and V of each stage, 128 bytes a row.

    None where the sources do not say it in the way that csrc/fa_s512_tile.h does.
    """
    try:
        text = (csrc / "fa_s512_tile.h").read_text(encoding="utf-8")
    except OSError:
        return None
    match = _TILE.search(text)
    if match is None:
        return None
    queries, keys, _, stages = map(int, match.groups())
    return (queries + 2 * stages * keys) * 128


def _resources(side: Side, target: str, name: str, kernel: _Kernel, dynamic: int | None) -> Resources:
    fits = fitting(target, kernel.threads, kernel.registers, (kernel.static_shared or 0) + (dynamic or 0))
    return Resources(
        side=side,
        target=target,
        kernel=name,
        registers=kernel.registers,
        spill_bytes=kernel.local_store_bytes,
        shared_bytes=None if kernel.static_shared is None else kernel.static_shared + (dynamic or 0),
        static_shared_bytes=kernel.static_shared,
        dynamic_shared_bytes=dynamic,
        stack_bytes=kernel.stack,
        threads=kernel.threads,
        occupancy_pct={gpu: round(one.percent, 2) for gpu, one in fits.items()},
        occupancy_limits={gpu: " and ".join(one.limits) for gpu, one in fits.items()},
        instructions=dict(kernel.mix),
    )


def fitting(target: str, threads: int | None, registers: int | None, shared: int) -> dict[str, Occupancy]:
    """Theoretical occupancy on each GPU that runs the target's code; none where the block's size is unknown."""
    if threads is None or registers is None:
        return {}
    return {gpu.name: occupancy(gpu, threads, registers, shared) for gpu in GPUS.values() if gpu.target == target}


def _targets(library: Path, tools: Tools) -> list[str]:
    listed = _run(tools, "--list-elf", library) if library.suffix != ".cubin" else ""
    targets = re.findall(r"\.(sm_\d+)a?\.cubin", listed)
    if library.suffix == ".cubin":
        targets = _TARGET.findall(_run(tools, "-sass", library))
    return sorted(set(targets))


def _parse(library: Path, target: str, tools: Tools) -> dict[str, _Kernel]:
    arch = () if library.suffix == ".cubin" else ("-arch", target)
    kernels: dict[str, _Kernel] = {}
    _usage(_run(tools, *arch, "--dump-resource-usage", library), target, kernels)
    _sass(_run(tools, *arch, "-sass", library), kernels)
    _launch_bounds(_run(tools, *arch, "-elf", library), kernels)
    return kernels


def _usage(text: str, target: str, kernels: dict[str, _Kernel]) -> None:
    name = None
    for line in text.splitlines():
        if match := _USAGE.match(line):
            name = match[1]
        elif name is not None and "REG:" in line:
            values = {key: int(value) for key, value in _RESOURCE.findall(line)}
            # From sm_90 on the kilobyte that the system takes is counted in.
            system = 1024 if int(target.removeprefix("sm_")) >= 90 and values.get("SHARED", 0) >= 1024 else 0
            kernels[name] = _Kernel(values.get("REG"), values.get("STACK"), values.get("SHARED", 0) - system)
            name = None


def _sass(text: str, kernels: dict[str, _Kernel]) -> None:
    by_opcode = {opcode: group for group, opcodes in GROUPS.items() for opcode in opcodes}
    kernel: _Kernel | None = None
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            kernel = kernels.get(match[1])
        elif kernel is not None and (match := _INSTRUCTION.match(line)):
            opcode, modifiers = match[1], match[2]
            if opcode == "NOP":
                continue  # padding
            kernel.mix["total"] += 1
            if opcode in by_opcode:
                kernel.mix[by_opcode[opcode]] += 1
            if opcode == "STL":
                kernel.local_store_bytes += 16 if ".128" in modifiers else 8 if ".64" in modifiers else 4


def _launch_bounds(text: str, kernels: dict[str, _Kernel]) -> None:
    """The threads of a block, where __launch_bounds__ gives them."""
    kernel: _Kernel | None = None
    wanted = False
    for line in text.splitlines():
        if match := _INFO.match(line):
            kernel = kernels.get(match[1])
        elif "EIATTR_" in line:
            wanted = "EIATTR_MAX_THREADS" in line or "EIATTR_REQNTID" in line
        elif wanted and kernel is not None and (match := _THREADS.search(line)):
            x, y, z = (int(value, 16) for value in match.groups())
            kernel.threads = x * y * z
            wanted = False


def demangled(names: list[str]) -> dict[str, str]:
    """Readable names, without parameters, from c++filt; the mangled ones where it is missing."""
    if not names:
        return {}
    filter_ = shutil.which("c++filt")
    if filter_ is None:
        return {name: name for name in names}
    done = subprocess.run([filter_], input="\n".join(names), capture_output=True, text=True, check=False)
    readable = done.stdout.splitlines()
    if len(readable) != len(names):
        return {name: name for name in names}
    return {name: _short(text) for name, text in zip(names, readable, strict=True)}


def _short(name: str) -> str:
    """`void a::b<T>(int)` as `b<T>`: the return type, the parameters and the namespaces left out."""
    depth, end = 0, len(name)
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0 and not name.startswith("(anonymous", i):
            end = i
            break
    bare = re.sub(r"\((?:[\w:]+)\)(?=\w)", "", name[:end].removeprefix("void "))
    return re.sub(r"(?:\w+|\(anonymous namespace\))::", "", bare)


def _run(tools: Tools, *words: str | Path) -> str:
    environment = {**os.environ, "PATH": tools.folders}
    try:
        done = subprocess.run(
            [tools.cuobjdump, *words], capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise KernelgateError(f"{tools.cuobjdump.name} said nothing for {TIMEOUT_S:.0f} s on {words[-1]}") from None
    if done.returncode != 0 and "does not contain device code" not in done.stderr + done.stdout:
        first = next(_lines(done.stderr), "no message")
        raise KernelgateError(f"{words[-1]}: {tools.cuobjdump.name} cannot read it: {first}")
    return done.stdout


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def of_library(repo: Path, library: Library, side: Side, tools: Tools) -> tuple[Resources, ...]:
    """A compiled side's kernels, with what its launch asks for where this repository has its sources."""
    sha = library.manifest.sha
    if sha is None or not git.has(repo, sha, FOLDER):
        root = git.toplevel(repo) or repo
        return read(library.path, side, tools, root / FOLDER if sha is None else None)
    with git.worktree(repo, sha, FOLDER) as tree:
        return read(library.path, side, tools, tree / FOLDER)


def of_sides(repo: Path, sides: Sides) -> tuple[Resources, ...]:
    """Base and head, each kernel for each target. Raises where the tools are missing or a library cannot be read."""
    tools = find_tools()
    base = of_library(repo, sides.base, "base", tools) if sides.base else ()
    return (*base, *of_library(repo, sides.head, "head", tools))
