"""The times: processes, what each timed, and the device meanwhile."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from kernelgate.bench.record.base import (
    Count,
    Finite,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Role,
    Share,
    Side,
    Whole,
    must_be_unique,
    without_nulls,
)
from kernelgate.bench.record.identity import CaseKey


class Telemetry(Model):
    """The device while one case was timed in one process: medians; the hottest temperature."""

    sm_mhz: NonNegative | None = None
    max_sm_mhz: NonNegative | None = None
    """The highest clock that the device has."""
    memory_mhz: NonNegative | None = None
    temperature_c: Finite | None = None
    power_w: NonNegative | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Every reason that was seen."""
    throttle_shares: dict[str, Share] = {}
    """The share of the readings that gave each reason; a reason without one counts as given by all of them."""


class Calls(Model):
    """Of one side's calls in one process: how many were made, and what is known of them."""

    made: Count | None = None
    compared: Count | None = None
    """Calls whose whole outputs were compared with what is right."""
    failed: Count = 0
    """Of those that were compared, the wrong ones."""
    repeated: Count | None = None
    """Calls that read inputs which an earlier call of that process had read in the same form."""


class OutputErrors(Model):
    """How far a side's compared outputs lay from the oracle."""

    maximum: NonNegative | None = None
    """Largest |output - oracle|; null where an output was not finite."""
    mean: NonNegative | None = None
    bias_ulp: Finite | None = None
    """The mean signed error in units in the last place."""


class Condensed(Model):
    """What is kept of a side's samples once they can decide nothing more."""

    count: Positive
    location_us: Microseconds
    variance: NonNegative
    """Of the logarithm of one sample."""
    autocorrelation: tuple[Finite, ...] = ()
    """At lags 1, 2, …"""
    quantiles_us: dict[str, Microseconds] = {}
    """By percentile, such as "50"."""
    mode_shares: tuple[Share, ...] = ()


class Timing(Model):
    """One case in one process. A sample is the time of one call.

    Of the role `witness`, a sample is the mean time of the calls of one batch; base and head ran apart, and the samples
    of one index were taken one after the other.
    """

    card: str = ""
    case: Annotated[str, Field(min_length=1)]
    samples_us: Annotated[dict[Side, tuple[Microseconds, ...]], BeforeValidator(without_nulls)] = {}
    """Index i is round i; all sides but the reference, which is timed in some of the rounds, have one length."""
    condensed: dict[Side, Condensed] = {}
    """In place of samples."""
    positions: dict[Side, tuple[Count, ...]] = {}
    """The place of each sample in its round."""
    previous: dict[Side, tuple[Side | None, ...]] = {}
    """What ran just before each sample."""
    started_us: dict[Side, tuple[Finite, ...]] = {}
    """When each sample began, since the first."""
    sm_mhz: dict[Side, tuple[NonNegative, ...]] = {}
    """The SM clock during each sample."""
    inner_repeats: Positive | None = None
    """Calls inside one timed interval; the samples are already divided by it."""
    pause_us: NonNegative | None = None
    """Idle time before each sample."""
    clock_step_us: NonNegative | None = None
    """The step in which this clock's times come."""
    graph_us: dict[Side, Microseconds] = {}
    """Median time of one call replayed from a CUDA graph: the kernel without its launch overhead."""
    calls: dict[Side, Calls] = {}
    errors: dict[Side, OutputErrors] = {}
    autotuned: dict[Side, str] = {}
    """What an autotuner chose."""
    memory_bytes: dict[Side, Count] = {}
    """The most memory that one call holds beside its inputs: outputs, and what it takes from torch's allocator."""
    telemetry: Telemetry | None = None

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        lengths = {side: len(samples) for side, samples in self.samples_us.items()}
        if len({length for side, length in lengths.items() if side != "reference"}) > 1:
            raise ValueError(f"samples_us needs arrays of one length, one entry a round; got {lengths}")
        for name in ("positions", "previous", "started_us", "sm_mhz"):
            odd = {side for side, values in getattr(self, name).items() if len(values) != lengths.get(side)}
            if odd:
                raise ValueError(f"{name} needs one entry for each sample; not so for {', '.join(sorted(odd))}")
        return self

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.card, self.case)


class Process(Model):
    """One fresh process: the unit of replication. Not every process holds every case."""

    id: str
    environment: str = "0"
    role: Role = "paired"
    loaded: tuple[Side, ...] = ()
    """The sides, in the order in which their libraries were loaded."""
    seed: str | None = None
    started_at: str | None = None
    """ISO 8601, UTC."""
    gpu_seconds: NonNegative | None = None
    wall_seconds: NonNegative | None = None
    exit: Whole | None = None
    timings: tuple[Timing, ...] = ()

    @model_validator(mode="after")
    def _each_case_once(self) -> Self:
        must_be_unique((f"{timing.card}/{timing.case}" for timing in self.timings), f"timings of process {self.id}")
        return self
