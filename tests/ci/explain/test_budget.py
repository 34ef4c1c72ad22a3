"""The time budget: what the parts of a change must hold, whatever the profiles say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.explain.metrics import STALL_PREFIX
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.ci.explain.budget import Budget, Contribution, budget, sentences
from kernelgate.ci.explain.recommend import against_change

KERNEL: dict[str, float] = {
    "duration_us": 100.0,
    "sm_mhz": 1700.0,
    "instructions": 10e6,
    "latency_cycles": 8.0,
    "occupancy_pct": 25.0,
    "theoretical_occupancy_pct": 25.0,
    "registers": 128.0,
    "shared_bytes": 49152.0,
    "block_threads": 256.0,
    "blocks_by_registers": 2.0,
    "blocks_by_shared": 4.0,
    "blocks_by_warps": 8.0,
    "local_instructions": 0.0,
    "load_requests": 1e5,
    "store_requests": 1e5,
    "load_sectors": 16e5,
    "store_sectors": 16e5,
    "async_copies": 5e4,
    "dram_bytes": 1e8,
    "l2_hit_pct": 90.0,
    "l2_sectors": 4e6,
    "shared_wavefronts": 2e6,
    "bank_conflicts": 0.0,
    "threads_per_instruction": 32.0,
    "tensor_pct": 40.0,
    "grid": 1024.0,
    "sm_active_cycles": 160000.0,
    "elapsed_cycles": 170000.0,
    "stall_selected": 1.0,
    "stall_wait": 2.0,
    "stall_long_scoreboard": 3.0,
    "stall_short_scoreboard": 1.0,
    "stall_barrier": 1.0,
}


def changed(**figures: float) -> dict[str, float]:
    """The kernel with other figures, its latency and its time as they come of them."""
    after = {**KERNEL, **figures}
    if "latency_cycles" not in figures:
        after["latency_cycles"] = sum(value for key, value in after.items() if key.startswith(STALL_PREFIX))
    if "duration_us" not in figures:
        work = after["instructions"] * after["latency_cycles"] / after["occupancy_pct"]
        after["duration_us"] = 100.0 * work / (10e6 * 8.0 / 25.0)
    return after


def of(after: dict[str, float], before: dict[str, float] = KERNEL) -> Budget:
    return budget(before, after, 100 * (after["duration_us"] / before["duration_us"] - 1))


FIGURES = st.fixed_dictionaries({}, optional={key: st.floats(0, 1e9) for key in KERNEL})
ANYTHING = st.dictionaries(
    st.sampled_from([*KERNEL, "launches", "call_us", "stall_gmma", "stall_sleeping"]),
    st.floats() | st.floats(0, 1e12) | st.just(0.0),
)


@given(FIGURES, FIGURES, st.floats(-99, 1000))
def test_shares_and_what_is_left_sum_up_to_the_change(before: Any, after: Any, change_pct: float) -> None:
    made = budget(KERNEL | before, KERNEL | after, change_pct)
    parts = [*(one.share_pct for one in made.contributions), made.unexplained_pct]
    rounding = 1e-12 * max(map(abs, parts))  # where one part is a billion times the change
    assert math.fsum(parts) == pytest.approx(change_pct, abs=max(1e-9, rounding))


@given(ANYTHING, ANYTHING, st.floats(-100, 1000), st.tuples(st.floats(), st.floats()) | st.just((1700.0, 1690.0)))
def test_any_figures_will_do(
    before: dict[str, float], after: dict[str, float], change_pct: float, clocks: tuple[float, float]
) -> None:
    """A record may come from anywhere."""
    made = budget(before, after, change_pct, clocks)
    assert all(sentence.endswith(".") for sentence in sentences(made))


def test_a_launch_more_is_a_cause_and_noise_of_a_wait_is_none() -> None:
    once, twice = {**KERNEL, "launches": 1.0, "call_us": 100.0}, {**KERNEL, "launches": 2.0, "call_us": 200.0}
    first, *_ = sentences(budget(once, twice, 99.0))
    assert first == "more kernel launches in a call, 1 → 2: all 99.0 points."
    made = of(changed(stall_long_scoreboard=3.1))
    assert (made.is_shown, made.causes) == (True, ())
    assert sentences(made)[0].startswith("not known: 1.2% slower under the profiler")


def test_the_points_of_a_sentence_add_up() -> None:
    """What works against a cause counts only where it is said; advice rests on no small part of the change."""
    more, less = Contribution("occupancy_pct", 6.2, 6.0, 1.0), Contribution("stall_wait", 2.0, 1.0, -2.0)
    made = Budget(3.1, (more, less), 4.1, 3.5)
    assert sentences(made) == ("in part occupancy 6.2 → 6.0%: 1.0 of the 3.1 points; 2.1 points stay unexplained.",)
    assert not made.is_mostly_explained
    most = Budget(3.1, (replace(more, share_pct=4.4), less), 0.7, 3.5)
    said = (
        "occupancy 6.2 → 6.0%: 4.4 of the 3.1 points; against that shorter waits of fixed latency, 2.00 → 1.00 cycles"
    )
    assert sentences(most)[0].startswith(said)
    assert most.is_mostly_explained
    gain = (Contribution("occupancy_pct", 50.0, 80.0, -43.7), Contribution("occupancy_pct", 80.0, 90.0, -12.4))
    assert sentences(Budget(-48.6, gain, 7.5, -45.0)) == (
        "occupancy 50.0 → 80.0%: 43.7 of the 48.6 points; occupancy 80.0 → 90.0%: 12.4 points; "
        "against that smaller effects: +7.5.",
    )


def test_what_a_profile_lacks_explains_nothing() -> None:
    bare = {"duration_us": 100.0, "sm_mhz": 1700.0}
    assert sentences(of({**bare, "duration_us": 110.0}, bare)) == (
        "not known: 10.0% slower under the profiler, and no figure of it says why.",
    )
    assert sentences(budget({}, KERNEL, 10.0)) == ("the profile does not say: it holds no duration of both sides.",)


PROFILED = ProfiledKernel("kernel", None, (9, 0), 132, {"registers": 242.0, "blocks_by_registers": 1.0}, ())


@pytest.mark.parametrize(
    ("metric", "because", "action"),
    [
        ("occupancy_pct", "", "cut registers from 242 per thread"),
        ("dram_bytes", "", "move fewer bytes"),
        ("dram_bytes", "as the L2 hit rate fell 94.0 → 55.4%", "reuse what was loaded"),
    ],
)
def test_each_cause_has_its_advice(metric: str, because: str, action: str) -> None:
    found = against_change(Contribution(metric, 1.0, 2.0, 5.0, because), PROFILED)
    assert found.action.startswith(action)
