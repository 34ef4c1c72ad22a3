"""The words and the order of judged cases, at the edges of every threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import Direction, worst_first
from kernelgate.ci.policy.policy import Gates, Policy
from tests.ci.report_examples import NINE, below_gate, faster, noisy, same, slower

ONE = NINE[0]


def test_the_worst_case_comes_first_whatever_the_order_was() -> None:
    ordered = [
        *(slower(ONE, 9.0), slower(ONE, 4.0), below_gate(ONE, 2.0), noisy(ONE, 1.0, 2.0), noisy(ONE, -1.0, 2.0)),
        *(faster(ONE, -20.0), faster(ONE, -12.0), below_gate(ONE, -4.0), same(ONE, 0.2), same(ONE, -0.2)),
    ]
    assert worst_first(reversed(ordered)) == ordered
    assert worst_first([*ordered[5:], *ordered[:5]]) == ordered


@pytest.mark.parametrize(
    ("change", "direction", "words"),
    [
        (3.0, Direction.SLOWER, "below the 3% that blocks"),
        (3.0001, Direction.SLOWER, "not confirmed as more than the 3% that blocks"),
        (-9.9999, Direction.FASTER, "below the 10% that counts as an improvement"),
        (-10.0, Direction.FASTER, "not confirmed as more than the 10% that counts as an improvement"),
    ],
)
def test_a_change_at_its_gate(change: float, direction: Direction, words: str) -> None:
    case = replace(below_gate(ONE, change), direction=direction)
    assert sentences.short_of_gate(case, Gates()) == words


def test_noise_is_as_blind_as_its_worst_case() -> None:
    assert sentences.noise([noisy(ONE, 0.0, 1.0), noisy(ONE, 0.0, 2.0)]) == (
        "too noisy; a change below 2.4% could not be seen"
    )
    unknown = replace(noisy(ONE, 0.0, 1.0), minimum_detectable_pct=None)
    assert sentences.noise([unknown]) == "5 repeats are too few to be sure"
    assert sentences.noise([replace(unknown, change_pct=None)]) == "too little was measured"
    few = replace(noisy(ONE, 0.0, 2.0), processes=2)
    assert sentences.noise([noisy(ONE, 0.0, 1.0), few]) == "too few repeats; a change below 2.4% could not be seen"
    assert sentences.shown([]) is None


def test_no_change_says_on_which_side_its_interval_lies() -> None:
    for ends, said in (((-0.3, -0.1), "between 0.1% and 0.3% faster"), ((-0.3, 0.1), "0.3% faster and 0.1% slower")):
        assert said in sentences.of_case(replace(same(ONE, 0.0), interval_pct=ends), Policy())
