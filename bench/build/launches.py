"""What a library itself says of its launches: dynamic shared memory and threads, which the compiler never learns.

A translation unit may put records into the ELF section `kernelgate_launches`. They are constants, so that the library
is read, never loaded. One record, 128 bytes, little-endian, without pointers:

    struct alignas(32) KernelgateLaunch {
      char kernel[112];                   // zero-terminated: a kernel's name, or part of its demangled name
      std::int32_t version;               // 1
      std::int32_t target;                // 90 for sm_90 and sm_90a; 0 for every target
      std::int32_t dynamic_shared_bytes;  // what a launch asks for; of several launches, the most
      std::int32_t threads;               // of a block; 0 leaves it to __launch_bounds__
    };

A plain identifier is the kernel's own name and means every instance of the template: `rms_norm`. Anything else counts
where it stands in the demangled name, with or without namespaces, spaces aside: `gemm<Sm90, 1, false>` is one
instance. Of several records for a kernel, the longest text counts, then the one that names the target, then the most
shared memory. In C++, at namespace scope (not inside a template):

    #define KERNELGATE_JOIN_(a, b) a##b
    #define KERNELGATE_JOIN(a, b) KERNELGATE_JOIN_(a, b)
    #define KERNELGATE_LAUNCH(kernel, target, dynamic_shared_bytes, threads)                               \\
      [[maybe_unused]] __attribute__((section("kernelgate_launches"), used, aligned(32))) static const     \\
          KernelgateLaunch KERNELGATE_JOIN(kernelgate_launch_, __COUNTER__) = {                            \\
              kernel, 1, target, dynamic_shared_bytes, threads}

    KERNELGATE_LAUNCH("gemm", 90, SharedStorage::kBytes, kThreads);
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.bench.build import elf
from kernelgate.bench.core.errors import KernelgateError

SECTION = "kernelgate_launches"
VERSION = 1
RECORD = struct.Struct("<112s4i")

_NAMESPACE = re.compile(r"(?:\w+|\(anonymousnamespace\))::")
_CAST = re.compile(r"\((?:\w+|\(anonymousnamespace\)|::)+\)(?=-?\w)")


@dataclass(frozen=True)
class LaunchFacts:
    kernel: str
    target: int
    dynamic_shared_bytes: int
    threads: int


def read(library: bytes) -> tuple[LaunchFacts, ...]:
    """The records in an ELF file; none where it has no such section. Raises KernelgateError for what is malformed."""
    content = next((one.content for one in elf.sections(library) if one.name == SECTION), b"")
    if len(content) % RECORD.size:
        raise KernelgateError(f"section {SECTION} holds {len(content)} bytes, which is not a multiple of {RECORD.size}")
    found = []
    for kernel, version, *numbers in RECORD.iter_unpack(content):
        name = kernel.split(b"\0", 1)[0].decode("utf-8", errors="replace")
        if version != VERSION:
            raise KernelgateError(f"section {SECTION} holds a record of version {version}; version {VERSION} is known")
        if not name or min(numbers) < 0:
            raise KernelgateError(
                f"section {SECTION} holds a record without a kernel or with a negative number: "
                f"{name!r}, {', '.join(map(str, numbers))}"
            )
        found.append(LaunchFacts(name, *numbers))
    return tuple(found)


def of_kernel(launches: Sequence[LaunchFacts], name: str, target: str) -> LaunchFacts | None:
    """What is said of a kernel by its demangled name, without return type and parameters; None where nothing is."""
    number = int(target.removeprefix("sm_").removesuffix("a"))
    fitting = [one for one in launches if one.target in (0, number) and _names(one.kernel, name)]
    return max(fitting, key=lambda one: (len(one.kernel), one.target, one.dynamic_shared_bytes), default=None)


def _names(text: str, demangled: str) -> bool:
    wanted, whole = _plain(text), _plain(demangled)
    short = _NAMESPACE.sub("", whole)
    if re.fullmatch(r"\w+", wanted):
        return wanted == short.split("<", 1)[0]
    part = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    return any(part.search(spelling) for spelling in (whole, short))


def _plain(name: str) -> str:
    """Without spaces and without the casts that stand before an enumerator's number: `f<(E)1, 2>` as `f<1,2>`."""
    return _CAST.sub("", re.sub(r"\s", "", name))
