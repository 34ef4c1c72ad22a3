"""The page of a session, as a checkout knows it: its log as it is now, and what its cards say of tiles."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench.build import occupancy
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.explain import tile
from kernelgate.ci.lab import calculator, coming, folder
from kernelgate.ci.lab.calculator import Calculator, CardTiles
from kernelgate.ci.lab.state import SessionState
from kernelgate.ci.policy.policy import Policy

RULES = {
    "warp": occupancy.WARP,
    "registers_per_warp_unit": occupancy.REGISTERS_PER_WARP_UNIT,
    "max_registers": occupancy.MAX_REGISTERS,
    "schedulers": occupancy.SCHEDULERS,
    "shared_unit": occupancy.SHARED_UNIT,
    "system_shared": occupancy.SYSTEM_SHARED,
    "max_threads": occupancy.MAX_THREADS,
    "registers_beside": tile.BESIDE,
}


def state(session: Path, policy: Policy) -> SessionState:
    """Of the session in this folder, now. Raises SessionError naming a line of its log that does not fit."""
    return coming.of(folder.read(session).events, policy, folder.now())


def known(root: Path) -> Calculator:
    """What the calculator knows. A card with a mistake costs its tiles, not the page."""
    from kernelgate.bench.kernel import cards

    try:
        found = cards.of_checkout(root, calculator.asked())
    except KernelgateError as error:
        return Calculator(RULES, (), str(error))
    missing = str(found.mistakes[0]) if found.mistakes else None
    if not found.cards and missing is None:
        missing = "this checkout has no card"
    return Calculator(RULES, tuple(CardTiles(one.name, one.tiles) for one in found.cards), missing)
