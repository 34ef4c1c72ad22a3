"""How often each rule is wrong and how often right, as a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import mean

from benchmarks.tables import markdown


@dataclass(frozen=True)
class Rates:
    """Shares of records, by rule."""

    slower: Mapping[str, float]
    faster: Mapping[str, float]

    def different(self, rule: str) -> float:
        return self.slower[rule] + self.faster[rule]


Measured = Mapping[tuple[str, float], Rates]
"""By scenario and effect, in percent of extra work."""
Summary = Callable[[Iterable[float]], float]


def of_rules(draws: int, detected: Measured, stored: Measured, hard: Measured) -> str:
    """One row a rule: the worst of the recorded sets, and the mean of what spoils a record."""

    def wrong(measured: Measured, rule: str, summary: Summary) -> str:
        return f"{100 * summary(one.different(rule) for (_, effect), one in measured.items() if effect == 0):.1f}%"

    def seen(measured: Measured, rule: str, asked: float, summary: Summary) -> str:
        return f"{100 * summary(one.slower[rule] for (_, effect), one in measured.items() if effect == asked):.0f}%"

    small = max(effect for _, effect in detected)
    body = [
        [
            rule,
            wrong(detected, rule, max),
            wrong(stored, rule, max),
            wrong(hard, rule, mean),
            seen(detected, rule, small, min),
            seen(hard, rule, 5.0, mean),
        ]
        for rule in next(iter(detected.values())).slower
    ]
    columns = (
        "rule",
        "same code: wrong",
        "against a stored baseline",
        "spoilt record",
        f"+{small:g}%: seen",
        "spoilt, +5%",
    )
    return f"{markdown(columns, body)}\n\n{draws} records for each figure, {5 * draws} in its first column."
