"""How far times drift from one day to another: learnt from the days of a baseline or of the history, else assumed.

docs/statistics.md ("Comparison with a stored baseline") has the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from kernelgate.bench.record import BaselineDay, CaseKey, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.judge.stats import Pooled

BASELINE_DRIFT_PCT: Final = 1.0
"""Effects that shift all times of a day, between the baseline's day and today: standard deviation that is assumed as
long as the baseline's own days do not show it. Observed once: 0.5%, on an H200 that another process had begun to
share. No repeated days are known, so twice that is assumed, and simulated: with one case at most 1% of comparisons of
identical code get a direction where the true deviation is up to 1.5%."""
BASELINE_DRIFT_DF: Final = 10
"""Degrees of freedom that the assumption deserves."""
BASELINE_DAYS: Final = 4
"""So many stored days of the same code show the drift themselves. They count as BASELINE_DAYS_DF degrees of freedom at
most, however many they are: drifts of last month say little of today's."""
BASELINE_DAYS_DF: Final = 5
KEPT_DAYS: Final = 20
"""Of each case; older ones say less of today's machine."""


def of_case(baseline: RunRecord, key: CaseKey) -> tuple[BaselineDay, ...]:
    """The days that a baseline holds of this case."""
    names = formatting.ids(case.key for case in baseline.cases)
    # A baseline may name no card.
    name = names.get(key) or names.get(CaseKey("", key.id))
    held = baseline.summary.cases.get(name.text) if baseline.summary and name else None
    return held.days if held else ()


def tell_most(*known: Sequence[BaselineDay]) -> Sequence[BaselineDay]:
    """Those of these days that show most. They are never put together: the same days may stand in both."""
    return max(known, key=lambda days: _between(days)[1])


def added(days: Iterable[BaselineDay], today: BaselineDay) -> tuple[BaselineDay, ...]:
    """With today's, which takes the place of another measurement of this code on this day."""
    others = [day for day in days if (day.measured, day.code) != (today.measured, today.code)]
    return tuple(sorted([*others, today], key=lambda day: day.measured)[-KEPT_DAYS:])


def shown(days: Sequence[BaselineDay]) -> bool:
    """Whether these days are enough to show how far times drift."""
    return _between(days)[1] >= BASELINE_DAYS - 1


def drift(days: Sequence[BaselineDay]) -> Pooled:
    """The log change from one day to another that no code explains: 0, with its standard deviation as the error.

    Two days differ by twice the variance of one. Too few days cannot show that times drift less than is assumed, but
    they can show that they drift more.
    """
    variance, df = _between(days)
    observed = math.sqrt(2 * variance)
    if shown(days):
        return Pooled(0.0, observed, min(df, BASELINE_DAYS_DF))
    return Pooled(0.0, max(observed, math.log1p(BASELINE_DRIFT_PCT / 100)), BASELINE_DRIFT_DF)


def notes(cases: Sequence[Sequence[BaselineDay]]) -> list[str]:
    """What people are to know of a comparison with so many days of each case."""
    few = [held for held in cases if not shown(held)]
    if not few:
        return []
    of = "" if len(few) == len(cases) else f" of {len(few)} of {len(cases)} cases"
    assumed = f"how far times{of} drift from day to day is assumed (sd {BASELINE_DRIFT_PCT:g}%), not known"
    return [f"{assumed}: the baseline holds fewer than {BASELINE_DAYS} days of this code"]


def _between(days: Sequence[BaselineDay]) -> tuple[float, int]:
    """The variance of a day's log time among days of the same code, and its degrees of freedom."""

    def code(day: BaselineDay) -> str:
        return day.code

    alike = [[math.log(day.median_us) for day in group] for _, group in groupby(sorted(days, key=code), code)]
    squares = sum(len(levels) * float(np.var(levels)) for levels in alike)
    df = sum(len(levels) - 1 for levels in alike)
    return (squares / df if df else 0.0), df
