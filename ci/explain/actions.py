"""What can be tried: the one list of actions, each with a stable name, the bottlenecks that it is against and its page.

Session logs and `kernelgate recommend` name actions as here. A name keeps its meaning: one that is no longer advised
stays in the list, since outcomes of the past carry it. In the order of the list, the first actions against a bottleneck
are the cookbook's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.ci.explain.diagnosis import Bottleneck

COOKBOOK = "docs/CUDA_COOKBOOK.md"

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


@dataclass(frozen=True)
class Action:
    name: str
    words: str
    against: tuple[Bottleneck, ...]
    """What the cookbook recommends it for, most of all the first; empty where nothing recommends it."""
    section: str = ""
    """The anchor of its section of the cookbook; default: that of the first bottleneck."""

    @property
    def anchor(self) -> str:
        return self.section or ANCHORS[self.against[0]]

    @property
    def link(self) -> str:
        return link(self.anchor)


def link(anchor: str) -> str:
    return f"{COOKBOOK}#{anchor}"


ACTIONS: tuple[Action, ...] = (
    Action(
        "wider-tensor-instruction",
        "use the widest tensor instruction of this GPU: on sm_90 wgmma does 1.5 times what mma.sync does",
        (Bottleneck.TENSOR,),
    ),
    Action(
        "fewer-products",
        "leave out products that do not count: masked tiles, padding, a precision wider than needed",
        (Bottleneck.TENSOR,),
    ),
    Action(
        "cheaper-arithmetic",
        "move products to the tensor cores, or arithmetic to a cheaper form: exp2 for exp, fused multiply-adds",
        (Bottleneck.COMPUTE,),
    ),
    Action(
        "hoist-arithmetic",
        "hoist index arithmetic and conversions out of the inner loop, and load 16 bytes per instruction",
        (Bottleneck.COMPUTE,),
    ),
    Action(
        "fewer-bytes",
        "move fewer bytes: fuse with the kernels before and after, keep what is read again in shared memory or L2",
        (Bottleneck.DRAM,),
    ),
    Action(
        "narrower-types",
        "store narrower types: float16 or bfloat16 for float32 halves the traffic",
        (Bottleneck.DRAM,),
    ),
    Action(
        "larger-tiles",
        "reuse what was loaded: larger tiles in shared memory or registers, blocks that share data side by side",
        (Bottleneck.L2,),
    ),
    Action(
        "multicast",
        "let one block of a cluster load what its neighbours need too: multicast on sm_90",
        (Bottleneck.L2,),
    ),
    Action(
        "more-warps",
        "make room for more warps: fewer registers, less shared memory, smaller tiles",
        (Bottleneck.OCCUPANCY,),
    ),
    Action(
        "more-in-flight",
        "give each warp more independent work: several loads or products in flight, copies ahead of use",
        (Bottleneck.OCCUPANCY,),
    ),
    Action(
        "fewer-registers",
        "cut registers per thread, by __launch_bounds__ or a smaller tile",
        (Bottleneck.OCCUPANCY,),
    ),
    Action(
        "less-shared-memory",
        "cut shared memory per block: fewer stages, a smaller or narrower tile",
        (Bottleneck.OCCUPANCY,),
    ),
    Action(
        "other-block-size",
        "change the block's size, so that blocks fill the multiprocessor",
        (Bottleneck.OCCUPANCY,),
    ),
    Action(
        "fewer-launches",
        "capture the launches in a CUDA graph, or fuse the kernel with its neighbours",
        (Bottleneck.LAUNCH,),
    ),
    Action(
        "batch-calls",
        "give one launch more work: batch the calls",
        (Bottleneck.LAUNCH,),
    ),
    Action(
        "coalesce",
        "let neighbouring lanes touch neighbouring addresses: swap the loops, or store the fields apart",
        (Bottleneck.COALESCING,),
    ),
    Action(
        "through-shared-memory",
        "go through shared memory where the order cannot change: read rows, write columns from the tile",
        (Bottleneck.COALESCING,),
    ),
    Action(
        "swizzle",
        "swizzle or pad the tile in shared memory, so that the lanes of a warp meet different banks",
        (Bottleneck.BANK_CONFLICTS,),
    ),
    Action(
        "wider-shared-loads",
        "read with ldmatrix or 16-byte loads, which need fewer wavefronts",
        (Bottleneck.BANK_CONFLICTS,),
    ),
    Action(
        "more-registers",
        "give the kernel more registers, by fewer blocks in __launch_bounds__ or smaller tiles, or split its state",
        (Bottleneck.SPILLS,),
    ),
    Action(
        "constant-indices",
        "index arrays by constants only: unroll the loops over them, so that they stay in registers",
        (Bottleneck.SPILLS,),
    ),
    Action(
        "more-blocks",
        "cut the work into as many blocks as fill whole waves: smaller tiles, or split along another dimension",
        (Bottleneck.SMALL_GRID,),
    ),
    Action(
        "persistent-kernel",
        "start as many blocks as fit and let each take tiles until none is left: a persistent kernel",
        (Bottleneck.SMALL_GRID,),
    ),
    Action(
        "narrower-barriers",
        "let fewer threads wait for each other: smaller blocks, __syncwarp or named barriers for parts of the block",
        (Bottleneck.BARRIER,),
    ),
    Action(
        "balanced-barriers",
        "even out the work between barriers, or overlap it with copies by cp.async and mbarrier",
        (Bottleneck.BARRIER,),
    ),
    Action(
        "uniform-branches",
        "let all lanes of a warp take one way: sort or group the work by branch and by length, or branch by warp",
        (Bottleneck.DIVERGENCE,),
    ),
    Action(
        "full-warps",
        "give idle lanes work: blocks of whole warps, several lanes for a long row, min and max in place of branches",
        (Bottleneck.DIVERGENCE,),
    ),
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
"""By name."""


def against(bottleneck: Bottleneck) -> tuple[Action, ...]:
    """What the cookbook recommends for a bottleneck, the best first."""
    return tuple(action for action in ACTIONS if bottleneck in action.against)
