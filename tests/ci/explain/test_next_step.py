"""What to do next, by a speed-up, by the launch's share of a call, and by a ladder of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelgate.ci.explain import next_step
from kernelgate.ci.explain.next_step import LaunchShare, Priority, SizedCase, decide, ladder_sentence, longest_ladder
from tests.called import EndsWith

STOP_BELOW = 0.5


def test_ends_with_the_next_command_and_stops_below_half_of_the_reference(ends_with: EndsWith) -> None:
    assert ends_with(1, "decide", 0.3, 0.321).out == (
        "Critical: 0.3× the reference. Stop, and profile before changing anything.\n"
        "Next: kernelgate profile --base main\n"
    )
    ends_with(0, "decide", 0.8, 0.321)


def test_where_to_stop_is_the_policys(tmp_path: Path, ends_with: EndsWith) -> None:
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


def test_a_launch_of_10_us_before_a_kernel_of_5_leaves_a_third_to_the_kernel() -> None:
    """And twice the speed to four calls in one launch, three times to very many."""
    share = LaunchShare(call_us=15.0, kernel_us=5.0)
    assert share.fused_speedup(10**6) == pytest.approx(3.0, abs=1e-3)
    assert next_step.launch_sentence(share) == (
        "the launch takes 10 of 15 µs: a faster kernel wins at most 33%, two calls fused into one are 1.5× as fast, "
        "four 2×"
    )
    assert decide(1.2, 0.015, STOP_BELOW, kernel_ms=0.005).priority is Priority.LAUNCH


def test_a_measured_kernel_decides_instead_of_the_rule_of_thumb() -> None:
    assert decide(1.2, 0.008, STOP_BELOW, kernel_ms=0.0079).priority is Priority.MEDIUM
    assert decide(0.3, 0.321, STOP_BELOW, kernel_ms=0.318).priority is Priority.CRITICAL


AXES = {"B": 32, "H": 8, "dtype": "fp16", "causal": False}


def cases(*speedups: float, start: int = 32, card: str = "attention") -> list[SizedCase]:
    return [SizedCase(card, {**AXES, "S": start << at}, 10.0, 10.0 * up) for at, up in enumerate(speedups)]


@pytest.mark.parametrize(
    ("speedups", "first", "rest"),
    [
        ((0.5, 0.8, 0.9, 0.9, 0.9), "slow where", "at S=32 0.5× as fast as the reference, and slow at 4 of 4 larger"),
        ((0.5, 1.2, 1.5, 1.5, 1.5), "slow where", "and fast further up; look at the launch"),
        ((1.2, 1.0, 0.7, 0.9, 1.1), "fast at the smallest", "0.7× at 128; look at what grows with the size"),
        ((1.2, 1.0, 1.7, 2.0, 2.0), "fast at all 5 sizes", "at least 1× at S=64"),
    ],
)
def test_where_a_kernel_is_slow(speedups: Sequence[float], first: str, rest: str) -> None:
    found = longest_ladder(cases(*speedups))
    assert found is not None
    said = ladder_sentence(found)
    assert said.startswith(first)
    assert rest in said


def test_the_sizes_of_two_cards_are_two_ladders() -> None:
    found = longest_ladder([*cases(1, 1, 1, 1, 1), *cases(2, 2, 2, 2, 2, 2, card="norm")])
    assert (found.card, {rung.speedup for rung in found.rungs}) == ("norm", {2.0})
    assert longest_ladder([*cases(1, 1, 1, 1), *cases(1, 1, 1, 1, start=256, card="norm")]) is None
    assert longest_ladder([SizedCase("", {"causal": on}, 1.0, 1.0) for on in (False, True)]) is None
