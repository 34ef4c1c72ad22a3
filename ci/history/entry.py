"""What the index holds of one measurement: all that is asked of a history, and a thousandth of the record's size.

Effects, errors and spreads are of natural logarithms of times; times are in microseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError, faults
from kernelgate.bench.record import Count, Environment, Finite, Model, NonNegative, Positive, Run, RunRecord, Side

CONDENSED: Literal["kernelgate.condensed/1"] = "kernelgate.condensed/1"
SCHEMA: Literal["kernelgate.entry/1"] = "kernelgate.entry/1"
"""Raise its number when records are judged in another way: every record is then judged once more."""
StoreFile = TypeVar("StoreFile", bound=Model)


class PointEntry(Model):
    """What one side of a case took."""

    side: Side
    commit: str | None = None
    """None of a reference, and of a working tree with changes."""
    us: record.Microseconds
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
    run: Run = Run()
    environment: Environment = Environment()
    outcome: str | None = None
    reason: str | None = None
    cases: tuple[CaseEntry, ...] = ()
    costs: tuple[record.Cost, ...] = ()


class CondensedRecord(Model, validate_by_name=True, validate_by_alias=True):
    """A record without its samples, and what was made of it while it had them: its verdict stays as it was."""

    schema_: Annotated[Literal["kernelgate.condensed/1"], Field(alias="schema")]
    raw: str
    """The sha256 of the record that it was."""
    record: RunRecord
    entry: Entry
    """As that one was judged, by the rules that it names."""


class SeriesEvent(Model):
    """What somebody decided of a case at a commit: its time is accepted, or what was measured there does not count."""

    made: str
    """As `moment` writes it."""
    repository: str = ""
    """Empty where it is not known: it counts in every repository that has the case."""
    kind: Literal["accepted", "excluded"]
    card: str = ""
    case: str
    gpu: str
    sha: str
    who: str
    why: str


class KeptSession(Model):
    schema_: Annotated[Literal["kernelgate.kept-session/1"], Field(alias="schema")] = "kernelgate.kept-session/1"
    repository: Annotated[str, Field(pattern=r"^[^\x00-\x1f]{0,200}$")] = ""
    """Empty where it is not known."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    log: str
    """JSON lines, docs/loop.md."""

    @property
    def key(self) -> tuple[str, str]:
        return self.repository, self.name


def parsed(form: type[StoreFile], data: bytes, name: str) -> StoreFile:
    """A file of the store. Raises RecordError where `data` is not of this form."""
    try:
        return form.model_validate_json(data)
    except ValidationError as error:
        raise RecordError(f"{name} is no {form.__name__}: {faults(error)}") from None


def moment(text: str | None) -> str | None:
    """A time as the index compares it, "2026-08-01T12:00:00Z"; None where `text` names none. Without zone it is UTC."""
    try:
        read = datetime.fromisoformat(text or "")
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None
