"""Which GPUs a library is compiled for: TORCH_CUDA_ARCH_LIST, or the L4 and the GPU at hand.

A target is named as nvcc names it: `sm_89` for compute capability 8.9, `sm_90a` for 9.0 with the instructions that no
other capability has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Literal

from kernelgate.bench.core.errors import CannotCompileError, NoDeviceError, UsageError
from kernelgate.bench.core.hardware import Capability

ARCH_LIST = "TORCH_CUDA_ARCH_LIST"
L4 = (8, 9)

Target = tuple[int, int] | tuple[int, int, Literal["a"]]
"""What code is compiled for: a capability, or (9, 0, "a") for architecture-specific code, which sorts after (9, 0)."""


def sm(target: Target) -> str:
    """(8, 9) -> "sm_89", (9, 0, "a") -> "sm_90a"."""
    return "sm_" + "".join(map(str, target))


def target(sm_number: str) -> Target:
    """A target's name without its "sm_": "89" -> (8, 9), "120" -> (12, 0), "90a" -> (9, 0, "a")."""
    digits = sm_number.removesuffix("a")
    plain = int(digits[:-1]), int(digits[-1])
    return (*plain, "a") if sm_number.endswith("a") else plain


def parse(arch_list: str) -> tuple[Target, ...]:
    """The targets of a TORCH_CUDA_ARCH_LIST such as "8.9;9.0a", sorted. Raises UsageError for what is no target."""
    found = set()
    for word in filter(None, re.split(r"[;,\s]+", arch_list)):
        if not re.fullmatch(r"\d+\.\da?", word):
            said = "is not a compute capability: write such as '8.9' or '8.9;9.0a', without +PTX"
            raise UsageError(f"{ARCH_LIST}: {word!r} {said}")
        found.add(target(word.replace(".", "")))
    return tuple(sorted(found))


def asked() -> tuple[Target, ...]:
    """What TORCH_CUDA_ARCH_LIST asks for; nothing where it is not set."""
    return parse(os.environ.get(ARCH_LIST, ""))


def at_hand() -> tuple[Capability, ...]:
    """What is compiled for where nothing is asked for: the L4 and the GPUs of this machine."""
    return tuple(sorted({L4, *gpus_at_hand()}))


def demanded(wanted: Collection[Target], available: Collection[Target], card: str) -> tuple[Target, ...]:
    """What was asked for, each with its architecture-specific code where the commit has it; of a commit without, 9.0a
    means sm_90. Raises CannotCompileError where the commit lacks a target."""
    wanted = {with_plain_code(one, available) for one in wanted}
    if missing := [sm(one) for one in sorted(wanted) if one not in available]:
        has = ", ".join(map(sm, sorted(available))) or "none"
        said = f"the sources of {card} have no translation unit for it; they have: {has}"
        raise CannotCompileError(f"{ARCH_LIST} asks for {', '.join(missing)}, but {said}")
    specific: set[Target] = {(*target, "a") for target in wanted if len(target) == 2}
    return tuple(sorted({*wanted, *specific.intersection(available)}))


def with_plain_code(target: Target, available: Collection[Target]) -> Target:
    """The target, or its plain code where there is that and no architecture-specific code for it."""
    plain = target[0], target[1]
    return plain if target not in available and plain in available else target


def serving(gpus: Collection[Capability], available: Collection[Target]) -> tuple[Target, ...]:
    """The targets whose code runs on `gpus`, the newest that fits for each; a GPU that none fits is left out."""
    fitting = ([target for target in available if runs_on(target, gpu)] for gpu in gpus)
    return tuple(sorted({max(candidates) for candidates in fitting if candidates}))


def runs_on(target: Target, gpu: Capability) -> bool:
    """Machine code runs on its own major version, from its own minor version on; with a suffix on its own alone."""
    major, minor, *suffix = target
    return gpu == (major, minor) if suffix else gpu[0] == major and gpu[1] >= minor


def gpus_at_hand() -> tuple[Capability, ...]:
    """The compute capabilities of this machine's GPUs; none where there is no NVIDIA driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        found = [pynvml.nvmlDeviceGetCudaComputeCapability(handle) for handle in handles]
        return tuple(sorted({(int(major), int(minor)) for major, minor in found}))
    except pynvml.NVMLError:
        return ()
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def only_gpu() -> Capability:
    """The compute capability of this machine's GPU. Raises NoDeviceError where there is none."""
    if not (found := gpus_at_hand()):
        raise NoDeviceError("this machine has no NVIDIA GPU, or its driver does not respond; see `kernelgate doctor`")
    return found[0]
