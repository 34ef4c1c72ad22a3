"""How much of a call is its launch, and so what a faster kernel or fewer launches can win at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LaunchShare:
    """One call: its time as it is made one by one, and that of its kernels alone, as a CUDA graph replays them."""

    call_us: float
    kernel_us: float

    @property
    def launch_us(self) -> float:
        return max(0.0, self.call_us - self.kernel_us)

    @property
    def kernel_gain_pct(self) -> float:
        """How much of the call goes away with a kernel that takes no time at all."""
        return 100.0 * min(self.kernel_us, self.call_us) / self.call_us

    def fused_speedup(self, calls: int) -> float:
        """How many times faster `calls` of these get as one launch that does the work of all."""
        return calls * self.call_us / (self.launch_us + calls * min(self.kernel_us, self.call_us))


def sentence(share: LaunchShare) -> str:
    """Such as "the launch takes 10 of 15 µs: a faster kernel wins at most 33%, …"."""
    return (
        f"the launch takes {share.launch_us:.3g} of {share.call_us:.3g} µs: a faster kernel wins at most "
        f"{share.kernel_gain_pct:.0f}%, two calls fused into one are {share.fused_speedup(2):.2g}× as fast, four "
        f"{share.fused_speedup(4):.2g}×"
    )


def is_cause(pairs: Sequence[tuple[LaunchShare, LaunchShare]], limit: float) -> bool:
    """Whether calls changed by their launch rather than by their kernels; `pairs`: base and head in each process.

    In every process calls change the same way, and the launch makes more than half of that change, and more than
    `limit` of the slower call.
    """
    ways = {after.call_us > before.call_us for before, after in pairs}
    return len(ways) == 1 and all(_explains(before, after, limit) for before, after in pairs)


def _explains(before: LaunchShare, after: LaunchShare, limit: float) -> bool:
    slower = max(before, after, key=lambda share: share.call_us)
    change, of_launch = after.call_us - before.call_us, after.launch_us - before.launch_us
    return slower.launch_us > limit * slower.call_us and of_launch * change > 0 and abs(of_launch) > abs(change) / 2
