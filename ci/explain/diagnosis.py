"""What a profile says, what is derived from it, and what a rule of bottleneck.py finds in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

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


SURE = 0.5
"""Of a strength, which is a scale of our own."""


class Bottleneck(StrEnum):
    """Each with what people call it, and its section of the cookbook."""

    words: str
    anchor: str

    def __new__(cls, name: str, words: str, anchor: str) -> Self:
        made = str.__new__(cls, name)
        made._value_, made.words, made.anchor = name, words, anchor
        return made

    TENSOR = "tensor", "tensor-core bound", "tensor-cores"
    COMPUTE = "compute", "bound by arithmetic or instruction issue", "arithmetic-and-unrolling"
    DRAM = "dram", "DRAM bound", "dram-traffic"
    L2 = "l2", "L2 bound", "l2-traffic"
    OCCUPANCY = "occupancy", "latency bound by low occupancy", "occupancy"
    LAUNCH = "launch", "launch bound", "launch-overhead"
    COALESCING = "coalescing", "uncoalesced access", "coalescing"
    BANK_CONFLICTS = "bank_conflicts", "shared-memory bank conflicts", "bank-conflicts"
    SPILLS = "spills", "register spills", "register-spills"
    SMALL_GRID = "small_grid", "too small a grid or a tail wave", "grid-size-and-tail"
    BARRIER = "barrier", "barrier stalls", "barriers"
    DIVERGENCE = "divergence", "warp divergence", "warp-divergence"


@dataclass(frozen=True)
class Diagnosis:
    bottleneck: Bottleneck
    strength: float
    """0 to 1: how sure the figures make this."""
    evidence: tuple[str, ...]
    """The numbers that led here, as sentences' parts."""
    gain_pct: float | None = None
    """At most this much of the kernel's time goes away with the fault; None where that cannot be said."""

    @property
    def sureness(self) -> str:
        return "clear" if self.strength >= 0.8 else "likely" if self.strength >= SURE else "a guess"


@dataclass(frozen=True)
class Facts:
    """A kernel's figures, and what several rules derive from them; None is what the report does not say."""

    kernel: ProfiledKernel
    stalls: dict[str, float] = field(init=False, default_factory=dict)
    """Cycles for each issued instruction, largest first, without those that are no waiting."""
    derived: dict[str, float | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        waits = {reason: self[STALL_PREFIX + reason] for reason in STALLS if reason not in ("selected", "not_selected")}
        known = [(reason, cycles) for reason, cycles in waits.items() if cycles is not None]
        self.stalls.update(sorted(known, key=lambda item: -item[1]))
        active, sectors = self.ratio("sm_active_cycles", "elapsed_cycles"), self["l2_sectors_pct"]
        self.derived["active_share"] = None if active is None else min(1.0, active)
        # From its sectors where only those were read, of which 2/3 of the peak is all it ever does.
        of_sectors = None if sectors is None else min(100.0, 1.5 * sectors)
        self.derived["l2_busy"] = of_sectors if self["l2_pct"] is None else self["l2_pct"]
        self.derived["l1_busy"] = self._most_known("l1_pct", "lsu_data_pct")
        self.derived["compute_busy"] = self._compute_busy()
        self.derived["memory_stalled"] = self.stall_share("long_scoreboard", "lg_throttle", "drain")

    def __getitem__(self, key: str) -> float | None:
        return self.derived[key] if key in self.derived else self.kernel.figures.get(key)

    def get(self, *keys: str) -> float:
        """The largest of these; 0 where the report lacks all: for rules that only ask whether something is large."""
        return self._most_known(*keys) or 0.0

    def _most_known(self, *keys: str) -> float | None:
        return max((value for key in keys if (value := self[key]) is not None), default=None)

    def ratio(self, top: str, bottom: str) -> float | None:
        a, b = self[top], self[bottom]
        return a / b if a is not None and b else None

    def stall_share(self, *reasons: str) -> float | None:
        """These reasons' share of a warp's waiting."""
        total = sum(self.stalls.values())
        return sum(self.stalls.get(reason, 0.0) for reason in reasons) / total if total > 0 else None

    def _compute_busy(self) -> float | None:
        """The busiest pipe or the issue slots, over the whole device and the whole time; tensor cores apart."""
        most = self._most_known("fma_pct", "alu_pct", "xu_pct", "fp64_pct", "lsu_pct", "issue_pct")
        active, whole = self["active_share"], self["sm_pct"]
        busy = most if most is None or active is None else most * active
        if whole is not None and whole > self.get("tensor_pct") + 5:
            return max(whole, busy or 0.0)
        return busy

    def nvidia_gain(self, *identifiers: str) -> float | None:
        """The largest whole-kernel speed-up that NVIDIA's rules of these names estimate, in percent of the time."""
        rules = [rule for rule in self.kernel.rules if rule.identifier in identifiers and rule.whole_kernel]
        return max((rule.speedup_pct for rule in rules if rule.speedup_pct is not None), default=None)

    def limiter(self) -> str:
        """What keeps more blocks off a multiprocessor, in words; empty where nothing does or nobody knows."""
        names = {
            "blocks_by_registers": "registers",
            "blocks_by_shared": "shared memory",
            "blocks_by_warps": "the block's size",
            "blocks_by_limit": "the number of blocks",
        }
        known = {words: blocks for key, words in names.items() if (blocks := self[key])}
        if self.get("theoretical_occupancy_pct") >= 100:
            return ""
        return " and ".join(words for words, blocks in known.items() if blocks == min(known.values()))
