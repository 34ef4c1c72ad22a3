"""A record without its samples: what is kept of each side's times, and what was made of the record while it had them.

The verdict stays what it was, to the last digit: it is kept, not made again. Of the samples there are location,
variance, autocorrelation, quantiles and the shares of modes, for whoever looks at old times once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field

from kernelgate.bench.record import Condensed, Model, RunRecord, Timing
from kernelgate.ci.history.entry import Entry, parsed
from kernelgate.ci.judge import modes
from kernelgate.ci.policy.policy import Policy

SCHEMA: Literal["kernelgate.condensed/1"] = "kernelgate.condensed/1"
QUANTILES = (5, 25, 50, 75, 95)
LAGS = 3
BY_SAMPLE = ("samples_us", "positions", "previous", "started_us", "sm_mhz")
DIGITS = 7
"""Significant ones, of numbers that nothing is computed from."""


class CondensedRecord(Model):
    schema_: Annotated[Literal["kernelgate.condensed/1"], Field(alias="schema")]
    raw: str
    """The sha256 of the record that it was."""
    record: RunRecord
    entry: Entry
    """As that one was judged, by the rules that it names."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)


def of_record(name: str, record: RunRecord, entry: Entry, policy: Policy) -> CondensedRecord:
    """What is kept of the record of this name. `entry`: what was made of it."""
    processes = tuple(
        process.model_copy(update={"timings": tuple(_timing(one, policy) for one in process.timings)})
        for process in record.processes
    )
    without = record.model_copy(update={"processes": processes})
    return CondensedRecord(schema_=SCHEMA, raw=name, record=without, entry=entry)


def to_json(condensed: CondensedRecord) -> bytes:
    """The same for the same content."""
    return condensed.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def from_json(data: bytes, name: str) -> CondensedRecord:
    """Raises RecordError where `data` is no condensed record."""
    return parsed(CondensedRecord, data, name, f"a {SCHEMA}")


def _timing(timing: Timing, policy: Policy) -> Timing:
    kept = {side: _side(samples, policy) for side, samples in timing.samples_us.items() if samples}
    return timing.model_copy(update={**{name: {} for name in BY_SAMPLE}, "condensed": {**timing.condensed, **kept}})


def _side(samples_us: Sequence[float], policy: Policy) -> Condensed:
    logs = np.log(samples_us)
    off = logs - logs.mean()
    variance = float(off @ off / max(1, len(logs) - 1))
    lags = range(1, min(LAGS, len(logs) - 1) + 1) if variance else ()
    two = modes.two_modes([logs], policy.limits)
    return Condensed(
        count=len(logs),
        location_us=_rounded(float(np.median(samples_us))),
        variance=_rounded(variance),
        autocorrelation=tuple(_rounded(float(off[lag:] @ off[:-lag] / (off @ off))) for lag in lags),
        quantiles_us={str(one): _rounded(float(np.percentile(samples_us, one))) for one in QUANTILES},
        mode_shares=(_rounded(1 - two.shares[0]), _rounded(two.shares[0])) if two else (),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
