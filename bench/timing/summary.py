"""A record's percentiles and rates as a table for a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kernelgate.bench.record import RunRecord, rates

if TYPE_CHECKING:
    from rich.table import Table


def table(record: RunRecord) -> Table:
    """A row for each side of each case."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    made.add_column("case")
    made.add_column("side")
    for title in ("P50 µs", "P95 µs", "P99 µs", "CV %", "graph µs", "TFLOP/s", "GB/s"):
        made.add_column(title, justify="right")
    sharing = Counter(case.id for case in record.cases)
    for rate in rates.rates(record):
        name = rate.key.id if sharing[rate.key.id] == 1 else f"{rate.key.card}/{rate.key.id}"
        numbers = (rate.p50_us, rate.p95_us, rate.p99_us, rate.cv_pct, rate.graph_us, rate.tflops, rate.gbps)
        made.add_row(name, rate.side, *("–" if number is None else f"{number:.4g}" for number in numbers))
    return made
