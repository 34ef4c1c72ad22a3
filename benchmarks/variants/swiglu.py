"""Variants of the SwiGLU kernel in Triton, which DRAM bounds once its loads are wide."""

from __future__ import annotations

from benchmarks.fuzzing.bug import Edit
from benchmarks.variants.family import Family, Variant, undone

FILE = "my_kernels/swiglu.py"
CASE = "t4096_f14336_bf16"
CALL = "up, out, elements, block=BLOCK)"
BODY = """\
    program = tl.program_id(0).to(tl.int64)  # a large tensor has more elements than an int32 counts
    offsets = program * block + tl.arange(0, block)
    inside = offsets < elements
    gate = tl.load(gate_ptr + offsets, mask=inside).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=inside).to(tl.float32)
    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up, mask=inside, cache_modifier=".cs")  # not read again
"""
LOOP = "    for program in range(tl.program_id(0), tl.cdiv(elements, block), tl.num_programs(0)):\n"


def edit(old: str, new: str) -> tuple[Edit, ...]:
    return (Edit(FILE, old, new),)


def block(before: int, after: int) -> tuple[Edit, ...]:
    return edit(f"BLOCK = {before}\n", f"BLOCK = {after}\n")


def warps(count: int) -> tuple[Edit, ...]:
    return edit(CALL, CALL[:-1] + f", num_warps={count})")


def _tile(elements: int, why: str, action: str) -> Variant:
    return Variant(f"{elements} elements a program", why, action, "tile", block(128, elements))


NARROW = Family(
    "swiglu-narrow",
    "swiglu",
    "triton",
    CASE,
    "SwiGLU whose programs take 128 elements: a thread loads 2 bytes at a time",
    (
        _tile(256, "4 bytes a thread and load", "wider-loads"),
        _tile(512, "8 bytes a thread and load", "wider-loads"),
        _tile(1024, "16 bytes a thread and load, the widest there is", "wider-loads"),
        _tile(4096, "four loads of 16 bytes of a thread under way", "more-in-flight"),
        _tile(16384, "fewer, larger programs", "larger-tiles"),
        Variant("one warp a program", "128 elements for 32 lanes: 8 bytes a load", "wider-loads", "warps", warps(1)),
        Variant("eight warps a program", "more warps hide latency", "more-warps", "warps", warps(8)),
    ),
    block(1024, 128),
)

TUNED = Family(
    "swiglu-tuned",
    "swiglu",
    "triton",
    CASE,
    "SwiGLU as it is: is there anything left?",
    (
        Variant("eight warps", "more warps hide latency", "more-warps", "warps", warps(8)),
        Variant("two warps", "each has more loads under way", "more-in-flight", "warps", warps(2)),
        Variant("sixteen warps", "more warps hide latency", "more-warps", "warps", warps(16)),
        Variant("2048 elements a program", "two loads under way", "more-in-flight", "tile", block(1024, 2048)),
        Variant("8192 elements a program", "fewer, larger programs", "larger-tiles", "tile", block(1024, 8192)),
        Variant(
            "no cache hint at the store",
            "to see what the hint is worth",
            "cache-hints",
            "cache",
            edit(', cache_modifier=".cs")', ")"),
        ),
        Variant(
            "loads that are evicted first",
            "no input is read again",
            "cache-hints",
            "cache",
            (
                Edit(FILE, "gate_ptr + offsets, mask=inside", 'gate_ptr + offsets, mask=inside, cache_modifier=".cs"'),
                Edit(FILE, "up_ptr + offsets, mask=inside", 'up_ptr + offsets, mask=inside, cache_modifier=".cs"'),
            ),
        ),
        Variant(
            "the sigmoid by exp2",
            "one instruction for the scaled exponential",
            "cheaper-arithmetic",
            "exp",
            edit("gate * tl.sigmoid(gate) * up", "gate / (1.0 + tl.exp2(-1.4426950408889634 * gate)) * up"),
        ),
        Variant(
            "1056 programs that take blocks until none is left",
            "no tail wave, no launch of 57,344 programs",
            "persistent-kernel",
            "grid",
            (
                Edit(FILE, "(triton.cdiv(elements, BLOCK),)", "(min(triton.cdiv(elements, BLOCK), 8 * 132),)"),
                Edit(
                    FILE,
                    BODY,
                    LOOP
                    + BODY.replace("    program = tl.program_id(0).to(tl.int64)", "    program = program.to(tl.int64)")
                    .replace("\n    ", "\n        ")
                    .replace("    program", "        program", 1),
                ),
            ),
        ),
        Variant(
            "indices of 32 bits",
            "an addition of 64 bits takes two instructions",
            "hoist-arithmetic",
            "index",
            edit("tl.program_id(0).to(tl.int64)  # a", "tl.program_id(0)  # a"),
        ),
    ),
)

_UNFUSED = (
    Edit(FILE, "    _swiglu[(triton.cdiv(elements, BLOCK),)](gate, up, out, elements, block=BLOCK)\n",
        "    _silu[(triton.cdiv(elements, BLOCK),)](gate, out, elements, block=BLOCK)\n"
        "    _times[(triton.cdiv(elements, BLOCK),)](up, out, elements, block=BLOCK)\n"
        "\n\n@triton.jit\n"
        "def _silu(gate_ptr, out_ptr, elements, block: tl.constexpr):\n"
        "    offsets = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)\n"
        "    inside = offsets < elements\n"
        "    gate = tl.load(gate_ptr + offsets, mask=inside).to(tl.float32)\n"
        "    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate), mask=inside)\n"
        "\n\n@triton.jit\n"
        "def _times(up_ptr, out_ptr, elements, block: tl.constexpr):\n"
        "    offsets = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)\n"
        "    inside = offsets < elements\n"
        "    up = tl.load(up_ptr + offsets, mask=inside).to(tl.float32)\n"
        "    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=inside).to(tl.float32) * up, mask=inside)\n"
    ),
)  # fmt: skip
UNFUSED = Family(
    "swiglu-unfused",
    "swiglu",
    "triton",
    CASE,
    "SwiGLU as two kernels, with the first one's result in DRAM between them",
    (
        Variant("one kernel", "three of five passes over DRAM stay", "fewer-bytes", "fusion", undone(_UNFUSED)),
        Variant("4096 elements a program", "four loads under way", "more-in-flight", "tile", block(1024, 4096)),
        Variant("128 elements a program", "more programs fill the tail", "smaller-tiles", "tile", block(1024, 128)),
        Variant(
            "the first result is written with a streaming hint",
            "it is read only once",
            "cache-hints",
            "cache",
            edit(
                "gate * tl.sigmoid(gate), mask=inside)", 'gate * tl.sigmoid(gate), mask=inside, cache_modifier=".cs")'
            ),
        ),
    ),
    _UNFUSED,
)

FAMILIES = (NARROW, TUNED, UNFUSED)
