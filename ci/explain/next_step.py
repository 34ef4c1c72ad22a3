"""`kernelgate decide`: what to do next, from a speed-up over the reference and the time of one call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.explain import launch
from kernelgate.ci.explain.launch import LaunchShare


class Priority(StrEnum):
    LAUNCH = "launch overhead"
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    SUCCESS = "success"
    NEXT_BOTTLENECK = "next bottleneck"


@dataclass(frozen=True)
class Bands:
    """Where one advice ends and the next begins: speed-ups over the reference, and times; the policy has them."""

    stop_below: float
    profile_below: float
    tune_below: float
    next_bottleneck_from: float
    launch_bound_us: float
    launch_share: float
    """Of a call: where its launch takes more, that is looked at first."""
    target: float
    """A speed-up over the reference that is worth publishing."""
    keep_from: float
    """While optimising: how many times as fast as before a fix makes the kernel that is kept."""


@dataclass(frozen=True)
class NextStep:
    priority: Priority
    found: str
    """What the times say."""
    advice: str
    command: str
    """What to run next, exactly."""

    @property
    def sentence(self) -> str:
        return f"{self.found}. {self.advice}"

    @property
    def stops(self) -> bool:
        return self.priority is Priority.CRITICAL


def decide(speedup: float, milliseconds: float, bands: Bands, kernel_ms: float | None = None) -> NextStep:
    """`speedup`: the reference's time over the kernel's. `milliseconds`: of a call; `kernel_ms`: of its kernels alone.

    Raises UsageError unless all are positive numbers, and the call takes as long as its kernels.
    """
    for name, value in (("SPEEDUP", speedup), ("MILLISECONDS", milliseconds), ("--kernel-ms", kernel_ms)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be a number above 0, got {value}")
    if kernel_ms is not None and kernel_ms > milliseconds:
        raise UsageError(
            f"--kernel-ms ({kernel_ms:g}) is part of MILLISECONDS ({milliseconds:g}) and cannot be above it"
        )
    return _of_launch(speedup, milliseconds, bands, kernel_ms) or _of_speedup(speedup, bands)


def worth_keeping(before_ms: float, after_ms: float, bands: Bands) -> str:
    """Whether a fix is kept, by one call's time before and after it. Raises UsageError unless both are positive."""
    for name, value in (("--before-ms", before_ms), ("MILLISECONDS", after_ms)):
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be a number above 0, got {value}")
    times = before_ms / after_ms
    if times >= bands.keep_from:
        return f"Keep the fix: {times:.3g}× as fast as before, and {bands.keep_from:g}× is enough."
    return f"Try another fix: {times:.3g}× as fast as before, and one is kept from {bands.keep_from:g}× on."


def _of_launch(speedup: float, milliseconds: float, bands: Bands, kernel_ms: float | None) -> NextStep | None:
    """Where the launch is what takes the time; None elsewhere."""
    call_us, times = 1000 * milliseconds, f"{speedup:g}× the reference"
    fewer = "Look at launch overhead first: CUDA graphs, fusion, larger batches"
    if kernel_ms is not None:
        share = LaunchShare(call_us, 1000 * kernel_ms)
        if share.launch_us <= bands.launch_share * call_us:
            return None
        said = launch.sentence(share)
        return NextStep(Priority.LAUNCH, f"{said[0].upper()}{said[1:]}", f"{fewer}; {times}.", _BENCH)
    if call_us >= bands.launch_bound_us:
        return None
    said = f"{call_us:g} µs a call: a launch alone takes 2 to 5 µs"
    return NextStep(Priority.LAUNCH, said, f"{fewer}; {times} says little here.", _BENCH)


def _of_speedup(speedup: float, bands: Bands) -> NextStep:
    times = f"{speedup:g}× the reference"
    if speedup >= bands.profile_below:
        times += f", {'past' if speedup >= bands.target else 'short of'} the target of {bands.target:g}×"
    if speedup < bands.stop_below:
        advice = "Stop, and profile before changing anything."
        return NextStep(Priority.CRITICAL, f"Critical: {times}", advice, _PROFILE)
    if speedup < bands.profile_below:
        return NextStep(Priority.HIGH, f"High: {times}", "Profile, and remove the first bottleneck it names.", _PROFILE)
    if speedup < bands.tune_below:
        advice = "Try the recommendations of a full profile, one at a time."
        return NextStep(Priority.MEDIUM, f"Medium: {times}", advice, f"{_PROFILE} --set full")
    if speedup < bands.next_bottleneck_from:
        advice = "Document what made it fast, and keep it from getting slower."
        return NextStep(Priority.SUCCESS, f"Success: {times}", advice, "kernelgate pr --base main")
    advice = "Profile for the next bottleneck: what held it back before no longer does."
    return NextStep(Priority.NEXT_BOTTLENECK, f"Success: {times}", advice, f"{_PROFILE} --set full")


_PROFILE = "kernelgate profile --base main"
_BENCH = "kernelgate bench --base main"
