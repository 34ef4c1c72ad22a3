"""What failing cases share is told where no case that passed has it."""

from __future__ import annotations

import pytest

from kernelgate.bench.record.subjects import Axes
from kernelgate.ci.judge.correctness import shared

N = range(1, 130)


def split(fails: list[int]) -> tuple[list[Axes], list[Axes]]:
    return [{"N": n} for n in fails], [{"N": n} for n in N if n not in fails]


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ([n for n in N if n % 2], "odd N"),
        ([n for n in N if n % 8], "N not divisible by 8"),
        ([n for n in N if n % 64 == 0], "N divisible by 64"),
        ([n for n in N if n > 100], "N of 101 or more"),
        ([n for n in N if n % 3 == 0], None),
        ([17], None),
        ([*N], None),
    ],
)
def test_a_size_is_told_by_the_plainest_rule(fails: list[int], words: str | None) -> None:
    assert shared(*split(fails)) == words


def test_that_what_has_no_elements_passes_shows_nothing() -> None:
    """Else a kernel that is wrong everywhere would be wrong "with N not divisible by 4096"."""
    failing: list[Axes] = [{"N": n, "causal": False} for n in (1, 2, 63, 512)]
    assert shared(failing, [{"N": 0, "causal": False}]) is None
    assert shared(failing, [{"N": 0, "causal": False}, {"N": 4096, "causal": False}]) == "N not divisible by 1024"


def test_two_values_are_told_where_no_single_one_is_the_failing_cases_own() -> None:
    """As of a kernel that stores bf16 through fp16, and overflows there."""
    failing: list[Axes] = [{"N": n, "dtype": "bf16", "distribution": "large"} for n in (3, 8)]
    passing: list[Axes] = [{**axes, other: value} for axes in failing for other, value in OTHERS]
    assert shared(failing, passing) == "bf16 and distribution=large"
    assert shared(failing, [*passing, {"N": 5, "dtype": "bf16", "distribution": "large"}]) is None


OTHERS = (("dtype", "fp16"), ("distribution", "normal"))


@pytest.mark.parametrize(
    ("told", "other", "words"),
    [
        ({"dtype": "bf16"}, {"dtype": "fp16"}, "bf16"),
        ({"causal": True}, {"causal": False}, "causal"),
        ({"way": "gaps"}, {"way": "plain"}, "way=gaps"),
        ({"scale": -0.5}, {"scale": 0.5}, "scale=-0.5"),
    ],
)
def test_words_booleans_and_layouts(told: Axes, other: Axes, words: str) -> None:
    assert shared([{"N": n, **told} for n in (3, 8)], [{"N": n, **other} for n in (3, 8)]) == words
