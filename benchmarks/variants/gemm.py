"""Variants of the int8 product on tensor cores: tile, warps, stages, swizzle, bounds, copies, order of tiles."""

from __future__ import annotations

from benchmarks.explain.causes import CAUSES
from benchmarks.fuzzing.bug import Edit
from benchmarks.variants.family import Family, Variant, undone

FILE, PTX = "csrc/int8_gemm/gemm.cu", "csrc/int8_gemm/ptx.cuh"
CASE = "m4096_n4096_k4096_int8"
PLANTED = {cause.name: cause.head.edits for cause in CAUSES}


def edit(old: str, new: str) -> tuple[Edit, ...]:
    return (Edit(FILE, old, new),)


def stages(before: int, after: int) -> tuple[Edit, ...]:
    return edit(f"kStages = {before};", f"kStages = {after};")


def blocks(after: int) -> tuple[Edit, ...]:
    return edit("__launch_bounds__(kThreads, 2)", f"__launch_bounds__(kThreads, {after})")


def warp(rows: int, columns: int) -> tuple[Edit, ...]:
    return (Edit(FILE, "kWarpM = 64;", f"kWarpM = {rows};"), Edit(FILE, "kWarpN = 32;", f"kWarpN = {columns};"))


SMALL = edit("kTile = 128;  //", "kTile = 64;  //")
SMALLER_TILE = Variant("tiles of 64 × 64", "more blocks at a time", "smaller-tiles", "tile", SMALL)
LARGE_WARPS = Variant(
    "four warps of 64 × 64", "each fragment feeds more products", "wider-shared-loads", "warps", warp(64, 64)
)
SMALL_WARPS = Variant("sixteen warps of 32 × 32", "more warps hide latency", "more-warps", "warps", warp(32, 32))
ONE_BLOCK = Variant(
    "registers for one block a multiprocessor", "nothing spills", "more-registers", "launch bounds", blocks(1)
)
THREE_BLOCKS = Variant(
    "registers for three blocks a multiprocessor", "more warps", "fewer-registers", "launch bounds", blocks(3)
)
SHORT_RING = Variant("a ring of two stages", "room for another block", "less-shared-memory", "stages", stages(3, 2))
WIDE_STEP = Variant(
    "128 of k a step",
    "half as many barriers",
    "narrower-barriers",
    "step",
    (*edit("kStep = 64;   //", "kStep = 128;   //"), *edit("row / 2 % kChunks", "row % kChunks")),
)

_STRAIGHT = edit("(chunk ^ row / 2 % kChunks) * kChunk", "chunk * kChunk")
UNSWIZZLED = Family(
    "gemm-unswizzled",
    "int8_gemm",
    "cuda",
    CASE,
    "An int8 product whose tiles lie straight in shared memory",
    (
        Variant("tiles are swizzled", "eight rows meet eight banks", "swizzle", "swizzle", undone(_STRAIGHT)),
        Variant(
            "rows in pairs swap their chunks",
            "half a swizzle",
            "swizzle",
            "swizzle",
            edit("chunk * kChunk; }", "(chunk ^ row / 4 % 2) * kChunk; }"),
        ),
        LARGE_WARPS,
        SMALLER_TILE,
        THREE_BLOCKS,
        SHORT_RING,
    ),
    _STRAIGHT,
)

SHORT = Family(
    "gemm-short-ring",
    "int8_gemm",
    "cuda",
    CASE,
    "An int8 product with a ring of two stages: no copy is under way while it computes",
    (
        Variant("a ring of three stages", "copies a step ahead", "more-in-flight", "stages", stages(2, 3)),
        SMALLER_TILE,
        LARGE_WARPS,
        THREE_BLOCKS,
        Variant("128 of k a step", "half as many barriers", "narrower-barriers", "step", WIDE_STEP.edits),
    ),
    stages(3, 2),
)

TUNED = Family(
    "gemm-tuned",
    "int8_gemm",
    "cuda",
    CASE,
    "An int8 product as it is: is there anything left?",
    (
        SMALLER_TILE,
        LARGE_WARPS,
        SMALL_WARPS,
        ONE_BLOCK,
        THREE_BLOCKS,
        SHORT_RING,
        Variant(
            "tiles run along rows of a", "the other matrix stays in L2", "larger-tiles", "order",
            PLANTED["other-tile-order"],
        ),
        Variant(
            "outputs are stored with a streaming hint",
            "nobody reads them again",
            "cache-hints",
            "cache",
            edit("*reinterpret_cast<int2*>(out) = make_int2(", "__stcs(reinterpret_cast<int2*>(out), make_int2(")
            + edit("pair[0], pair[1]);\n        } else", "pair[0], pair[1]));\n        } else"),
        ),
        WIDE_STEP,
    ),
)  # fmt: skip

_DIRECT = (
    Edit(
        PTX,
        "  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));\n"
        '  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), '
        '"r"(valid ? 16 : 0)\n               : "memory");\n',
        "  *static_cast<uint4*>(to) = valid ? __ldcg(static_cast<const uint4*>(from)) : make_uint4(0, 0, 0, 0);\n",
    ),
)
DIRECT = Family(
    "gemm-direct-copies",
    "int8_gemm",
    "cuda",
    CASE,
    "An int8 product that fills shared memory through registers",
    (
        Variant("copies by cp.async", "they bypass registers", "copy-asynchronously", "copies", undone(_DIRECT)),
        SMALLER_TILE,
        ONE_BLOCK,
        LARGE_WARPS,
        SMALL_WARPS,
    ),
    _DIRECT,
)

_SCALAR = PLANTED["without-tensor-cores"]
SCALAR = Family(
    "gemm-scalar",
    "int8_gemm",
    "cuda",
    "m512_n4096_k4096_int8",
    "An int8 product by dot-product instructions",
    (
        Variant("products on tensor cores", "a thousand times the rate", "wider-tensor-instruction", "instruction",
            undone(_SCALAR)),
        ONE_BLOCK,
        SMALLER_TILE,
        SHORT_RING,
    ),
    _SCALAR,
)  # fmt: skip

FAMILIES = (UNSWIZZLED, SHORT, TUNED, DIRECT, SCALAR)
