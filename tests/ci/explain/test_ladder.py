from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelgate.ci.explain.next_step import SizedCase, ladder_sentence, longest_ladder

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


def test_the_longest_series_is_the_ladder_in_whatever_order_it_was_timed() -> None:
    others = [SizedCase("attention", {**AXES, "S": 512, "B": batch}, 10.0, 10.0) for batch in (16, 48)]
    found = longest_ladder([*others, *reversed(cases(1, 1, 1, 1, 1))])
    assert found is not None
    assert (found.axis, [rung.size for rung in found.rungs]) == ("S", [32, 64, 128, 256, 512])


def test_a_few_sizes_and_a_switch_are_no_ladder() -> None:
    assert longest_ladder(cases(1, 1, 1, 1)) is None
    assert longest_ladder([SizedCase("", {"causal": on}, 1.0, 1.0) for on in (False, True)]) is None
    assert longest_ladder([]) is None


def test_the_sizes_of_two_cards_are_two_ladders() -> None:
    found = longest_ladder([*cases(1, 1, 1, 1, 1), *cases(2, 2, 2, 2, 2, 2, card="norm")])
    assert found is not None
    assert (found.card, {rung.speedup for rung in found.rungs}) == ("norm", {2.0})
    assert longest_ladder([*cases(1, 1, 1), *cases(1, 1, 1, start=256, card="norm")]) is None
