"""The policy's rules for naming a bottleneck; ci/explain/bottleneck.py applies them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from kernelgate.ci.policy.bounds import PartialPercent, PartialShare, PolicySection, between, ordered


class BottleneckRules(PolicySection):
    """From where on a profile's figures name what holds a kernel back."""

    unit_busy_pct: PartialPercent = 60.0
    bandwidth_busy_pct: PartialPercent = 60.0
    saturated_pct: PartialPercent = 80.0
    low_occupancy_pct: PartialPercent = 30.0
    enough_occupancy_pct: Annotated[float, between(20.0, 100.0)] = 50.0
    idle_share: PartialShare = 0.2
    conflict_share: PartialShare = 0.3
    excess_share: PartialShare = 0.4
    local_share: PartialShare = 0.05
    barrier_share: PartialShare = 0.35
    diverged_threads: Annotated[float, between(1.0, 32.0)] = 24.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ordered(self, "low_occupancy_pct", "enough_occupancy_pct")
        for busy in ("unit_busy_pct", "bandwidth_busy_pct"):
            ordered(self, busy, "saturated_pct")
        return self
