"""How much of a call is its launch, where that is much: folded, and above the fold only where it is why a case changed.

Both times are measured: P50 of calls made one by one, and the same call replayed from a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from kernelgate.bench.record import CaseKey, RunRecord, rates, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Paragraph, Strong
from kernelgate.ci.explain import launch
from kernelgate.ci.explain.launch import LaunchShare
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.gpu import JudgedCase
from kernelgate.ci.report.links import docs

MAX_CASES = 5
"""That are spelled out, those with the largest share first."""
MEASURED = "by calls made one by one beside the same calls replayed from a CUDA graph"


def blocks(record: RunRecord, cases: Sequence[JudgedCase], limit: float) -> tuple[Block, ...]:
    """What a faster kernel can still win, and what fusing can, for each case whose launch takes more than `limit`."""
    shares = _shares(record)
    found = [(one.name, shares[one.case.key]) for one in cases if one.case.key in shares]
    large = sorted((one for one in found if one[1].launch_us > limit * one[1].call_us), key=lambda one: -_of(one[1]))
    if not large:
        return ()
    said: Line = (f"The launch takes more than {100 * limit:.0f}% of the head's call, {MEASURED}:",)
    lines: list[Line] = [(name, ": ", launch.sentence(share), ".") for name, share in large[:MAX_CASES]]
    if len(large) > MAX_CASES:
        lines.append((f"So it does in {formatting.counted(len(large) - MAX_CASES, 'more case')}.",))
    return Paragraph(said), Bullets(tuple(lines))


def why(record: RunRecord, cases: Sequence[JudgedCase], policy: Policy, label: str = "") -> tuple[Line, ...]:
    """That the first case that changed did so by its launch, where every process shows it; `label`: of the GPU."""
    news = next((one for one in cases if one.status.is_news), None)
    pairs = _pairs(record, news.case.key) if news is not None else []
    if news is None or len(pairs) < policy.processes.minimum:
        return ()
    if not launch.is_cause(pairs, policy.guidance.launch_share):
        return ()
    launches = (median(pair[at].launch_us for pair in pairs) for at in (0, 1))
    kernels = (median(pair[at].kernel_us for pair in pairs) for at in (0, 1))
    moved = f"{_moved(*launches)}; the kernels alone {_moved(*kernels)}"
    where: Line = (" on ", Code(label)) if label else ()
    guide = docs("the cookbook on launch overhead", "CUDA_COOKBOOK.md#launch-overhead")
    return ((Strong("Why"), f", {MEASURED} in ", news.name, *where, f": the launch took {moved}; see ", guide),)


def _moved(before_us: float, after_us: float) -> str:
    return " → ".join(formatting.durations(before_us, after_us))


def _of(share: LaunchShare) -> float:
    return share.launch_us / share.call_us


def _shares(record: RunRecord) -> dict[CaseKey, LaunchShare]:
    """Of the head, over all processes, where its replay was timed."""
    heads = ((case.key, rates.rate(case, "head")) for case in timed_cases(record))
    return {key: LaunchShare(one.p50_us, one.graph_us) for key, one in heads if one and one.graph_us is not None}


def _pairs(record: RunRecord, key: CaseKey) -> list[tuple[LaunchShare, LaunchShare]]:
    """Base and head in each process that timed both, with their replays."""
    timings = [one.timing for case in timed_cases(record) if case.key == key for one in case.processes]
    both = [one for one in timings if {"base", "head"} <= one.graph_us.keys() & one.samples_us.keys()]
    return [
        (
            LaunchShare(median(one.samples_us["base"]), one.graph_us["base"]),
            LaunchShare(median(one.samples_us["head"]), one.graph_us["head"]),
        )
        for one in both
    ]
