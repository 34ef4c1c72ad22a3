"""How many warps fit on a multiprocessor, from what the compiler and the launch ask for. No GPU needed.

The rules are those of NVIDIA's occupancy calculator (Nsight Compute, "Occupancy Calculator"; CUDA C++ Programming
Guide, "Technical Specifications per Compute Capability"): registers are given to warps in units of 256 and to whole
sets of 4 warps, one for each scheduler; shared memory in units of 128 bytes, 1 KiB per block more for the system.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgate.bench.core import hardware
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.hardware import SmLimits
from kernelgate.bench.record import KernelFacts

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
    """What keeps another block off."""


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
    """The kernel with its occupancy on each GPU that is of its target.

    Without it where threads, registers or shared memory are unknown: a kernel that nothing says the dynamic shared
    memory of may use none or all of it, and the code does not show which.
    """
    if kernel.threads is None or kernel.registers is None or kernel.static_shared_bytes is None:
        return kernel
    if kernel.dynamic_shared_bytes is None or not 1 <= kernel.threads <= MAX_THREADS:
        return kernel
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    fits = {
        name: occupancy(limits, kernel.threads, min(kernel.registers, MAX_REGISTERS), shared)
        for name, limits in hardware.running(kernel.target).items()
    }
    return kernel.model_copy(
        update={
            "occupancy_pct": {name: round(one.percent, 2) for name, one in fits.items()},
            "occupancy_limits": {name: " and ".join(one.limits) for name, one in fits.items()},
        }
    )
