"""What a rule of bottleneck.py finds: which bottleneck, how sure it is, and the figures that say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kernelgate.ci.explain.bottleneck_limits import BottleneckLimits
from kernelgate.ci.explain.facts import Facts

SURE = 0.5
"""Of a strength, which is a scale of our own."""


class Bottleneck(StrEnum):
    TENSOR = "tensor"
    COMPUTE = "compute"
    DRAM = "dram"
    L2 = "l2"
    OCCUPANCY = "occupancy"
    LAUNCH = "launch"
    COALESCING = "coalescing"
    BANK_CONFLICTS = "bank_conflicts"
    SPILLS = "spills"
    SMALL_GRID = "small_grid"
    BARRIER = "barrier"
    DIVERGENCE = "divergence"


WORDS: Mapping[Bottleneck, str] = {
    Bottleneck.TENSOR: "tensor-core bound",
    Bottleneck.COMPUTE: "bound by arithmetic or instruction issue",
    Bottleneck.DRAM: "DRAM bound",
    Bottleneck.L2: "L2 bound",
    Bottleneck.OCCUPANCY: "latency bound by low occupancy",
    Bottleneck.LAUNCH: "launch bound",
    Bottleneck.COALESCING: "uncoalesced access",
    Bottleneck.BANK_CONFLICTS: "shared-memory bank conflicts",
    Bottleneck.SPILLS: "register spills",
    Bottleneck.SMALL_GRID: "too small a grid or a tail wave",
    Bottleneck.BARRIER: "barrier stalls",
    Bottleneck.DIVERGENCE: "warp divergence",
}


@dataclass(frozen=True)
class Diagnosis:
    bottleneck: Bottleneck
    strength: float
    """0 to 1: how sure the figures make this."""
    evidence: tuple[str, ...]
    """The numbers that led here, as sentences' parts."""
    gain_pct: float | None = None
    """At most this much of the kernel's time goes away with the fault; None where that cannot be said."""


Rule = Callable[[Facts, BottleneckLimits], Diagnosis | None]


def clamp(value: float) -> float:
    """A strength: never certain."""
    return max(0.0, min(0.98, value))


def percent(share: float) -> float:
    """Of the time, for a share of it; never all of it."""
    return 100 * max(0.0, min(0.95, share))
