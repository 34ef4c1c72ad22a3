"""What commands print with --json that have no model of their own yet."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernelgate.ci.document.answer import VerbAnswer


class PromptAnswer(VerbAnswer):
    session: str
    text: str
    """Markdown."""


class AdviceRow(VerbAnswer):
    name: str
    """Of the action, in `ci/explain/recommend.py`; stable."""
    action: str
    reason: str
    expected_gain_pct: float | None
    source: str
    link: str


class AnalysedKernel(VerbAnswer):
    kernel: str
    duration_us: float | None
    bottleneck: str
    confidence: float
    metrics: dict[str, float]
    roofline: dict[str, float | str | None]
    recommendations: tuple[AdviceRow, ...]


class AnalyzeAnswer(VerbAnswer):
    kernels: tuple[AnalysedKernel, ...]
    against: tuple[AnalysedKernel, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    budgets: tuple[dict[str, Any], ...] = ()


class CardMistakeRow(VerbAnswer):
    file: str
    line: int | None
    member: str
    text: str


class CheckedCard(VerbAnswer):
    card: str
    mistakes: tuple[str, ...]
    right: str | None
    """What was tried and found right."""


class ListedCards(VerbAnswer):
    cards: tuple[dict[str, Any], ...]
    mistakes: tuple[CardMistakeRow, ...]
    """In cards that cannot be read."""
    checked: tuple[CheckedCard, ...]
    """Empty with --list."""


class BisectAnswer(VerbAnswer):
    """Of `bisect`: docs/bisect.md says which fields --fuzz and --build have."""

    culprits: tuple[str, ...]
    case: str | None = None
    found: str | None = None
    chance: float | None = None
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    several: tuple[dict[str, Any], ...] = ()
    stepped_over: dict[str, str] = Field(default_factory=dict)
    processes: int | None = None
    seed: int | None = None
    fault: str | None = None
    repeat: str | None = None
    failed: int | None = None
    runs: int | None = None
    passes: int | None = None
    last_that_compiles: str | None = None
    why: str | None = None
    inside: dict[str, Any] | None = None
    """The same of the submodule that the culprit moves, with its path `submodule`; or `why` it was not searched."""
