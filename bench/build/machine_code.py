"""What the compiler made of each kernel, read from the library with cuobjdump: no GPU, no driver.

What a launch asks for stands in no machine code; the library itself may say it (`launches_in`).

Also, by digests, whether two builds are the same machine code. Line tables do not count: a comment moves them. A case
need not be measured where everything that decides its call is equal on both sides: of an extension the host's part of
every object, and all device code for the GPU's target, for which kernels a call launches cannot be known without a GPU;
of a package, case by case, the Python that is followed without the bodies of @triton.jit functions, and the cubins that
the call launches, every configuration of an autotuner among them, as the build's own calls have shown them
(triton_compile.py says when they do not show it). Of a project's own build nothing is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kernelgate.bench.core import hardware
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.core.hardware import SmLimits
from kernelgate.bench.record import KernelFacts
from kernelgate.bench.system import cuda_tools

TIMEOUT_S = 120.0

COUNTED = frozenset(
    {"HMMA", "HGMMA", "LDGSTS", "UTMALDG", "LDSM", "LDG", "STG", "LDS", "STS", "LDL", "STL"}
    | {"MUFU", "BAR", "SYNCS", "FFMA", "FMUL", "FADD", "SHFL"}
)
"""The instruction mix: what feeds and uses the tensor cores, what spills, what waits. `total` counts everything."""

_FUNCTION = re.compile(r"^\s*Function\s*:\s*(\S+)", re.MULTILINE)
_USAGE = re.compile(r"^\s*Function (\S+):\s*\n(.*REG:.*)", re.MULTILINE)
_RESOURCE = re.compile(r"(REG|STACK|SHARED):(\d+)")
_TARGET = re.compile(r"^(?:\s*code for|arch =|\.target)\s+(sm_\d+a?)", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
_SPILL = re.compile(r"\bSTL((?:\.[A-Z0-9_]+)*)\s+\[R1(?:\+0x[0-9a-f]+)?\], R(?!Z)")
"""A store of a register to a fixed place of the stack, whose pointer is R1: its bytes are ptxas's "spill stores". Other
stores to local memory are to arrays that are indexed at run time, which no register could hold, or zero these."""
_INFO = re.compile(r"^\.nv\.info\.(\S+)", re.MULTILINE)
_THREADS = re.compile(
    r"EIATTR_(?:MAX_THREADS|REQNTID)(?:(?!EIATTR_)[\s\S])*?Value:\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x([0-9a-f]+)"
)


@dataclass(frozen=True)
class MachineCode:
    kernels: tuple[KernelFacts, ...]
    missing: str | None = None


def facts(library: Path) -> MachineCode:
    """What is known of a library's kernels. A missing tool or a damaged file costs the facts, not the library."""
    try:
        found = read(library, launches_in(library.read_bytes()))
    except KernelgateError as error:
        return MachineCode((), str(error))
    return MachineCode(found, None if found else "the library holds no device code")


def read(library: Path, launched: Sequence[LaunchFacts] = ()) -> tuple[KernelFacts, ...]:
    """Every kernel for every target in a library, cubin or program. Raises KernelgateError."""
    if library.suffix == ".cubin":
        targets = _TARGET.findall(_run("-sass", library))
    else:
        targets = re.findall(r"\.(sm_\d+a?)\.cubin", _run("--list-elf", library))
    found: list[KernelFacts] = []
    for target in sorted(set(targets)):
        listed = _USAGE.findall(_dump(library, target, "--dump-resource-usage"))
        usage = {name: {key: int(value) for key, value in _RESOURCE.findall(used)} for name, used in listed}
        instructions = _by_function(_FUNCTION, _dump(library, target, "-sass"))
        bounds = _by_function(_INFO, _dump(library, target, "-elf"))
        names = demangled(list(usage))
        for mangled, used in usage.items():
            launch = launch_of(launched, names[mangled], target)
            mix, spills = _instructions(instructions.get(mangled, ""))
            bound = _THREADS.search(bounds.get(mangled, ""))  # where __launch_bounds__ gives them
            threads = prod(int(value, 16) for value in bound.groups()) if bound else None
            # From sm_90 on the kilobyte that the system takes is counted in.
            counted = int(re.sub(r"\D", "", target)) >= 90 and used.get("SHARED", 0) >= SYSTEM_SHARED
            found.append(
                KernelFacts(
                    target=target,
                    name=_short(names[mangled]),
                    registers=used.get("REG"),
                    spill_bytes=spills,
                    static_shared_bytes=used.get("SHARED", 0) - (SYSTEM_SHARED if counted else 0),
                    dynamic_shared_bytes=launch.dynamic_shared_bytes if launch else None,
                    stack_bytes=used.get("STACK"),
                    threads=(launch.threads if launch else 0) or threads,
                    instructions=dict(mix),
                )
            )
    return tuple(sorted(found, key=lambda kernel: (kernel.target, kernel.name)))


def _triton_kernel(entry: Path) -> tuple[Path, dict[str, Any]]:
    """The machine code of a folder of Triton's cache, and what Triton says of it."""
    [cubin] = entry.glob("*.cubin")
    return cubin, json.loads(cubin.with_suffix(".json").read_bytes())


def read_cached(entry: Path, target: str, name: str) -> KernelFacts:
    """The kernel of a folder of Triton's cache, which compiles sm_90a for sm_90. Raises KernelgateError."""
    cubin, told = _triton_kernel(entry)
    found = read(cubin)
    if len(found) != 1:
        raise KernelgateError(f"{cubin} has {len(found)} kernels, where Triton writes one")
    changed = {"dynamic_shared_bytes": told["shared"], "threads": WARP * told["num_warps"]}
    return found[0].model_copy(update={"target": target, "name": name, **changed})


def cached_launch(entry: Path) -> list[Any]:
    """What tells launches of Triton's kernels apart: a digest of the machine code, and how it is launched."""
    cubin, told = _triton_kernel(entry)
    return [elf_digest([cubin.read_bytes()], NO_CODE), {**told, "hash": None}]


NO_CODE = "debug"
"""What a part of the name of a section says that holds lines, and no code."""


def device_digests(library: Path) -> dict[str, str]:
    """Of all machine code that a library has, by its targets. Raises KernelgateError as `read` does."""
    with tempfile.TemporaryDirectory(prefix="kernelgate-cubins-") as folder:
        _run("-xelf", "all", library.absolute(), cwd=Path(folder))
        cubins = sorted(Path(folder).glob("*.cubin"), key=lambda path: (len(path.name), path.name))
        held: dict[str, list[bytes]] = {}
        for path in cubins:
            held.setdefault(path.name.split(".")[-2], []).append(path.read_bytes())
    return {target: elf_digest(code, NO_CODE) for target, code in held.items()}


def _dump(library: Path, target: str, what: str) -> str:
    """What cuobjdump prints for just this target: it takes sm_90 for sm_90a too."""
    if library.suffix == ".cubin":
        return _run(what, library)
    parts = re.split(r"^Fatbin elf code:$", _run("-arch", target, what, library), flags=re.MULTILINE)
    return "".join(part for part in parts if re.search(rf"^arch = {target}$", part, re.MULTILINE))


def _by_function(heading: re.Pattern[str], text: str) -> dict[str, str]:
    """What stands below each heading that names a function."""
    _, *parts = heading.split(text)
    found: dict[str, str] = {}
    for name, below in zip(parts[::2], parts[1::2], strict=True):  # several units may hold one template's instance
        found[name] = found.get(name, "") + below
    return found


def _instructions(text: str) -> tuple[Counter[str], int]:
    """The mix, and the bytes of registers that are spilled."""
    mix = Counter[str]()
    for opcode in _INSTRUCTION.findall(text):
        if opcode == "NOP":
            continue  # padding
        mix["total"] += 1
        if opcode in COUNTED:
            mix["BAR" if opcode == "SYNCS" else opcode] += 1
    return mix, sum(16 if ".128" in wide else 8 if ".64" in wide else 4 for wide in _SPILL.findall(text))


def demangled(names: list[str]) -> dict[str, str]:
    """Readable names, without return types and parameters, from c++filt; the mangled ones without it."""
    try:
        given = "\n".join(names)
        done = subprocess.run(["c++filt"], input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        return {name: _without_parameters(text) for name, text in zip(names, done.stdout.splitlines(), strict=True)}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {name: name for name in names}


def short_names(names: Iterable[str]) -> dict[str, str]:
    """As `KernelFacts` has them, of names that are mangled, or demangled with all that they have."""
    listed = list(dict.fromkeys(names))
    readable = demangled([name for name in listed if name.startswith("_Z")])
    return {name: _short(readable.get(name) or _without_parameters(name)) for name in listed}


def _without_parameters(name: str) -> str:
    """`void a::b<T>(int)` as `a::b<T>`."""
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0 and not name.startswith("(anonymous", i):
            name = name[:i]
            break
    return name.removeprefix("void ")


def _short(name: str) -> str:
    """`a::b<a::T, (a::E)1>` as `b<T, 1>`: without namespaces and casts."""
    return re.sub(r"\(\w+\)(?=-?\w)", "", re.sub(r"(?:\w+|\(anonymous namespace\))::", "", name))


def _run(*words: str | Path, cwd: Path | None = None) -> str:
    beside = cuda_tools.find("nvdisasm").parent  # cuobjdump starts it by itself
    environment = {**os.environ, "PATH": os.pathsep.join((os.environ.get("PATH", ""), str(beside)))}
    command = [cuda_tools.find("cuobjdump"), *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False, cwd=cwd
        )
    except subprocess.TimeoutExpired:
        raise KernelgateError(f"cuobjdump did not end within {TIMEOUT_S:.0f} s on {words[-1]}") from None
    if done.returncode != 0 and "does not contain device code" not in done.stderr + done.stdout:
        first = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "no message")
        raise KernelgateError(f"{words[-1]}: cuobjdump cannot read it: {first}")
    return done.stdout


WARP = 32
REGISTERS_PER_WARP_UNIT = 256
MAX_REGISTERS = 255
SCHEDULERS = 4
SHARED_UNIT = 128
SYSTEM_SHARED = 1024
MAX_THREADS = 1024


@dataclass(frozen=True)
class Occupancy:
    blocks: int
    """Resident on one multiprocessor; 0 where not even one fits."""
    warps: int
    percent: float
    limits: tuple[str, ...]


def occupancy(device: SmLimits, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Theoretical occupancy of blocks of `threads`, with registers per thread and static plus dynamic shared memory."""
    if not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"a block has 1 to {MAX_THREADS} threads, got {threads}")
    if not 0 <= registers <= MAX_REGISTERS:
        raise UsageError(f"a thread has at most {MAX_REGISTERS} registers, got {registers}")
    warps = -(-threads // WARP)
    of_warp = -(-registers * WARP // REGISTERS_PER_WARP_UNIT) * REGISTERS_PER_WARP_UNIT
    of_block = -(-(shared_bytes + SYSTEM_SHARED) // SHARED_UNIT) * SHARED_UNIT
    allowed = {
        "warps": device.warps // warps,
        "blocks": device.blocks,
        "registers": device.registers // of_warp // SCHEDULERS * SCHEDULERS // warps if registers else device.registers,
        "shared memory": 0 if shared_bytes > device.block_shared_bytes else device.shared_bytes // of_block,
    }
    blocks = min(allowed.values())
    limits = tuple(name for name, count in allowed.items() if count == blocks)
    return Occupancy(blocks, blocks * warps, 100 * blocks * warps / device.warps, limits)


def with_occupancy(kernel: KernelFacts) -> KernelFacts:
    """The kernel with its occupancy on each GPU of its target, where threads, registers and shared memory are known:
    without a word of it, dynamic shared memory may be none or all."""
    if kernel.threads is None or kernel.registers is None or kernel.static_shared_bytes is None:
        return kernel
    if kernel.dynamic_shared_bytes is None or not 1 <= kernel.threads <= MAX_THREADS:
        return kernel
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    fits = {
        name: occupancy(limits, kernel.threads, min(kernel.registers, MAX_REGISTERS), shared)
        for name, limits in hardware.running(kernel.target).items()
    }
    percent = {name: round(one.percent, 2) for name, one in fits.items()}
    limited = {name: " and ".join(one.limits) for name, one in fits.items()}
    return kernel.model_copy(update={"occupancy_pct": percent, "occupancy_limits": limited})


# ---- Sections of an ELF file: a library, an object, or a cubin -------------------------------------------------------

_HEADER = struct.Struct("<40xQ10xHHH")
"""Of the file header: where the section headers begin, the size of one, how many, and which one holds the names."""
_SECTION = struct.Struct("<II16xQQ24x")
"""Of a section header: its name's place among the names, its type, its offset and size in the file."""


def elf_sections(file: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Name, content and size of each, in order. Raises KernelgateError for what is no whole 64-bit ELF file."""
    if not file.startswith(b"\x7fELF\x02\x01"):
        raise KernelgateError("not a 64-bit ELF file")
    try:
        start, size, count, names_at = _HEADER.unpack_from(file)
        headers = [_SECTION.unpack_from(file, start + size * index) for index in range(count)]
        names = headers[names_at][2] if headers else 0
        for label, kind, offset, length in headers:
            begin = names + label
            name = file[begin : file.index(b"\0", begin)].decode(errors="replace")
            held = 0 if kind == 8 else length  # SHT_NOBITS: it has a size and no content
            if offset + held > len(file):
                raise KernelgateError(f"section {name} lies beyond the end of the file")
            yield name, file[offset : offset + held], length
    except (struct.error, IndexError, ValueError):
        raise KernelgateError("the section table is damaged") from None


def elf_digest(files: Iterable[bytes], left_out: str, hidden: bytes = b"") -> str:
    """The sha256 over the sections of several files, in order. `left_out`: a part of names of sections that do not
    count. `hidden`: a name that differs between builds of the same code, such as that of a namespace."""
    whole = hashlib.sha256()
    for file in files:
        for name, content, size in elf_sections(file):
            if left_out not in name:
                shown = content.replace(hidden, b"\0" * len(hidden)) if hidden else content
                whole.update(f"{name}\0{size}\0{hashlib.sha256(shown).hexdigest()}\0".encode())
        whole.update(b"\0")
    return whole.hexdigest()


# ---- What a library says of its launches: dynamic shared memory and threads, which the compiler never learns ---------
# A translation unit may put records into a section of the library, which is read, never loaded. They are constants of
# 128 bytes, little-endian, without pointers. docs/CUDA_COOKBOOK.md ("Occupancy") names the header with their layout and
# the macro.
#
# A plain identifier is the kernel's own name and means every instance of the template: `rms_norm`. Anything else counts
# where it stands in the demangled name: `gemm<Sm90, 1, false>` is one instance. Of several records for a kernel, the
# longest text counts, then the one that names the target, then the most shared memory.

LAUNCH_SECTION = "kernelgate_launches"
LAUNCH_VERSION = 1
LAUNCH_RECORD = struct.Struct("<112s4i")


@dataclass(frozen=True)
class LaunchFacts:
    kernel: str
    target: int
    dynamic_shared_bytes: int
    threads: int


def launches_in(library: bytes) -> tuple[LaunchFacts, ...]:
    """The records in an ELF file; none where it has no such section. Raises KernelgateError for what is malformed."""
    content = next((held for name, held, _ in elf_sections(library) if name == LAUNCH_SECTION), b"")
    if len(content) % LAUNCH_RECORD.size:
        raise KernelgateError(f"section {LAUNCH_SECTION} holds {len(content)} bytes, which are no whole records")
    found = []
    for kernel, version, *numbers in LAUNCH_RECORD.iter_unpack(content):
        name = kernel.split(b"\0", 1)[0].decode("utf-8", errors="replace")
        if version != LAUNCH_VERSION or not name or min(numbers) < 0:
            said = f"version {version}, kernel {name!r}, {', '.join(map(str, numbers))}"
            raise KernelgateError(f"section {LAUNCH_SECTION} holds a record that makes no sense here: {said}")
        found.append(LaunchFacts(name, *numbers))
    return tuple(found)


def launch_of(launches: Sequence[LaunchFacts], name: str, target: str) -> LaunchFacts | None:
    """What is said of a kernel by its demangled name, without return type and parameters; None where nothing is."""
    number = int(target.removeprefix("sm_").removesuffix("a"))
    fitting = [one for one in launches if one.target in (0, number) and _names(one.kernel, name)]
    return max(fitting, key=lambda one: (len(one.kernel), one.target, one.dynamic_shared_bytes), default=None)


def _names(text: str, demangled: str) -> bool:
    """Namespaces, casts and spaces aside."""
    wanted, own = (re.sub(r"\s", "", _short(one)) for one in (text, demangled))
    if wanted.isidentifier():
        return wanted == own.partition("<")[0]
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", own) is not None
