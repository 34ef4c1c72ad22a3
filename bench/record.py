"""The run record, `kernelgate.run/1`: the one thing that crosses from `bench` to `ci`.

Times are in microseconds, sizes in bytes, rates in SI units, clocks in MHz. Unknown keys are refused; what a producer
cannot know is null or left out. Only the fields that a judgement needs can make it refuse, so every other field has a
default.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kernelgate.bench.errors import RecordError

SCHEMA: Literal["kernelgate.run/1"] = "kernelgate.run/1"

Side = Literal["base", "head"]
Timed = Literal["base", "head", "oracle"]
Order = Literal["interleaved", "alternating", "block"]

Microseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Params = dict[str, Finite | str]


def _without_nulls(data: Any) -> Any:
    return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, data: Any) -> Any:
        return _without_nulls(data)


class Subject(Model):
    """What was measured, for whom."""

    repository: str | None = None
    pull_request: int | None = None
    base_sha: str | None = None
    head_sha: str | None = None
    """A commit, or null for a working tree with changes."""
    run_id: int | None = None
    run_attempt: int | None = None
    created_at: str | None = None
    """ISO 8601, UTC."""


class Device(Model):
    name: str | None = None
    compute_capability: str | None = None
    """Such as "8.9"; null for a CPU."""
    uuid: str | None = None
    driver: str | None = None
    memory_bytes: Count | None = None
    sm_count: Count | None = None
    """Multiprocessors of a GPU, cores of a CPU."""
    l2_bytes: Count | None = None


class Environment(Model):
    device: Device = Device()
    torch: str | None = None
    cuda: str | None = None
    python: str | None = None
    os: str | None = None
    host: str | None = None


class Build(Model):
    side: Side
    sha: str | None = None
    seconds: NonNegative | None = None
    cached: bool | None = None
    targets: tuple[str, ...] = ()
    library_sha256: str | None = None


class Tolerance(Model):
    atol: NonNegative | None = None
    rtol: NonNegative | None = None


class FuzzResult(Model):
    """One configuration of the fuzz list, run on the head."""

    id: str
    seed: int
    params: Params = {}
    passed: bool
    max_abs_error: NonNegative | None = None
    """Largest |output - oracle|; null where the output held NaN, Inf or an unwritten element."""
    error_ratio: NonNegative | None = None
    """Largest |output - oracle| / (atol + rtol * |oracle|): at most 1 in a pass; null as above."""
    message: str | None = None
    """Why it failed, and where."""
    repeat: str | None = None
    """The one command that runs this configuration again."""


class Fuzz(Model):
    status: Literal["passed", "failed", "skipped"]
    seed: int | None = None
    reason: str | None = None
    """Why it was skipped."""
    tolerance: Tolerance | None = None
    """The float16 tolerance; other dtypes' stand in docs/statistics.md and decide `error_ratio`."""
    results: tuple[FuzzResult, ...] = ()


class Work(Model):
    """What one call must do at least: used for TFLOP/s, GB/s and the physical floor."""

    flops: NonNegative | None = None
    bytes: NonNegative | None = None


class Telemetry(Model):
    """The device while one launch was timed: medians over the launch; the hottest temperature."""

    sm_mhz: NonNegative | None = None
    max_sm_mhz: NonNegative | None = None
    """The highest clock that the device has."""
    memory_mhz: NonNegative | None = None
    temperature_c: Finite | None = None
    power_w: NonNegative | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Every reason that was seen."""
    throttle_shares: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    """The share of the readings that gave each reason; a reason without one counts as given by all of them."""


class OutputCheck(Model):
    """A timed side's output against the oracle, after its rounds."""

    passed: bool
    max_abs_error: NonNegative | None = None


class Launch(Model):
    """One fresh process. A sample is the time of one call."""

    order: Order = "interleaved"
    samples_us: Annotated[dict[Timed, tuple[Microseconds, ...]], BeforeValidator(_without_nulls)]
    """Arrays of one length; index i is round i."""
    inner_repeats: Annotated[int, Field(ge=1)] | None = None
    """Calls inside one timed interval; the samples are already divided by it."""
    telemetry: Telemetry | None = None
    graph_us: dict[Timed, Microseconds] = {}
    """Median time of one call replayed from a CUDA graph: the kernel without its launch overhead."""
    outputs: dict[Timed, OutputCheck] = {}

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        lengths = {side: len(samples) for side, samples in self.samples_us.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"samples_us needs arrays of one length, one entry a round; got {lengths}")
        return self


class Case(Model):
    """One shape and dtype. The id is opaque to the judge."""

    id: Annotated[str, Field(min_length=1)]
    params: Params = {}
    work: Work | None = None
    launches: tuple[Launch, ...] = ()


class Profile(Model):
    case: str
    side: Side
    metrics: dict[str, Finite | str | None] = {}
    report: str | None = None


class Resources(Model):
    side: Side
    target: str
    kernel: str
    registers: Count | None = None
    """A thread's."""
    spill_bytes: Count | None = None
    """What the code stores to local memory: spilled registers, and arrays that are not in registers."""
    shared_bytes: Count | None = None
    """Static and dynamic, of one block; static alone where the launch's part is unknown."""
    static_shared_bytes: Count | None = None
    dynamic_shared_bytes: Count | None = None
    stack_bytes: Count | None = None
    threads: Count | None = None
    """Of a block, as __launch_bounds__ gives them."""
    occupancy_pct: dict[str, NonNegative] = {}
    """Theoretical, by GPU that runs the target."""
    occupancy_limits: dict[str, str] = {}
    """What keeps another block off, by GPU."""
    instructions: dict[str, Count] = {}
    """The SASS instruction mix, by kind; `total` counts all."""


class BaselineSummary(Model):
    """One case of a baseline, for people to read in a diff."""

    median_us: Microseconds
    interval_us: tuple[Microseconds, Microseconds]
    """95% interval of the median."""
    samples: Count
    launches: Count


class Summary(Model):
    """What makes a record a baseline: where it came from, and its numbers in short."""

    source: str
    cases: dict[str, BaselineSummary]


class RunRecord(Model):
    schema_: Annotated[Literal["kernelgate.run/1"], Field(alias="schema")] = SCHEMA
    subject: Subject = Subject()
    environment: Environment = Environment()
    build: tuple[Build, ...] = ()
    fuzz: Fuzz | None = None
    cases: tuple[Case, ...] = ()
    profile: tuple[Profile, ...] = ()
    resources: tuple[Resources, ...] = ()
    notes: tuple[str, ...] = ()
    """What the producer wants known of how it measured."""
    summary: Summary | None = None
    """Baselines only."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        counts = Counter(case.id for case in self.cases)
        twice = sorted(id_ for id_, count in counts.items() if count > 1)
        if twice:
            raise ValueError(f"case ids must be unique; these stand twice: {', '.join(twice)}")
        return self


def to_json(record: RunRecord) -> str:
    """The record as it is written to disk; `from_json(to_json(r)) == r`."""
    return record.model_dump_json(by_alias=True, exclude_unset=False) + "\n"


def from_json(text: str | bytes, name: str = "record") -> RunRecord:
    """The record in `text`. Raises RecordError naming the first faults and where they are."""
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"{name} is not a {SCHEMA} record: {_faults(error)}") from None


def read(path: Path) -> RunRecord:
    """The record in a file. Raises RecordError where it cannot be read or does not fit the schema."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    return from_json(text, str(path))


def write(record: RunRecord, path: Path) -> None:
    """Puts the record into place in one step: a reader, or a run that is killed, never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_json(record))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def json_schema() -> dict[str, Any]:
    """The JSON Schema that docs/run-record.schema.json holds."""
    schema = RunRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **schema}


def main() -> None:
    """Prints the schema: `python -m kernelgate.bench.record > docs/run-record.schema.json`."""
    print(json.dumps(json_schema(), indent=2))


def _faults(error: ValidationError, most: int = 3) -> str:
    faults = error.errors(include_url=False, include_input=False)
    named = [f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}" for fault in faults[:most]]
    rest = f"; and {len(faults) - most} more" if len(faults) > most else ""
    return "; ".join(named) + rest


if __name__ == "__main__":
    main()
