"""`kernelgate decide`: what to do next, from a speed-up over the reference and the time of one call."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelgate.bench.errors import UsageError
from kernelgate.ci.explain.bottleneck import LAUNCH_BOUND_US


@dataclass(frozen=True)
class NextStep:
    priority: str
    sentence: str
    command: str
    """What to run next, exactly."""


def decide(speedup: float, milliseconds: float) -> NextStep:
    """`speedup`: the reference's time over the kernel's. Raises UsageError unless both are positive numbers."""
    for name, value in (("SPEEDUP", speedup), ("MILLISECONDS", milliseconds)):
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be a number above 0, got {value}")
    times = f"{speedup:g}× the reference"
    if 1000 * milliseconds < LAUNCH_BOUND_US:
        return NextStep(
            "launch overhead",
            f"{1000 * milliseconds:g} µs a call: the launch takes as long as the work. Look at launch overhead first: "
            f"CUDA graphs, fusion, larger batches; {times} says little here.",
            "kernelgate bench --base main",
        )
    if speedup < 0.5:
        return NextStep("critical", f"Critical: {times}. Stop, and profile before changing anything.", _PROFILE)
    if speedup < 1.0:
        return NextStep("high", f"High: {times}. Profile, and remove the first bottleneck it names.", _PROFILE)
    if speedup < 1.5:
        return NextStep(
            "medium",
            f"Medium: {times}. Try the recommendations of a full profile, one at a time.",
            f"{_PROFILE} --set full",
        )
    return NextStep(
        "success",
        f"Success: {times}. Document what made it fast, and keep it from getting slower.",
        "kernelgate pr --base main",
    )


_PROFILE = "kernelgate profile --base main"
