"""Variants of RMSNorm in CUDA C++: width of loads, loads under way, threads, grid, hints."""

from __future__ import annotations

from benchmarks.explain.causes import CAUSES
from benchmarks.fuzzing.bug import Edit
from benchmarks.variants.family import Family, Variant, undone

FILE = "csrc/rmsnorm_kernel.cu"
CASE = "m4096_n4096_fp16"
PLANTED = {cause.name: cause.head.edits for cause in CAUSES}
BOUNDS = "__launch_bounds__(kMaxThreads)"


def edit(old: str, new: str) -> tuple[Edit, ...]:
    return (Edit(FILE, old, new),)


def width(before: int, after: int) -> tuple[Edit, ...]:
    return edit(f"kBytesPerLoad = {before};", f"kBytesPerLoad = {after};")


def loads(after: int) -> tuple[Edit, ...]:
    return edit("kLoads = 2;", f"kLoads = {after};")


def threads(most: int) -> tuple[Edit, ...]:
    return edit("kMaxThreads = 1024;", f"kMaxThreads = {most};")


FOUR_LOADS = Variant("four loads of a thread under way", "they hide latency", "more-in-flight", "loads", loads(4))
ONE_LOAD = Variant("one load of a thread under way", "twice the warps", "more-warps", "loads", loads(1))
EIGHT_LOADS = Variant("eight loads of a thread under way", "they hide latency", "more-in-flight", "loads", loads(8))
BOUND = Variant(
    "two blocks of 1,024 threads must fit",
    "32 registers a thread, so that the multiprocessor is full",
    "fewer-registers",
    "launch bounds",
    edit(BOUNDS, "__launch_bounds__(kMaxThreads, 2)"),
)
STREAMED = Variant(
    "outputs are stored with a streaming hint",
    "nobody reads them again",
    "cache-hints",
    "cache",
    edit(
        "      out[at] = values[i];\n",
        "      if constexpr (sizeof(values[i]) == 16) {\n"
        "        __stcs(reinterpret_cast<float4*>(out + at), *reinterpret_cast<const float4*>(&values[i]));\n"
        "      } else {\n"
        "        out[at] = values[i];\n"
        "      }\n",
    ),
)

NARROW = Family(
    "rmsnorm-narrow",
    "rmsnorm",
    "cuda",
    CASE,
    "RMSNorm that loads 2 bytes at a time",
    (
        Variant("loads of 4 bytes", "half the instructions", "wider-loads", "vector width", width(2, 4)),
        Variant("loads of 8 bytes", "a quarter of the instructions", "wider-loads", "vector width", width(2, 8)),
        Variant("loads of 16 bytes", "the widest there is", "wider-loads", "vector width", width(2, 16)),
        FOUR_LOADS,
        EIGHT_LOADS,
        Variant("256 threads a block", "less waits at the barrier", "narrower-barriers", "threads", threads(256)),
        BOUND,
    ),
    (
        *width(16, 2),
        *edit("kWidth = kBytesPerLoad / sizeof(T);", "kWidth = std::max<int>(1, kBytesPerLoad / sizeof(T));"),
    ),
)

TUNED = Family(
    "rmsnorm-tuned",
    "rmsnorm",
    "cuda",
    CASE,
    "RMSNorm as it is: is there anything left?",
    (
        ONE_LOAD,
        FOUR_LOADS,
        EIGHT_LOADS,
        Variant("64 threads a block", "less waits at the barrier", "narrower-barriers", "threads", threads(64)),
        BOUND,
        STREAMED,
        Variant(
            "inputs are loaded with a streaming hint",
            "nobody reads them again",
            "cache-hints",
            "cache",
            edit(
                "values[i] = at < vectors ? x[at] : Vector<T, Width>{};",
                "values[i] = Vector<T, Width>{};\n"
                "      if (at < vectors) {\n"
                "        if constexpr (sizeof(values[i]) == 16) {\n"
                "          *reinterpret_cast<float4*>(&values[i]) = __ldcs(reinterpret_cast<const float4*>(x + at));\n"
                "        } else {\n"
                "          values[i] = x[at];\n"
                "        }\n"
                "      }",
            ),
        ),
        Variant("loads of 8 bytes", "twice the threads a row", "more-warps", "vector width", width(16, 8)),
        Variant(
            "the scale by a division and a root",
            "more exact, more instructions",
            "cheaper-arithmetic",
            "precision",
            edit("rsqrtf(mean + eps)", "1.0f / sqrtf(mean + eps)"),
        ),
    ),
)

_GRID = PLANTED["small-grid"]


def _grid(blocks: int, why: str, action: str = "more-blocks") -> Variant:
    return Variant(
        f"{blocks} blocks", why, action, "grid", edit("std::min(blocks, 88u)", f"std::min(blocks, {blocks}u)")
    )


SMALL_GRID = Family(
    "rmsnorm-small-grid",
    "rmsnorm",
    "cuda",
    CASE,
    "RMSNorm on 88 persistent blocks, on 132 multiprocessors",
    (
        _grid(132, "a block on each multiprocessor"),
        _grid(264, "two on each"),
        _grid(1056, "as many as fit"),
        Variant("a block for each row", "the hardware hands them out", "more-blocks", "grid", undone(_GRID)),
        _grid(44, "fewer blocks share L2", "fewer-blocks"),
        FOUR_LOADS,
        ONE_LOAD,
        BOUND,
    ),
    _GRID,
)

_SCATTERED = PLANTED["uncoalesced"]
UNCOALESCED = Family(
    "rmsnorm-uncoalesced",
    "rmsnorm",
    "cuda",
    CASE,
    "RMSNorm whose lanes read and write addresses that are far apart",
    (
        Variant("lanes side by side", "whole sectors are used", "coalesce", "layout", undone(_SCATTERED)),
        FOUR_LOADS,
        ONE_LOAD,
        Variant(
            "64 threads a block", "lanes of one block are less far apart", "narrower-barriers", "threads", threads(64)
        ),
        BOUND,
    ),
    _SCATTERED,
)

FAMILIES = (NARROW, TUNED, SMALL_GRID, UNCOALESCED)
