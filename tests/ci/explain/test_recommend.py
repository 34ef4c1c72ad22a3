"""What is to be tried against a change: about the figure that moved, and nothing else; and what NVIDIA estimates."""

from __future__ import annotations

import pytest

from kernelgate.bench.explain.ncu_reader import ProfiledKernel, Rule
from kernelgate.ci.explain.budget import Contribution
from kernelgate.ci.explain.recommend import against_change, estimate

KERNEL = ProfiledKernel("kernel", None, (9, 0), 132, {"registers": 242.0, "blocks_by_registers": 1.0}, ())


@pytest.mark.parametrize(
    ("metric", "because", "action"),
    [
        ("instructions", "", "look for what the change computes more often"),
        ("occupancy_pct", "", "cut registers from 242 per thread"),
        ("local_instructions", "", "give the kernel more registers"),
        ("stall_wait", "", "look for arithmetic that waits"),
        ("bank_conflicts", "", "swizzle or pad"),
        ("sectors_per_request", "", "let neighbouring lanes touch"),
        ("async_copies", "", "copy to shared memory by cp.async"),
        ("launches", "", "capture the launches in a CUDA graph"),
        ("stall_barrier", "", "let fewer threads wait"),
        ("dram_bytes", "", "move fewer bytes"),
        ("dram_bytes", "as the L2 hit rate fell 94.0 → 55.4%", "reuse what was loaded"),
    ],
)
def test_each_cause_has_its_advice(metric: str, because: str, action: str) -> None:
    found = against_change(Contribution(metric, 1.0, 2.0, 5.0, because), KERNEL)
    assert found is not None
    assert found.action.startswith(action)


def test_an_action_has_the_estimate_of_the_rule_that_sees_what_it_is_against() -> None:
    rules = [
        Rule("TheoreticalOccupancy", "Theoretical Occupancy", "", 25.0, whole_kernel=True),
        Rule("AchievedOccupancy", "Achieved Occupancy", "", 10.0, whole_kernel=True),
        Rule("SharedMemoryConflicts", "Shared Store Bank Conflicts", "", 40.0, whole_kernel=False),
    ]
    assert estimate("more-warps", rules) == 25.0
    assert estimate("swizzle", rules) is None  # an estimate of one unit's efficiency is none of the time
    assert estimate("compute-once", rules) is None  # against nothing that a rule sees
    assert estimate("telepathy", rules) is None
