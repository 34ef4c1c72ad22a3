"""What a record's samples come to: percentiles and rates of each case and side. Pure, and without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, stdev
from typing import TYPE_CHECKING

from kernelgate.bench.record import Case, RunRecord, Timed

if TYPE_CHECKING:
    from rich.table import Table

SIDES: tuple[Timed, ...] = ("base", "head", "oracle")


@dataclass(frozen=True)
class Rate:
    """One side of one case over all launches; times in microseconds a call."""

    case: str
    side: Timed
    p50_us: float
    p95_us: float
    p99_us: float
    cv_pct: float
    """Standard deviation in percent of the mean, the median of the launches."""
    graph_us: float | None
    """Median of the launches; without launch overhead."""
    tflops: float | None
    """From the case's own work and the median time."""
    gbps: float | None


def rates(record: RunRecord) -> tuple[Rate, ...]:
    """Every side that was timed, case by case."""
    return tuple(_rate(case, side) for case in record.cases for side in SIDES if _samples(case, side))


def percentile(samples: Sequence[float], percent: int) -> float:
    """With linear interpolation between the two samples around it; `percent` from 1 to 99."""
    return samples[0] if len(samples) == 1 else quantiles(samples, n=100, method="inclusive")[percent - 1]


def variation_pct(samples: Sequence[float]) -> float:
    return 100 * stdev(samples) / fmean(samples) if len(samples) > 1 else 0.0


def table(record: RunRecord) -> Table:
    """The rates for a person."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    made.add_column("case")
    made.add_column("side")
    for title in ("P50 µs", "P95 µs", "P99 µs", "CV %", "graph µs", "TFLOP/s", "GB/s"):
        made.add_column(title, justify="right")
    for rate in rates(record):
        numbers = (rate.p50_us, rate.p95_us, rate.p99_us, rate.cv_pct, rate.graph_us, rate.tflops, rate.gbps)
        made.add_row(rate.case, rate.side, *("–" if number is None else f"{number:.4g}" for number in numbers))
    return made


def _rate(case: Case, side: Timed) -> Rate:
    samples = _samples(case, side)
    p50_us = median(samples)
    graphs = [launch.graph_us[side] for launch in case.launches if side in launch.graph_us]
    flops = case.work.flops if case.work else None
    moved = case.work.bytes if case.work else None
    return Rate(
        case=case.id,
        side=side,
        p50_us=p50_us,
        p95_us=percentile(samples, 95),
        p99_us=percentile(samples, 99),
        cv_pct=median(variation_pct(launch.samples_us[side]) for launch in case.launches if side in launch.samples_us),
        graph_us=median(graphs) if graphs else None,
        tflops=None if flops is None else flops / p50_us / 1e6,
        gbps=None if moved is None else moved / p50_us / 1e3,
    )


def _samples(case: Case, side: Timed) -> list[float]:
    return [time_us for launch in case.launches for time_us in launch.samples_us.get(side, ())]
