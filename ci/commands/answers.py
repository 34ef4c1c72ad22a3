"""What commands print with --json that have no model of their own yet."""

from __future__ import annotations

from typing import Any

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
