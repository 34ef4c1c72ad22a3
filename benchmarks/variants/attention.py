"""Variants of the attention kernel, on its mma.sync path, on Hopper's, and (to try this out) on a CPU's."""

from __future__ import annotations

from benchmarks.explain.causes import CAUSES
from benchmarks.fuzzing.bug import Edit
from benchmarks.variants.family import Family, Variant, undone

MMA, TILE, NUMERIC = (f"csrc/attention/{name}" for name in ("mma_sync/kernel.cuh", "mma_sync/tile.h", "numeric.cuh"))
WGMMA, WGMMA_TILE, MAPS, DISPATCH = (
    f"csrc/attention/{name}" for name in ("wgmma/kernel.cuh", "wgmma/tile.h", "wgmma/tensor_map.h", "dispatch.h")
)
CPU = "csrc/attention/cpu/block.h"
CASE = "s512_b32_h8_d64_fp16"
PLANTED = {cause.name: cause.head.edits for cause in CAUSES}
FAST, EXACT = 'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));', "power = exp2f(x);"

# ---- mma.sync --------------------------------------------------------------------------------------------------------

_BOUND = "kSharedTotal = 228 * 1024;\n  static constexpr int kBlocksPerSm = {};\n  using Tile = {};"


def cut(before: tuple[int, str], after: tuple[int, str]) -> tuple[Edit, ...]:
    """On sm_90 another number of blocks that must fit, and another tile."""
    return (Edit(TILE, _BOUND.format(*before), _BOUND.format(*after)),)


USUAL = (2, "DefaultTile")


def _cut(before: tuple[int, str], after: tuple[int, str], why: str, action: str, variable: str = "tile") -> Variant:
    return Variant(f"{after[1]}, {after[0]} blocks", why, action, variable, cut(before, after))


SMALL = (4, "MmaSyncTile<64, 64, 4, 2>")
SMALL_TILE = Family(
    "attention-small-tile",
    "attention",
    "mma_sync",
    CASE,
    "Attention by mma.sync with 16 queries a warp",
    (
        _cut(SMALL, USUAL, "each fragment of K and V feeds two products", "larger-tiles"),
        _cut(SMALL, (2, "MmaSyncTile<128, 64, 8, 2>"), "blocks share K and V among more queries", "larger-tiles"),
        _cut(SMALL, (4, "MmaSyncTile<64, 32, 4, 2>"), "fewer registers", "smaller-tiles"),
        _cut(SMALL, (2, "MmaSyncTile<64, 128, 4, 2>"), "fewer steps", "larger-tiles"),
        _cut(SMALL, (3, "MmaSyncTile<64, 64, 4, 3>"), "copies two steps ahead", "more-in-flight", "stages"),
        _cut(SMALL, (2, "MmaSyncTile<64, 64, 4, 2>"), "more registers", "more-registers", "launch bounds"),
    ),
    cut(USUAL, SMALL),
)

_STRAIGHT = PLANTED["bank-conflicts"]
UNSWIZZLED = Family(
    "attention-unswizzled",
    "attention",
    "mma_sync",
    CASE,
    "Attention by mma.sync whose tiles lie straight in shared memory",
    (
        Variant("tiles are swizzled", "eight rows meet eight banks", "swizzle", "swizzle", undone(_STRAIGHT)),
        _cut(USUAL, (2, "MmaSyncTile<128, 64, 4, 3>"), "copies two steps ahead", "more-in-flight", "stages"),
        _cut(USUAL, (4, "MmaSyncTile<64, 64, 4, 2>"), "more blocks", "smaller-tiles"),
        _cut(USUAL, (1, "DefaultTile"), "nothing spills", "more-registers", "launch bounds"),
    ),
    _STRAIGHT,
)

MMA_TUNED = Family(
    "attention-mma-tuned",
    "attention",
    "mma_sync",
    CASE,
    "Attention by mma.sync as it is: is there anything left?",
    (
        _cut(USUAL, (2, "MmaSyncTile<128, 64, 4, 3>"), "copies two steps ahead", "more-in-flight", "stages"),
        _cut(USUAL, (1, "DefaultTile"), "more registers", "more-registers", "launch bounds"),
        _cut(USUAL, (3, "DefaultTile"), "three blocks hide more latency", "fewer-registers", "launch bounds"),
        _cut(USUAL, (4, "DefaultTile"), "four blocks hide more latency", "fewer-registers", "launch bounds"),
        _cut(USUAL, (2, "MmaSyncTile<128, 32, 4, 2>"), "fewer registers", "smaller-tiles"),
        _cut(USUAL, (2, "MmaSyncTile<256, 64, 8, 2>"), "more queries share K and V", "larger-tiles"),
        Variant(
            "copies through registers", "no copy groups", "through-registers", "copies", PLANTED["without-cp-async"]
        ),
        Variant(
            "exact exponentials", "subnormal weights count", "exacter-arithmetic", "exp", (Edit(NUMERIC, FAST, EXACT),)
        ),
        Variant(
            "one division by an approximate reciprocal",
            "fewer instructions at the end",
            "cheaper-arithmetic",
            "precision",
            (Edit(MMA, "1.0f / warp.row_sum[m][half * 2]", "reciprocal(warp.row_sum[m][half * 2])"),),
        ),
        Variant(
            "heads run far apart", "blocks of all heads start at once", "more-blocks", "order", PLANTED["heads-apart"]
        ),
    ),
)

_ROLLED = (
    Edit(
        MMA,
        "#pragma unroll\n    for (int d = 0; d < kHeadDim / 16; ++d) {\n      uint32_t values[4];",
        "#pragma unroll 1\n    for (int d = 0; d < kHeadDim / 16; ++d) {\n      uint32_t values[4];",
    ),
)
ROLLED = Family(
    "attention-rolled",
    "attention",
    "mma_sync",
    CASE,
    "Attention by mma.sync whose output is indexed by a variable, and lies in local memory",
    (
        Variant("the loop is unrolled", "all indices are constants", "constant-indices", "unroll", undone(_ROLLED)),
        _cut(USUAL, (1, "DefaultTile"), "room for the output in registers", "more-registers", "launch bounds"),
        _cut(USUAL, (4, "MmaSyncTile<64, 64, 4, 2>"), "less state a thread", "smaller-tiles"),
        _cut(USUAL, (3, "DefaultTile"), "three blocks hide more latency", "fewer-registers", "launch bounds"),
    ),
    _ROLLED,
)

# ---- wgmma -----------------------------------------------------------------------------------------------------------


def ring(before: int, after: int) -> tuple[Edit, ...]:
    return (Edit(WGMMA_TILE, f"kStages = {before};", f"kStages = {after};"),)


def _ring(after: int, why: str) -> Variant:
    return Variant(f"a ring of {after} stages", why, "more-in-flight", "stages", ring(2, after))


_M128 = (Edit(DISPATCH, "return small ? Kernel::kWgmmaM128 : Kernel::kWgmmaM256;", "return Kernel::kWgmmaM128;"),)
_EXACT = (Edit(NUMERIC, FAST, EXACT),)
_ALONE = Edit(WGMMA, "      wgmma_wait<1>();\n", "      wgmma_wait<0>();\n")
FEWER_REGISTERS = Variant(
    "104 registers for consumers",
    "fewer than the block was launched with",
    "fewer-registers",
    "registers",
    (Edit(WGMMA_TILE, "Warpgroups == 4 ? 112", "Warpgroups == 4 ? 104"),),
)

SHORT_RING = Family(
    "attention-short-ring",
    "attention",
    "wgmma",
    CASE,
    "Hopper's attention with a ring of two stages",
    (
        _ring(3, "copies a step further ahead"),
        _ring(5, "copies three steps further ahead"),
        _ring(9, "the next head's first step arrives during this one's last"),
        Variant("128 queries a block", "twice the blocks", "smaller-tiles", "tile", _M128),
        Variant("exact exponentials", "subnormal weights count", "exacter-arithmetic", "exp", _EXACT),
    ),
    ring(9, 2),
)

TWO_CONSUMERS = Family(
    "attention-two-consumers",
    "attention",
    "wgmma",
    CASE,
    "Hopper's attention with two consumers and exact exponentials",
    (
        Variant("four consumers", "they hide each other's latency", "more-warps", "warps", undone(_M128)),
        Variant("approximate exponentials", "one instruction", "cheaper-arithmetic", "exp", undone(_EXACT)),
        Variant("a ring of four stages", "less shared memory", "less-shared-memory", "stages", ring(9, 4)),
        Variant("products are waited for at once", "simpler", "serial-products", "overlap", (_ALONE,)),
    ),
    (*_M128, *_EXACT),
)

WGMMA_TUNED = Family(
    "attention-wgmma-tuned",
    "attention",
    "wgmma",
    CASE,
    "Hopper's attention as it is: is there anything left?",
    (
        Variant("a ring of four stages", "less shared memory", "less-shared-memory", "stages", ring(9, 4)),
        Variant("128 queries a block", "twice the blocks", "smaller-tiles", "tile", _M128),
        FEWER_REGISTERS,
        Variant("exact exponentials", "subnormal weights count", "exacter-arithmetic", "exp", _EXACT),
        Variant("products are waited for at once", "simpler", "serial-products", "overlap", (_ALONE,)),
        Variant("a block for each tile", "the hardware balances them", "more-blocks", "grid",
            (Edit(WGMMA, "std::min(problem.tiles, multiprocessors)", "problem.tiles"),)),
        Variant("three quarters of the blocks", "fewer share L2", "fewer-blocks", "grid", PLANTED["fewer-blocks"]),
        Variant("no promotion in L2", "no byte that is not asked for", "cache-hints", "cache",
            (Edit(MAPS, "CU_TENSOR_MAP_L2_PROMOTION_L2_256B", "CU_TENSOR_MAP_L2_PROMOTION_NONE"),)),
        Variant("rescaling where a maximum grew", "often none did", "fewer-products", "branch",
            (Edit(WGMMA, "      rescale_output(rows, correction);\n",
                  "      if (__any_sync(0xFFFFFFFF, correction[0] != 1.0f || correction[1] != 1.0f)) {\n"
                  "        rescale_output(rows, correction);\n"
                  "      }\n"),)),
    ),
)  # fmt: skip

# ---- CPU -------------------------------------------------------------------------------------------------------------

ON_CPU = Family(
    "attention-cpu",
    "attention",
    "cpu",
    "s512_b1_h8_d64_fp32",
    "A CPU's attention with few sums in registers",
    (
        Variant("four rows of sums", "independent sums hide latency", "more-in-flight", "tile",
            (Edit(CPU, "kRows = 1;", "kRows = 4;"),)),
        Variant("a polynomial of degree 5", "an operation less", "cheaper-arithmetic", "exp",
            (Edit(CPU, "  Float p = Float{} + 1.5403530e-4f;\n  p = p * f + 1.3333558e-3f;\n",
                  "  Float p = Float{} + 1.3333558e-3f;\n"),)),
        Variant("rows without a semicolon", "to see a build fail", "larger-tiles", "tile",
            (Edit(CPU, "kRows = 1;", "kRows = 1"),)),
        Variant("weights of a wrong scale", "to see a wrong result", "cheaper-arithmetic", "exp",
            (Edit(CPU, "p = p * f + 1.0f;", "p = p * f + 1.1f;"),)),
    ),
    (Edit(CPU, "static constexpr int kRows = Width == 16 ? 8 : 4;", "static constexpr int kRows = 1;"),),
)  # fmt: skip

FAMILIES = (
    SMALL_TILE, UNSWIZZLED, MMA_TUNED, ROLLED, SHORT_RING, TWO_CONSUMERS, WGMMA_TUNED, ON_CPU,
)  # fmt: skip
