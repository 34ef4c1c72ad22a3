"""The roofline: what a kernel reaches of what its arithmetic and its traffic allow.

Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009: attainable FLOP/s = min(peak FLOP/s, intensity × bytes/s).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kernelgate.bench.core import hardware
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.ci.explain.facts import TENSOR_UNUSED_PCT


@dataclass(frozen=True)
class Roofline:
    """Rates in FLOP/s and bytes/s, intensity in FLOP for each byte of DRAM traffic; None is what cannot be known."""

    arithmetic_intensity: float | None
    achieved_flops: float | None
    peak_flops: float | None
    peak_bytes_per_second: float | None
    ridge: float | None
    """The intensity from which on arithmetic, not DRAM, is the roof."""
    roof: Literal["dram", "compute", "tensor"] | None
    percent_of_roof: float | None


def place(kernel: ProfiledKernel) -> Roofline:
    """The kernel on the roofline of the units that it uses: tensor cores, or float32 pipes, and DRAM."""
    figures = kernel.figures
    clock = figures.get("sm_mhz", 0.0) * 1e6 or None
    seconds = figures.get("duration_us", 0.0) / 1e6 or None
    tensor = _tensor_flops(kernel, clock, seconds)
    scalar = _scalar_flops(figures, clock)
    on_tensor = (tensor or 0.0) > (scalar or 0.0)
    flops = None if tensor is None and scalar is None else (tensor or 0.0) + (scalar or 0.0)
    peak = tensor_peak(kernel, clock) if on_tensor else _float_peak(kernel, clock)
    moved = figures.get("dram_bytes_per_s")
    if moved is None and seconds and "dram_bytes" in figures:
        moved = figures["dram_bytes"] / seconds
    bandwidth = _bandwidth(figures, moved)
    if moved is None and bandwidth and "dram_pct" in figures:
        moved = bandwidth * figures["dram_pct"] / 100
    intensity = flops / moved if flops is not None and moved else None
    ridge = peak / bandwidth if peak and bandwidth else None
    roof, percent = _roof(flops, peak, moved, bandwidth, on_tensor)
    return Roofline(intensity, flops, peak, bandwidth, ridge, roof, percent)


def tensor_peak(kernel: ProfiledKernel, clock: float | None) -> float | None:
    rate = hardware.tensor_rate(kernel.compute_capability, kernel.dtype)
    if rate is None or not kernel.sm_count or not clock:
        return None
    return rate * kernel.sm_count * clock


def _tensor_flops(kernel: ProfiledKernel, clock: float | None, seconds: float | None) -> float | None:
    """From the counted operations; else from the case's own; else from how busy the tensor cores were."""
    figures = kernel.figures
    counted = [figures[key] for key in ("tensor_fp16_ops", "tensor_bf16_ops") if key in figures]
    peak, busy = tensor_peak(kernel, clock), figures.get("tensor_pct")
    if counted and seconds and (sum(counted) or kernel.dtype in ("fp16", "bf16")):
        return sum(counted) / seconds
    used = busy is not None and busy >= TENSOR_UNUSED_PCT
    if kernel.work_flops and seconds and used:
        return kernel.work_flops / seconds
    if peak is None or busy is None:
        return None
    return peak * busy / 100 if used else 0.0


def _scalar_flops(figures: Mapping[str, float], clock: float | None) -> float | None:
    """A multiply-add counts as two, and float16 ones come in pairs."""
    weights = {"ffma": 2, "fadd": 1, "fmul": 1, "dfma": 2, "hfma": 4}
    known = {op: figures[f"{op}_per_cycle"] for op in weights if f"{op}_per_cycle" in figures}
    if clock is None or not known:
        return None
    return clock * sum(weights[op] * rate for op, rate in known.items())


def _float_peak(kernel: ProfiledKernel, clock: float | None) -> float | None:
    if clock is None:
        return None
    if "ffma_peak" in kernel.figures:
        return 2 * kernel.figures["ffma_peak"] * clock
    rate = hardware.fp32_rate(kernel.compute_capability)
    return None if rate is None or not kernel.sm_count else rate * kernel.sm_count * clock


def _bandwidth(figures: Mapping[str, float], moved: float | None) -> float | None:
    per_cycle, clock = figures.get("dram_bytes_per_cycle"), figures.get("memory_mhz")
    if per_cycle and clock:
        return per_cycle * clock * 1e6
    busy = figures.get("dram_pct", 0.0)
    return moved / (busy / 100) if moved and busy >= 1 else None


def _roof(
    flops: float | None, peak: float | None, moved: float | None, bandwidth: float | None, on_tensor: bool
) -> tuple[Literal["dram", "compute", "tensor"] | None, float | None]:
    compute: Literal["compute", "tensor"] = "tensor" if on_tensor else "compute"
    of_compute = 100 * flops / peak if flops and peak else None
    of_dram = 100 * moved / bandwidth if moved is not None and bandwidth else None
    if of_compute is not None and (of_dram is None or of_compute >= of_dram):
        return compute, min(100.0, of_compute)
    return ("dram", min(100.0, of_dram)) if of_dram is not None else (None, None)
