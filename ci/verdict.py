"""The verdict: the one place where a run record becomes improved, regressed, equivalent or inconclusive."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What the policy's gates say."""

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


@dataclass(frozen=True)
class Finding:
    """Something that is not a difference between base and head: drift, throttling, a bimodal side, …"""

    code: str
    """A stable key, such as `throttled`."""
    message: str
    """One sentence for people, with the numbers that show it."""
    disqualifies: bool
    """True where no verdict may rest on the case; False for a warning."""


@dataclass(frozen=True)
class LaunchChange:
    """One launch's own estimate, for the plot: percent, positive is slower."""

    change_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True)
class CaseVerdict:
    """One case judged. Percentages are changes of time, positive is slower; times are medians in microseconds."""

    id: str
    verdict: Outcome
    direction: Direction
    sentence: str
    """What an engineer without statistics reads rightly."""
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None
    """Two-sided, of no difference, adjusted over the cases of the record."""
    cliffs_delta: float | None
    """Positive: head slower."""
    minimum_detectable_pct: float | None
    mann_whitney_p: float | None
    bootstrap_pct: tuple[float, float] | None
    """95% interval of the ratio of medians; launches resampled above rounds."""
    base_us: float | None
    head_us: float | None
    oracle_us: float | None
    launches: int
    rounds: int
    """Rounds in all, over every launch."""
    per_launch: tuple[LaunchChange, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class RecordVerdict:
    """One record judged. `refused` holds why the record cannot be judged, and then there are no cases."""

    record: str
    verdict: Outcome
    reason: str
    cases: tuple[CaseVerdict, ...]
    refused: str | None = None
    against: str = "base"
    """`base`, or the name of the baseline file."""
