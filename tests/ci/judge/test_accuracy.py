"""Whether the head is less accurate: what is planted is seen, and what is as accurate as before raises no alarm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelgate.bench.record import CaseKey, UlpErrors
from kernelgate.ci.judge import accuracy
from kernelgate.ci.judge.accuracy import Standing
from tests.accuracies import DRAWS, Floats, accuracy_record, of_errors, output, side

CASES = 12
ELEMENTS = 4096
JITTER = [1 + 0.002 * step for step in (-3, 1, 2, -1, 3, -2, 0, 0)]
"""Of draws, as far as measured ones scatter."""


def around(value: float) -> list[float]:
    return [value * jitter for jitter in JITTER]


def judged(base: UlpErrors, head: UlpErrors) -> accuracy.AccuracyVerdict:
    (verdict,) = accuracy.judge(accuracy_record(output(base, head)))
    return verdict


def standing(base: UlpErrors, head: UlpErrors) -> Standing:
    return judged(base, head).standing


Rounding = Callable[[np.random.Generator, Floats], Floats]


def other_order(rng: np.random.Generator, right: Floats) -> Floats:
    """Rounded after sums that have an error of their own, a quarter of a step: each order of summation another one."""
    return np.rint(right + rng.normal(0, 0.25, right.shape)) - right


def computed(
    rng: np.random.Generator, base: Rounding, head: Rounding, elements: int = ELEMENTS
) -> tuple[UlpErrors, ...]:
    """The errors of two kernels on the same draws, whose outputs have some hundred steps."""
    right = rng.normal(0, 300, (DRAWS, elements))
    return of_errors(base(rng, right), right), of_errors(head(rng, right), right)


def alarms(records: int, elements: int) -> int:
    """Records of kernels that differ in the order of their sums alone, in which anything is called worse or better."""
    rng = np.random.default_rng(elements)
    count = 0
    for _ in range(records):
        pairs = [computed(rng, other_order, other_order, elements) for _ in range(CASES)]
        made = accuracy_record(*(output(*pair, case=f"{n}") for n, pair in enumerate(pairs)))
        count += any(one.standing in (Standing.LESS, Standing.MORE) for one in accuracy.judge(made))
    return count


@pytest.mark.slow
@pytest.mark.parametrize("elements", [4, 1024])
def test_in_a_thousand_records_at_most_one_is_alarmed(elements: int) -> None:
    """At the policy's level of 0.001 a thousand records of equal kernels have one alarm on average, or fewer."""
    assert alarms(1000, elements) <= 1


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (side(around(0.29)), Standing.ALIKE),
        (side(around(0.31)), Standing.LESS),
        (side(around(0.2)), Standing.MORE),
        (side(around(0.22)), Standing.ALIKE),
        (side([0.1, 0.9] * 4), Standing.UNCLEAR),
        (side(maximum=around(0.99)), Standing.ALIKE),
        (side(maximum=around(1.1)), Standing.LESS),
        (side(bias=around(0.09)), Standing.ALIKE),
        (side(bias=around(-0.12)), Standing.LESS),
        (side(outward=around(-0.12)), Standing.LESS),
    ],
)
def test_only_what_is_beyond_a_margin_counts(head: UlpErrors, expected: Standing) -> None:
    assert standing(side(around(0.25)), head) is expected


def test_nearly_exact_kernels_are_alike_and_the_same_bits_identical_whatever_the_errors() -> None:
    assert standing(side(0.0, 0.0), side(around(0.009), 0.01)) is Standing.ALIKE
    assert standing(side(0.0, 0.0), side(around(0.3))) is Standing.LESS
    made = accuracy_record(output(side(), side(), identical=DRAWS))
    assert [one.standing for one in accuracy.judge(made)] == [Standing.IDENTICAL]


@pytest.mark.parametrize("draws", [0, 1])
def test_a_single_draw_shows_nothing(draws: int) -> None:
    one, other = ([value] * draws for value in (0.25, 0.5))
    made = accuracy_record(output(side(one, one, one, one), side(other, other, other, other)))
    assert [verdict.standing for verdict in accuracy.judge(made)] == [Standing.UNCLEAR] * draws


def test_the_worst_comes_first() -> None:
    cases = {"alike": 0.25, "a little": 0.4, "better": 0.15, "best": 0.1, "much": 0.9}
    outputs = (output(side(around(0.25)), side(around(value)), case=name) for name, value in cases.items())
    made = accuracy_record(*outputs)
    assert [one.key.id for one in accuracy.judge(made)] == ["much", "a little", "best", "better", "alike"]
    assert accuracy.less_accurate(made) == (CaseKey("", "much"), CaseKey("", "a little"))
