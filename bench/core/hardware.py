"""NVIDIA GPUs in numbers: what one multiprocessor holds, and how fast the whole device can be. Plain data.

Every number carries its source. Data sheets give rates with sparsity; these are the dense ones, half of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.bench.core.errors import UsageError

Capability = tuple[int, int]
"""Of a GPU: major and minor version, such as (8, 9)."""
_KIB = 1024


@dataclass(frozen=True)
class SmLimits:
    """What one multiprocessor holds at once."""

    target: str
    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    """What one block may have, after opt-in."""
    registers: int = 65_536


@dataclass(frozen=True)
class GpuModel:
    """One GPU; of several variants, the fastest."""

    name: str
    """As it stands in the device's name."""
    limits: SmLimits
    sm_count: int
    flops: Mapping[str, float]
    """Peak operations a second by dtype: fp32 on the ordinary pipes, every other on the tensor cores, dense."""
    bytes_per_s: float
    """Of the memory."""
    l2_bytes: float
    """Rounded up: what is larger cannot lie in the cache."""
    power_w: float
    max_sm_mhz: float
    source: str


# CUDA C++ Programming Guide 13.0 (2025), "Technical Specifications per Compute Capability".
SM_80 = SmLimits("sm_80", warps=64, blocks=32, shared_bytes=164 * _KIB, block_shared_bytes=163 * _KIB)
SM_89 = SmLimits("sm_89", warps=48, blocks=24, shared_bytes=100 * _KIB, block_shared_bytes=99 * _KIB)
SM_90 = SmLimits("sm_90", warps=64, blocks=32, shared_bytes=228 * _KIB, block_shared_bytes=227 * _KIB)

_HOPPER = {"fp32": 67e12, "tf32": 494e12, "fp16": 989e12, "bf16": 989e12, "fp8": 1979e12, "int8": 1979e12}

GPUS: Mapping[str, GpuModel] = {
    "l4": GpuModel(
        name="L4",
        limits=SM_89,
        sm_count=58,
        flops={"fp32": 30.3e12, "tf32": 60e12, "fp16": 121e12, "bf16": 121e12, "fp8": 242e12, "int8": 242e12},
        bytes_per_s=0.3e12,
        l2_bytes=51e6,  # 48 MiB
        power_w=72,
        max_sm_mhz=2040,
        source="NVIDIA L4 data sheet (2023); L2 and SMs: NVIDIA Ada GPU Architecture white paper (2023)",
    ),
    "l40s": GpuModel(
        name="L40S",
        limits=SM_89,
        sm_count=142,
        flops={"fp32": 91.6e12, "tf32": 183e12, "fp16": 362e12, "bf16": 362e12, "fp8": 733e12, "int8": 733e12},
        bytes_per_s=0.864e12,
        l2_bytes=101e6,  # 96 MiB
        power_w=350,
        max_sm_mhz=2520,
        source="NVIDIA L40S data sheet (2023); L2 and SMs: NVIDIA Ada GPU Architecture white paper (2023)",
    ),
    "a100": GpuModel(
        name="A100",
        limits=SM_80,
        sm_count=108,
        flops={"fp32": 19.5e12, "tf32": 156e12, "fp16": 312e12, "bf16": 312e12, "int8": 624e12},
        bytes_per_s=2.04e12,
        l2_bytes=42e6,  # 40 MiB
        power_w=400,
        max_sm_mhz=1410,
        source="NVIDIA A100 80GB SXM data sheet (2021); L2 and SMs: NVIDIA A100 white paper (2020)",
    ),
    "h100": GpuModel(
        name="H100",
        limits=SM_90,
        sm_count=132,
        flops=_HOPPER,
        bytes_per_s=3.35e12,
        l2_bytes=53e6,  # 50 MiB
        power_w=700,
        max_sm_mhz=1980,
        source="NVIDIA H100 SXM data sheet (2023); L2 and SMs: NVIDIA H100 white paper (2022)",
    ),
    "h200": GpuModel(
        name="H200",
        limits=SM_90,
        sm_count=132,
        flops=_HOPPER,
        bytes_per_s=4.8e12,
        l2_bytes=63e6,  # 60 MiB, as the driver reports it
        power_w=700,
        max_sm_mhz=1980,
        source="NVIDIA H200 SXM data sheet (2024)",
    ),
}


# Operations a clock of one multiprocessor, on tensor cores: float16 with float32 sums, dense; a multiply-add counts as
# two. The data sheets' peaks divided by multiprocessors and boost clock (A100 312 TFLOP/s, 108, 1.41 GHz; L4 121, 58,
# 2.04; H100 SXM 989, 132, 1.83).
_FP16_TENSOR: Mapping[Capability, int] = {
    (7, 0): 1024,
    (7, 5): 1024,
    (8, 0): 2048,
    (8, 6): 1024,
    (8, 9): 1024,
    (9, 0): 4096,
    (10, 0): 8192,
    (12, 0): 1024,
}
_TENSOR: Mapping[str, tuple[Capability, float]] = {
    "fp16": ((7, 0), 1),
    "int8": ((7, 5), 2),
    "bf16": ((8, 0), 1),
    "tf32": ((8, 0), 0.5),
    "fp8": ((8, 9), 2),
}
"""The first capability whose tensor cores take the dtype, and its rate as a multiple of that of float16."""


def gpu(name: str) -> GpuModel:
    """The GPU of this name in the table, whatever its case. Raises UsageError where the table lacks it."""
    if (found := GPUS.get(name.lower())) is None:
        raise UsageError(f"--gpu {name}: not in the table; it holds: {', '.join(GPUS)}")
    return found


def of_device(device_name: str | None) -> GpuModel | None:
    """The GPU whose name is a word of the device's, such as "NVIDIA H100-SXM"; None where the table lacks it."""
    words = (device_name or "").replace("-", " ").split()
    return next((model for model in GPUS.values() if model.name in words), None)


def candidates(device_name: str | None, capability: str | None) -> tuple[GpuModel, ...]:
    """The GPUs that a device may be: the one whose name it has, else all of its compute capability."""
    named = of_device(device_name)
    target = f"sm_{capability.replace('.', '')}" if capability else None
    if named is not None and target in (None, named.limits.target):
        return (named,)
    return tuple(model for model in GPUS.values() if model.limits.target == target)


def running(target: str) -> dict[str, SmLimits]:
    """The limits of the GPUs that are of this target, by their names: {"H100 and H200": …}."""
    by_limits: dict[SmLimits, list[str]] = {}
    for model in GPUS.values():
        if model.limits.target == target.removesuffix("a"):
            by_limits.setdefault(model.limits, []).append(model.name)
    return {" and ".join(names): limits for limits, names in by_limits.items()}


def tensor_rate(capability: Capability | None, dtype: str = "fp16") -> int | None:
    """Dense tensor-core operations a clock of one multiprocessor; None where that is not known."""
    if capability is None or capability not in _FP16_TENSOR or dtype not in _TENSOR:
        return None
    first, multiple = _TENSOR[dtype]
    return int(multiple * _FP16_TENSOR[capability]) if capability >= first else None
