"""Which shard measures which cases: the same on every machine, so that each shard finds its own part alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from kernelgate.bench.record.run_record import RunRecord
from kernelgate.bench.record.subjects import CaseKey


def assigned(
    cases: Sequence[CaseKey], seconds: Mapping[CaseKey, float], shards: int
) -> tuple[tuple[CaseKey, ...], ...]:
    """The cases of each shard: the longest first, onto the shard that has the least to do (LPT, Graham 1969).

    A case without `seconds` counts as the mean of the others. Ties go to the first case and the first shard; within a
    shard, cases keep their order.
    """
    usual = fmean(known) if (known := [seconds[key] for key in cases if key in seconds]) else 1.0
    loads, owners = [0.0] * shards, dict[CaseKey, int]()
    for key in sorted(cases, key=lambda one: -seconds.get(one, usual)):
        least = loads.index(min(loads))
        loads[least] += seconds.get(key, usual)
        owners[key] = least
    return tuple(tuple(key for key in cases if owners[key] == shard) for shard in range(shards))


def measured_seconds(record: RunRecord) -> dict[CaseKey, float]:
    """What each case of a record took, over all its processes."""
    spent: dict[CaseKey, float] = {}
    for process in record.processes:
        for timing in process.timings:
            sampled = sum(map(sum, timing.samples_us.values()))
            condensed = sum(one.count * one.location_us for one in timing.condensed.values())
            seconds = (sampled + condensed) * (timing.inner_repeats or 1) / 1e6
            spent[timing.key] = spent.get(timing.key, 0.0) + seconds
    return {key: seconds for key, seconds in spent.items() if seconds > 0}
