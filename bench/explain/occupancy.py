"""How many warps fit on a multiprocessor, from what the compiler and the launch ask for. No GPU needed.

The rules are those of NVIDIA's occupancy calculator (Nsight Compute, "Occupancy Calculator"; CUDA C++ Programming
Guide, "Technical Specifications per Compute Capability"): registers are given to warps in units of 256 and to whole
sets of 4 warps, one for each scheduler; shared memory in units of 128 bytes, 1 KiB a block more for the system.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgate.bench.errors import UsageError

WARP = 32
REGISTER_FILE = 65_536
REGISTERS_PER_WARP_UNIT = 256
MAX_REGISTERS = 255
SCHEDULERS = 4
SHARED_UNIT = 128
SYSTEM_SHARED = 1024
MAX_THREADS = 1024
HEAD_DIM_BYTES = 128
"""A row of q, k or v: 64 elements of 2 bytes."""


@dataclass(frozen=True)
class GpuModel:
    name: str
    target: str
    warps: int
    """That a multiprocessor holds at once."""
    blocks: int
    shared_total: int
    shared_block: int
    """What one block may have, after opt-in."""


_KIB = 1024
GPUS: dict[str, GpuModel] = {
    "l4": GpuModel("L4", "sm_89", 48, 24, 100 * _KIB, 99 * _KIB),
    "a100": GpuModel("A100", "sm_80", 64, 32, 164 * _KIB, 163 * _KIB),
    "h100": GpuModel("H100 and H200", "sm_90", 64, 32, 228 * _KIB, 227 * _KIB),
}
ALIASES = {"h200": "h100"}


@dataclass(frozen=True)
class Occupancy:
    blocks: int
    """Resident on one multiprocessor; 0 where not even one fits."""
    warps: int
    percent: float
    limits: tuple[str, ...]
    """What keeps another block off."""


def gpu(name: str) -> GpuModel:
    """Raises UsageError for a GPU that the table does not hold."""
    key = ALIASES.get(name.lower(), name.lower())
    if key not in GPUS:
        raise UsageError(f"--gpu {name}: not in the table; it holds: {', '.join([*GPUS, *ALIASES])}")
    return GPUS[key]


def occupancy(device: GpuModel, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Theoretical occupancy of blocks of `threads`, with registers a thread and static plus dynamic shared memory."""
    if not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"a block has 1 to {MAX_THREADS} threads, got {threads}")
    if not 0 <= registers <= MAX_REGISTERS:
        raise UsageError(f"a thread has at most {MAX_REGISTERS} registers, got {registers}")
    warps = -(-threads // WARP)
    allowed = {
        "warps": device.warps // warps,
        "blocks": device.blocks,
        "registers": _by_registers(warps, registers),
        "shared memory": _by_shared(device, shared_bytes),
    }
    blocks = min(allowed.values())
    limits = tuple(name for name, count in allowed.items() if count == blocks)
    return Occupancy(blocks, blocks * warps, 100 * blocks * warps / device.warps, limits)


def _by_registers(warps: int, registers: int) -> int:
    if registers == 0:
        return REGISTER_FILE
    a_warp = -(-registers * WARP // REGISTERS_PER_WARP_UNIT) * REGISTERS_PER_WARP_UNIT
    fitting = REGISTER_FILE // a_warp // SCHEDULERS * SCHEDULERS
    return fitting // warps


def _by_shared(device: GpuModel, shared_bytes: int) -> int:
    if shared_bytes > device.shared_block:
        return 0
    a_block = -(-(shared_bytes + SYSTEM_SHARED) // SHARED_UNIT) * SHARED_UNIT
    return device.shared_total // a_block


# ----------------------------------------------------------------------------------------------------------------------
# The calculator: does a tile fit, before it is compiled?
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """Queries and keys of one step, warps that share the queries, and how many steps of K and V wait in a ring."""

    queries: int
    keys: int
    stages: int
    warps: int = 4

    @property
    def shared_bytes(self) -> int:
        """The queries, and for each stage the keys and the values (csrc/fa_s512_tile.h)."""
        return (self.queries + 2 * self.stages * self.keys) * HEAD_DIM_BYTES

    @property
    def threads(self) -> int:
        return self.warps * WARP

    @property
    def least_registers(self) -> int:
        """What a thread holds at once in float32: its share of the scores and of the output, and Q in halves."""
        rows = self.queries // self.warps
        scores, output, query = rows * self.keys // WARP, rows * 64 // WARP, rows * 64 // WARP // 2
        return scores + output + query


def tile(words: str, stages: int, warps: int = 4) -> Tile:
    """ "128x64" and its stages. Raises UsageError for what the kernel cannot be compiled with."""
    queries, _, keys = words.partition("x")
    if not (queries.isdigit() and keys.isdigit()):
        raise UsageError(f"--tile {words}: write queries x keys, such as 128x64")
    made = Tile(int(queries), int(keys), stages, warps)
    if warps < 1 or made.queries < 1 or made.queries % (16 * warps):
        raise UsageError(f"--tile {words}: {warps} warps take {16 * warps} queries at a time; {queries} is no multiple")
    if made.keys < 1 or made.keys % 16:
        raise UsageError(f"--tile {words}: keys are taken 16 at a time; {keys} is no multiple")
    if stages < 2:
        raise UsageError(f"--stages {stages}: at least 2, one is read while the next arrives")
    return made


def explain(made: Tile, device: GpuModel) -> str:
    """Whether the tile fits, how well, and what to change, in words."""
    head = f"{made.queries}x{made.keys}, {made.stages} stages, {made.threads} threads on the {device.name}: "
    shared = f"{made.shared_bytes / _KIB:g} KiB of shared memory a block"
    if made.shared_bytes > device.shared_block:
        most = device.shared_block // _KIB
        return f"{head}does not fit: {shared}, where a block may have {most} KiB; fewer stages or keys."
    if made.least_registers > MAX_REGISTERS:
        return (
            f"{head}will spill: scores, output and queries alone take {made.least_registers} registers a thread, "
            f"where {MAX_REGISTERS} is the limit; more warps or fewer keys."
        )
    # What the kernel takes beside its tile: addresses, maxima, sums, fragments of K and V.
    registers = min(MAX_REGISTERS, made.least_registers + 50)
    fits = occupancy(device, made.threads, registers, made.shared_bytes)
    if fits.blocks == 0:
        return f"{head}does not fit: {', '.join(fits.limits)} leave no room for one block; fewer warps or keys."
    return (
        f"{head}fits: {shared}, about {registers} registers a thread (at least {made.least_registers}), "
        f"{fits.blocks} block{'s' if fits.blocks > 1 else ''} and {fits.warps} warps on a multiprocessor, "
        f"{fits.percent:.3g}% occupancy, limited by {' and '.join(fits.limits)}."
    )
