"""What a verdict is: the status of each case, and of the record. verdict.py decides it, everything else reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from kernelgate.bench.record import CaseKey, Side
from kernelgate.ci.judge.validity import Finding


class Outcome(StrEnum):
    """What is known of a case or a record, and whether a gate of the policy acts on it."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    LIKELY_SLOWER = "likely_slower"
    """The whole interval lies past the gate, and it is not certain yet."""
    LIKELY_FASTER = "likely_faster"
    SLOWER = "slower"
    """Certain, and no gate acts."""
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    """Shown to lie within the margin, not merely "not significant"."""
    INCONCLUSIVE = "inconclusive"
    """Could not be told: no statement on the gates is possible."""


CERTAIN = frozenset({Outcome.IMPROVED, Outcome.REGRESSED, Outcome.SLOWER, Outcome.FASTER, Outcome.EQUIVALENT})


class Direction(StrEnum):
    """Whether the difference itself is certain, whatever its size."""

    SLOWER = "slower"
    FASTER = "faster"
    NONE = "none"


class Status(IntEnum):
    """What a case means to its author. The order is that of every list of cases, the worst first."""

    REGRESSED = 0
    LIKELY_SLOWER = 1
    """Past the gate with its whole interval, or certainly slower, and not yet certain enough to block."""
    SLOWER = 2
    UNDECIDED = 3
    LIKELY_FASTER = 4
    """Past the gate with its whole interval, and not yet certain."""
    IMPROVED = 5
    FASTER = 6
    UNCHANGED = 7
    ALONE = 8

    @property
    def outcome(self) -> Outcome:
        """What may be said to a script: two statuses leave it open what holds."""
        name = "EQUIVALENT" if self is Status.UNCHANGED else self.name
        return Outcome.__members__.get(name, Outcome.INCONCLUSIVE)

    @property
    def is_slower(self) -> bool:
        return self in (Status.REGRESSED, Status.LIKELY_SLOWER, Status.SLOWER)

    @property
    def is_faster(self) -> bool:
        return self in (Status.IMPROVED, Status.FASTER)

    @property
    def is_likely(self) -> bool:
        return self in (Status.LIKELY_SLOWER, Status.LIKELY_FASTER)

    @property
    def is_news(self) -> bool:
        """Whether there is a difference that matters, certain or likely."""
        return self.is_slower or self.is_faster or self.is_likely


ShownStatus = Annotated[
    Status,
    Field(serialization_alias="verdict"),
    PlainSerializer(lambda status: status.outcome, return_type=Outcome),
]


@dataclass(frozen=True)
class ProcessChange:
    """One process's own estimate, for the plot: percent, positive is slower."""

    change_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True)
class Speeds:
    side: str
    us: tuple[float, ...]
    """Typical times: two where the side falls into two modes."""


@dataclass(frozen=True, kw_only=True)
class CaseVerdict:
    """Percentages are changes of time, positive is slower; None where nothing could be estimated. `base_us` and
    `head_us` are typical times in microseconds, which differ by exactly the change."""

    card: str
    id: str
    status: ShownStatus
    direction: Direction = Direction.NONE
    sentence: str = ""
    """What an engineer without statistics understands correctly."""
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    p: float | None = None
    """Two-sided, of no difference, adjusted over the cases of the record."""
    cliffs_delta: float | None = None
    minimum_detectable_pct: float | None = None
    """The smallest change of which this run would have shown the direction; None where it has too few processes to show
    any."""
    mann_whitney_p: float | None = None
    bootstrap_pct: tuple[float, float] | None = None
    """95% interval of the ratio of medians; processes resampled above rounds."""
    base_us: float | None
    head_us: float | None
    reference_us: float | None
    processes: int
    rounds: int
    per_process: tuple[ProcessChange, ...] = ()
    findings: tuple[Finding, ...]
    speeds: tuple[Speeds, ...] = ()
    """Of base and head, where one has two and nothing can be told because of it."""

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.card, self.id)

    def us(self, side: Side) -> float | None:
        return {"base": self.base_us, "head": self.head_us, "reference": self.reference_us}.get(side)

    @property
    def verdict(self) -> Outcome:
        return self.status.outcome

    @property
    def disqualifying(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.disqualifies)

    @property
    def believed(self) -> bool:
        """Whether anybody should believe the interval."""
        return self.interval_pct is not None and not self.disqualifying


@dataclass(frozen=True)
class MeanVerdict:
    """The geometric mean of the changes of a card's cases, judged by gates of its own."""

    card: str
    status: ShownStatus
    direction: Direction
    sentence: str
    change_pct: float
    interval_pct: tuple[float, float]
    p: float
    """Two-sided, of no difference, adjusted over the means of the record."""
    cases: int
    of: int
    """How many cases of the card were compared."""
    processes: int
    """Of the case with the fewest."""

    @property
    def verdict(self) -> Outcome:
        return self.status.outcome


@dataclass(frozen=True)
class Differs:
    """Something of the machine, or the year, that is not as it was."""

    name: str
    was: str
    now: str


@dataclass(frozen=True)
class RecordVerdict:
    """`refused` holds why the record cannot be judged, and then there are no cases. Without cases and not refused, base
    and head are one library, of which nothing was timed."""

    record: str
    verdict: Outcome
    reason: str
    cases: tuple[CaseVerdict, ...]
    refused: str | None = None
    against: str = "base"
    """`base`, or the name of the baseline file."""
    means: tuple[MeanVerdict, ...] = ()
    """Of each card with several compared cases."""
    too_short: Annotated[bool, Field(exclude=True)] = False
    apart: tuple[Differs, ...] = ()
    """What lies between the record and the baseline beside code and days: it comes before everything else."""
    against_sha: str | None = None


_DECIDES = (
    *(Status.REGRESSED, Status.LIKELY_SLOWER, Status.UNDECIDED, Status.ALONE, Status.SLOWER),
    *(Status.LIKELY_FASTER, Status.IMPROVED, Status.FASTER, Status.UNCHANGED),
)
"""Which status of a case is the record's: the first that there is."""
_ACTS = {Status.REGRESSED, Status.LIKELY_SLOWER, Status.IMPROVED}


def overall(cases: Iterable[CaseVerdict], means: Iterable[MeanVerdict] = ()) -> Outcome:
    statuses = {case.status for case in cases} | {mean.status for mean in means if mean.status in _ACTS}
    return next((status.outcome for status in _DECIDES if status in statuses), Outcome.EQUIVALENT)


def worst_first(cases: Iterable[CaseVerdict]) -> list[CaseVerdict]:
    """The one order of cases: by status, and within a status the largest change first."""
    return sorted(cases, key=severity)


def severity(case: CaseVerdict) -> tuple[Status, float]:
    change = case.change_pct or 0.0
    return case.status, change if case.status.is_faster else -change
