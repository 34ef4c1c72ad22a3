"""What to try next: the one list of actions, and at most three of them for a kernel, best first. Session logs and
`kernelgate recommend` name actions as here: one that is no longer advised stays in the list, since outcomes of the past
carry it. The first actions against a bottleneck are in the cookbook's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgate.bench.core.documentation import page
from kernelgate.bench.explain.ncu_reader import ProfiledKernel, Rule
from kernelgate.ci.explain.bottleneck import Bottleneck, Diagnosis, Facts
from kernelgate.ci.explain.budget import Contribution, cause

COOKBOOK = page("CUDA_COOKBOOK.md")


@dataclass(frozen=True)
class Action:
    name: str
    words: str
    against: tuple[Bottleneck, ...]
    """What the cookbook recommends it for, most of all the first; empty where nothing recommends it."""
    section: str = ""
    """The anchor of its section of the cookbook; default: that of the first bottleneck."""

    @property
    def link(self) -> str:
        return f"{COOKBOOK}#{self.section or self.against[0].anchor}"


_OF_THE_COOKBOOK: Mapping[Bottleneck, Mapping[str, str]] = {
    Bottleneck.TENSOR: {
        "wider-tensor-instruction": (
            "use the widest tensor instruction of this GPU: on sm_90 wgmma does 1.5 times what mma.sync does"
        ),
        "fewer-products": "leave out products that do not count: masked tiles, padding, a precision wider than needed",
    },
    Bottleneck.COMPUTE: {
        "cheaper-arithmetic": (
            "move products to the tensor cores, or arithmetic to a cheaper form: exp2 for exp, fused multiply-adds"
        ),
        "hoist-arithmetic": (
            "hoist index arithmetic and conversions out of the inner loop, and load 16 bytes per instruction"
        ),
    },
    Bottleneck.DRAM: {
        "fewer-bytes": (
            "move fewer bytes: fuse with the kernels before and after, keep what is read again in shared memory or L2"
        ),
        "narrower-types": "store narrower types: float16 or bfloat16 for float32 halves the traffic",
    },
    Bottleneck.L2: {
        "larger-tiles": (
            "reuse what was loaded: larger tiles in shared memory or registers, blocks that share data side by side"
        ),
        "multicast": "let one block of a cluster load what its neighbours need too: multicast on sm_90",
    },
    Bottleneck.OCCUPANCY: {
        "more-warps": "make room for more warps: fewer registers, less shared memory, smaller tiles",
        "more-in-flight": (
            "give each warp more independent work: several loads or products in flight, copies ahead of use"
        ),
        "fewer-registers": "cut registers per thread, by __launch_bounds__ or a smaller tile",
        "less-shared-memory": "cut shared memory per block: fewer stages, a smaller or narrower tile",
        "other-block-size": "change the block's size, so that blocks fill the multiprocessor",
    },
    Bottleneck.LAUNCH: {
        "fewer-launches": "capture the launches in a CUDA graph, or fuse the kernel with its neighbours",
        "batch-calls": "give one launch more work: batch the calls",
    },
    Bottleneck.COALESCING: {
        "coalesce": "let neighbouring lanes touch neighbouring addresses: swap the loops, or store the fields apart",
        "through-shared-memory": (
            "go through shared memory where the order cannot change: read rows, write columns from the tile"
        ),
    },
    Bottleneck.BANK_CONFLICTS: {
        "swizzle": "swizzle or pad the tile in shared memory, so that the lanes of a warp meet different banks",
        "wider-shared-loads": "read with ldmatrix or 16-byte loads, which need fewer wavefronts",
    },
    Bottleneck.SPILLS: {
        "more-registers": (
            "give the kernel more registers, by fewer blocks in __launch_bounds__ or smaller tiles, or split its state"
        ),
        "constant-indices": (
            "index arrays by constants only: unroll the loops over them, so that they stay in registers"
        ),
    },
    Bottleneck.SMALL_GRID: {
        "more-blocks": (
            "cut the work into as many blocks as fill whole waves: smaller tiles, or split along another dimension"
        ),
        "persistent-kernel": (
            "start as many blocks as fit and let each take tiles until none is left: a persistent kernel"
        ),
    },
    Bottleneck.BARRIER: {
        "narrower-barriers": (
            "let fewer threads wait for each other: smaller blocks, __syncwarp or named barriers for parts of the block"
        ),
        "balanced-barriers": "even out the work between barriers, or overlap it with copies by cp.async and mbarrier",
    },
    Bottleneck.DIVERGENCE: {
        "uniform-branches": (
            "let all lanes of a warp take one way: sort or group the work by branch and by length, or branch by warp"
        ),
        "full-warps": (
            "give idle lanes work: blocks of whole warps, several lanes for a long row, "
            "min and max in place of branches"
        ),
    },
}

ACTIONS: tuple[Action, ...] = (
    *(Action(name, words, (one,)) for one, advice in _OF_THE_COOKBOOK.items() for name, words in advice.items()),
    # What the cookbook says elsewhere, or advises against a change rather than against a bottleneck.
    Action("compute-once", "look for what the change computes more often", (), "arithmetic-and-unrolling"),
    Action(
        "break-dependences", "look for arithmetic that waits for the line before it", (), "arithmetic-and-unrolling"
    ),
    Action("copy-asynchronously", "copy to shared memory by cp.async or TMA, ahead of use", (), "asynchronous-copies"),
    Action("fewer-blocks", "start no more blocks than before", (), "grid-size-and-tail"),
    Action(
        "wider-loads",
        "load and store up to 16 bytes per lane and instruction",
        (Bottleneck.COALESCING, Bottleneck.COMPUTE),
    ),
    Action(
        "smaller-tiles",
        "take smaller tiles, so that more blocks run at a time",
        (Bottleneck.OCCUPANCY, Bottleneck.SMALL_GRID),
    ),
    Action(
        "cache-hints", "say which loads and stores are not used again, so that caches keep the rest", (), "dram-traffic"
    ),
    # What people try besides; kernelgate recommends none of them.
    Action("through-registers", "copy to shared memory through registers", (), "asynchronous-copies"),
    Action("exacter-arithmetic", "compute more exactly, with more instructions", (), "arithmetic-and-unrolling"),
    Action("serial-products", "wait for each matrix product before the next", (), "tensor-cores"),
)

CATALOGUE: Mapping[str, Action] = {action.name: action for action in ACTIONS}


def against(bottleneck: Bottleneck) -> tuple[Action, ...]:
    return tuple(action for action in ACTIONS if bottleneck in action.against)


@dataclass(frozen=True)
class Recommendation:
    name: str
    action: str
    """In words, fitted to this kernel."""
    reason: str
    expected_gain_pct: float | None
    """At most this much of the kernel's time; None where nothing says how much."""
    source: str
    """`kernelgate`, or `nvidia:` and the rule's identifier."""
    link: str


RULES: Mapping[str, Bottleneck] = {
    "SharedMemoryConflicts": Bottleneck.BANK_CONFLICTS,
    "UncoalescedSharedAccess": Bottleneck.BANK_CONFLICTS,
    "UncoalescedGlobalAccess": Bottleneck.COALESCING,
    "MemoryCacheAccessPattern": Bottleneck.COALESCING,
    "TheoreticalOccupancy": Bottleneck.OCCUPANCY,
    "AchievedOccupancy": Bottleneck.OCCUPANCY,
    "LaunchConfiguration": Bottleneck.SMALL_GRID,
    "ThreadDivergence": Bottleneck.DIVERGENCE,
}
"""NVIDIA's rules whose advice can be acted on, and where the cookbook takes them up."""


def recommend(kernel: ProfiledKernel, findings: tuple[Diagnosis, ...]) -> tuple[Recommendation, ...]:
    """Two of ours against the bottleneck; then NVIDIA's best against what we did not find, else ours against what else
    the figures point to. NVIDIA's estimate where its rules see the same thing."""
    # For each bottleneck, the rule that estimates the most of the kernel's time.
    rules = [
        one for one in kernel.rules if one.identifier in RULES and one.whole_kernel and one.speedup_pct is not None
    ]
    rules.sort(key=lambda rule: -(rule.speedup_pct or 0.0))
    gains = {RULES[rule.identifier]: rule for rule in reversed(rules)}
    acted = [findings[0], *(finding for finding in findings[1:] if finding.strength >= 0.3)]
    ours = []
    for finding in acted:
        rule = gains.get(finding.bottleneck)
        gain = finding.gain_pct if rule is None else rule.speedup_pct
        first, *others = _actions(kernel, finding.bottleneck)
        ours.append(_recommended(first, finding.reason, gain, rule))
        if finding is findings[0]:
            ours += [_recommended(action, finding.reason) for action in others]
    seen = {finding.bottleneck for finding in acted}
    theirs = [
        _recommended(against(bottleneck)[0], _quoted(rule), rule.speedup_pct, rule)
        for bottleneck, rule in sorted(gains.items(), key=lambda one: -_tidy(one[1].speedup_pct or 0.0))
        if bottleneck not in seen and _tidy(rule.speedup_pct or 0.0) >= 5
    ]
    return (*ours[:2], *(theirs[:1] or ours[2:3]))


def _recommended(action: Action, reason: str, gain: float | None = None, rule: Rule | None = None) -> Recommendation:
    source, known = "kernelgate" if rule is None else f"nvidia:{rule.identifier}", None if gain is None else _tidy(gain)
    return Recommendation(action.name, action.words, reason, known, source, action.link)


def _tidy(gain: float) -> float:
    return round(max(0.0, min(99.0, gain)), 1)


def _quoted(rule: Rule) -> str:
    sentences = rule.message.split(". ")
    telling = next((sentence for sentence in sentences if any(c.isdigit() for c in sentence)), sentences[0])
    return f"NVIDIA's rule {rule.title or rule.identifier}: {telling.rstrip('.')}"


CHANGED: Mapping[str, Bottleneck | str] = {
    "local_instructions": Bottleneck.SPILLS,
    "bank_conflicts": Bottleneck.BANK_CONFLICTS,
    "sectors_per_request": Bottleneck.COALESCING,
    "occupancy_pct": Bottleneck.OCCUPANCY,
    "launches": Bottleneck.LAUNCH,
    "dram_bytes": Bottleneck.DRAM,
    "load_requests": Bottleneck.L2,
    "stall_barrier": Bottleneck.BARRIER,
    "instructions": "compute-once",
    "stall_wait": "break-dependences",
    "async_copies": "copy-asynchronously",
}
"""Where the cookbook takes up a figure that made a kernel slower, or the action against it."""


def against_change(one: Contribution, kernel: ProfiledKernel) -> Recommendation | None:
    """What to try against a cause that made this kernel slower; None where nothing is known to help."""
    about = CHANGED.get(one.metric)
    if one.metric == "grid":
        about = Bottleneck.SMALL_GRID if one.after < one.before else "fewer-blocks"
    elif one.metric == "dram_bytes" and one.because:  # what L2 held before is read again
        about = Bottleneck.L2
    if about is None:
        return None
    action = _actions(kernel, about)[0] if isinstance(about, Bottleneck) else CATALOGUE[about]
    return _recommended(action, cause(one))


def _actions(kernel: ProfiledKernel, bottleneck: Bottleneck) -> tuple[Action, ...]:
    """The two actions that are tried first, fitted to what limits this kernel."""
    known = against(bottleneck)
    return (_for_occupancy(kernel), known[1]) if bottleneck is Bottleneck.OCCUPANCY else known[:2]


def _for_occupancy(kernel: ProfiledKernel) -> Action:
    facts = Facts(kernel)
    threads, limit = facts.get("block_threads"), facts.limiter()
    if limit.startswith("registers"):
        words = f"cut registers from {facts.get('registers'):.0f} per thread, by __launch_bounds__ or a smaller tile"
        return replace(CATALOGUE["fewer-registers"], words=words)
    if "shared memory" in limit:
        kib = facts.get("shared_bytes") / 1024
        words = f"cut shared memory from {kib:.0f} KiB per block: fewer stages, a smaller or narrower tile"
        return replace(CATALOGUE["less-shared-memory"], words=words)
    if limit and threads:
        words = f"change the block's size from {threads:.0f} threads, so that blocks fill the multiprocessor"
        return replace(CATALOGUE["other-block-size"], words=words)
    return CATALOGUE["more-warps"]
