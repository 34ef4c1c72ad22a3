"""What holds a kernel back, from whatever its profile holds.

Each rule looks at a few figures and says how strongly they point to one bottleneck. Faults come before saturated
units, for a unit that is busy with a fault's work (sectors nobody asked for, replays of bank conflicts, spills) is not
what the author should look at. The first rule that is sure enough wins; where none is, the strongest one does, with the
low confidence that it has.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.bench.explain.metrics import STALL_PREFIX
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.ci.explain.diagnosis import (
    BANDWIDTH_BUSY_PCT,
    BARRIER_SHARE,
    CONFLICT_SHARE,
    DIVERGED_THREADS,
    ENOUGH_OCCUPANCY_PCT,
    EXCESS_SHARE,
    IDLE_SHARE,
    LAUNCH_BOUND_US,
    LOCAL_SHARE,
    LOW_OCCUPANCY_PCT,
    SATURATED_PCT,
    SURE,
    TENSOR_UNUSED_PCT,
    UNIT_BUSY_PCT,
    Bottleneck,
    Diagnosis,
    Facts,
)

WIDEST_COALESCED = 16.0
"""Sectors of 32 bytes in a coalesced request of 32 lanes with 16 bytes each."""
WARP = 32


def classify(kernel: ProfiledKernel) -> tuple[Diagnosis, ...]:
    """The findings, the bottleneck first: the first rule that is sure enough, else the strongest."""
    facts = Facts(kernel)
    findings = [finding for rule in RULES if (finding := rule(facts)) is not None]
    if not findings:
        return (Diagnosis(Bottleneck.OCCUPANCY, 0.05, ("the report has none of the required metrics",)),)
    by_strength = sorted(findings, key=lambda finding: -finding.strength)
    first = next((finding for finding in findings if finding.strength >= SURE), by_strength[0])
    return (first, *(finding for finding in by_strength if finding is not first))


def ranked(findings: tuple[Diagnosis, ...]) -> Iterator[Diagnosis]:
    """Those worth acting on: the bottleneck, then what else the figures point to."""
    yield findings[0]
    yield from (finding for finding in findings[1:] if finding.strength >= 0.3)


def _clamp(value: float) -> float:
    """A strength: never certain."""
    return max(0.0, min(0.98, value))


def _percent(share: float) -> float:
    """Of the time, for a share of it; never all of it."""
    return 100 * max(0.0, min(0.95, share))


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
        if share < IDLE_SHARE:
            return None
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
    counted, coded = facts.ratio("local_instructions", "instructions"), facts.ratio("code_local", "code_instructions")
    share = coded if counted is None else counted
    if share is None or share < LOCAL_SHARE:
        return None
    whose = "the code’s" if counted is None else "its"
    evidence = [f"{share:.0%} of {whose} instructions load or store local memory"]
    if facts["registers"] is not None:
        evidence.append(f"{facts.get('registers'):.0f} registers per thread")
    stalled = facts["memory_stalled"]
    busy = facts.get("tensor_pct", "compute_busy")
    relevant = (1.0 if stalled is None else _clamp(0.4 + stalled)) * (0.5 if busy >= SATURATED_PCT else 1.0)
    if counted is None:
        # Code that runs once says nothing; code that is run often shows in the memory units.
        memory = facts.get("dram_pct", "l2_busy", "l1_busy")
        relevant *= 0.9 if memory >= BANDWIDTH_BUSY_PCT / 2 else 0.5
    strength = _clamp(0.55 + 1.2 * share) * relevant
    gain = _percent(share + (stalled or 0.0) / 2)
    return Diagnosis(Bottleneck.SPILLS, strength, (*evidence, *_waiting_for_memory(facts)), gain)


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


def _is_replaying(facts: Facts) -> bool:
    """L1 is busy though few instructions go there."""
    busy, compute = facts["l1_busy"], facts["compute_busy"]
    return busy is not None and compute is not None and busy >= UNIT_BUSY_PCT and compute <= busy / 3


def _hidden_bank_conflicts(facts: Facts) -> Diagnosis | None:
    """Without the counter of conflicts: L1 is busy though few instructions go there and L2 sees little."""
    ruled = facts.nvidia_gain("SharedMemoryConflicts", "UncoalescedSharedAccess")
    if ruled is not None:
        evidence: tuple[str, ...] = (f"NVIDIA's rules: {ruled:.0f}% to gain",)
        return Diagnosis(Bottleneck.BANK_CONFLICTS, _clamp(ruled / 100), evidence, ruled)
    busy, compute, shared = facts.get("l1_busy"), facts.get("compute_busy"), facts.get("shared_bytes")
    if not _is_replaying(facts) or shared <= 0 or facts.get("dram_pct", "l2_busy") > 0.6 * busy:
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
    if excess is None:
        return _hidden_coalescing(facts)
    if excess < EXCESS_SHARE:
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
    used = [value for key in ("load_bytes_per_sector", "store_bytes_per_sector") if (value := facts[key])]
    if used:
        return 1.0 - min(used) / 32, f"{min(used):.0f} of the 32 bytes of a sector are used"
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


def _hidden_coalescing(facts: Facts) -> Diagnosis | None:
    ruled = facts.nvidia_gain("UncoalescedGlobalAccess")
    if ruled is not None:
        return Diagnosis(
            Bottleneck.COALESCING, _clamp(ruled / 80), (f"NVIDIA's rules see {ruled:.0f}% to gain",), ruled
        )
    busy, compute, dram = facts.get("l1_busy"), facts.get("compute_busy"), facts.get("dram_pct")
    uncounted, memory = "the report has no count of sectors", facts.get("l2_busy", "dram_pct")
    known = all(facts[key] is not None for key in ("l2_busy", "compute_busy", "occupancy_pct"))
    # Many warps in flight, little arithmetic, and still no memory unit that is saturated: requests are split up.
    if known and facts.get("occupancy_pct") >= 60 and 20 <= memory < BANDWIDTH_BUSY_PCT and compute < memory / 8:
        occupancy = f"occupancy is {facts.get('occupancy_pct'):.0f}% and yet no memory unit is above"
        scattered = (f"{occupancy} {facts.get('l2_busy'):.0f}%", f"pipes are {compute:.0f}% busy", uncounted)
        return Diagnosis(Bottleneck.COALESCING, SURE - 0.04, scattered)
    if not _is_replaying(facts) or facts.get("shared_bytes") > 0 or facts.get("tensor_pct") > 20 or dram > 0.6 * busy:
        return None
    said = f"L1 is {busy:.0f}% busy with {compute:.0f}% of the instruction rate, and no shared memory is used"
    return Diagnosis(Bottleneck.COALESCING, 0.52, (said, uncounted))


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
    share, adu, whole = facts.stall_share("barrier"), facts["adu_pct"], facts["sm_pct"]
    if share is None:
        # Without stalls: the unit of barriers and branches is the busiest one, which arithmetic never makes it.
        if adu is None or whole is None or adu < 40 or adu < 0.9 * whole:
            return None
        evidence = (f"the unit for barriers and branches is {adu:.0f}% busy", "the report has no stalls")
        return Diagnosis(Bottleneck.BARRIER, 0.55, evidence)
    if share < BARRIER_SHARE or next(iter(facts.stalls)) != "barrier":
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
        units.append((compute, Bottleneck.COMPUTE, _pipe(facts, compute)))
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


def _pipe(facts: Facts, busy: float) -> str:
    pipes = {
        "the FMA pipe": facts.get("fma_pct"),
        "the ALU pipe": facts.get("alu_pct"),
        "special functions (XU)": facts.get("xu_pct"),
        "the float64 pipe": facts.get("fp64_pct"),
        "the load/store pipe": facts.get("lsu_pct"),
        "instruction issue": facts.get("issue_pct"),
    }
    name, pct = max(pipes.items(), key=lambda item: item[1])
    return f"{name} is {pct:.0f}% busy" if pct >= 0.8 * busy else f"the multiprocessors' pipes are {busy:.0f}% busy"


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
