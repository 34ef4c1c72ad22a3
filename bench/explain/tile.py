"""The calculator behind `kernelgate resources --tile`: does a tile of the attention kernel fit? Compiles nothing."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgate.bench.build.occupancy import MAX_REGISTERS, WARP, occupancy
from kernelgate.bench.errors import UsageError
from kernelgate.bench.hardware import GpuModel

KIB = 1024
HEAD_DIM_BYTES = 128
"""A row of q, k or v: 64 elements of 2 bytes."""


@dataclass(frozen=True)
class Tile:
    """Queries and keys of one step, warps that share the queries, and how many steps of K and V wait in a ring."""

    queries: int
    keys: int
    stages: int
    warps: int = 4

    @property
    def shared_bytes(self) -> int:
        """The queries, and for each stage the keys and the values, as csrc/ lays them out."""
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


def parse(words: str, stages: int, warps: int = 4) -> Tile:
    """ "128x64" and its stages. Raises UsageError for what the kernel cannot be compiled with."""
    queries, _, keys = words.partition("x")
    if not (queries.isdigit() and keys.isdigit()):
        raise UsageError(f"--tile {words}: write queries x keys, such as 128x64")
    made = Tile(int(queries), int(keys), stages, warps)
    step = 16 * warps
    if warps < 1 or made.queries < 1 or made.queries % step:
        raise UsageError(
            f"--tile {words}: {warps} warps take {step} queries at a time; {queries} is not a multiple of {step}"
        )
    if made.keys < 1 or made.keys % 16:
        raise UsageError(f"--tile {words}: keys are taken 16 at a time; {keys} is not a multiple of 16")
    if stages < 2:
        raise UsageError(f"--stages {stages}: at least 2, one is read while the next arrives")
    return made


def explain(made: Tile, device: GpuModel) -> str:
    """Whether the tile fits, how well, and what to change, in words."""
    head = f"{made.queries}x{made.keys}, {made.stages} stages, {made.threads} threads on the {device.name}: "
    shared = f"{made.shared_bytes / KIB:g} KiB of shared memory per block"
    if made.shared_bytes > device.limits.block_shared_bytes:
        most = device.limits.block_shared_bytes // KIB
        return f"{head}does not fit: {shared}, where a block may have {most} KiB; fewer stages or keys."
    if made.least_registers > MAX_REGISTERS:
        return (
            f"{head}will spill: scores, output and queries alone take {made.least_registers} registers per thread, "
            f"where {MAX_REGISTERS} is the limit; more warps or fewer keys."
        )
    # What the kernel takes beside its tile: addresses, maxima, sums, fragments of K and V.
    registers = min(MAX_REGISTERS, made.least_registers + 50)
    fits = occupancy(device.limits, made.threads, registers, made.shared_bytes)
    if fits.blocks == 0:
        return f"{head}does not fit: {', '.join(fits.limits)} leave no room for one block; fewer warps or keys."
    return (
        f"{head}fits: {shared}, about {registers} registers per thread (at least {made.least_registers}), "
        f"{fits.blocks} block{'s' if fits.blocks > 1 else ''} and {fits.warps} warps on a multiprocessor, "
        f"{fits.percent:.3g}% occupancy, limited by {' and '.join(fits.limits)}."
    )
