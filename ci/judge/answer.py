"""What `kernelgate compare --json` prints, for each record."""

from __future__ import annotations

from typing import Literal

from kernelgate.ci.document.answer import VerbAnswer
from kernelgate.ci.judge.case import ProcessChange, Speeds
from kernelgate.ci.judge.validity import Finding


class JudgedRow(VerbAnswer):
    """A case, or the mean of a card's; percentages are changes of time, positive is slower."""

    card: str
    verdict: Literal["improved", "regressed", "slower", "faster", "equivalent", "inconclusive"]
    direction: str
    sentence: str
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None


class JudgedCaseRow(JudgedRow):
    id: str
    base_us: float | None
    head_us: float | None
    reference_us: float | None
    processes: int
    rounds: int
    findings: tuple[Finding, ...]
    cliffs_delta: float | None
    minimum_detectable_pct: float | None
    mann_whitney_p: float | None
    bootstrap_pct: tuple[float, float] | None
    per_process: tuple[ProcessChange, ...]
    speeds: tuple[Speeds, ...]


class JudgedMeanRow(JudgedRow):
    cases: int
    of: int
    """How many cases of the card were compared."""
    processes: int


class CompareAnswer(VerbAnswer):
    """One a line, for each record."""

    record: str
    verdict: Literal["improved", "regressed", "slower", "faster", "equivalent", "inconclusive"]
    reason: str
    cases: tuple[JudgedCaseRow, ...]
    means: tuple[JudgedMeanRow, ...]
    refused: str | None
    against: str
