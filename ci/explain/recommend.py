"""What to try next: at most three things for a kernel, best first, each with its reason, its gain and its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelgate.bench.explain.ncu_reader import ProfiledKernel, Rule
from kernelgate.ci.explain.bottleneck import ranked
from kernelgate.ci.explain.budget import Contribution
from kernelgate.ci.explain.diagnosis import Bottleneck, Diagnosis
from kernelgate.ci.explain.facts import Facts, limiter
from kernelgate.ci.explain.in_words import cause

COOKBOOK = "docs/CUDA_COOKBOOK.md"
MAX_RECOMMENDATIONS = 3


@dataclass(frozen=True)
class Recommendation:
    action: str
    reason: str
    expected_gain_pct: float | None
    """At most this much of the kernel's time; None where nothing says how much."""
    source: str
    """`kernelgate`, or `nvidia:` and the rule's identifier."""
    link: str


ANCHORS: Mapping[Bottleneck, str] = {
    Bottleneck.TENSOR: "tensor-cores",
    Bottleneck.COMPUTE: "arithmetic-and-unrolling",
    Bottleneck.DRAM: "dram-traffic",
    Bottleneck.L2: "l2-traffic",
    Bottleneck.OCCUPANCY: "occupancy",
    Bottleneck.LAUNCH: "launch-overhead",
    Bottleneck.COALESCING: "coalescing",
    Bottleneck.BANK_CONFLICTS: "bank-conflicts",
    Bottleneck.SPILLS: "register-spills",
    Bottleneck.SMALL_GRID: "grid-size-and-tail",
    Bottleneck.BARRIER: "barriers",
    Bottleneck.DIVERGENCE: "warp-divergence",
}

RULES: Mapping[str, Bottleneck] = {
    "SharedMemoryConflicts": Bottleneck.BANK_CONFLICTS,
    "UncoalescedSharedAccess": Bottleneck.BANK_CONFLICTS,
    "UncoalescedGlobalAccess": Bottleneck.COALESCING,
    "MemoryCacheAccessPattern": Bottleneck.COALESCING,
    "TheoreticalOccupancy": Bottleneck.OCCUPANCY,
    "AchievedOccupancy": Bottleneck.OCCUPANCY,
    "IssueSlotUtilization": Bottleneck.OCCUPANCY,
    "LaunchConfiguration": Bottleneck.SMALL_GRID,
    "WorkloadImbalance": Bottleneck.SMALL_GRID,
    "FPInstructions": Bottleneck.COMPUTE,
    "SlowPipeLimiter": Bottleneck.COMPUTE,
    "ThreadDivergence": Bottleneck.DIVERGENCE,
}
"""NVIDIA's rules whose advice can be acted on, and where the cookbook takes them up. CPIStall goes by its title."""

STALL_RULES: Mapping[str, Bottleneck] = {
    "barrier": Bottleneck.BARRIER,
    "mio throttle": Bottleneck.BANK_CONFLICTS,
    "short scoreboard": Bottleneck.BANK_CONFLICTS,
    "lg throttle": Bottleneck.COALESCING,
    "math pipe throttle": Bottleneck.COMPUTE,
}


def recommend(kernel: ProfiledKernel, findings: tuple[Diagnosis, ...]) -> tuple[Recommendation, ...]:
    """Ours for what was found, the bottleneck's first; NVIDIA's estimate where its rules see the same thing."""
    gains = _rule_gains(kernel.rules)
    ours: list[Recommendation] = []
    for finding in ranked(findings):
        actions = _actions(kernel, finding)
        for number, action in enumerate(actions if finding is findings[0] else actions[:1]):
            ours.append(_ours(action, finding, gains, first=number == 0))
    named = {finding.bottleneck for finding in ranked(findings)}
    theirs = [_theirs(rule, bottleneck) for bottleneck, rule in gains.items() if bottleneck not in named]
    theirs = [one for one in theirs if (one.expected_gain_pct or 0.0) >= 5]
    theirs.sort(key=lambda one: -(one.expected_gain_pct or 0.0))
    # The bottleneck's two, then NVIDIA's best, then the rest.
    return tuple([*ours[:2], *theirs[:1], *ours[2:], *theirs[1:]][:MAX_RECOMMENDATIONS])


CHANGED: Mapping[str, Bottleneck] = {
    "local_instructions": Bottleneck.SPILLS,
    "bank_conflicts": Bottleneck.BANK_CONFLICTS,
    "shared_wavefronts": Bottleneck.BANK_CONFLICTS,
    "sectors_per_request": Bottleneck.COALESCING,
    "occupancy_pct": Bottleneck.OCCUPANCY,
    "launches": Bottleneck.LAUNCH,
    "dram_bytes": Bottleneck.DRAM,
    "l2_sectors": Bottleneck.L2,
    "load_requests": Bottleneck.L2,
    "stall_barrier": Bottleneck.BARRIER,
}
"""Where the cookbook takes up a figure that made a kernel slower."""

OWN_ADVICE: Mapping[str, tuple[str, str]] = {
    "instructions": ("look for what the change computes more often", "arithmetic-and-unrolling"),
    "stall_wait": ("look for arithmetic that waits for the line before it", "arithmetic-and-unrolling"),
    "async_copies": ("copy to shared memory by cp.async or TMA, ahead of use", "asynchronous-copies"),
}


def against_change(one: Contribution, kernel: ProfiledKernel) -> Recommendation | None:
    """What to try against a cause that made this kernel slower; None where nothing is known to help."""
    reason = cause(one)
    if one.metric == "grid":
        action = _ACTIONS[Bottleneck.SMALL_GRID][0] if one.after < one.before else "start no more blocks than before"
        return Recommendation(action, reason, None, "kernelgate", link(ANCHORS[Bottleneck.SMALL_GRID]))
    if one.metric in OWN_ADVICE:
        action, anchor = OWN_ADVICE[one.metric]
        return Recommendation(action, reason, None, "kernelgate", link(anchor))
    if one.metric not in CHANGED:
        return None
    again = one.metric == "dram_bytes" and one.because  # what L2 held before is read again
    meant = Bottleneck.L2 if again else CHANGED[one.metric]
    action = _actions(kernel, Diagnosis(meant, 1.0, ()))[0]
    return Recommendation(action, reason, None, "kernelgate", link(ANCHORS[meant]))


def _ours(action: str, finding: Diagnosis, gains: Mapping[Bottleneck, Rule], first: bool) -> Recommendation:
    rule = gains.get(finding.bottleneck)
    gain = rule.speedup_pct if rule is not None else finding.gain_pct
    source = f"nvidia:{rule.identifier}" if rule is not None and first else "kernelgate"
    reason = "; ".join(finding.evidence[:2])
    return Recommendation(action, reason, _tidy(gain) if first else None, source, link(ANCHORS[finding.bottleneck]))


def _theirs(rule: Rule, bottleneck: Bottleneck) -> Recommendation:
    sentences = rule.message.split(". ")
    telling = next((sentence for sentence in sentences if any(c.isdigit() for c in sentence)), sentences[0])
    return Recommendation(
        action=_ACTIONS[bottleneck][0],
        reason=f"NVIDIA's rule {rule.title or rule.identifier}: {telling.rstrip('.')}",
        expected_gain_pct=_tidy(rule.speedup_pct),
        source=f"nvidia:{rule.identifier}",
        link=link(ANCHORS[bottleneck]),
    )


def _rule_gains(rules: Iterable[Rule]) -> dict[Bottleneck, Rule]:
    """For each bottleneck, the rule that estimates the most of the kernel's time."""
    best: dict[Bottleneck, Rule] = {}
    for rule in rules:
        bottleneck = RULES.get(rule.identifier)
        if rule.identifier == "CPIStall":
            bottleneck = next((b for words, b in STALL_RULES.items() if rule.title.lower().startswith(words)), None)
        if bottleneck is None or not rule.whole_kernel or rule.speedup_pct is None:
            continue
        if bottleneck not in best or rule.speedup_pct > (best[bottleneck].speedup_pct or 0.0):
            best[bottleneck] = rule
    return best


def link(anchor: str) -> str:
    return f"{COOKBOOK}#{anchor}"


def _tidy(gain: float | None) -> float | None:
    return None if gain is None else round(max(0.0, min(99.0, gain)), 1)


_ACTIONS: Mapping[Bottleneck, tuple[str, ...]] = {
    Bottleneck.TENSOR: (
        "use the widest tensor instruction of this GPU: on sm_90 wgmma does 1.5 times what mma.sync does",
        "leave out products that do not count: masked tiles, padding, a precision wider than needed",
    ),
    Bottleneck.COMPUTE: (
        "move products to the tensor cores, or arithmetic to a cheaper form: exp2 for exp, fused multiply-adds",
        "hoist index arithmetic and conversions out of the inner loop, and load 16 bytes per instruction",
    ),
    Bottleneck.DRAM: (
        "move fewer bytes: fuse with the kernels before and after, keep what is read again in shared memory or L2",
        "store narrower types: float16 or bfloat16 for float32 halves the traffic",
    ),
    Bottleneck.L2: (
        "reuse what was loaded: larger tiles in shared memory or registers, blocks that share data side by side",
        "let one block of a cluster load what its neighbours need too: multicast on sm_90",
    ),
    Bottleneck.OCCUPANCY: (
        "make room for more warps: fewer registers, less shared memory, smaller tiles",
        "give each warp more independent work: several loads or products in flight, copies ahead of use",
    ),
    Bottleneck.LAUNCH: (
        "capture the launches in a CUDA graph, or fuse the kernel with its neighbours",
        "give one launch more work: batch the calls",
    ),
    Bottleneck.COALESCING: (
        "let neighbouring lanes touch neighbouring addresses: swap the loops, or store the fields apart",
        "go through shared memory where the order cannot change: read rows, write columns from the tile",
    ),
    Bottleneck.BANK_CONFLICTS: (
        "swizzle or pad the tile in shared memory, so that the lanes of a warp meet different banks",
        "read with ldmatrix or 16-byte loads, which need fewer wavefronts",
    ),
    Bottleneck.SPILLS: (
        "give the kernel more registers, by fewer blocks in __launch_bounds__ or smaller tiles, or split its state",
        "index arrays by constants only: unroll the loops over them, so that they stay in registers",
    ),
    Bottleneck.SMALL_GRID: (
        "cut the work into as many blocks as fill whole waves: smaller tiles, or split along another dimension",
        "start as many blocks as fit and let each take tiles until none is left: a persistent kernel",
    ),
    Bottleneck.BARRIER: (
        "let fewer threads wait for each other: smaller blocks, __syncwarp or named barriers for parts of the block",
        "even out the work between barriers, or overlap it with copies by cp.async and mbarrier",
    ),
    Bottleneck.DIVERGENCE: (
        "let all lanes of a warp take one way: sort or group the work by branch and by length, or branch by warp",
        "give idle lanes work: blocks of whole warps, several lanes for a long row, min and max in place of branches",
    ),
}


def _actions(kernel: ProfiledKernel, finding: Diagnosis) -> tuple[str, ...]:
    """The actions for a finding, fitted to what limits this kernel."""
    actions = _ACTIONS[finding.bottleneck]
    if finding.bottleneck is not Bottleneck.OCCUPANCY:
        return actions
    facts = Facts(kernel)
    threads = facts.get("block_threads")
    limit = limiter(kernel) or ""
    if limit.startswith("registers"):
        first = f"cut registers from {facts.get('registers'):.0f} per thread, by __launch_bounds__ or a smaller tile"
    elif "shared memory" in limit:
        kib = facts.get("shared_bytes") / 1024
        first = f"cut shared memory from {kib:.0f} KiB per block: fewer stages, a smaller or narrower tile"
    elif limit and threads:
        first = f"change the block's size from {threads:.0f} threads, so that blocks fill the multiprocessor"
    else:
        first = actions[0]
    return (first, *actions[1:])
