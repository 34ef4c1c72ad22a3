"""Two modes: what is one, and that only unequal shares matter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelgate.ci.judge import validity
from kernelgate.ci.judge.stats import Array
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Policy
from tests.ci.judge.limits import constants


def jumps(far_pct: float, high: int = 30, middle: int = 0, rounds: int = 100) -> Array:
    """100 µs and so much more, `high` rounds of it, `middle` halfway; with a tail below, as a wide first mode has."""
    far = math.log1p(far_pct / 100)
    low = rounds - high - middle
    tail = low * 35 // 85
    steps = [*[-far / 2] * tail, *[0.0] * (low - tail), *[far / 2] * middle, *[far] * high]
    return 100 * np.exp(np.array(steps))


def alone(*processes: Array, **limits: float) -> list[Finding]:
    with constants(validity, **limits):
        return validity.modes_of_side("head", processes)


@pytest.mark.parametrize(("high", "named"), [(14, False), (15, True)])
def test_a_mode_needs_its_share(high: int, named: bool) -> None:
    assert bool(alone(jumps(10, high=high))) == named


@pytest.mark.parametrize(("stray", "fatal"), [(14, False), (15, True)])
@pytest.mark.parametrize("inverted", [False, True])
def test_processes_that_keep_to_one_mode_are_only_named(stray: int, fatal: bool, inverted: bool) -> None:
    low, high = (120.0, 100.0) if inverted else (100.0, 120.0)
    processes = [np.repeat([low, high], [100 - stray, stray]), np.full(100, high), np.full(100, low)]
    (found,) = alone(*processes)
    assert found.disqualifies == fatal
    said = "jumps between 100 and 120 µs" if fatal else "sits at 100 or 120 µs from process to process"
    assert found.message == f"the head {said}"


def test_modes_that_both_sides_share_move_nothing() -> None:
    base = np.tile([100.0, 103.1], 50)
    found = validity.modes_of_sides([base] * 3, [base * 1.02] * 3)
    assert found.bias == 0
    assert [(one.code, one.disqualifies) for one in found.findings] == [("bimodal", False)] * 2
    assert found.findings[1].message.startswith("the head jumps between 102 and")
    assert found.findings[1].message.endswith("as often as the other side")


@pytest.mark.parametrize("swapped", [False, True])
def test_modes_of_one_side_alone_are_named_with_what_they_make(swapped: bool) -> None:
    jumping, steady = [np.tile([100.0, 110.0], 50)] * 3, [np.full(100, 100.0)] * 3
    found = validity.modes_of_sides(*((steady, jumping) if swapped else (jumping, steady)))
    assert found.bias > 0.4 * math.log(1.1)
    (said,) = found.findings
    who, more = ("head", "more") if swapped else ("base", "less")
    often = f"the head is 50% of the rounds {more} in the slow mode"
    assert said.message.startswith(f"the {who} jumps between 100 and 110 µs, and {often}: up to")
    assert said.message.endswith("% of change")
    assert [finding.disqualifies for finding in found.against(0.0, Policy().gates)] == [True]
