"""What holds a kernel back, from whatever its profile holds. Each rule says how strongly a few figures point to one
bottleneck. Faults come before saturated units, which may be busy with a fault's work. The first rule that is sure
enough wins; where none is, the strongest one does."""

from __future__ import annotations

from dataclasses import dataclass
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
WIDEST_COALESCED = 16.0
"""Sectors of 32 bytes in a coalesced request of 32 lanes with 16 bytes each."""
WARP = 32
PIPES = {
    "fma_pct": "the FMA pipe",
    "alu_pct": "the ALU pipe",
    "xu_pct": "special functions (XU)",
    "fp64_pct": "the float64 pipe",
    "lsu_pct": "the load/store pipe",
    "issue_pct": "instruction issue",
}


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
    gain_pct: float | None = None
    """At most this much of the kernel's time goes away with the fault; None where that cannot be said."""

    @property
    def reason(self) -> str:
        return "; ".join(self.evidence[:2])

    @property
    def sureness(self) -> str:
        return "clear" if self.strength >= 0.8 else "likely" if self.strength >= SURE else "a guess"


class Facts:
    """A kernel's figures, and what several rules derive from them; None is what the report does not say."""

    def __init__(self, kernel: ProfiledKernel) -> None:
        self.kernel = kernel
        self._figures: dict[str, float | None] = {**kernel.figures}
        waits = {reason: self[STALL_PREFIX + reason] for reason in STALLS if reason not in ("selected", "not_selected")}
        known = [(reason, cycles) for reason, cycles in waits.items() if cycles is not None]
        self.stalls = dict(sorted(known, key=lambda item: -item[1]))
        """Cycles for each issued instruction, largest first, without those that are no waiting."""
        active, sectors = self.ratio("sm_active_cycles", "elapsed_cycles"), self["l2_sectors_pct"]
        self._figures["active_share"] = None if active is None else min(1.0, active)
        # From its sectors where only those were read, of which 2/3 of the peak is all it ever does.
        of_sectors = None if sectors is None else min(100.0, 1.5 * sectors)
        self._figures["l2_busy"] = of_sectors if self["l2_pct"] is None else self["l2_pct"]
        self._figures["l1_busy"] = self._most_known("l1_pct", "lsu_data_pct")
        self._figures["compute_busy"] = self._compute_busy()
        self._figures["memory_stalled"] = self.stall_share("long_scoreboard", "lg_throttle", "drain")

    def __getitem__(self, key: str) -> float | None:
        return self._figures.get(key)

    def get(self, *keys: str) -> float:
        """The largest of these; 0 where the report lacks all."""
        return self._most_known(*keys) or 0.0

    def _most_known(self, *keys: str) -> float | None:
        return max((value for key in keys if (value := self[key]) is not None), default=None)

    def ratio(self, top: str, bottom: str) -> float | None:
        a, b = self[top], self[bottom]
        return a / b if a is not None and b else None

    def stall_share(self, *reasons: str) -> float | None:
        total = sum(self.stalls.values())
        return sum(self.stalls.get(reason, 0.0) for reason in reasons) / total if total > 0 else None

    def _compute_busy(self) -> float | None:
        """The busiest pipe or the issue slots, over the whole device and the whole time; tensor cores apart."""
        most = self._most_known(*PIPES)
        active, whole = self["active_share"], self["sm_pct"]
        busy = most if most is None or active is None else most * active
        if whole is not None and whole > self.get("tensor_pct") + 5:
            return max(whole, busy or 0.0)
        return busy

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


# ---- The rules -------------------------------------------------------------------------------------------------------


def classify(kernel: ProfiledKernel) -> tuple[Diagnosis, ...]:
    facts = Facts(kernel)
    findings = [finding for rule in RULES if (finding := rule(facts)) is not None]
    if not findings:
        return (Diagnosis(Bottleneck.OCCUPANCY, 0.05, ("the report has none of the required metrics",)),)
    by_strength = sorted(findings, key=lambda finding: -finding.strength)
    first = next((finding for finding in findings if finding.strength >= SURE), by_strength[0])
    return (first, *(finding for finding in by_strength if finding is not first))


def _clamp(value: float, most: float = 0.98) -> float:
    return max(0.0, min(most, value))


def _percent(share: float) -> float:
    """Of the time, for a share of it; never all of it."""
    return 100 * _clamp(share, 0.95)


def _waiting_for_memory(facts: Facts) -> list[str]:
    stalled = facts["memory_stalled"]
    return [] if stalled is None else [f"{stalled:.0%} of the waiting is for memory"]


def _launch(facts: Facts) -> Diagnosis | None:
    time = facts["duration_us"]
    if time is None or time >= LAUNCH_BOUND_US:
        return None
    # Close to the limit the kernel's own work counts as well.
    strength = 0.95 - 0.35 * (time / LAUNCH_BOUND_US) ** 2
    return Diagnosis(Bottleneck.LAUNCH, strength, (f"it runs for {time:.1f} µs, under {LAUNCH_BOUND_US:.0f} µs",))


def _small_grid(facts: Facts) -> Diagnosis | None:
    grid, sms, waves, active = facts["grid"], facts.kernel.sm_count, facts["waves"], facts["active_share"]
    idle = None if active is None else 1.0 - active
    moves = facts.get("dram_pct", "l2_busy") >= BANDWIDTH_BUSY_PCT
    if grid is None or moves or facts.get("tensor_pct") >= UNIT_BUSY_PCT:
        return None
    if sms and grid < sms:
        expected = 1.0 - grid / sms
        share = expected if idle is None else min(idle, expected + IDLE_SHARE)
        if share >= IDLE_SHARE:
            evidence = (f"{grid:.0f} blocks for {sms} multiprocessors", f"{share:.0%} of the device's time is idle")
            return Diagnosis(Bottleneck.SMALL_GRID, _clamp(0.55 + 0.45 * share), evidence, 100 * share)
    if waves is None or waves <= 0:
        return None
    achieved, fits = facts.get("occupancy_pct"), facts.get("theoretical_occupancy_pct")
    if waves < 0.5 and fits > 2 * achieved > 0:
        evidence = (
            f"{waves:.2f} waves: the grid fills {waves:.0%} of what the device holds at once",
            f"occupancy is {achieved:.0f}% where {fits:.0f}% would fit",
        )
        busy = facts.get("compute_busy", "l1_busy")
        return Diagnosis(Bottleneck.SMALL_GRID, 0.7 if busy < UNIT_BUSY_PCT else 0.3, evidence)
    whole = -(-waves // 1)
    wasted = 1.0 - waves / whole
    share = wasted if idle is None else min(idle, wasted)
    if share < 0.75 * IDLE_SHARE:
        return None
    lost = "of the last wave's time is lost" if idle is None else "of the device's time is idle"
    evidence = (f"{waves:.2f} waves take the time of {whole:.0f}", f"{share:.0%} {lost}")
    strength = 0.35 + 0.5 * share if idle is None else 0.5 + 0.9 * share
    return Diagnosis(Bottleneck.SMALL_GRID, _clamp(strength), evidence, 100 * share)


def _spills(facts: Facts) -> Diagnosis | None:
    share = facts.ratio("local_instructions", "instructions")
    if share is None or share < LOCAL_SHARE:
        return None
    evidence = [f"{share:.0%} of its instructions load or store local memory"]
    if facts["registers"] is not None:
        evidence.append(f"{facts.get('registers'):.0f} registers per thread")
    stalled, busy = facts["memory_stalled"], facts.get("tensor_pct", "compute_busy")
    relevant = (1.0 if stalled is None else _clamp(0.4 + stalled)) * (0.5 if busy >= SATURATED_PCT else 1.0)
    gain = _percent(share + (stalled or 0.0) / 2)
    evidence += _waiting_for_memory(facts)
    return Diagnosis(Bottleneck.SPILLS, _clamp(0.55 + 1.2 * share) * relevant, tuple(evidence), gain)


def _bank_conflicts(facts: Facts) -> Diagnosis | None:
    share, busy = facts.ratio("bank_conflicts", "shared_wavefronts"), facts["l1_busy"]
    if share is None:
        return _hidden_bank_conflicts(facts)
    if share < CONFLICT_SHARE:
        return None
    stalled = facts.stall_share("short_scoreboard", "mio_throttle")
    relevant = max(stalled or 0.0, (busy or 0.0) / 100)
    evidence = [f"{share:.0%} of the shared-memory wavefronts are bank conflicts"]
    if busy is not None:
        evidence.append(f"L1 and shared memory are {busy:.0f}% busy")
    if stalled is not None:
        evidence.append(f"{stalled:.0%} of the waiting is for shared memory")
    gain = 100 * share * (busy / 100 if busy else relevant)
    return Diagnosis(Bottleneck.BANK_CONFLICTS, _clamp(1.25 * share * relevant), tuple(evidence), gain)


def _hidden_bank_conflicts(facts: Facts) -> Diagnosis | None:
    """Without the counter of conflicts: L1 is busy though few instructions go there and L2 sees little."""
    busy, compute, shared = facts["l1_busy"], facts["compute_busy"], facts.get("shared_bytes")
    if busy is None or compute is None or busy < UNIT_BUSY_PCT or compute > busy / 3:
        return None
    if shared <= 0 or facts.get("dram_pct", "l2_busy") > 0.6 * busy:
        return None
    kib = f"{shared / 1024:.0f} KiB of shared memory per block"
    evidence = (
        f"L1 and shared memory are {busy:.0f}% busy with {compute:.0f}% of the instruction rate",
        kib if shared >= 1024 else f"{shared:.0f} bytes of shared memory",
        "the report has no count of bank conflicts",
    )
    return Diagnosis(Bottleneck.BANK_CONFLICTS, 0.55, evidence)


def _coalescing(facts: Facts) -> Diagnosis | None:
    excess, evidence = _excess(facts)
    if excess is None or excess < EXCESS_SHARE:
        return None
    busy = facts.get("dram_pct", "l2_busy", "l1_busy")
    # Few warps wait for memory whatever they ask of it: then waiting shows latency, not excess.
    warps = _clamp(facts.get("occupancy_pct") / LOW_OCCUPANCY_PCT) if facts["occupancy_pct"] is not None else 1.0
    relevant = max(busy / 100, facts.get("memory_stalled") * warps)
    if facts.get("tensor_pct", "compute_busy") >= SATURATED_PCT:
        relevant /= 2
    parts = (evidence, *_waiting_for_memory(facts), f"the busiest memory unit is at {busy:.0f}%")
    return Diagnosis(Bottleneck.COALESCING, _clamp(1.3 * excess * relevant), parts, 100 * excess * busy / 100)


def _excess(facts: Facts) -> tuple[float | None, str]:
    """The share of global memory's sectors that coalesced requests would not move."""
    sectors, ideal = facts["global_sectors"], facts["global_sectors_ideal"]
    if sectors and ideal is not None:
        share = 1.0 - ideal / sectors
        return share, f"{share:.0%} of the sectors moved are excessive"
    total = moved = needed = 0.0
    worst = ""
    for op in ("load", "store"):
        sectors, requests = facts[f"{op}_sectors"], facts[f"{op}_requests"]
        if sectors is None or not requests:
            continue
        # A coalesced request of 32 lanes moves as many sectors of 32 bytes as a lane takes bytes.
        coalesced = facts[f"code_{op}_bytes"] or WIDEST_COALESCED
        total += sectors
        if sectors / requests > 1.2 * coalesced:
            moved += sectors
            needed += coalesced * requests if facts[f"code_{op}_bytes"] else 4.0 * requests
            worst = f"{sectors / requests:.0f} sectors per {op} request, where {coalesced:.0f} would be coalesced"
    return ((moved - needed) / total, worst) if total else (None, "")


def _divergence(facts: Facts) -> Diagnosis | None:
    """Lanes that idle cost what the kernel spends on instructions, not what it waits for memory."""
    active, working = facts["threads_per_instruction"], facts["threads_working"]
    fewest = min((one for one in (active, working) if one is not None), default=WARP)
    if fewest >= DIVERGED_THREADS:
        return None
    lost, stalled = 1.0 - fewest / WARP, facts["memory_stalled"]
    relevant = facts.get("compute_busy") / 100 if stalled is None else 1.0 - stalled
    if facts.get("dram_pct", "l2_busy") >= BANDWIDTH_BUSY_PCT:
        relevant /= 2
    evidence = [f"{fewest:.1f} of a warp's {WARP} threads work in an instruction"]
    if active is not None and working is not None and active - working >= 1:
        evidence.append(f"{active:.1f} are active, and predicates switch off {active - working:.1f} of them")
    evidence += _waiting_for_memory(facts)
    return Diagnosis(Bottleneck.DIVERGENCE, _clamp(1.3 * lost * relevant), tuple(evidence), _percent(lost * relevant))


def _barrier(facts: Facts) -> Diagnosis | None:
    share = facts.stall_share("barrier")
    if share is None or share < BARRIER_SHARE or next(iter(facts.stalls)) != "barrier":
        return None
    cycles, issue = facts.get(STALL_PREFIX + "barrier"), facts.get("issue_pct")
    busy = facts.get("tensor_pct", "dram_pct", "l2_busy", "issue_pct")
    waits = f"{share:.0%} of the waiting is at barriers, {cycles:.1f} cycles for each instruction"
    strength = _clamp(0.4 + 0.8 * share) * (1.0 if busy < SATURATED_PCT else 0.4)
    gain = _percent(share * (1 - issue / 100))
    return Diagnosis(Bottleneck.BARRIER, strength, (waits, f"no unit is above {busy:.0f}%"), gain)


def _saturated(facts: Facts) -> Diagnosis | None:
    """The busiest unit: of DRAM and L2 the one further down, since all that DRAM moves passes through L2."""
    dram, l2, tensor, compute = (facts[key] for key in ("dram_pct", "l2_busy", "tensor_pct", "compute_busy"))
    units: list[tuple[float, Bottleneck, str]] = []
    if dram is not None and (l2 is None or dram >= 0.7 * l2):
        units.append((dram, Bottleneck.DRAM, f"DRAM is at {dram:.0f}% of its peak"))
    elif l2 is not None:
        hit = facts["l2_hit_pct"]
        hits = "" if hit is None else f", {min(100.0, hit):.0f}% of its accesses hit"
        units.append((l2, Bottleneck.L2, f"L2 is at {l2:.0f}% of its peak{hits}"))
    if tensor is not None:
        units.append((tensor, Bottleneck.TENSOR, f"tensor cores are {tensor:.0f}% busy"))
    if compute is not None:
        pipe = max(PIPES, key=facts.get)
        busiest = f"{PIPES[pipe]} is {facts.get(pipe):.0f}% busy"
        spread = f"the multiprocessors' pipes are {compute:.0f}% busy"
        units.append((compute, Bottleneck.COMPUTE, busiest if facts.get(pipe) >= 0.8 * compute else spread))
    if not units:
        return None
    (most, bottleneck, words), *others = sorted(units, reverse=True)
    evidence = [words, *(text for pct, _, text in others[:2] if pct >= TENSOR_UNUSED_PCT)]
    gap = most - (others[0][0] if others else 0.0)
    strength = _clamp((most - 20) / 75) * _clamp(0.85 + gap / 150)
    if len(units) < 3:
        strength *= 0.85  # a unit that the report does not show may be busier
    moves = bottleneck in (Bottleneck.DRAM, Bottleneck.L2)
    is_busy = most >= (BANDWIDTH_BUSY_PCT if moves else UNIT_BUSY_PCT)
    return Diagnosis(bottleneck, strength if is_busy else min(strength, SURE - 0.05), tuple(evidence))


def _occupancy(facts: Facts) -> Diagnosis | None:
    achieved = facts["theoretical_occupancy_pct"] if facts["occupancy_pct"] is None else facts["occupancy_pct"]
    busy = facts.get("dram_pct", "l2_busy", "tensor_pct", "l1_busy", "compute_busy")
    if achieved is None or achieved >= ENOUGH_OCCUPANCY_PCT or busy >= SATURATED_PCT:
        return None
    limit, issue = facts.limiter(), facts["issue_pct"]
    evidence = (f"occupancy is {achieved:.0f}%", f"no unit is above {busy:.0f}%")
    low = _clamp((ENOUGH_OCCUPANCY_PCT - achieved) / (ENOUGH_OCCUPANCY_PCT - 10))
    gain = None if issue is None else min(100.0 - max(issue, busy), 100.0 - 100 * achieved / ENOUGH_OCCUPANCY_PCT)
    limited = (f"limited by {limit}",) if limit else ()
    return Diagnosis(Bottleneck.OCCUPANCY, low * _clamp(1.15 - busy / 130), (*evidence, *limited), gain)


RULES = (_launch, _small_grid, _spills, _bank_conflicts, _coalescing, _divergence, _barrier, _saturated, _occupancy)
