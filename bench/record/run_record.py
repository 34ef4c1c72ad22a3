"""The times of each process, the whole record, and its file."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import RecordError, faults
from kernelgate.bench.record.findings import Check, Cost, Note, Profile, Summary
from kernelgate.bench.record.subjects import (
    COMPARED,
    Build,
    Card,
    Case,
    CaseKey,
    Count,
    Environment,
    Expected,
    Finite,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Role,
    Run,
    Share,
    Side,
    Whole,
    must_be_unique,
    without_nulls,
)

ROUNDED = 1 + 1e-9
"""A mean of equal numbers may come out so much larger than they are."""


class Telemetry(Model):
    """The device while one case was timed in one process: medians; the hottest temperature."""

    sm_mhz: NonNegative | None = None
    max_sm_mhz: NonNegative | None = None
    memory_mhz: NonNegative | None = None
    temperature_c: Finite | None = None
    power_w: NonNegative | None = None
    throttle_reasons: tuple[str, ...] = ()
    throttle_shares: dict[str, Share] = {}
    """The share of the readings that gave each reason; a reason without one counts as given by all of them."""


class Calls(Model):
    """Of one side's calls in one process: how many were made, and what is known of them."""

    made: Count | None = None
    compared: Count | None = None
    """Calls whose whole outputs were compared with what is right."""
    failed: Count = 0
    crashed: str | None = None
    """How one of them ended its process, or which error it raised: the last, where no output is compared."""
    hung: bool = False
    """Whether the call did not end, and its process was ended."""
    repeated: Count | None = None
    """Calls that read inputs which an earlier call of that process had read in the same form."""


class OutputErrors(Model):
    """How far a side's compared outputs lay from the oracle."""

    maximum: NonNegative | None = None
    """Largest |output - oracle|; null where an output was not finite."""
    mean: NonNegative | None = None

    @model_validator(mode="after")
    def _mean_within_the_maximum(self) -> Self:
        if self.mean is not None and self.maximum is not None and self.mean > self.maximum * ROUNDED:
            raise ValueError(f"a mean error of {self.mean:.3g} is above the largest one, {self.maximum:.3g}")
        return self


class Condensed(Model):
    """What is kept of a side's samples once they can decide nothing more."""

    count: Positive
    location_us: Microseconds
    variance: NonNegative
    """Of the logarithm of one sample."""
    autocorrelation: tuple[Finite, ...] = ()
    quantiles_us: dict[str, Microseconds] = {}
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
    previous: dict[Side, tuple[Side | None, ...]] = {}
    started_us: dict[Side, tuple[Finite, ...]] = {}
    """When each sample began, since the first."""
    sm_mhz: dict[Side, tuple[NonNegative, ...]] = {}
    inner_repeats: Positive | None = None
    """Calls of base or head inside one timed interval; the samples are already divided by it. The reference's have a
    number of their own."""
    pause_us: NonNegative | None = None
    clock_step_us: NonNegative | None = None
    """The step in which this clock's times come."""
    clocks_apart_us: NonNegative | None = None
    """Where calls wait for the GPU: by how much more its own clock counts of a call of one side than of the other,
    beside the clock of the process that made them."""
    graph_us: dict[Side, Microseconds] = {}
    """Median time of one call replayed from a CUDA graph: the kernel without its launch overhead."""
    calls: dict[Side, Calls] = {}
    errors: dict[Side, OutputErrors] = {}
    autotuned: dict[Side, str] = {}
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


# ---- The whole record, and its times case by case --------------------------------------------------------------------

SCHEMA: Literal["kernelgate.run/2"] = "kernelgate.run/2"


class RunRecord(Model, validate_by_name=True, validate_by_alias=True):
    schema_: Annotated[Literal["kernelgate.run/2"], Field(alias="schema")] = SCHEMA
    run: Run = Run()
    expected: Expected | None = None
    environments: tuple[Environment, ...] = ()
    """The first is the one that the processes share where they name no other."""
    cards: tuple[Card, ...] = ()
    builds: tuple[Build, ...] = ()
    cases: tuple[Case, ...] = ()
    processes: tuple[Process, ...] = ()
    checks: tuple[Check, ...] = ()
    profile: tuple[Profile, ...] = ()
    costs: tuple[Cost, ...] = ()
    notes: tuple[Note, ...] = ()
    summary: Summary | None = None
    """Baselines only."""

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Self:
        must_be_unique((f"{case.card}/{case.id}" for case in self.cases), "case ids")
        must_be_unique((process.id for process in self.processes), "process ids")
        must_be_unique((one.id for one in self.environments), "environment ids")
        known = {case.key for case in self.cases}
        for process in self.processes:
            strange = next((timing.case for timing in process.timings if timing.key not in known), None)
            if strange is not None:
                raise ValueError(f"process {process.id} timed {strange!r}, which is not among the cases")
        for check in self.checks:
            strange = next((one.case for one in check.accuracies if CaseKey(check.card, one.case) not in known), None)
            if strange is not None:
                raise ValueError(f"the accuracy of {strange!r} was measured, which is not among the cases")
        return self

    @property
    def environment(self) -> Environment:
        """Where the record was made, of several machines the first."""
        return self.environments[0] if self.environments else Environment()

    @property
    def fuzz(self) -> Check | None:
        """The fuzz results of all cards as one check, which fails where one of them does."""
        checks = [check for check in self.checks if check.kind == "fuzz"]
        if len(checks) < 2:
            return checks[0] if checks else None
        worst = min(checks, key=lambda check: ("failed", "skipped", "passed").index(check.status))
        results = tuple(result for check in checks for result in check.results)
        asked = sum(len(check.results) if check.asked is None else check.asked for check in checks)
        return worst.model_copy(update={"results": results, "asked": asked, "run": len(results)})


@dataclass(frozen=True)
class TimedProcess:
    """One process's times of one case."""

    process: Process
    timing: Timing

    @property
    def role(self) -> Role:
        return self.process.role

    @property
    def samples_us(self) -> dict[str, tuple[float, ...]]:
        return self.timing.samples_us

    @property
    def telemetry(self) -> Telemetry | None:
        return self.timing.telemetry

    @property
    def rounds(self) -> int:
        return max(map(len, self.samples_us.values()), default=0)


@dataclass(frozen=True)
class TimedCase:
    """A case with every process of one kind that timed it, in the record's order."""

    case: Case
    processes: tuple[TimedProcess, ...]

    @property
    def key(self) -> CaseKey:
        return self.case.key

    @property
    def id(self) -> str:
        return self.case.id


def timed_cases(record: RunRecord, roles: Collection[Role] = COMPARED) -> tuple[TimedCase, ...]:
    """Every case of the record with its processes of these roles, also one that no process holds."""
    found: dict[CaseKey, list[TimedProcess]] = {case.key: [] for case in record.cases}
    for process in record.processes:
        if process.role in roles:
            for timing in process.timings:
                found[timing.key].append(TimedProcess(process, timing))
    return tuple(TimedCase(case, tuple(found[case.key])) for case in record.cases)


# ---- Files, written whole or not at all ------------------------------------------------------------------------------


def to_json(record: RunRecord) -> str:
    """The record as it is written to disk; `from_json(to_json(r)) == r`."""
    return record.model_dump_json(by_alias=True, exclude_none=True) + "\n"


def to_lines(record: RunRecord) -> str:
    """The same for a file that is read in a diff: a line for each number in short, and for each case of a process."""
    text = record.model_dump_json(by_alias=True, exclude_none=True, indent=1)
    return re.sub(r"\n(?: {5,}| {4}(?=[]}]))", "", text) + "\n"


def from_json(text: str | bytes, name: str = "record") -> RunRecord:
    """The record in `text`. Raises RecordError naming the first faults and where."""
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"{name} is not a {SCHEMA} record: {faults(error)}") from None


def read(path: Path) -> RunRecord:
    """The record in a file. Raises RecordError where it cannot be read or does not fit the schema."""
    try:
        text = files.content(path)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    return from_json(text, str(path))


def write(record: RunRecord, path: Path) -> None:
    """Puts the record into place in one step. Raises OutputError where it cannot be written."""
    files.write(path, to_json(record))


def json_schema() -> dict[str, Any]:
    """The JSON Schema that docs/run-record.schema.json holds."""
    schema = RunRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **schema}
