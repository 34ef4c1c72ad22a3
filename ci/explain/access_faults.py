"""The rules of how memory is accessed: bank conflicts, and sectors that nobody asked for."""

from __future__ import annotations

from kernelgate.ci.explain.bottleneck_limits import BottleneckLimits
from kernelgate.ci.explain.diagnosis import SURE, Bottleneck, Diagnosis, clamp
from kernelgate.ci.explain.facts import Facts, nvidia_gain

WIDEST_COALESCED = 16.0
"""Sectors of 32 bytes in a coalesced request of 32 lanes with 16 bytes each."""


def bank_conflicts(facts: Facts, limits: BottleneckLimits) -> Diagnosis | None:
    share = facts.ratio("bank_conflicts", "shared_wavefronts")
    if share is None:
        return _hidden_bank_conflicts(facts, limits)
    if share < limits.conflict_share:
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


def _hidden_bank_conflicts(facts: Facts, limits: BottleneckLimits) -> Diagnosis | None:
    """Without the counter of conflicts: L1 is busy though few instructions go there and L2 sees little."""
    busy, compute, shared = facts.l1_busy, facts.compute_busy, facts.get("shared_bytes")
    ruled = nvidia_gain(facts.kernel, "SharedMemoryConflicts", "UncoalescedSharedAccess")
    if ruled is not None:
        return Diagnosis(
            Bottleneck.BANK_CONFLICTS, clamp(ruled / 100), (f"NVIDIA's rules: {ruled:.0f}% to gain",), ruled
        )
    if busy is None or compute is None or shared <= 0 or busy < limits.unit_busy_pct or compute > busy / 3:
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


def coalescing(facts: Facts, limits: BottleneckLimits) -> Diagnosis | None:
    excess, evidence = _excess(facts)
    if excess is None:
        return _hidden_coalescing(facts, limits)
    if excess < limits.excess_share:
        return None
    busy = max(facts.get("dram_pct"), facts.l2_busy or 0.0, facts.l1_busy or 0.0)
    stalled = facts.memory_stalled
    # Few warps wait for memory whatever they ask of it: then waiting shows latency, not excess.
    warps = clamp(facts.get("occupancy_pct") / limits.low_occupancy_pct) if facts["occupancy_pct"] is not None else 1.0
    relevant = max(busy / 100, (stalled or 0.0) * warps)
    if facts.get("tensor_pct") >= limits.saturated_pct or (facts.compute_busy or 0.0) >= limits.saturated_pct:
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


def _hidden_coalescing(facts: Facts, limits: BottleneckLimits) -> Diagnosis | None:
    ruled = nvidia_gain(facts.kernel, "UncoalescedGlobalAccess")
    if ruled is not None:
        return Diagnosis(Bottleneck.COALESCING, clamp(ruled / 80), (f"NVIDIA's rules see {ruled:.0f}% to gain",), ruled)
    busy, compute = facts.l1_busy, facts.compute_busy
    if _scattered(facts, limits):
        scattered = (
            f"occupancy is {facts.get('occupancy_pct'):.0f}% and yet no memory unit is above {facts.l2_busy or 0:.0f}%",
            f"pipes are {compute or 0:.0f}% busy",
            "the report has no count of sectors",
        )
        return Diagnosis(Bottleneck.COALESCING, SURE - 0.04, scattered)
    if busy is None or compute is None or busy < limits.unit_busy_pct or compute > busy / 3:
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


def _scattered(facts: Facts, limits: BottleneckLimits) -> bool:
    """Many warps in flight, little arithmetic, and still no memory unit that is saturated: requests are split up."""
    l2, compute = facts.l2_busy, facts.compute_busy
    if l2 is None or compute is None or facts["occupancy_pct"] is None:
        return False
    most = max(l2, facts.get("dram_pct"))
    return facts.get("occupancy_pct") >= 60 and 20 <= most < limits.bandwidth_busy_pct and compute < most / 8
