"""Writes docs/proof.md: commits of other projects, what their authors claim, and what each tool says of the samples.

The records in tests/data/pairs were measured by `kernelgate try`, each commit against its parent. The other tools see
the very samples of the first process of each side: one process, but where base and head cannot share it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks.tables import markdown, put
from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.render import plain_line
from kernelgate.ci.judge import correctness
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.correctness import headline

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "proof.md"
DATA = ROOT / "tests" / "data" / "pairs"
ALPHA = 0.05
"""benchstat's."""
PAIRS = (
    ("h200/tvd", "5c9cecc8, TVD", "1.7 times as fast (−41%)"),
    ("group_norm", "dea3a772, GroupNorm", "about 2 times as fast"),
    ("layer_norm_backward", "540575bc, LayerNorm backward", "5 to 12 times as fast, on an A100"),
    ("dyt", "285f2517, DyT", "+8% at N=4096, +5% at 8192, −37% at 16384"),
    ("swiglu", "11702da9, SwiGLU", "no change"),
    ("add_rms_norm_backward", "b7025a70, RMSNorm backward", "up to 70% faster"),
    ("cross_entropy", "e44a5fe8, cross entropy", "faster, without a figure"),
    ("append_mla", "c27cb0e5, paged MLA append", "1.80 times as fast from 256 pages on (−44%), on an H200"),
    ("fused_add_rms_norm", "2043ca21, add + RMSNorm", "faster, without a figure"),
    ("mla_rope", "73bc88ec, MLA RoPE, fp8", "20 to 35% faster"),
    ("attnres", "cdd1d158, AttnRes", "each source read once, not twice"),
    ("h200/ao", "f9f197e8, fp8 transpose", "5 to 11% faster, on an H100"),
    ("h200/nsa", "a0e0ab60, block scores", "18 to 30% faster, on an H100"),
    ("h200/tritonbench_sum", "70264720, sum", "takes more than 1,048,576 elements"),
    ("h200/flaggems_cumsum", "8672f509, cumsum", "reduces first, then scans"),
    ("h200/lightllm_moe_align", "743ddc3c, MoE alignment", "8,192 tokens 10 times as fast, 200 alike"),
    ("h200/flaggems_index_select", "bc974858, index_select", '"Fix performance issue"'),
)
"""The record's name, the commit, and what its authors claim."""


def text() -> str:
    rows = [row for name, commit, claim in PAIRS for row in _rows(commit, claim, record.read(DATA / f"{name}.json"))]
    header = ("commit", "case", "authors", "kernelgate", "medians", "nvbench-compare", "GPU")
    return markdown(header, rows, numbers=False)


def _rows(commit: str, claim: str, made: RunRecord) -> list[list[str]]:
    seconds = f"{sum(cost.gpu_seconds for cost in made.costs):.0f} s" if made.costs else ""
    if correctness.fuzz_failures(made):
        said = plain_line(headline(made))
        return [[commit, "", claim, f"blocks: {said[0].lower()}{said[1:]}", "", "", seconds]]
    labels = {case.key: case.label or "" for case in made.cases}
    rows = [["", labels[one.key], "", _ours(one), *_others(made, one), ""] for one in judge(made, Policy()).cases]
    rows[0][0], rows[0][2], rows[0][-1] = commit, claim, seconds
    return rows


def _ours(one: CaseVerdict) -> str:
    if one.change_pct is None or one.interval_pct is None:
        return one.status.name.lower()
    low, high = one.interval_pct
    return f"{one.status.name.lower()}: {one.change_pct:+.1f}% [{low:+.1f}, {high:+.1f}]"


def _others(made: RunRecord, one: CaseVerdict) -> tuple[str, str]:
    timings = [timing for process in made.processes if process.role != "witness" for timing in process.timings]
    own = [timing.samples_us for timing in timings if (timing.card, timing.case) == (one.key.card, one.key.id)]
    base, head = (np.asarray(next(filter(None, (times.get(side) for times in own)))) for side in ("base", "head"))
    change = 100 * (median(head) / median(base) - 1)
    certain = mannwhitneyu(base, head).pvalue < ALPHA
    mean = head.mean() / base.mean() - 1
    noise = min(float(one.std() / one.mean()) for one in (base, head))
    same = "same" if abs(mean) <= noise else "fast" if mean < 0 else "slow"
    return f"{change:+.1f}%{'' if certain else ' ~'}", f"{same} ({100 * mean:+.1f}%)"


if __name__ == "__main__":
    put(PAGE, "proof", text())
