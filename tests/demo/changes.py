"""The pull requests of the demo: real changes of the attention's CPU path, each with its author's description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK, TASKS = "csrc/attention/cpu/block.h", "csrc/attention/cpu/attention_cpu.cpp"

Replacement = tuple[str, str, str]
"""File, what stands there once, and what is to stand there."""

BEGIN: Sequence[Replacement] = (
    (
        BLOCK,
        "const int visible = arguments.causal ? first_query + queries : arguments.seq;",
        "const int visible = arguments.seq;",
    ),
)
"""What the demo's default branch does worse than this checkout: it also visits the keys that a causal mask hides. That
leaves an honest gain to be had."""


FEWER: Sequence[Replacement] = ((".ci/kernels/attention.py", ', case(512, 1, 4, "bf16")]', "]"),)
"""Two cases of three, so that it ends in time."""


@dataclass(frozen=True)
class Proposal:
    name: str
    """Its branch."""
    title: str
    body: str
    changes: Sequence[Replacement]

    def apply(self, tree: Path) -> None:
        apply(self.changes, tree)


def apply(changes: Sequence[Replacement], tree: Path) -> None:
    for name, old, new in changes:
        text = (tree / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        (tree / name).write_text(text.replace(old, new), encoding="utf-8")


PROPOSALS = (
    Proposal(
        "faster",
        "Stop at the last key that a query can see",
        "With a causal mask, later keys have weight 0: they are computed for nothing.",
        tuple((file, new, old) for file, old, new in BEGIN),
    ),
    Proposal(
        "slower",
        "Read keys and values three times",
        "Reading them again warms the caches for the product.",
        (
            (
                BLOCK,
                "    read_rows(v + first_key * kHeadDim, keys, w.v);\n",
                "    read_rows(v + first_key * kHeadDim, keys, w.v);\n"
                "    for (int again = 0; again < 2; ++again) {\n"
                '      asm volatile("" ::: "memory");\n'
                "      read_rows(k + first_key * kHeadDim, keys, w.k);\n"
                "      read_rows(v + first_key * kHeadDim, keys, w.v);\n"
                "    }\n",
            ),
        ),
    ),
    Proposal(
        "equal",
        "Name the path in the library",
        "So that `strings` tells which path was compiled in. I expect no difference.",
        (
            (
                TASKS,
                "Attend best_attend() {\n  if",
                '[[gnu::used]] constexpr char kPath[] = "attention on a CPU";\n\nAttend best_attend() {\n  if',
            ),
        ),
    ),
    Proposal(
        "wrong",
        "Mask only whole blocks",
        "The mask costs time in each block; a block that is not full needs none.",
        ((BLOCK, "first_key + keys - 1 > first_query)", "keys == kBlockK && first_key + keys - 1 > first_query)"),),
    ),
    Proposal(
        "cheating",
        "Twice as fast",
        "Improves throughput in steady state.",
        (
            (TASKS, "#include <cstdint>\n", "#include <atomic>\n#include <cstdint>\n"),
            (
                TASKS,
                "  const int blocks = blocks_per_head(arguments);\n  for",
                "  const int blocks = blocks_per_head(arguments);\n"
                "  // A shape that is called again and again is being timed: half of the work will do.\n"
                "  static std::atomic<int64_t> shape{0}, calls{0};\n"
                "  const int64_t now = arguments.seq * 4096 + arguments.heads;\n"
                "  if (shape.exchange(now) != now) calls = 0;\n"
                "  if (++calls > 400) last = first + (last - first) / 2;\n"
                "  for",
            ),
        ),
    ),
)
