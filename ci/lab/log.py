"""What is logged of an optimisation session: `kernelgate.session/1`, JSON lines, an event a line, in the order of time.

A session is a folder, `.ci/sessions/<name>/`, with `log.jsonl` in it: lines are only ever added, so that git merges and
shows them well. Everything else that is known of a session is computed from its events. Times of events are ISO 8601 in
UTC. Changes are in percent of time, positive is slower, as everywhere in kernelgate.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from kernelgate.bench.record import Model

SCHEMA: Final = "kernelgate.session/1"
FILE = "log.jsonl"

GateName = Literal["environment", "build", "correctness", "performance", "profile", "document"]
Template = Literal["baseline", "optimise"]
Source = Literal["measured", "recorded"]
"""Measured by kernelgate itself, or recorded by people in documents: such figures are shown, and never learnt from."""


def _moment(text: str) -> str:
    """Times are subtracted, so that each needs its zone."""
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        zone = None
    if zone is None:
        raise ValueError("no time with a zone, such as 2026-11-22T12:00:00Z")
    return text


class _Event(Model):
    at: Annotated[str, AfterValidator(_moment)] | None = None
    """When it ended; None where a document does not say."""


class Opened(_Event):
    """The first line of every log."""

    event: Literal["opened"] = "opened"
    schema_: Literal["kernelgate.session/1"] = Field(default=SCHEMA, alias="schema")
    name: str
    objective: str
    hypothesis: str | None = None
    target: float | None = None
    """Times as fast as the reference."""
    template: Template = "optimise"
    card: str | None = None
    cases: tuple[str, ...] = ()
    gpu: str | None = None
    """The device's name, "cpu" for the CPU kernel."""
    architecture: str | None = None
    """Such as "sm_90"; "cpu"."""
    base: str | None = None
    """The commit that it began with."""
    minutes: float | None = None
    usd: float | None = None
    """Budgets."""
    source: Source = "measured"
    origin: str | None = None
    """Of a recorded session: the document that it was taken from."""


class GateAttempt(_Event):
    """One attempt at a gate."""

    event: Literal["gate"] = "gate"
    gate: GateName
    passed: bool
    seconds: float | None = None
    said: str
    """What was seen, in a sentence."""
    skipped: str | None = None
    """Why it was passed without being tried, such as a machine without a profiler."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Such as reference_ms, ours_ms, speedup; error_max."""
    bottleneck: str | None = None
    """Of the profile gate: what `analyze` named."""
    machine: str | None = None
    """Stands for the host and its boot: whether two attempts were made on one machine."""
    silent_s: float | None = None
    """The longest time in which its commands printed nothing."""


class TryOutcome(Model):
    """What a paired comparison of a try against what stood before it showed, of one case."""

    case: str
    status: str
    """Of ci/judge/case.py."""
    change_pct: float
    """Of time, positive is slower."""
    interval_pct: tuple[float, float]
    """95%."""
    error_pct: float
    """One standard error."""
    processes: int
    base_us: float | None = None
    head_us: float | None = None


class TriedChange(_Event):
    """One change, measured."""

    event: Literal["try"] = "try"
    number: int
    """From 1, in this session."""
    what: str
    why: str
    files: tuple[str, ...] = ()
    diff_sha256: str | None = None
    variables: tuple[str, ...] = ()
    """What the change varies, as far as a program can see it: kernels, tile, threads, stages, …"""
    action: str | None = None
    """The stable name of the kind of change (ci/explain/recommend.py); None where nobody said."""
    recommended: bool = False
    """Whether the action was the recommendation at that time."""
    predicted_gain_pct: float | None = None
    probability: float | None = None
    bottleneck: str | None = None
    """What `analyze` named before the change; None where no profile was made: a blind try."""
    nvidia_gain_pct: float | None = None
    """What NVIDIA's rules estimated for what the action is against."""
    outcomes: tuple[TryOutcome, ...] = ()
    """Empty where it did not build or was wrong, and where it compiled to the same library as before."""
    failed: Literal["build", "correctness", "measurement"] | None = None
    said: str
    """The verdict, or what failed, in a sentence."""
    fuzz_trials: int | None = None
    fuzz_failed: int | None = None
    cause: str | None = None
    """Why the time changed, by the profiles of both sides."""
    record: str | None = None
    """sha256 of the run record."""
    base: str | None = None
    """The commit, or the snapshot of a working tree, that it was measured against, …"""
    head: str | None = None
    """… and that of the change."""
    advised: Literal["keep", "revert"] | None = None
    """What certainty and policy speak for."""
    gpu_seconds: float | None = None
    seconds: float | None = None
    machine: str | None = None
    """As in a gate's attempt, …"""
    silent_s: float | None = None
    """… and this too."""


class Decided(_Event):
    """A try was kept, or reverted."""

    event: Literal["decided"] = "decided"
    number: int
    kept: bool
    why: str


class SessionCost(_Event):
    event: Literal["cost"] = "cost"
    of: Literal["gpu", "assistant", "other"]
    usd: float
    said: str = ""


class PatternUse(_Event):
    event: Literal["pattern"] = "pattern"
    pattern: str
    """Its stable name: docs/patterns/<name>.md."""
    how: Literal["applied", "learnt", "violated", "proposed"]
    said: str = ""
    minutes: float | None = None
    """Saved, or lost where it was violated."""


class SessionNote(_Event):
    event: Literal["note"] = "note"
    said: str
    kind: Literal["believed", "learnt", "mistake", "question", "other"] = "other"


class Corrected(_Event):
    """A reviewer's correction of what an earlier try was labelled as."""

    event: Literal["corrected"] = "corrected"
    number: int
    action: str | None = None
    bottleneck: str | None = None
    by: str
    """The reviewer."""
    why: str


class Closed(_Event):
    event: Literal["closed"] = "closed"
    why: Literal["done", "time", "cost", "gate", "machine", "abandoned"]
    said: str
    minutes: float | None = None
    """Where the times of events do not say how long it took."""


Event = Annotated[
    Opened | GateAttempt | TriedChange | Decided | SessionCost | PatternUse | SessionNote | Corrected | Closed,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def line(event: Event) -> str:
    """One line of the log, without fields that say nothing."""
    return event.model_dump_json(by_alias=True, exclude_none=True) + "\n"


def event_of(text: str) -> Event:
    """Raises pydantic's ValidationError."""
    return EVENT.validate_json(text)
