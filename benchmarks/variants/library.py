"""All families, in the order in which they are tried: kernels take turns, so that any part of them tells of each."""

from __future__ import annotations

from benchmarks.fuzzing.bug import Device
from benchmarks.variants import attention, gemm, rmsnorm, swiglu
from benchmarks.variants.family import Family

FAMILIES: tuple[Family, ...] = (
    swiglu.NARROW,
    rmsnorm.NARROW,
    gemm.UNSWIZZLED,
    attention.SMALL_TILE,
    attention.TWO_CONSUMERS,
    rmsnorm.SMALL_GRID,
    gemm.SHORT,
    attention.MMA_TUNED,
    swiglu.UNFUSED,
    rmsnorm.TUNED,
    attention.SHORT_RING,
    gemm.TUNED,
    attention.ROLLED,
    swiglu.TUNED,
    attention.WGMMA_TUNED,
    rmsnorm.UNCOALESCED,
    gemm.DIRECT,
    attention.UNSWIZZLED,
    gemm.SCALAR,
    attention.ON_CPU,
)


def select(device: Device, names: tuple[str, ...] = ()) -> tuple[Family, ...]:
    return tuple(one for one in FAMILIES if one.device == device and (not names or one.name in names))
