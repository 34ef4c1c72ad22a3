"""The tables of docs/performance.md are of the kept records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks.kernel import AttentionCase, predicted_us

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
SIDES = ("fa_s512", "fa_s512 mma_sync", "FLASH", "cuDNN")


def medians(name: str) -> dict[str, dict[str, float]]:
    """By case and side, in microseconds."""
    kept: dict[str, Any] = json.loads((ROOT / f"benchmarks/results/{name}_h200.json").read_text(encoding="utf-8"))
    return {row["case"]: {side: median(us) for side, us in row["samples_us"].items()} for row in kept["rows"]}


def rows(heading: str) -> list[list[str]]:
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.strip("|").split("|") for line in re.findall(r"^\|[^-].*\|$", section, re.MULTILINE)[1:]]


def test_the_attention_table_and_its_summary_are_of_the_record() -> None:
    kept = medians("attention")
    for size, *cells in rows("Attention"):
        seq, _, causal = size.partition(", ")
        times = kept[f"s{seq}_b32_h8_d64_fp16{f'_{causal}' if causal else ''}"]
        low, high = predicted_us(AttentionCase(int(seq), 32, "fp16", bool(causal)), times["fa_s512 mma_sync"])
        shown = [*(f"{times[side]:,.1f}" for side in SIDES), f"{times['fa_s512'] / times['cuDNN']:.2f}"]
        assert cells == [*shown, f"{low:,.0f} to {high:,.0f}"], size
    ratios = [times["fa_s512"] / times["cuDNN"] for times in kept.values()]
    summary = f"Over all {len(ratios)} cases the geometric mean of fa_s512 / cuDNN is {geometric_mean(ratios):.2f}"
    assert f"{summary}, and the largest {max(ratios):.2f}." in " ".join(TEXT.split())
    speed = 1 / ratios[list(kept).index("s512_b32_h8_d64_fp16")]
    assert all(f"is {speed:.2f} times as fast as cuDNN" in " ".join(page.split()) for page in (README, TEXT))


def test_its_mean_error_is_below_that_of_flash_in_every_case() -> None:
    kept = json.loads((ROOT / "benchmarks/results/attention_h200.json").read_text(encoding="utf-8"))["errors"]
    assert kept
    assert [case for case, sides in kept.items() if sides["fa_s512"]["mean"] >= sides["FLASH"]["mean"]] == []


def test_the_table_of_memory_bound_kernels_is_of_the_records() -> None:
    for what, *cells in rows("Memory-bound kernels"):
        kernel, case = what.split()
        times = medians(kernel.lower())[case]
        sides = ("kernel", "copy", "PyTorch", "PyTorch compiled")
        assert cells == [f"{times[side]:.1f}" if side in times else "–" for side in sides], what
