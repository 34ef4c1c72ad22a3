"""The thresholds of bottleneck.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BottleneckLimits:
    """From where on a figure counts; the policy has them, with their reasons."""

    launch_bound_us: float
    unit_busy_pct: float
    bandwidth_busy_pct: float
    """The same of DRAM and L2."""
    saturated_pct: float
    """From here on a unit is the limit, whatever warps wait for."""
    low_occupancy_pct: float
    enough_occupancy_pct: float
    idle_share: float
    conflict_share: float
    excess_share: float
    local_share: float
    barrier_share: float
    diverged_threads: float
    """Of a warp's 32, that work in an instruction on average."""
