"""What to do next: from a speed-up and the time of a call (`kernelgate decide`), and from its launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.explain.bottleneck import LAUNCH_BOUND_US

# ---- How much of a call is its launch --------------------------------------------------------------------------------


LAUNCH_SHARE: Final = 0.33
"""Where the launch was measured (a call one by one against replayed from a graph): the share of the call from which on
it is looked at first, and the comment says what it leaves to the kernel. Beyond a third, even a kernel that took no
time would win less than two thirds."""


@dataclass(frozen=True)
class LaunchShare:
    """One call: its time as it is made one by one, and that of its kernels alone, as a CUDA graph replays them."""

    call_us: float
    kernel_us: float

    @property
    def launch_us(self) -> float:
        return max(0.0, self.call_us - self.kernel_us)

    def fused_speedup(self, calls: int) -> float:
        """How many times faster `calls` of these get as one launch that does the work of all."""
        return calls * self.call_us / (self.launch_us + calls * min(self.kernel_us, self.call_us))


def launch_sentence(share: LaunchShare) -> str:
    """Such as "the launch takes 10 of 15 µs: a faster kernel wins at most 33%, …"."""
    wins_pct = 100.0 * min(share.kernel_us, share.call_us) / share.call_us  # with a kernel that takes no time at all
    return (
        f"the launch takes {share.launch_us:.3g} of {share.call_us:.3g} µs: a faster kernel wins at most "
        f"{wins_pct:.0f}%, two calls fused into one are {share.fused_speedup(2):.2g}× as fast, four "
        f"{share.fused_speedup(4):.2g}×"
    )


def is_launch_cause(pairs: Sequence[tuple[LaunchShare, ...]]) -> bool:
    """Whether in every process (`pairs`: base and head in each) calls change the same way, and the launch makes more
    than half of that change, and more than LAUNCH_SHARE of the slower call."""
    for before, after in pairs:
        slower = max(before, after, key=lambda share: share.call_us)
        change, of_launch = after.call_us - before.call_us, after.launch_us - before.launch_us
        little = slower.launch_us <= LAUNCH_SHARE * slower.call_us
        if little or of_launch * change <= 0 or abs(of_launch) <= abs(change) / 2:
            return False
    return len({after.call_us > before.call_us for before, after in pairs}) == 1


# ---- `kernelgate decide` ---------------------------------------------------------------------------------------------


class Priority(StrEnum):
    LAUNCH = "launch overhead"
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    SUCCESS = "success"
    NEXT_BOTTLENECK = "next bottleneck"


PROFILE_BELOW: Final = 1.0
"""By how many times as fast as the reference a kernel is. Below gates.reference_min: stop and profile. Below
PROFILE_BELOW somebody has shown that it can be done faster, and a profile says where; below TUNE_BELOW one
recommendation at a time; from NEXT_BOTTLENECK_FROM on, what held the kernel back is gone and a new profile names what
does now. The four are the project's founding ones."""
TUNE_BELOW: Final = 1.5
NEXT_BOTTLENECK_FROM: Final = 2.0
TARGET: Final = 1.2
"""A speed-up over the reference that is worth publishing: the founding documents' first goal of 2025-10-13."""
KEEP_FROM: Final = 1.2
"""While optimising: how many times as fast as before a fix must make the kernel to be kept, else another one is tried
(`decide --before-ms`). Of the founding documents of 2025-10-13, whose gate is 20% faster, by speed: their example of
0.50 to 0.25 ms is 100%. A bar for a day's work, not for a merge."""


@dataclass(frozen=True)
class NextStep:
    priority: Priority
    found: str
    advice: str
    command: str

    @property
    def sentence(self) -> str:
        return f"{self.found}. {self.advice}"

    @property
    def stops(self) -> bool:
        return self.priority is Priority.CRITICAL


def decide(speedup: float, milliseconds: float, stop_below: float, kernel_ms: float | None = None) -> NextStep:
    """`speedup`: the reference's time over the kernel's. `milliseconds`: of a call; `kernel_ms`: of its kernels alone.
    `stop_below`: the policy's gates.reference_min. Raises UsageError unless the call takes as long as its kernels."""
    call_us, times = 1000 * milliseconds, f"{speedup:g}× the reference"
    fewer = "Look at launch overhead first: CUDA graphs, fusion, larger batches"
    if kernel_ms is None and call_us < LAUNCH_BOUND_US:
        said = f"{call_us:g} µs a call: a launch alone takes 2 to 5 µs"
        return NextStep(Priority.LAUNCH, said, f"{fewer}; {times} says little here.", _BENCH)
    if kernel_ms is not None:
        share = LaunchShare(call_us, 1000 * kernel_ms)
        if share.kernel_us > call_us:
            said = f"--kernel-ms ({kernel_ms:g}) is part of MILLISECONDS ({milliseconds:g})"
            raise UsageError(f"{said} and cannot be above it")
        if share.launch_us > LAUNCH_SHARE * call_us:
            said = launch_sentence(share)
            return NextStep(Priority.LAUNCH, f"{said[0].upper()}{said[1:]}", f"{fewer}; {times}.", _BENCH)
    return _by_speedup(speedup, stop_below, times)


def _by_speedup(speedup: float, stop_below: float, times: str) -> NextStep:
    if speedup >= PROFILE_BELOW:
        times += f", {'past' if speedup >= TARGET else 'short of'} the target of {TARGET:g}×"
    again = "Profile for the next bottleneck: what held it back before no longer does."
    document = "Document what made it fast, and keep it from getting slower."
    full = f"{_PROFILE} --set full"
    steps = (
        (stop_below, Priority.CRITICAL, "Stop, and profile before changing anything.", _PROFILE),
        (PROFILE_BELOW, Priority.HIGH, "Profile, and remove the first bottleneck it names.", _PROFILE),
        (TUNE_BELOW, Priority.MEDIUM, "Try the recommendations of a full profile, one at a time.", full),
        (NEXT_BOTTLENECK_FROM, Priority.SUCCESS, document, "kernelgate pr --base main"),
        (math.inf, Priority.NEXT_BOTTLENECK, again, full),
    )
    priority, advice, command = next((one, said, words) for below, one, said, words in steps if speedup < below)
    name = Priority.SUCCESS if priority is Priority.NEXT_BOTTLENECK else priority
    return NextStep(priority, f"{name.capitalize()}: {times}", advice, command)


def worth_keeping(before_ms: float, after_ms: float) -> str:
    times = before_ms / after_ms
    if times >= KEEP_FROM:
        return f"Keep the fix: {times:.3g}× as fast as before, and {KEEP_FROM:g}× is enough."
    return f"Try another fix: {times:.3g}× as fast as before, and one is kept from {KEEP_FROM:g}× on."


_PROFILE = "kernelgate profile --base main"
_BENCH = "kernelgate bench --base main"
