"""The profiled kernel of a file: of an Nsight Compute report, or of a run record with a profile."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.explain import ncu_reader
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import thresholds, why


def read(source: Path, case: str | None, policy: Policy) -> Analysis:
    """The launch that takes longest; of a record the head's, and that of the case where one is named.

    Raises KernelgateError where nothing was profiled or the file cannot be read, UsageError for a report's case.
    """
    limits = thresholds.bottleneck_limits(policy)
    if ncu_reader.is_report(source):
        if case is not None:
            raise UsageError("--case is for run records: a report does not say which case it is of")
        return max(analyze.analyze(source, limits), key=_duration)
    found = [one for one in why.both_sides(record.read(source)) if case in (None, one.key.id)]
    if not found:
        of = f"of {case} " if case else ""
        raise KernelgateError(f"{source} holds no profile {of}of the head: kernelgate profile --record {source}")
    return max((analyze.analyze_kernel(one.head, limits) for one in found), key=_duration)


def _duration(one: Analysis) -> float:
    return one.kernel.figures.get("duration_us", 0.0)
