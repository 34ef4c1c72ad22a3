"""What to do next, by a speed-up and by the launch's share of a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.explain.next_step import Priority, decide
from tests.called import EndsWith

STOP_BELOW = 0.5


def test_ends_with_the_next_command_and_stops_where_the_policy_says(tmp_path: Path, ends_with: EndsWith) -> None:
    assert ends_with(1, "decide", 0.3, 0.321).out == (
        "Critical: 0.3× the reference. Stop, and profile before changing anything.\n"
        "Next: kernelgate profile --base main\n"
    )
    ends_with(0, "decide", 0.8, 0.321)
    rules = tmp_path / "rules.toml"
    rules.write_text("[gates]\nreference_min = 0.9\n", encoding="utf-8")
    ends_with(1, "decide", 0.8, 0.321, "--policy", rules)
    assert "short of the target of 1.2×" in ends_with(0, "decide", 1.1, 0.321, "--policy", rules).out


@pytest.mark.parametrize(
    ("speedup", "milliseconds", "priority"),
    [
        *((0.5, 1.0, Priority.HIGH), (1.0, 1.0, Priority.MEDIUM), (1.5, 1.0, Priority.SUCCESS)),
        *((2.0, 1.0, Priority.NEXT_BOTTLENECK), (0.1, 0.0099, Priority.LAUNCH), (0.1, 0.01, Priority.CRITICAL)),
    ],
)
def test_priorities(speedup: float, milliseconds: float, priority: Priority) -> None:
    assert decide(speedup, milliseconds, STOP_BELOW).priority is priority


def test_a_fix_is_kept_from_a_fifth_more_speed_on(ends_with: EndsWith) -> None:
    for before, said in {
        "0.3852": "Keep the fix: 1.2× as fast as before, and 1.2× is enough.",
        "0.380": "Try another fix: 1.18× as fast as before, and one is kept from 1.2× on.",
    }.items():
        assert ends_with(0, "decide", 0.9, 0.321, "--before-ms", before).out.startswith(said)


def test_a_measured_kernel_decides_instead_of_the_rule_of_thumb() -> None:
    """A launch of 10 µs before a kernel of 5 leaves a third to the kernel."""
    step = decide(1.2, 0.015, STOP_BELOW, kernel_ms=0.005)
    assert (step.priority, step.found) == (
        Priority.LAUNCH,
        "The launch takes 10 of 15 µs: a faster kernel wins at most 33%, two calls fused into one are 1.5× as fast, "
        "four 2×",
    )
    assert decide(1.2, 0.008, STOP_BELOW, kernel_ms=0.0079).priority is Priority.MEDIUM
    assert decide(0.3, 0.321, STOP_BELOW, kernel_ms=0.318).priority is Priority.CRITICAL
