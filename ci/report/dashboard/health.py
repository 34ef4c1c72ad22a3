"""What the GPUs were used for, how well they measured, and how often the judge was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.ci.document import formatting
from kernelgate.ci.history.changes import State
from kernelgate.ci.report.dashboard.dashboard import Dashboard, SiteDecision, SiteWeek
from kernelgate.ci.report.page import drawing

HOUR_S = 3600.0
BAR = 90.0
"""Units that the largest week's bar is long."""


@dataclass(frozen=True)
class WeekLine:
    week: SiteWeek
    seconds: float
    bar: Markup
    """Its share of the largest week."""
    money: str
    phases: str
    retried: str
    unjudged: str
    reasons: tuple[str, ...]
    untrusted: str
    spread: str


@dataclass(frozen=True)
class Alarms:
    """How suspicions ended, and what people overruled."""

    states: Mapping[State, int]
    overruled: tuple[SiteDecision, ...]

    @property
    def sentence(self) -> str:
        known = {state: self.states.get(state, 0) for state in ("confirmed", "refuted")}
        decided, waiting = sum(known.values()), self.states.get("suspected", 0)
        left = f" {formatting.counted(waiting, 'suspicion')} not decided yet."
        if not decided:
            return f"No suspicion has been decided by a comparison of both commits.{left if waiting else ''}"
        share = formatting.percent(100 * known["refuted"] / decided, 0)
        counted = f"{known['confirmed']} confirmed, {known['refuted']} refuted ({share})"
        return f"Of {formatting.counted(decided, 'suspicion')} that were decided: {counted}.{left if waiting else ''}"


def weeks(shown: Dashboard) -> list[WeekLine]:
    largest = max((sum(one.gpu_seconds.values()) for one in shown.weeks), default=0.0) or 1.0
    return [_line(one, shown, largest) for one in shown.weeks]


def alarms(shown: Dashboard) -> Alarms:
    states = Counter(change.state for one in shown.series for change in one.changes)
    return Alarms(states, shown.decisions)


def _line(week: SiteWeek, shown: Dashboard, largest: float) -> WeekLine:
    seconds = sum(week.gpu_seconds.values())
    phases = sorted(week.gpu_seconds.items(), key=lambda one: -one[1])
    return WeekLine(
        week=week,
        seconds=seconds,
        bar=_bar(seconds / largest),
        money=_money(seconds, week.gpu, shown),
        phases=", ".join(f"{phase} {formatting.percent(100 * part / seconds, 0)}" for phase, part in phases if part),
        retried=formatting.percent(100 * week.retried_seconds / seconds) if seconds else formatting.MISSING,
        unjudged=_share(sum(week.unjudged.values()), week.records),
        reasons=tuple(f"{reason}: {count}" for reason, count in Counter(week.unjudged).most_common(3)),
        untrusted=_share(week.untrusted, week.cases),
        spread=formatting.MISSING if week.spread_pct is None else formatting.percent(week.spread_pct, 2),
    )


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else formatting.MISSING


def _money(seconds: float, gpu: str, shown: Dashboard) -> str:
    """Empty where the policy names no price of this kind of GPU."""
    price = (shown.prices or {}).get(gpu)
    return "" if price is None else f"{price * seconds / HOUR_S:,.2f} {shown.currency}".rstrip()


def _bar(share: float) -> Markup:
    filled = drawing.rect((0, 2), BAR * share, 8, "bar")
    return drawing.tag("svg", filled, width=BAR, height=12.0, viewBox=f"0 0 {BAR:g} 12", aria_hidden="true")
