"""Which GPUs a library is compiled for: TORCH_CUDA_ARCH_LIST, or the L4 and the GPU at hand.

A target is named as nvcc names it: `sm_89` for compute capability 8.9.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from kernelgate.bench.errors import BuildError, NoDeviceError, UsageError

ARCH_LIST = "TORCH_CUDA_ARCH_LIST"
L4 = (8, 9)

Capability = tuple[int, int]
"""Major and minor version, such as (8, 9)."""


def sm(capability: Capability) -> str:
    """(8, 9) -> "sm_89"."""
    return f"sm_{capability[0]}{capability[1]}"


def capability(sm_number: str) -> Capability:
    """The digits of a target's name, "89" -> (8, 9), "120" -> (12, 0)."""
    return int(sm_number[:-1]), int(sm_number[-1])


def parse(arch_list: str) -> tuple[Capability, ...]:
    """The capabilities of a TORCH_CUDA_ARCH_LIST such as "8.9;9.0", sorted. Raises UsageError for what is no target."""
    words = [word for word in re.split(r"[;,\s]+", arch_list) if word]
    return tuple(sorted({_parse_word(word) for word in words}))


def _parse_word(word: str) -> Capability:
    if match := re.fullmatch(r"(\d+)\.(\d)", word):
        return int(match[1]), int(match[2])
    if match := re.fullmatch(r"(\d+\.\d)([af]?)(\+PTX)?", word):
        kind = "PTX" if match[3] else "architecture-specific features"
        raise UsageError(
            f"{ARCH_LIST}: {word!r} is not supported, because targets are compiled to plain machine code, "
            f"without {kind}: write {match[1]!r}"
        )
    raise UsageError(f"{ARCH_LIST}: {word!r} is not a compute capability: write such as '8.9' or '8.9;9.0'")


def demanded(wanted: Collection[Capability], available: Collection[Capability]) -> tuple[Capability, ...]:
    """Exactly the targets that were asked for. Raises BuildError where the commit lacks one."""
    missing = [sm(one) for one in sorted(wanted) if one not in available]
    if missing:
        has = ", ".join(map(sm, sorted(available))) or "none"
        raise BuildError(
            f"{ARCH_LIST} asks for {', '.join(missing)}, but csrc/ has no translation unit for it; it has: {has}"
        )
    return tuple(sorted(wanted))


def serving(gpus: Collection[Capability], available: Collection[Capability]) -> tuple[Capability, ...]:
    """The targets whose code runs on `gpus`, the newest that fits for each; a GPU that none fits is left out.

    Machine code runs on GPUs of its own major version, from its own minor version on.
    """
    fitting = ([one for one in available if one[0] == gpu[0] and one[1] <= gpu[1]] for gpu in gpus)
    return tuple(sorted({max(candidates) for candidates in fitting if candidates}))


def gpus_at_hand() -> tuple[Capability, ...]:
    """The compute capabilities of this machine's GPUs; none where there is no NVIDIA driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return tuple(sorted({_capability_of(handle) for handle in handles}))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def only_gpu() -> Capability:
    """The compute capability of this machine's GPU. Raises NoDeviceError where there is none."""
    found = gpus_at_hand()
    if not found:
        raise NoDeviceError("this machine has no NVIDIA GPU, or its driver does not respond; see `kernelgate doctor`")
    return found[0]


def _capability_of(handle: object) -> Capability:
    import pynvml

    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return int(major), int(minor)
