"""What is known before a measurement: how far processes may scatter, what past measurements of a case show, and how far
its times drift from day to day. docs/statistics.md has the models.

The spread between processes is one of a grid, each with a probability that processes change, and each gives the change
its own standard error. So p, intervals and tests come from one scale mixture (Gelman 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Final

import numpy as np

from kernelgate.bench.record import BaselineDay, CaseKey, Device, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge.stats import MISS, Array, Pooled
from kernelgate.ci.policy.policy import PolicySection, between

CHANGE_PCT: Final = 0.045
"""Standard deviation, between processes, of the change between two libraries in one process. What is known of it
before a case's history: a share QUIET_SHARE of cases is quiet, around this (a standard deviation of x/÷ QUIET_FACTOR;
measured: 0.01 to 0.05% on an H200). The others may have any spread, each order of magnitude alike, from it up to
LARGEST_PCT."""
QUIET_FACTOR: Final = 1.35
QUIET_SHARE: Final = 0.4
"""A larger one takes fewer processes, until too few of the 95% intervals of two processes hold the truth where they
scatter by 0.3% (docs/statistics.md, the table by spread)."""
LARGEST_PCT: Final = 10.0
PRIOR_CASES: Final = 4
"""How many of the record's other cases QUIET_SHARE weighs as much as: a noisy machine shows in all of them."""
HISTORY_DF: Final = 4.0
"""A history of the case (docs/history.md) counts from so many degrees of freedom on, and weighs no more. Spreads wander
from day to day (x/÷ 1.65, a tenfold one day in twenty), so more would be believed where it is wrong."""
HISTORY_SHARE: Final = 0.97
"""In this share of days a case is as its history has it; in the rest, as if it had none."""
HISTORY_MEMORY_DF: Final = 10.0
"""What is remembered of the past, in degrees of freedom; older comparisons fade."""
HISTORY_TO_DIRECT_DF: Final = 8.0
"""A history of so many degrees of freedom excludes a lottery of placement, so that two processes may show a
direction: it stays hidden from eight comparisons of two processes in 5% (20% of processes 2% slower) or 0.04% (half,
0.5%)."""
STEPS: Final = 64
"""Spreads on the grid: neighbours are 12% apart, and twice as many change no figure by a hundredth."""
MOST_STEPS: Final = 200
SETTLED: Final = 1e-6
"""Steps of the EM algorithm, and the change of a share from which on it has ended."""
REACH: Final = 3.0
"""The grid begins so many of its own deviations below what is quiet."""
MOST_PCT: Final = 1000.0
"""Of a spread that is remembered: such processes tell nothing, however much further they scatter."""
BASELINE_DRIFT_PCT: Final = 1.0
"""Effects that shift all times of a day, between the baseline's day and today: standard deviation that is assumed as
long as the baseline's own days do not show it. Observed once: 0.5%, on an H200 that another process had begun to
share. No repeated days are known, so twice that is assumed, and simulated: with one case at most 1% of comparisons of
identical code get a direction where the true deviation is up to 1.5%."""
BASELINE_APART_PCT: Final = 3.0
"""The same where driver, torch, CUDA or clocks are others, or more than a year lies between. An assumption: no code was
ever measured on both sides of such a change. Three times a day's drift: what is certain all the same, from about 15%
on, is more than the 8% between two speeds of one unchanged kernel (.ci/baseline_s512.json)."""
BASELINE_DRIFT_DF: Final = 10
"""Degrees of freedom that the assumption deserves."""
BASELINE_DAYS: Final = 4
"""So many stored days of the same code show the drift themselves. They count as BASELINE_DAYS_DF degrees of freedom at
most, however many they are: drifts of last month say little of today's."""
BASELINE_DAYS_DF: Final = 5
KEPT_DAYS: Final = 20
"""Of each case; older ones say less of today's machine."""


PercentOrNone = Annotated[float, between(0.0, 1e3)]


class KnownSpread(PolicySection):
    """What a case's past comparisons show of its processes, percent."""

    spread_pct: PercentOrNone
    """Standard deviation of the processes' changes, the noise of their rounds in it."""
    noise_pct: PercentOrNone
    """How much of it their rounds explain."""
    df: Annotated[float, between(1e-3, 1e6)]
    comparisons: Annotated[int, between(1, 10**9)]
    last_seen: str | None = None


@dataclass(frozen=True, eq=False)
class Prior:
    """The probabilities of a grid of spreads: those of a usual case with probability `share`, else the others."""

    spreads: Array
    usual: Array
    other: Array
    share: float


@lru_cache(maxsize=1024)
def prior(quiet_pct: float, known: KnownSpread | None = None) -> Prior:
    """`quiet_pct`: the spread of a quiet case. With a history, a usual case is as that says."""
    width = math.log(QUIET_FACTOR)
    lowest, highest = math.log(quiet_pct / 100) - REACH * width, math.log(max(LARGEST_PCT, quiet_pct) / 100)
    logs = np.linspace(lowest, highest, STEPS)
    spreads = np.exp(logs)
    quiet = _normalised(np.exp(-(((logs - math.log(quiet_pct / 100)) / width) ** 2) / 2))
    any_ = _normalised((logs >= math.log(quiet_pct / 100)).astype(float))
    if known is None:
        return Prior(spreads, quiet, any_, QUIET_SHARE)
    unknown = QUIET_SHARE * quiet + (1 - QUIET_SHARE) * any_
    df = min(known.df, HISTORY_DF)
    variances = spreads**2 + (known.noise_pct / 100) ** 2
    log_likelihood = -df / 2 * (np.log(variances) + (known.spread_pct / 100) ** 2 / variances)
    usual = _normalised(any_ * np.exp(log_likelihood - log_likelihood.max()))
    return Prior(spreads, usual, unknown, HISTORY_SHARE)


@dataclass(frozen=True, eq=False)
class Fit:
    """What each spread of the grid makes of a case's processes."""

    means: Array
    errors: Array
    usual: Array
    """Likelihood times prior, on a scale of the case's own."""
    other: Array
    share: float

    def pooled(self, share: float, df: float) -> Pooled:
        """The change with its uncertainty, where `share` of such cases are usual; `df`: of the rounds' noise."""
        weights = _normalised(share * self.usual + (1 - share) * self.other)
        change = float(weights @ self.means)
        # Where processes are not equally precise, each spread has a mean of its own.
        scales = np.hypot(self.errors, self.means - change)
        error = float(np.exp(weights @ np.log(scales)))
        return Pooled(change, error, df, 0.0, scales / error, weights)


def fit(estimates: Array, variances: Array, before: Prior) -> Fit:
    """Process estimates, whose rounds explain `variances`, held against each spread of the prior."""
    totals = before.spreads[:, None] ** 2 + variances[None, :]
    weights = 1 / totals
    sums = weights.sum(axis=1)
    means = weights @ estimates / sums
    squares = (weights * (estimates[None, :] - means[:, None]) ** 2).sum(axis=1)
    # The change itself may be anything, so it is integrated out (restricted likelihood, Patterson and Thompson 1971).
    log_likelihood = -(np.log(totals).sum(axis=1) + np.log(sums) + squares) / 2
    likelihood = np.exp(log_likelihood - log_likelihood.max())
    return Fit(means, 1 / np.sqrt(sums), likelihood * before.usual, likelihood * before.other, before.share)


def shares(fits: Sequence[Fit]) -> list[float]:
    """For each case, how likely it is a usual one as the *other* cases of the record show it: an EM algorithm in which
    the prior weighs PRIOR_CASES cases."""
    before = found = np.array([one.share for one in fits])
    usual, other = (np.array([getattr(one, part).sum() for one in fits]) for part in ("usual", "other"))
    for _ in range(MOST_STEPS):
        # From the share before the data to the chance, as a part of the way to 1, or (negative) to 0.
        chances = found * usual / (found * usual + (1 - found) * other)
        moves = (chances - before) / np.where(chances > before, 1 - before, before)
        parts = (moves.sum() - moves) / (PRIOR_CASES + len(fits) - 1)
        last, found = found, before + parts * np.where(parts > 0, 1 - before, before)
        if np.abs(found - last).max(initial=0.0) < SETTLED:
            break
    return [float(share) for share in found]


def _normalised(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class History:
    """What is known of cases that were measured before, by the kind of GPU and the case; a record cannot bring one."""

    spreads: Mapping[tuple[str, CaseKey], KnownSpread] = field(default_factory=dict)
    days: Mapping[tuple[str, CaseKey], tuple[BaselineDay, ...]] = field(default_factory=dict)

    def spread(self, device: Device, key: CaseKey) -> KnownSpread | None:
        """Of a case on this kind of device; None where too little is known to rest on."""
        found = self.spreads.get((device.name or "", key))
        return found if found is not None and found.df >= HISTORY_DF else None


NO_HISTORY = History()
Past = Callable[[RunRecord], History]
"""Asks for what was known of a record's cases before it was made."""


def no_past(_: RunRecord) -> History:
    return NO_HISTORY


def seen(values: Array, variances: Array, made: str | None) -> KnownSpread:
    """Of one comparison. No process is left out: that one stood alone is what the next comparison must know."""
    return KnownSpread(
        spread_pct=_rounded(as_percent(float(np.std(values, ddof=1)))),
        noise_pct=_rounded(as_percent(math.sqrt(float(variances.mean())))),
        df=len(values) - 1,
        comparisons=1,
        last_seen=made,
    )


def joined(old: KnownSpread, new: KnownSpread) -> KnownSpread:
    """Mean squares, weighted by degrees of freedom. Of the past no more than HISTORY_MEMORY_DF in all stays."""
    kept = max(0.0, min(old.df, HISTORY_MEMORY_DF - new.df))
    df = kept + new.df
    pairs = ((old.spread_pct, new.spread_pct), (old.noise_pct, new.noise_pct))
    spread, noise = (_rounded(math.sqrt((kept * was**2 + new.df * now**2) / df)) for was, now in pairs)
    return KnownSpread(
        spread_pct=spread,
        noise_pct=noise,
        df=df,
        comparisons=old.comparisons + new.comparisons,
        last_seen=new.last_seen or old.last_seen,
    )


def _rounded(value: float) -> float:
    """To digits that a reader of the file can compare, and no further than what may stand there."""
    return float(f"{min(value, MOST_PCT):.4g}")


def stored_days(baseline: RunRecord, key: CaseKey) -> tuple[BaselineDay, ...]:
    names = formatting.ids(case.key for case in baseline.cases)
    # A baseline may name no card.
    name = names.get(key) or names.get(CaseKey("", key.id))
    held = baseline.summary.cases.get(name.text) if baseline.summary and name else None
    return held.days if held else ()


def known_days(baseline: RunRecord, key: CaseKey, history: History, device: Device) -> Sequence[BaselineDay]:
    """As the baseline kept them or as the history has them, whichever show more; the same days may stand in both."""
    both = stored_days(baseline, key), history.days.get((device.name or "", key), ())
    return max(both, key=lambda days: _between(days)[1])


def with_today(days: Iterable[BaselineDay], today: BaselineDay) -> tuple[BaselineDay, ...]:
    """With today's, which takes the place of another measurement of this code on this day."""
    others = [day for day in days if (day.measured, day.code) != (today.measured, today.code)]
    return tuple(sorted([*others, today], key=lambda day: day.measured)[-KEPT_DAYS:])


def drift(days: Sequence[BaselineDay], apart: bool = False) -> Pooled:
    """The log change from one day to another that no code explains: 0, with its standard deviation as the error. Few
    days can only show that times drift more than is assumed. `apart`: more than days lies between."""
    variance, df = _between(days)
    observed = math.sqrt(2 * variance)
    assumed = math.log1p((BASELINE_APART_PCT if apart else BASELINE_DRIFT_PCT) / 100)
    if df >= BASELINE_DAYS - 1 and not apart:
        df = min(df, BASELINE_DAYS_DF)
        whole = BASELINE_DRIFT_DF + df
        both = math.sqrt((BASELINE_DRIFT_DF * assumed**2 + df * observed**2) / whole)
        # A few days that drift as is assumed say no less than the assumption.
        return min(Pooled(0.0, observed, df), Pooled(0.0, both, whole), key=lambda one: one.half_width(MISS))
    return Pooled(0.0, max(observed, assumed), BASELINE_DRIFT_DF)


def drift_notes(cases: Sequence[Sequence[BaselineDay]]) -> list[str]:
    """What people are to know of a comparison with so many days of each case."""
    few = sum(_between(held)[1] < BASELINE_DAYS - 1 for held in cases)
    of = "" if few == len(cases) else f" of {few} of {len(cases)} cases"
    assumed = f"how far times{of} drift from day to day is assumed (sd {BASELINE_DRIFT_PCT:g}%), not known"
    return [f"{assumed}: the baseline holds fewer than {BASELINE_DAYS} days of this code"] if few else []


def _between(days: Sequence[BaselineDay]) -> tuple[float, int]:
    """The variance of a day's log time among days of the same code, and its degrees of freedom."""
    codes = sorted({day.code for day in days})
    alike = [[math.log(day.median_us) for day in days if day.code == code] for code in codes]
    squares, df = sum(len(levels) * float(np.var(levels)) for levels in alike), len(days) - len(alike)
    return (squares / df if df else 0.0), df
