"""What the index holds of one measurement: all that is asked of a history, and a thousandth of the record's size.

Effects, errors and spreads are of natural logarithms of times; times are in microseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from kernelgate.bench.core.errors import RecordError, faults
from kernelgate.bench.record import (
    Cost,
    Count,
    Environment,
    Finite,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Run,
    RunRecord,
    Side,
)

CONDENSED: Literal["kernelgate.condensed/1"] = "kernelgate.condensed/1"
SCHEMA: Literal["kernelgate.entry/1"] = "kernelgate.entry/1"
"""Raise its number when records are judged in another way: every record is then judged once more."""
StoreFile = TypeVar("StoreFile", bound=Model)


class PointEntry(Model):
    """What one side of a case took."""

    side: Side
    commit: str | None = None
    """None of a reference, and of a working tree with changes."""
    us: Microseconds
    error: NonNegative | None = None
    """The standard error of its logarithm, from the scatter between processes; None of a single process."""
    processes: Positive
    rounds: Count


class ComparisonEntry(Model):
    """Two sides of a case in the same processes."""

    base: str
    head: str | None = None
    effect: Finite
    """Positive: the head is slower."""
    error: NonNegative | None = None
    spread_pct: NonNegative | None = None
    """Standard deviation of the processes' changes, the noise of their rounds in it."""
    noise_pct: NonNegative | None = None
    """How much of it their rounds explain; None where that was not looked at."""
    processes: Positive
    status: str | None = None
    """The judge's, such as "slower", of base and head; None of a pinned commit, which nobody judges."""
    interval_pct: tuple[Finite, Finite] | None = None


class CaseEntry(Model):
    card: str = ""
    case: Annotated[str, Field(min_length=1)]
    points: tuple[PointEntry, ...] = ()
    comparisons: tuple[ComparisonEntry, ...] = ()
    reference: str | None = None
    """What the card calls its reference, such as "PyTorch"."""
    finding: str | None = None
    """Why no verdict may rest on these times."""


class Entry(Model):
    schema_: Annotated[Literal["kernelgate.entry/1"], Field(alias="schema")] = SCHEMA
    name: str
    """The sha256 of what was measured."""
    rules: str = ""
    """By which it was judged."""
    run: Run = Run()
    environment: Environment = Environment()
    outcome: str | None = None
    reason: str | None = None
    cases: tuple[CaseEntry, ...] = ()
    costs: tuple[Cost, ...] = ()


class CondensedRecord(Model):
    """A record without its samples, and what was made of it while it had them: its verdict stays as it was."""

    schema_: Annotated[Literal["kernelgate.condensed/1"], Field(alias="schema")]
    raw: str
    """The sha256 of the record that it was."""
    record: RunRecord
    entry: Entry
    """As that one was judged, by the rules that it names."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)


class SeriesEvent(Model):
    """What was found or decided of a case at a commit."""

    made: str
    """As `moment` writes it."""
    repository: str = ""
    """Empty where it is not known, as of old events: they count in every repository that has the case."""
    kind: Literal["found", "confirmed", "refuted", "accepted", "excluded"]
    card: str = ""
    case: str
    gpu: str
    sha: str
    previous: str | None = None
    """The commit before, where that is known."""
    who: str
    """A login, or what decided it, such as "kernelgate"."""
    why: str


def to_json(entry: Entry) -> bytes:
    return entry.model_dump_json(by_alias=True, exclude_none=True).encode()


def from_json(data: bytes, name: str) -> Entry:
    """Raises RecordError where `data` is no entry."""
    return _parsed(Entry, data, name, f"a {SCHEMA}")


def condensed(data: bytes, name: str) -> CondensedRecord:
    """Raises RecordError where `data` is no condensed record."""
    return _parsed(CondensedRecord, data, name, f"a {CONDENSED}")


def event(data: bytes, name: str) -> SeriesEvent:
    """Raises RecordError where `data` is no event."""
    return _parsed(SeriesEvent, data, name, "an event")


def _parsed(form: type[StoreFile], data: bytes, name: str, what: str) -> StoreFile:
    """A file of the store. Raises RecordError, which says that `name` is not `what`."""
    try:
        return form.model_validate_json(data)
    except ValidationError as error:
        raise RecordError(f"{name} is not {what}: {faults(error)}") from None


def moment(text: str | None) -> str | None:
    """A time as the index compares it, "2026-08-01T12:00:00Z"; None where `text` names none. Without zone it is UTC."""
    try:
        read = datetime.fromisoformat(text) if text else None
        if read is None:
            return None
        aware = read if read.tzinfo else read.replace(tzinfo=UTC)
        return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None
