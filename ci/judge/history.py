"""What past measurements tell of each case: how far its processes scatter, and how far its times drift between days.

It is handed in by whoever judges, as a value: from the index that the judging job's own environment names
(`ci/history/past.py`). A record cannot bring one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kernelgate.bench.record import BaselineDay, CaseKey, Device, RunRecord
from kernelgate.ci.judge.spread import HISTORY_DF, HISTORY_MEMORY_DF, KnownSpread
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.validity import percent

MOST_PCT: Final = 1000.0
"""Of a spread: such processes tell nothing, however much further they scatter."""


@dataclass(frozen=True)
class History:
    """What is known of cases that were measured before, by the kind of GPU and the case."""

    spreads: Mapping[tuple[str, CaseKey], KnownSpread] = field(default_factory=dict)
    days: Mapping[tuple[str, CaseKey], tuple[BaselineDay, ...]] = field(default_factory=dict)
    """Times of the same code on several days."""


NO_HISTORY = History()
Past = Callable[[RunRecord], History]
"""Asks for what was known of a record's cases before it was made."""


def no_past(_: RunRecord) -> History:
    """Where no history is configured."""
    return NO_HISTORY


def known_spread(history: History, device: Device, key: CaseKey) -> KnownSpread | None:
    """What is known of a case on this kind of device; None where that is too little to rest on."""
    found = history.spreads.get((device.name or "", key))
    return found if found is not None and found.df >= HISTORY_DF else None


def known_days(history: History, device: Device, key: CaseKey) -> tuple[BaselineDay, ...]:
    """The days on which the same code of this case was timed on this kind of device."""
    return history.days.get((device.name or "", key), ())


def seen(values: Array, variances: Array, made: str | None) -> KnownSpread:
    """Of one comparison. No process is left out: that one stood alone is what the next comparison must know."""
    return KnownSpread(
        spread_pct=_rounded(percent(float(np.std(values, ddof=1)))),
        noise_pct=_rounded(percent(math.sqrt(float(variances.mean())))),
        df=len(values) - 1,
        comparisons=1,
        last_seen=made,
    )


def joined(old: KnownSpread, new: KnownSpread) -> KnownSpread:
    """Mean squares, weighted by degrees of freedom. Of the past no more than HISTORY_MEMORY_DF in all stays."""
    kept = max(0.0, min(old.df, HISTORY_MEMORY_DF - new.df))
    df = kept + new.df

    def together(before: float, now: float) -> float:
        return _rounded(math.sqrt((kept * before**2 + new.df * now**2) / df))

    return KnownSpread(
        spread_pct=together(old.spread_pct, new.spread_pct),
        noise_pct=together(old.noise_pct, new.noise_pct),
        df=df,
        comparisons=old.comparisons + new.comparisons,
        last_seen=new.last_seen or old.last_seen,
    )


def _rounded(value: float) -> float:
    """To digits that a reader of the file can compare, and no further than what may stand there."""
    return float(f"{min(value, MOST_PCT):.4g}")
