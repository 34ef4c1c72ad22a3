"""The policy's thresholds in the form in which ci/explain, which knows no policy, takes them."""

from __future__ import annotations

from kernelgate.ci.explain.diagnosis import BottleneckLimits
from kernelgate.ci.explain.next_step import Bands
from kernelgate.ci.policy.policy import Policy


def bands(policy: Policy) -> Bands:
    return Bands(stop_below=policy.gates.reference_min, **policy.guidance.model_dump())


def bottleneck_limits(policy: Policy) -> BottleneckLimits:
    return BottleneckLimits(launch_bound_us=policy.guidance.launch_bound_us, **policy.bottleneck.model_dump())
