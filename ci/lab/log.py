"""What is logged of an optimisation session: `kernelgate.session/1`, JSON lines, an event a line, in the order of time.

A session is a folder, `.ci/sessions/<name>/`, with `log.jsonl` in it: lines are only ever added, so that git merges and
shows them well. Everything else that is known of a session is computed from its events. Times of events are ISO 8601 in
UTC. Changes are in percent of time, positive is slower, as everywhere in kernelgate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from math import hypot, log1p
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, Field, TypeAdapter, computed_field, model_validator

from kernelgate.bench.core.errors import one_line
from kernelgate.bench.record import Model
from kernelgate.ci.document.formatting import as_percent

SCHEMA: Final = "kernelgate.session/1"
FILE = "log.jsonl"

GateName = Literal["environment", "build", "correctness", "performance", "profile", "document"]
Template = Literal["baseline", "optimise"]
ClosedWhy = Literal["done", "time", "cost", "gate", "machine", "abandoned"]
Payer = Literal["gpu", "assistant", "other"]
NoteKind = Literal["believed", "learnt", "mistake", "question", "other"]
Source = Literal["measured", "recorded"]
"""Measured by kernelgate itself, or recorded by people in documents: such figures are shown, and never learnt from."""


def _moment(text: str) -> str:
    """Times are subtracted, so that each needs its zone."""
    with suppress(ValueError):
        if datetime.fromisoformat(text).tzinfo:
            return text
    raise ValueError("no time with a zone, such as 2026-11-22T12:00:00Z")


def _in_one_line(told: Any) -> Any:
    if isinstance(told, str):  # what is no text is refused where it is written
        return told if any("\ud800" <= c <= "\udfff" for c in told) else one_line(told)
    if isinstance(told, list | tuple):
        return [_in_one_line(one) for one in told]
    return {key: _in_one_line(one) for key, one in told.items()} if isinstance(told, dict) else told


class _Finite(Model, allow_inf_nan=False):
    """Its numbers are finite: JSON has no others, so that nobody could read them again. Its texts, which others wrote
    and agents read, are one line each, without what a terminal would obey or nobody sees."""

    _texts = model_validator(mode="before")(_in_one_line)


class _Event(_Finite):
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
    base: str | None = None
    """The commit that it began with."""
    minutes: float | None = None
    usd: float | None = None
    source: Source = "measured"
    origin: str | None = None
    """Of a recorded session: the document that it was taken from."""

    @property
    def on_gpu(self) -> bool:
        return self.gpu not in (None, "cpu")


class _Worked(_Event):
    """What took a machine's time."""

    seconds: float | None = None
    gpu_seconds: float | None = None
    """Of these, those in which it held the GPU."""
    machine: str | None = None
    """Stands for the host and its boot: whether two were made on one machine."""
    silent_s: float | None = None
    """The longest time in which its commands printed nothing."""


class GateAttempt(_Worked):
    """One attempt at a gate."""

    event: Literal["gate"] = "gate"
    gate: GateName
    passed: bool
    said: str
    skipped: str | None = None
    """Why it was passed without being tried, such as a machine without a profiler."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Such as reference_ms, ours_ms, speedup; error_max."""
    bottleneck: str | None = None

    @property
    def speedup(self) -> float | None:
        """Over the reference, from whichever figures the gate gives."""
        reference_ms, ours_ms = self.figures.get("reference_ms"), self.figures.get("ours_ms")
        return self.figures.get("speedup") or (reference_ms / ours_ms if reference_ms and ours_ms else None)


class TryOutcome(_Finite):
    """What a paired comparison of a try against what stood before it showed, of one case: with 95% interval and one
    standard error."""

    case: str
    status: str
    """Of ci/judge/case.py."""
    change_pct: float
    interval_pct: tuple[float, float]
    error_pct: float
    processes: int
    base_us: float | None = None
    head_us: float | None = None


class TriedChange(_Worked):
    """One change, measured."""

    event: Literal["try"] = "try"
    number: int = 0
    """From 1, in this session; 0 of one that is asked for."""
    what: str
    why: str
    files: tuple[str, ...] = ()
    diff_sha256: str | None = None
    variables: tuple[str, ...] = ()
    """What the change varies, as far as ci/lab/variables.py can see it."""
    action: str | None = None
    """The stable name of the kind of change (ci/explain/recommend.py); None where nobody said."""
    recommended: bool = False
    bottleneck: str | None = None
    """What `analyze` named before the change; None where no profile was made: a blind try."""
    nvidia_gain_pct: float | None = None
    """Of logs until November 2026: what NVIDIA's rules estimated for what the action is against."""
    outcomes: tuple[TryOutcome, ...] = ()
    """Empty where it did not build or was wrong, and where it compiled to the same library as before."""
    failed: Literal["build", "correctness", "measurement"] | None = None
    said: str = ""
    fuzz_trials: int | None = None
    fuzz_failed: int | None = None
    cause: str | None = None
    """Why the time changed, by the profiles of both sides."""
    record: str | None = None
    base: str | None = None
    head: str | None = None
    """Commits, or snapshots of a working tree: what it was measured against, and the change."""
    advised: Literal["keep", "revert"] | None = None
    decision: Literal["kept", "reverted"] | None = None
    """What `decided` says of it, as `tries` reads it; a line of the log has none."""

    @property
    def gain(self) -> tuple[float, tuple[float, float]] | None:
        """How much faster over all cases (the geometric mean), in percent of the time before, and the 95% interval.
        Cases are taken as independent; None without any."""
        if not self.outcomes:
            return None
        count = len(self.outcomes)
        logs = [log1p(one.change_pct / 100) for one in self.outcomes]
        ends = ([log1p(one.interval_pct[end] / 100) for one in self.outcomes] for end in (0, 1))
        below, above = (hypot(*(far - near for far, near in zip(each, logs, strict=True))) / count for each in ends)
        center = sum(logs) / count
        low, near, high = (-as_percent(log) for log in (center + above, center, center - below))
        return near, (low, high)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def gain_pct(self) -> float | None:
        return self.gain[0] if self.gain else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def interval_pct(self) -> tuple[float, float] | None:
        return self.gain[1] if self.gain else None


class Decided(_Event):
    """A try was kept, or reverted."""

    event: Literal["decided"] = "decided"
    number: int
    kept: bool
    why: str


class SessionCost(_Event):
    event: Literal["cost"] = "cost"
    of: Payer
    usd: float
    said: str = ""


class PatternUse(_Event):
    event: Literal["pattern"] = "pattern"
    pattern: str
    """Its stable name: a heading of docs/patterns.md."""
    how: Literal["applied", "learnt", "violated", "proposed"]
    said: str = ""
    minutes: float | None = None
    """Saved, or lost where it was violated."""


class SessionNote(_Event):
    event: Literal["note"] = "note"
    said: str
    kind: NoteKind = "other"
    minutes: float | None = None
    """Lost on a wrong path."""


class Closed(_Event):
    event: Literal["closed"] = "closed"
    why: ClosedWhy
    said: str
    minutes: float | None = None
    """Where the times of events do not say how long it took."""


Event = Annotated[
    Opened | GateAttempt | TriedChange | Decided | SessionCost | PatternUse | SessionNote | Closed,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def line(event: Event) -> str:
    """One line of the log, without fields that say nothing."""
    told = event.model_dump_json(by_alias=True, exclude_none=True, exclude={"decision", "gain_pct", "interval_pct"})
    return f"{told}\n"


def tries(events: Sequence[Event]) -> tuple[TriedChange, ...]:
    """The tries in their order, each with what was decided of it."""
    decided = {event.number: "kept" if event.kept else "reverted" for event in events if isinstance(event, Decided)}
    tried = (event for event in events if isinstance(event, TriedChange))
    return tuple(one.model_copy(update={"decision": decided.get(one.number)}) for one in tried)


def gates(events: Sequence[Event], name: GateName) -> tuple[GateAttempt, ...]:
    return tuple(event for event in events if isinstance(event, GateAttempt) and event.gate == name)


def notes(events: Sequence[Event], kind: str) -> list[str]:
    return [event.said for event in events if isinstance(event, SessionNote) and event.kind == kind]


def opened_of(events: Sequence[Event]) -> Opened:
    """The first event, which folder.events_of holds to be this."""
    return cast(Opened, events[0])


def closed_of(events: Iterable[Event]) -> Closed | None:
    return next((event for event in events if isinstance(event, Closed)), None)


def minutes_between(earlier: str | None, later: str | None) -> float | None:
    """None where a time is not known; 0 where the clock went back in between."""
    if earlier is None or later is None:
        return None
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 60)
