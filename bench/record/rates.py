"""What a case's samples come to: its time, percentiles and rates of each side. Pure, and for `bench` and `ci` alike."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from kernelgate.bench.record import Case, CaseKey, RunRecord, Side, TimedCase, timed_cases

SIDES: tuple[Side, ...] = ("base", "head", "reference")


@dataclass(frozen=True)
class Rate:
    """One side of one case over all processes; times in microseconds a call."""

    key: CaseKey
    side: Side
    us: float
    """Typical: `typical_us`, or as the judge has it."""
    p95_us: float
    p99_us: float
    cv_pct: float
    """Standard deviation in percent of the mean, the median of the processes."""
    graph_us: float | None
    """Median of the processes; without launch overhead."""
    tflops: float | None
    """From the case's own work and the typical time: 1e6 operations in a microsecond."""
    gbps: float | None
    """Likewise: 1e3 bytes in a microsecond."""

    @property
    def overhead_us(self) -> float | None:
        """What a call holds beyond the kernel itself."""
        return None if self.graph_us is None else max(0.0, self.us - self.graph_us)


def rates(record: RunRecord) -> tuple[Rate, ...]:
    """Every side that was timed, case by case."""
    found = (rate(case, side) for case in timed_cases(record) for side in SIDES)
    return tuple(one for one in found if one is not None)


def typical_us(processes: Iterable[Collection[float]]) -> float | None:
    """The one time of a side that is shown anywhere: the median of its processes' medians; None where it has none.

    Each process counts once: of all samples together, one that has more rounds, or was throttled, could decide alone.
    """
    medians = [float(median(samples)) for samples in processes if len(samples)]
    return median(medians) if medians else None


def rate(case: TimedCase, side: Side, judged_us: float | None = None) -> Rate | None:
    """None where the side was not timed. `judged_us`: its typical time in the verdict, if there is one."""
    processes = [one for process in case.processes if (one := process.samples_us.get(side))]
    if (us := typical_us(processes)) is None:
        return None
    us = judged_us or us
    samples = [time_us for process in processes for time_us in process]
    graphs = [one.timing.graph_us[side] for one in case.processes if side in one.timing.graph_us]
    flops, moved = _work(case.case)
    return Rate(
        key=case.key,
        side=side,
        us=us,
        p95_us=percentile(samples, 95),
        p99_us=percentile(samples, 99),
        cv_pct=median(map(variation_pct, processes)),
        graph_us=median(graphs) if graphs else None,
        tflops=None if flops is None else flops / us / 1e6,
        gbps=None if moved is None else moved / us / 1e3,
    )


def _work(case: Case) -> tuple[float | None, float | None]:
    """Operations and bytes of one call."""
    return (case.work.flops, case.work.bytes) if case.work else (None, None)


def percentile(samples: Sequence[float], percent: int) -> float:
    """With linear interpolation between the two samples around it; `percent` from 1 to 99."""
    return samples[0] if len(samples) == 1 else quantiles(samples, n=100, method="inclusive")[percent - 1]


def variation_pct(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    mean = fmean(samples)
    # statistics.stdev counts in fractions: twenty times as long, for the sixteenth digit.
    return 100 * math.hypot(*(one - mean for one in samples)) / math.sqrt(len(samples) - 1) / mean


def gflops(case: Case, microseconds: float) -> float | None:
    """In billions of operations a second, as a baseline states its throughput; None where the case states no work."""
    flops, _ = _work(case)
    return None if flops is None else round(1e3 * (flops / microseconds / 1e6), 1)
