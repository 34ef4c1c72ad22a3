"""The policy's sections on changes over time: when one is suspected, when it is told, when its commit is found, and how
long samples are kept."""

from __future__ import annotations

from typing import Annotated

from kernelgate.ci.policy.bounds import (
    Improbable,
    PartialShare,
    Percent,
    PercentOrNone,
    PolicySection,
    Positive,
    Probable,
    ProcessCount,
    between,
)

NIGHTS_A_YEAR = 365.0


class BaselineRules(PolicySection):
    """When a stored baseline is too old to say much."""

    stale_days: Annotated[int, between(1, 100_000)] = 90


class HistoryRules(PolicySection):
    """What the judge asks the history for."""

    newest_records: Annotated[int, between(1, 10_000)] = 100


class ChangeRules(PolicySection):
    """When the nights of a series arouse suspicion, and what confirms one."""

    a_year: Annotated[float, between(0.01, 100.0)] = 4.0
    usual_pct: Percent = 1.0
    smallest_pct: Percent = 0.2
    night_pct: Percent = 0.1
    night_factor: Annotated[float, between(1.001, 100.0)] = 2.0
    bad_nights: PartialShare = 0.03
    suspect: PartialShare = 0.5
    nights: Positive = 2
    place: Probable = 0.999
    drift_pct: Percent = 0.5
    drift_nights: Annotated[int, between(5, 1000)] = 20
    drift_p: Improbable = 1e-4
    confirm_p: Improbable = 1e-4
    looks: Positive = 3
    gpu_seconds_a_night: Annotated[float, between(0.0, 86_400.0)] = 600.0
    process_seconds: Annotated[float, between(0.001, 86_400.0)] = 10.0

    @property
    def chance_a_night(self) -> float:
        return self.a_year / NIGHTS_A_YEAR


class RetentionRules(PolicySection):
    """How long the history keeps samples that decide nothing any more."""

    raw_days: Annotated[int, between(1, 36_500)] = 90


class BisectRules(PolicySection):
    """How the commit that changed a time is searched for, and when it is found."""

    chance: Probable = 0.99
    none: PartialShare = 0.1
    several: PartialShare = 0.02
    smallest_pct: Percent = 0.2
    usual_pct: Percent = 3.0
    other_pct: PercentOrNone = 0.05
    together_pct: Percent = 0.15
    apart_pct: Percent = 0.5
    cpu_pct: Percent = 5.0
    spread_factor: Annotated[float, between(1.001, 100.0)] = 2.0
    libraries: Annotated[int, between(3, 64)] = 8
    processes: ProcessCount = 2
    rounds: Positive = 6
    fuzz_runs: Positive = 20
    fuzz_missed: Improbable = 0.001
    fuzz_most: Positive = 500
