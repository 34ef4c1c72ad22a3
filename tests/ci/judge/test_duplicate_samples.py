"""Copies: what was pasted is refused, what a coarse clock repeats is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.ci.judge import validity
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import Samples, noise, paired_record

SEEDS = st.integers(0, 2**32 - 1)


def found(base: Sequence[Any], head: Sequence[Any]) -> str | None:
    return validity.duplicated(paired_record(base, head))


def stepped(sides: tuple[Samples, Samples], step: float) -> tuple[Samples, Samples]:
    base, head = ([np.round(samples / step) * step for samples in side] for side in sides)
    return base, head


def test_a_process_pasted_twice_is_refused_by_name() -> None:
    base, head = noise(np.random.default_rng(1), processes=3)
    verdict = judge(paired_record([*base, base[1]], [*head, head[1]]), Policy())
    said = "processes 2 and 4 hold the same times, all 100, of the base of one: copied, not measured"
    assert (verdict.refused, verdict.cases) == (said, ())


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.integers(16, 60), st.integers(0, 40), st.integers(0, 40))
def test_a_stretch_is_found_wherever_it_stands(seed: int, length: int, here: int, there: int) -> None:
    base, head = stepped(noise(np.random.default_rng(seed), processes=2), 0.032)
    base[1][there : there + length] = base[0][here : here + length]
    said = found(base, head)
    assert f"hold the same {length} times of the base" in said or length > 90


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.0005, 0.001, 0.003, 0.01, 0.05]), st.sampled_from([0.002, 0.032, 0.5, 1.0, 10.0]))
def test_honest_processes_are_not_accused_however_coarse_the_clock(seed: int, spread: float, step: float) -> None:
    assert found(*stepped(noise(np.random.default_rng(seed), processes=4, spread=spread), step)) is None


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.floats(0.9, 0.999))
def test_times_that_stay_on_a_tick_for_long_are_no_copies(seed: int, stays: float) -> None:
    """Two values, each of which lasts: long stretches are alike in any two processes."""
    rng = np.random.default_rng(seed)
    sides = [[148.0 + np.cumsum(rng.random(100) > stays) % 2 for _ in range(4)] for _ in range(2)]
    assert found(*sides) is None


def test_a_copy_on_a_coarse_clock_is_found_where_it_cannot_be_chance() -> None:
    base, head = stepped(noise(np.random.default_rng(6), processes=3, spread=0.02), 1.0)
    assert len(np.unique(base[0])) < 15
    assert found([*base, base[0]], [*head, head[0]]) is not None


def test_a_baseline_with_copies_is_refused() -> None:
    base, head = noise(np.random.default_rng(7), processes=3)
    stored = paired_record([base[0], base[0]], [head[0], head[0]])
    verdict = judge(paired_record(base, head), Policy(), stored, against="old.json")
    assert verdict.refused.startswith("the baseline's processes 1 and 2 hold the same times")


@pytest.mark.parametrize(("varies", "computed"), [(1e-5, True), (1.3e-5, False)])
def test_a_head_that_is_the_base_times_a_factor_was_not_timed(varies: float, computed: bool) -> None:
    """Nine tenths of its rounds: a few rounds apart hide nothing. On a clock of few ticks it may be by chance."""
    base, _ = noise(np.random.default_rng(8), processes=2)
    head = [1.25 * samples * (1 + varies * np.linspace(-1, 1, 100)) for samples in base]
    head[0][:4] *= 1.01
    said = "in process 1, the head's times of one are 1.25 times the base's: not measured" if computed else None
    assert found(base, head) == said
    ticks = [np.resize(np.arange(100.0, 100.0 + different), 100) for different in (11, 12)]
    assert [found([each], [2 * each]) is not None for each in ticks] == [False, True]
