"""What the model's confidence is worth: each session predicted from all others, and compared with what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy import stats

from kernelgate.ci.judge.bootstrap import RESAMPLES, SEED
from kernelgate.ci.judge.stats import INTERVAL_LEVEL
from kernelgate.ci.lab.advice_model import Floats, PooledModel, Prediction
from kernelgate.ci.lab.outcomes import TryResult, gain_pct
from kernelgate.ci.policy.policy import Policy

BIN_EDGES: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Forecast:
    """One try, as the other sessions predicted it."""

    result: TryResult
    predicted: Prediction
    base_rate: float
    """Of the other sessions."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Tries that were given about the same chance."""

    low: float
    high: float
    n: int
    predicted: float
    """The mean chance."""
    helped: float
    """The share that did."""
    interval: tuple[float, float]
    """Of the share, 95%, by Wilson."""


@dataclass(frozen=True)
class NvidiaEstimates:
    """NVIDIA's estimated speed-ups against what was realised by an action against the same thing."""

    n: int
    estimated_pct: float
    """The median of the estimates, …"""
    realised_pct: float
    """… and of what the time became shorter by."""
    rank_correlation: float | None
    """Spearman's; None where one of the two does not vary."""
    helped: int


@dataclass(frozen=True)
class Calibration:
    outcomes: int
    sessions: int
    helped: int
    brier: float | None
    """The mean square of chance less outcome; None where there are fewer than two sessions."""
    base_brier: float | None
    """The same where every try gets the other sessions' base rate."""
    skill: float | None
    """1 less the ratio of the two: 0 is no better than the base rate, 1 is a prophet."""
    skill_interval: tuple[float, float] | None
    """By resampling sessions."""
    bins: tuple[ReliabilityBin, ...]
    covered: float | None
    """The share of realised gains that lie in their intervals."""
    nvidia: NvidiaEstimates | None

    @property
    def earned(self) -> bool:
        """Whether the chances are shown to be better than the base rate."""
        return self.skill_interval is not None and self.skill_interval[0] > 0


def calibrate(outcomes: Sequence[TryResult], policy: Policy) -> Calibration:
    made = forecasts(outcomes, policy)
    chances = np.array([one.predicted.probability for one in made])
    helped = np.array([float(one.result.helped) for one in made])
    bases = np.array([one.base_rate for one in made])
    names = [one.result.session.name for one in made]
    squares, base_squares = (chances - helped) ** 2, (bases - helped) ** 2
    enough = len(set(names)) > 1
    return Calibration(
        outcomes=len(outcomes),
        sessions=len({one.session.name for one in outcomes}),
        helped=sum(one.helped for one in outcomes),
        brier=float(squares.mean()) if enough else None,
        base_brier=float(base_squares.mean()) if enough else None,
        skill=float(1 - squares.sum() / base_squares.sum()) if enough else None,
        skill_interval=_interval(names, squares, base_squares) if enough else None,
        bins=_bins(chances, helped) if enough else (),
        covered=_covered(made) if enough else None,
        nvidia=_nvidia(outcomes),
    )


def model(outcomes: Sequence[TryResult], policy: Policy) -> PooledModel:
    return PooledModel(tuple(outcomes), policy.advice.strengths, INTERVAL_LEVEL)


def forecasts(outcomes: Sequence[TryResult], policy: Policy) -> tuple[Forecast, ...]:
    """Every try by a model that has seen no try of its session, its strengths included."""
    made: list[Forecast] = []
    for name in dict.fromkeys(one.session.name for one in outcomes):
        own = [one for one in outcomes if one.session.name == name]
        others = model([one for one in outcomes if one.session.name != name], policy)
        predicted = others.predict([one.features for one in own])
        made += [Forecast(one, each, others.base_rate) for one, each in zip(own, predicted, strict=True)]
    return tuple(made)


def _interval(names: Sequence[str], squares: Floats, base_squares: Floats) -> tuple[float, float]:
    """Of the skill: sessions are resampled, for tries of one session share a base and a kernel."""
    order = list(dict.fromkeys(names))
    at = np.array([order.index(name) for name in names])
    sums, base_sums = (np.bincount(at, weights=one) for one in (squares, base_squares))
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(len(order), size=(RESAMPLES, len(order)))
    skills = 1 - sums[drawn].sum(axis=1) / base_sums[drawn].sum(axis=1)
    outside = (1 - INTERVAL_LEVEL) / 2
    low, high = np.quantile(skills, [outside, 1 - outside])
    return float(low), float(high)


def _bins(chances: Floats, helped: Floats) -> tuple[ReliabilityBin, ...]:
    found = []
    for low, high in pairwise(BIN_EDGES):
        inside = (chances >= low) & ((chances < high) | (high == BIN_EDGES[-1]))
        if count := int(inside.sum()):
            share = helped[inside].mean()
            around = stats.binomtest(int(helped[inside].sum()), count).proportion_ci(method="wilson")
            interval = (float(around.low), float(around.high))
            found.append(ReliabilityBin(low, high, count, float(chances[inside].mean()), float(share), interval))
    return tuple(found)


def _covered(made: Sequence[Forecast]) -> float | None:
    inside = []
    for one in made:
        gain, interval = one.result.log_gain, one.predicted.interval_pct
        if gain is not None and interval is not None:
            inside.append(interval[0] <= gain_pct(gain) <= interval[1])
    return float(np.mean(inside)) if inside else None


def _nvidia(outcomes: Sequence[TryResult]) -> NvidiaEstimates | None:
    """None where no timed try had an estimate."""
    pairs = [
        (one.tried.nvidia_gain_pct, gain_pct(one.log_gain), one.helped)
        for one in outcomes
        if one.tried.nvidia_gain_pct is not None and one.log_gain is not None
    ]
    if not pairs:
        return None
    estimated, realised, helped = zip(*pairs, strict=True)
    varies = len(set(estimated)) > 1 and len(set(realised)) > 1
    rank = float(stats.spearmanr(estimated, realised).statistic) if varies else None
    return NvidiaEstimates(len(pairs), float(np.median(estimated)), float(np.median(realised)), rank, sum(helped))
