"""What a profile says, what is derived from it, and what a rule of bottleneck.py finds in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernelgate.bench.explain.metrics import STALL_PREFIX, STALLS
from kernelgate.bench.explain.ncu_reader import ProfiledKernel

LAUNCH_BOUND_US: Final = 10.0
"""Below this a call is launch bound where nothing better is known: a launch takes 2 to 5 us of host and device time."""
UNIT_BUSY_PCT: Final = 60.0
"""NVIDIA's own rules call a unit (tensor cores, pipes, L1) busy from 60% of its peak on, and saturated from 80%."""
BANDWIDTH_BUSY_PCT: Final = 60.0
"""The same of DRAM and L2. The founding documents of 2025-10-13 say 70%: below it, fix the access pattern. At 70, of
54 kept profiles two with DRAM or L2 at 60 to 70% would be named as a guess, and none another name (2026-11-22)."""
SATURATED_PCT: Final = 80.0
"""From here on a unit is the limit, whatever else a profile shows."""
LOW_OCCUPANCY_PCT: Final = 30.0
"""Below the lower one too few warps are there to hide latency, and up to the upper one they may be: the founding
documents of 2025-10-13 ask for 50%. Kernels on tensor cores run best at 12 to 25%, where their unit is busy."""
ENOUGH_OCCUPANCY_PCT: Final = 50.0
IDLE_SHARE: Final = 0.2
"""The share of the multiprocessors' time without work from which on the grid is at fault: a tail wave of a quarter of
four waves loses less than that."""
CONFLICT_SHARE: Final = 0.3
"""The share of shared memory's wavefronts that are bank conflicts: two ways in every access are 0.5."""
EXCESS_SHARE: Final = 0.4
"""The share of global memory's sectors that coalesced requests would not move: of float16 at a stride of two, 0.5."""
LOCAL_SHARE: Final = 0.05
"""The share of instructions that load or store local memory: what spills slows a kernel down far beyond its share."""
BARRIER_SHARE: Final = 0.35
"""The share of a warp's waiting that is at barriers, where that is the largest one."""
DIVERGED_THREADS: Final = 24.0
"""How many threads of a warp's 32 work in an instruction on average; below it the warps diverge. NVIDIA's own rule
speaks up below 24: of the kept profiles at 23.8 and at 1.0, and not at 28.0 (2026-11-22)."""
TENSOR_UNUSED_PCT = 2.0
"""The counter of the tensor pipe shows up to 1.1% for kernels without a single tensor instruction."""


@dataclass(frozen=True)
class Facts:
    """A kernel's figures, and what several rules derive from them; None is what the report does not say."""

    kernel: ProfiledKernel

    def __getitem__(self, key: str) -> float | None:
        return self.kernel.figures.get(key)

    def get(self, key: str) -> float:
        """0 where the report lacks it: for rules that only ask whether something is large."""
        return self.kernel.figures.get(key, 0.0)

    def ratio(self, top: str, bottom: str) -> float | None:
        a, b = self[top], self[bottom]
        return a / b if a is not None and b else None

    @property
    def stalls(self) -> dict[str, float]:
        """Cycles for each issued instruction, largest first, without those that are no waiting."""
        waiting = {
            reason: self.get(STALL_PREFIX + reason)
            for reason in STALLS
            if reason not in ("selected", "not_selected") and STALL_PREFIX + reason in self.kernel.figures
        }
        return dict(sorted(waiting.items(), key=lambda item: -item[1]))

    def stall_share(self, *reasons: str) -> float | None:
        """These reasons' share of a warp's waiting."""
        stalls = self.stalls
        total = sum(stalls.values())
        return sum(stalls.get(reason, 0.0) for reason in reasons) / total if total > 0 else None

    @property
    def l2_busy(self) -> float | None:
        """L2 throughput; from its sectors where only those were read, of which 2/3 of the peak is all it ever does."""
        if self["l2_pct"] is not None:
            return self["l2_pct"]
        sectors = self["l2_sectors_pct"]
        return None if sectors is None else min(100.0, 1.5 * sectors)

    @property
    def l1_busy(self) -> float | None:
        known = [value for key in ("l1_pct", "lsu_data_pct") if (value := self[key]) is not None]
        return max(known) if known else None

    @property
    def compute_busy(self) -> float | None:
        """The busiest pipe or the issue slots, over the whole device and the whole time; tensor cores apart."""
        pipes = [self[key] for key in ("fma_pct", "alu_pct", "xu_pct", "fp64_pct", "lsu_pct", "issue_pct")]
        known = [pipe for pipe in pipes if pipe is not None]
        active = self.active_share
        busy = max(known) * (1.0 if active is None else active) if known else None
        whole = self["sm_pct"]
        if whole is not None and whole > self.get("tensor_pct") + 5:
            return max(whole, busy or 0.0)
        return busy

    @property
    def active_share(self) -> float | None:
        """Mean over the multiprocessors of the share of the kernel's time in which they had a block."""
        share = self.ratio("sm_active_cycles", "elapsed_cycles")
        return None if share is None else min(1.0, share)

    @property
    def memory_stalled(self) -> float | None:
        return self.stall_share("long_scoreboard", "lg_throttle", "drain")


def limiter(kernel: ProfiledKernel) -> str | None:
    """What keeps more blocks off a multiprocessor, in words."""
    names = {
        "blocks_by_registers": "registers",
        "blocks_by_shared": "shared memory",
        "blocks_by_warps": "the block's size",
        "blocks_by_limit": "the number of blocks",
    }
    known = {words: kernel.figures[key] for key, words in names.items() if kernel.figures.get(key)}
    if not known or (kernel.figures.get("theoretical_occupancy_pct") or 0.0) >= 100:
        return None
    least = min(known.values())
    return " and ".join(words for words, blocks in known.items() if blocks == least)


def nvidia_gain(kernel: ProfiledKernel, *identifiers: str) -> float | None:
    """The largest whole-kernel speed-up that NVIDIA's rules of these names estimate, in percent of the time."""
    gains = [
        rule.speedup_pct
        for rule in kernel.rules
        if rule.identifier in identifiers and rule.whole_kernel and rule.speedup_pct is not None
    ]
    return max(gains) if gains else None


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


Rule = Callable[[Facts], Diagnosis | None]


def clamp(value: float) -> float:
    """A strength: never certain."""
    return max(0.0, min(0.98, value))


def percent(share: float) -> float:
    """Of the time, for a share of it; never all of it."""
    return 100 * max(0.0, min(0.95, share))
