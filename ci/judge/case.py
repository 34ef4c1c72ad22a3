"""What a verdict is: the status of each case, and of the record. verdict.py decides it, everything else reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kernelgate.bench.record import CaseKey
from kernelgate.ci.judge.validity import Finding


class Outcome(StrEnum):
    """What the policy's gates say of a record."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"
    """Shown to lie within the margin, not merely "not significant"."""
    INCONCLUSIVE = "inconclusive"


class Direction(StrEnum):
    """Whether the difference itself is certain, whatever its size."""

    SLOWER = "slower"
    FASTER = "faster"
    NONE = "none"


class Status(IntEnum):
    """What a case means to its author. The order is that of every list of cases, the worst first."""

    REGRESSED = 0
    SLOWER = 1
    """Certainly slower, but not past the gate."""
    UNDECIDED = 2
    IMPROVED = 3
    FASTER = 4
    """Certainly faster, but not past the gate."""
    UNCHANGED = 5
    ALONE = 6
    """Of the head alone: there is nothing to compare it with."""

    @property
    def outcome(self) -> Outcome:
        """The status without the direction of what passes no gate."""
        return _OUTCOMES.get(self, Outcome.INCONCLUSIVE)

    @property
    def is_slower(self) -> bool:
        return self in (Status.REGRESSED, Status.SLOWER)

    @property
    def is_faster(self) -> bool:
        return self in (Status.IMPROVED, Status.FASTER)

    @property
    def is_news(self) -> bool:
        """Whether there is a certain difference that matters."""
        return self.is_slower or self.is_faster


_OUTCOMES = {
    Status.REGRESSED: Outcome.REGRESSED,
    Status.IMPROVED: Outcome.IMPROVED,
    Status.UNCHANGED: Outcome.EQUIVALENT,
}


@dataclass(frozen=True)
class ProcessChange:
    """One process's own estimate, for the plot: percent, positive is slower."""

    change_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True)
class CaseVerdict:
    """One case judged. Percentages are changes of time, positive is slower; times are medians in microseconds."""

    card: str
    id: str
    status: Status
    direction: Direction
    sentence: str
    """What an engineer without statistics understands correctly."""
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None
    """Two-sided, of no difference, adjusted over the cases of the record."""
    cliffs_delta: float | None
    """Positive: head slower."""
    minimum_detectable_pct: float | None
    mann_whitney_p: float | None
    bootstrap_pct: tuple[float, float] | None
    """95% interval of the ratio of medians; processes resampled above rounds."""
    base_us: float | None
    head_us: float | None
    reference_us: float | None
    processes: int
    rounds: int
    """Rounds in all, over every process."""
    per_process: tuple[ProcessChange, ...]
    findings: tuple[Finding, ...]

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.card, self.id)

    @property
    def verdict(self) -> Outcome:
        return self.status.outcome

    @property
    def disqualifying(self) -> tuple[Finding, ...]:
        """Why no verdict may rest on this case."""
        return tuple(finding for finding in self.findings if finding.disqualifies)


@dataclass(frozen=True)
class RecordVerdict:
    """One record judged. `refused` holds why the record cannot be judged, and then there are no cases.

    Without cases and not refused, base and head are one library, of which nothing was timed.
    """

    record: str
    verdict: Outcome
    reason: str
    cases: tuple[CaseVerdict, ...]
    refused: str | None = None
    against: str = "base"
    """`base`, or the name of the baseline file."""


def overall(cases: Iterable[CaseVerdict]) -> Outcome:
    """A regression anywhere decides. An improvement needs every other case to be shown faster or the same."""
    statuses = {case.status for case in cases}
    if Status.REGRESSED in statuses:
        return Outcome.REGRESSED
    if Status.IMPROVED in statuses and not statuses & {Status.SLOWER, Status.UNDECIDED, Status.ALONE}:
        return Outcome.IMPROVED
    return Outcome.INCONCLUSIVE if statuses - {Status.UNCHANGED} else Outcome.EQUIVALENT


def worst_first(cases: Iterable[CaseVerdict]) -> list[CaseVerdict]:
    """The one order of cases: by status, and within a status the largest change first."""
    return sorted(cases, key=severity)


def severity(case: CaseVerdict) -> tuple[Status, float]:
    """Sorts cases of one record, or of several, the worst first."""
    change = case.change_pct or 0.0
    return case.status, change if case.status.is_faster else -change
