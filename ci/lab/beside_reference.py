"""How many times as fast as its reference a kernel is, over a session's cases, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, median, stdev

from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.case import CaseVerdict

LEVEL = 0.95


def figures(measured: RunRecord, both: Sequence[CaseVerdict]) -> dict[str, float]:
    """`speedup`, the geometric mean over `both`, cases with the times of kernel and reference; and the ends of its
    interval, where each case was timed in more than one process: by Student's t from the processes' own ratios, cases
    taken as independent.
    """
    ratios = [one.reference_us / one.head_us for one in both if one.reference_us and one.head_us]
    speedup = exp(fmean(map(log, ratios)))
    reaches = _reaches(measured, {(one.card, one.id) for one in both})
    if len(reaches) < len(ratios):
        return {"speedup": speedup}
    reach = sqrt(sum(one**2 for one in reaches)) / len(reaches)
    return {"speedup": speedup, "speedup_low": speedup * exp(-reach), "speedup_high": speedup * exp(reach)}


def _reaches(measured: RunRecord, wanted: set[tuple[str, str]]) -> list[float]:
    """Half of each case's interval, of the logarithm."""
    from scipy.special import stdtrit

    found = []
    for case in cards.compared(measured):
        times = [one.samples_us for one in case.processes if (case.case.card, case.id) in wanted]
        logs = [
            log(median(one["reference"]) / median(one["head"]))
            for one in times
            if one.get("reference") and one.get("head")
        ]
        if len(logs) > 1:
            found.append(float(stdtrit(len(logs) - 1, (1 + LEVEL) / 2)) * stdev(logs) / sqrt(len(logs)))
    return found
