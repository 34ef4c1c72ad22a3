"""What `kernelgate recommend` and `kernelgate outcomes` answer, for programs: docs/schemas/."""

from __future__ import annotations

from typing import Literal

from kernelgate.ci.document.answer import VerbAnswer

Interval = tuple[float, float]


class AdvisedAction(VerbAnswer):
    action: str
    """A stable name."""
    words: str
    """What to do, fitted to the kernel where the profile says how."""
    predicted_gain_pct: float | None
    """Of the time; negative: it is expected to take longer. None where too few outcomes are known."""
    interval_pct: Interval | None
    """In which the gain of another try lies, at the policy's level."""
    probability: float | None
    """That the verdict is a certain improvement."""
    n: int
    """Tries of this action at this bottleneck, on any GPU."""
    evidence: str
    """What came of them, in a sentence."""
    reason: str | None
    """Why the profile calls for it; None where only outcomes do."""
    link: str
    """Its section of the cookbook."""


class EarnedSkill(VerbAnswer):
    """How much better than the base rate the chances were, each session predicted from the others."""

    outcomes: int
    sessions: int
    helped: int
    brier: float | None
    base_brier: float | None
    skill: float | None
    interval: Interval | None


class Recommended(VerbAnswer):
    """The answer of `kernelgate recommend`."""

    kernel: str
    architecture: str
    bottleneck: str
    order: Literal["learned", "cookbook"]
    weak: bool
    """Whether the figures have not been shown to be better than the base rate."""
    why: str
    """Of the order, in a sentence."""
    skill: EarnedSkill
    recommendations: tuple[AdvisedAction, ...]


class ReliabilityRow(VerbAnswer):
    low: float
    high: float
    n: int
    predicted: float
    helped: float
    interval: Interval


class NvidiaRow(VerbAnswer):
    n: int
    estimated_pct: float
    realised_pct: float
    rank_correlation: float | None
    helped: int


class OutcomesAnswer(VerbAnswer):
    """The answer of `kernelgate outcomes`."""

    skill: EarnedSkill
    reliability: tuple[ReliabilityRow, ...]
    covered: float | None
    """The share of gains that lay in their intervals."""
    nvidia: NvidiaRow | None
    outcomes: tuple[dict[str, str | float | int | bool | None], ...]
    """A flat row for each try, as in the Parquet file."""
