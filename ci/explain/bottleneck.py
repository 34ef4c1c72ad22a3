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
    Rule,
    clamp,
    limiter,
    nvidia_gain,
    percent,
)

WIDEST_COALESCED = 16.0
"""Sectors of 32 bytes in a coalesced request of 32 lanes with 16 bytes each."""


def bank_conflicts(facts: Facts) -> Diagnosis | None:
    share = facts.ratio("bank_conflicts", "shared_wavefronts")
    if share is None:
        return _hidden_bank_conflicts(facts)
    if share < CONFLICT_SHARE:
        return None
    stalled = facts.stall_share("short_scoreboard", "mio_throttle")
    busy = facts.l1_busy
    relevant = max(stalled or 0.0, (busy or 0.0) / 100)
    evidence = [f"{share:.0%} of the shared-memory wavefronts are bank conflicts"]
    if busy is not None:
        evidence.append(f"L1 and shared memory are {busy:.0f}% busy")
    if stalled is not None:
        evidence.append(f"{stalled:.0%} of the waiting is for shared memory")
    gain = 100 * share * ((busy or 0.0) / 100 if busy else relevant)
    return Diagnosis(Bottleneck.BANK_CONFLICTS, clamp(1.25 * share * relevant), tuple(evidence), gain)


def _hidden_bank_conflicts(facts: Facts) -> Diagnosis | None:
    """Without the counter of conflicts: L1 is busy though few instructions go there and L2 sees little."""
    busy, compute, shared = facts.l1_busy, facts.compute_busy, facts.get("shared_bytes")
    ruled = nvidia_gain(facts.kernel, "SharedMemoryConflicts", "UncoalescedSharedAccess")
    if ruled is not None:
        return Diagnosis(
            Bottleneck.BANK_CONFLICTS, clamp(ruled / 100), (f"NVIDIA's rules: {ruled:.0f}% to gain",), ruled
        )
    if busy is None or compute is None or shared <= 0 or busy < UNIT_BUSY_PCT or compute > busy / 3:
        return None
    if max(facts.get("dram_pct"), facts.l2_busy or 0.0) > 0.6 * busy:
        return None
    evidence = (
        f"L1 and shared memory are {busy:.0f}% busy with {compute:.0f}% of the instruction rate",
        f"{shared / 1024:.0f} KiB of shared memory per block"
        if shared >= 1024
        else f"{shared:.0f} bytes of shared memory",
        "the report has no count of bank conflicts",
    )
    return Diagnosis(Bottleneck.BANK_CONFLICTS, 0.55, evidence)


def coalescing(facts: Facts) -> Diagnosis | None:
    excess, evidence = _excess(facts)
    if excess is None:
        return _hidden_coalescing(facts)
    if excess < EXCESS_SHARE:
        return None
    busy = max(facts.get("dram_pct"), facts.l2_busy or 0.0, facts.l1_busy or 0.0)
    stalled = facts.memory_stalled
    # Few warps wait for memory whatever they ask of it: then waiting shows latency, not excess.
    warps = clamp(facts.get("occupancy_pct") / LOW_OCCUPANCY_PCT) if facts["occupancy_pct"] is not None else 1.0
    relevant = max(busy / 100, (stalled or 0.0) * warps)
    if facts.get("tensor_pct") >= SATURATED_PCT or (facts.compute_busy or 0.0) >= SATURATED_PCT:
        relevant /= 2
    parts = [evidence]
    if stalled is not None:
        parts.append(f"{stalled:.0%} of the waiting is for memory")
    parts.append(f"the busiest memory unit is at {busy:.0f}%")
    return Diagnosis(Bottleneck.COALESCING, clamp(1.3 * excess * relevant), tuple(parts), 100 * excess * busy / 100)


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
        sectors, requests = facts.get(f"{op}_sectors"), facts.get(f"{op}_requests")
        if facts[f"{op}_sectors"] is None or not requests:
            continue
        # A coalesced request of 32 lanes moves as many sectors of 32 bytes as a lane takes bytes.
        coalesced = facts[f"code_{op}_bytes"] or WIDEST_COALESCED
        total += sectors
        if sectors / requests > 1.2 * coalesced:
            moved += sectors
            needed += coalesced * requests if facts[f"code_{op}_bytes"] else 4.0 * requests
            worst = f"{sectors / requests:.0f} sectors per {op} request, where {coalesced:.0f} would be coalesced"
    if not total:
        return None, ""
    return (moved - needed) / total, worst


def _hidden_coalescing(facts: Facts) -> Diagnosis | None:
    ruled = nvidia_gain(facts.kernel, "UncoalescedGlobalAccess")
    if ruled is not None:
        return Diagnosis(Bottleneck.COALESCING, clamp(ruled / 80), (f"NVIDIA's rules see {ruled:.0f}% to gain",), ruled)
    busy, compute = facts.l1_busy, facts.compute_busy
    if _scattered(facts):
        scattered = (
            f"occupancy is {facts.get('occupancy_pct'):.0f}% and yet no memory unit is above {facts.l2_busy or 0:.0f}%",
            f"pipes are {compute or 0:.0f}% busy",
            "the report has no count of sectors",
        )
        return Diagnosis(Bottleneck.COALESCING, SURE - 0.04, scattered)
    if busy is None or compute is None or busy < UNIT_BUSY_PCT or compute > busy / 3:
        return None
    if facts.get("shared_bytes") > 0:
        return None
    if facts.get("tensor_pct") > 20 or facts.get("dram_pct") > 0.6 * busy:
        return None
    evidence = (
        f"L1 is {busy:.0f}% busy with {compute:.0f}% of the instruction rate, and no shared memory is used",
        "the report has no count of sectors",
    )
    return Diagnosis(Bottleneck.COALESCING, 0.52, evidence)


def _scattered(facts: Facts) -> bool:
    """Many warps in flight, little arithmetic, and still no memory unit that is saturated: requests are split up."""
    l2, compute = facts.l2_busy, facts.compute_busy
    if l2 is None or compute is None or facts["occupancy_pct"] is None:
        return False
    most = max(l2, facts.get("dram_pct"))
    return facts.get("occupancy_pct") >= 60 and 20 <= most < BANDWIDTH_BUSY_PCT and compute < most / 8


WARP = 32


def classify(kernel: ProfiledKernel) -> tuple[Diagnosis, ...]:
    """The findings, the bottleneck first: the first rule that is sure enough, else the strongest."""
    facts = Facts(kernel)
    findings = [finding for rule in RULES if (finding := rule(facts)) is not None]
    if not findings:
        return (Diagnosis(Bottleneck.OCCUPANCY, 0.05, ("the report has none of the required metrics",)),)
    first = next((finding for finding in findings if finding.strength >= SURE), None)
    first = first or max(findings, key=lambda finding: finding.strength)
    return (first, *sorted((f for f in findings if f is not first), key=lambda finding: -finding.strength))


def _launch(facts: Facts) -> Diagnosis | None:
    time = facts["duration_us"]
    if time is None or time >= LAUNCH_BOUND_US:
        return None
    # Close to the limit the kernel's own work counts as well.
    strength = 0.95 - 0.35 * (time / LAUNCH_BOUND_US) ** 2
    return Diagnosis(Bottleneck.LAUNCH, strength, (f"it runs for {time:.1f} µs, under {LAUNCH_BOUND_US:.0f} µs",))


def _small_grid(facts: Facts) -> Diagnosis | None:
    grid, sms, waves, active = facts["grid"], facts.kernel.sm_count, facts["waves"], facts.active_share
    idle = None if active is None else 1.0 - active
    moves = max(facts.get("dram_pct"), facts.l2_busy or 0.0) >= BANDWIDTH_BUSY_PCT
    saturated = moves or facts.get("tensor_pct") >= UNIT_BUSY_PCT
    if grid is None or saturated:
        return None
    if sms and grid < sms:
        expected = 1.0 - grid / sms
        share = expected if idle is None else min(idle, expected + IDLE_SHARE)
        if share < IDLE_SHARE:
            return None
        evidence = (f"{grid:.0f} blocks for {sms} multiprocessors", f"{share:.0%} of the device's time is idle")
        return Diagnosis(Bottleneck.SMALL_GRID, clamp(0.55 + 0.45 * share), evidence, 100 * share)
    if waves is None or waves <= 0:
        return None
    if waves < 0.5 and facts.get("theoretical_occupancy_pct") > 2 * facts.get("occupancy_pct") > 0:
        fits = facts.get("theoretical_occupancy_pct")
        evidence = (
            f"{waves:.2f} waves: the grid fills {waves:.0%} of what the device holds at once",
            f"occupancy is {facts.get('occupancy_pct'):.0f}% where {fits:.0f}% would fit",
        )
        busy = max(facts.compute_busy or 0.0, facts.l1_busy or 0.0)
        return Diagnosis(Bottleneck.SMALL_GRID, 0.7 if busy < UNIT_BUSY_PCT else 0.3, evidence)
    whole = -(-waves // 1)
    wasted = 1.0 - waves / whole
    share = wasted if idle is None else min(idle, wasted)
    if share < 0.75 * IDLE_SHARE:
        return None
    evidence = (
        f"{waves:.2f} waves take the time of {whole:.0f}",
        f"{share:.0%} of the device's time is idle"
        if idle is not None
        else f"{share:.0%} of the last wave's time is lost",
    )
    strength = 0.5 + 0.9 * share if idle is not None else 0.35 + 0.5 * share
    return Diagnosis(Bottleneck.SMALL_GRID, clamp(strength), evidence, 100 * share)


def _spills(facts: Facts) -> Diagnosis | None:
    share = facts.ratio("local_instructions", "instructions")
    counted = share is not None
    if share is None:
        share = facts.ratio("code_local", "code_instructions")
    if share is None or share < LOCAL_SHARE:
        return None
    evidence = [f"{share:.0%} of {'its' if counted else 'the code’s'} instructions load or store local memory"]
    if facts["registers"] is not None:
        evidence.append(f"{facts.get('registers'):.0f} registers per thread")
    stalled = facts.memory_stalled
    busy = max(facts.get("tensor_pct"), facts.compute_busy or 0.0)
    if stalled is not None:
        evidence.append(f"{stalled:.0%} of the waiting is for memory")
    relevant = (1.0 if stalled is None else clamp(0.4 + stalled)) * (0.5 if busy >= SATURATED_PCT else 1.0)
    if not counted:
        # Code that runs once says nothing; code that is run often shows in the memory units.
        memory = max(facts.get("dram_pct"), facts.l2_busy or 0.0, facts.l1_busy or 0.0)
        relevant *= 0.9 if memory >= BANDWIDTH_BUSY_PCT / 2 else 0.5
    strength = clamp(0.55 + 1.2 * share) * relevant
    return Diagnosis(Bottleneck.SPILLS, strength, tuple(evidence), percent(share + (stalled or 0.0) / 2))


def _divergence(facts: Facts) -> Diagnosis | None:
    """Lanes that idle cost what the kernel spends on instructions, not what it waits for memory."""
    active, working = facts["threads_per_instruction"], facts["threads_working"]
    fewest = min((one for one in (active, working) if one is not None), default=None)
    if fewest is None or fewest >= DIVERGED_THREADS:
        return None
    lost, stalled = 1.0 - fewest / WARP, facts.memory_stalled
    relevant = (facts.compute_busy or 0.0) / 100 if stalled is None else 1.0 - stalled
    if max(facts.get("dram_pct"), facts.l2_busy or 0.0) >= BANDWIDTH_BUSY_PCT:
        relevant /= 2
    evidence = [f"{fewest:.1f} of a warp's {WARP} threads work in an instruction"]
    if active is not None and working is not None and active - working >= 1:
        evidence.append(f"{active:.1f} are active, and predicates switch off {active - working:.1f} of them")
    if stalled is not None:
        evidence.append(f"{stalled:.0%} of the waiting is for memory")
    return Diagnosis(Bottleneck.DIVERGENCE, clamp(1.3 * lost * relevant), tuple(evidence), percent(lost * relevant))


def _barrier(facts: Facts) -> Diagnosis | None:
    share = facts.stall_share("barrier")
    if share is None:
        return _hidden_barrier(facts)
    if share < BARRIER_SHARE or next(iter(facts.stalls)) != "barrier":
        return None
    cycles = facts.get(STALL_PREFIX + "barrier")
    busy = max(facts.get("tensor_pct"), facts.get("dram_pct"), facts.l2_busy or 0.0, facts.get("issue_pct"))
    evidence = (
        f"{share:.0%} of the waiting is at barriers, {cycles:.1f} cycles for each instruction",
        f"no unit is above {busy:.0f}%",
    )
    strength = clamp(0.4 + 0.8 * share) * (1.0 if busy < SATURATED_PCT else 0.4)
    return Diagnosis(Bottleneck.BARRIER, strength, evidence, percent(share * (1 - facts.get("issue_pct") / 100)))


def _hidden_barrier(facts: Facts) -> Diagnosis | None:
    """Without stalls: the unit of barriers and branches is the busiest one, which arithmetic never makes it."""
    adu, whole = facts["adu_pct"], facts["sm_pct"]
    if adu is None or whole is None or adu < 40 or adu < 0.9 * whole:
        return None
    evidence = (f"the unit for barriers and branches is {adu:.0f}% busy", "the report has no stalls")
    return Diagnosis(Bottleneck.BARRIER, 0.55, evidence)


def _saturated(facts: Facts) -> Diagnosis | None:
    """The busiest unit: of DRAM and L2 the one further down, since all that DRAM moves passes through L2."""
    dram, l2 = facts["dram_pct"], facts.l2_busy
    units: list[tuple[float, Bottleneck, str]] = []
    if dram is not None and (l2 is None or dram >= 0.7 * l2):
        units.append((dram, Bottleneck.DRAM, f"DRAM is at {dram:.0f}% of its peak"))
    elif l2 is not None:
        hit = facts["l2_hit_pct"]
        hits = "" if hit is None else f", {min(100.0, hit):.0f}% of its accesses hit"
        units.append((l2, Bottleneck.L2, f"L2 is at {l2:.0f}% of its peak{hits}"))
    if facts["tensor_pct"] is not None:
        units.append(
            (facts.get("tensor_pct"), Bottleneck.TENSOR, f"tensor cores are {facts.get('tensor_pct'):.0f}% busy")
        )
    compute = facts.compute_busy
    if compute is not None:
        units.append((compute, Bottleneck.COMPUTE, _pipe(facts, compute)))
    if not units:
        return None
    (most, bottleneck, words), *others = sorted(units, reverse=True)
    evidence = [words, *(text for pct, _, text in others[:2] if pct >= TENSOR_UNUSED_PCT)]
    gap = most - (others[0][0] if others else 0.0)
    strength = clamp((most - 20) / 75) * clamp(0.85 + gap / 150)
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
    achieved = facts["occupancy_pct"]
    if achieved is None:
        achieved = facts["theoretical_occupancy_pct"]
    if achieved is None or achieved >= ENOUGH_OCCUPANCY_PCT:
        return None
    busy = max(
        facts.get("dram_pct"),
        facts.l2_busy or 0.0,
        facts.get("tensor_pct"),
        facts.l1_busy or 0.0,
        facts.compute_busy or 0.0,
    )
    if busy >= SATURATED_PCT:
        return None
    evidence = [f"occupancy is {achieved:.0f}%", f"no unit is above {busy:.0f}%"]
    limit = limiter(facts.kernel)
    if limit:
        evidence.append(f"limited by {limit}")
    low = clamp((ENOUGH_OCCUPANCY_PCT - achieved) / (ENOUGH_OCCUPANCY_PCT - 10))
    strength = low * clamp(1.15 - busy / 130)
    issue = facts["issue_pct"]
    gain = None if issue is None else min(100.0 - max(issue, busy), 100.0 - 100 * achieved / ENOUGH_OCCUPANCY_PCT)
    return Diagnosis(Bottleneck.OCCUPANCY, strength, tuple(evidence), gain)


RULES: tuple[Rule, ...] = (
    _launch,
    _small_grid,
    _spills,
    bank_conflicts,
    coalescing,
    _divergence,
    _barrier,
    _saturated,
    _occupancy,
)


def ranked(findings: tuple[Diagnosis, ...]) -> Iterator[Diagnosis]:
    """Those worth acting on: the bottleneck, then what else the figures point to."""
    yield findings[0]
    yield from (finding for finding in findings[1:] if finding.strength >= 0.3)
