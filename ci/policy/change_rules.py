"""The policy's sections on changes over time: when one is suspected, when it is told, when its commit is found, and how
long samples are kept."""

from __future__ import annotations

from typing import Annotated

from kernelgate.ci.policy.bounds import PolicySection, between


class BaselineRules(PolicySection):
    """When a stored baseline is too old to say much."""

    stale_days: Annotated[int, between(1, 100_000)] = 90


class ChangeRules(PolicySection):
    """Changes over time, in the nightly series of docs/history-detection.md."""

    gpu_seconds_a_night: Annotated[float, between(0.0, 86_400.0)] = 600.0
    """What comparisons may take of the GPU in a night."""


class RetentionRules(PolicySection):
    """How long the history keeps samples that decide nothing any more."""

    raw_days: Annotated[int, between(1, 36_500)] = 90
