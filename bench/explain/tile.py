"""The calculator behind `kernelgate resources --tile`: does a block of this size fit? Compiles nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelgate.bench.build.machine_code import MAX_REGISTERS, WARP, Occupancy, occupancy
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.hardware import GpuModel

KIB = 1024
BESIDE = 50
"""Registers that a kernel takes beside its tile: addresses, maxima, sums, fragments."""


@dataclass(frozen=True)
class BlockNeeds:
    """What one block asks of a multiprocessor."""

    title: str
    shared_bytes: int
    threads: int
    least_registers: int
    """Of a thread, for its share of the tile alone."""


def plain(words: str, warps: int) -> BlockNeeds | None:
    """ "48KiB" or "49152": the shared memory of a block whose registers are unknown; None for other words."""
    if (found := re.fullmatch(r"(\d{1,9})(KiB|B)?", words)) is None:
        return None
    size = int(found[1]) * (KIB if found[2] == "KiB" else 1)
    return BlockNeeds(f"{size / KIB:g} KiB", size, warps * WARP, 0)


def sizes(words: str) -> tuple[int, int]:
    """Of "128x64". Raises UsageError for other words."""
    if (found := re.fullmatch(r"(\d{1,6})x(\d{1,6})", words)) is None:
        raise UsageError(f"--tile {words}: write rows x columns, such as 128x64, or bytes, such as 48KiB")
    return int(found[1]), int(found[2])


def about(least: int) -> int:
    """The registers of a thread whose share of the tile takes `least`; 0 where that is unknown."""
    return min(MAX_REGISTERS, least + BESIDE) if least else 0


def fit(needs: BlockNeeds, device: GpuModel) -> Occupancy | str:
    """How well the block fits; where it does not, why, and what to change."""
    if needs.shared_bytes > device.limits.block_shared_bytes:
        most = device.limits.block_shared_bytes // KIB
        return f"does not fit: {_shared(needs)}, where a block may have {most} KiB; take a smaller tile or fewer stages"
    if needs.least_registers > MAX_REGISTERS:
        return (
            f"will spill: the tile alone takes {needs.least_registers} registers per thread, where "
            f"{MAX_REGISTERS} is the limit; take more warps or a smaller tile"
        )
    fits = occupancy(device.limits, needs.threads, about(needs.least_registers), needs.shared_bytes)
    if fits.blocks == 0:
        return f"does not fit: {', '.join(fits.limits)} leave no room for one block; take fewer warps"
    return fits


def explain(needs: BlockNeeds, device: GpuModel) -> str:
    """Whether the block fits, how well, and what to change, in words."""
    head = f"{needs.title}, {needs.threads} threads on the {device.name}: "
    fits = fit(needs, device)
    if isinstance(fits, str):
        return f"{head}{fits}."
    registers = about(needs.least_registers)
    of_registers = f"about {registers} registers per thread (at least {needs.least_registers}), " if registers else ""
    return (
        f"{head}fits: {_shared(needs)}, {of_registers}"
        f"{fits.blocks} block{'s' if fits.blocks > 1 else ''} and {fits.warps} warps on a multiprocessor, "
        f"{fits.percent:.3g}% occupancy, limited by {' and '.join(fits.limits)}."
    )


def _shared(needs: BlockNeeds) -> str:
    return f"{needs.shared_bytes / KIB:g} KiB of shared memory per block"
