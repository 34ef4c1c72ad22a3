"""The times beside a change are those that it was computed from: their ratio is the change, sign and all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import heads, noise, paired_record

FAST = Policy()


def test_where_the_medians_say_the_opposite() -> None:
    """Two speeds that the sides share: each round the head is 1% slower, and it is in the slow mode less often."""
    rng = np.random.default_rng(7)
    base, head = [], []
    for _ in range(5):
        slow = rng.random(100) < 0.52
        shared = np.where(slow, 130.0, 100.0)
        base.append(shared * np.exp(rng.normal(0, 0.001, 100)))
        less = np.where(rng.random(100) < 0.1, 100 / 130, 1.0)
        head.append(shared * less * 1.01 * np.exp(rng.normal(0, 0.001, 100)))
    assert np.median(np.concatenate(head)) < np.median(np.concatenate(base)), "as a table of medians would say"
    (case,) = judge(paired_record(base, head), FAST).cases
    assert (case.head_us > case.base_us) == (case.change_pct > 0)


def test_against_a_baseline_they_are_the_levels() -> None:
    rng = np.random.default_rng(3)
    base, head = noise(rng, 0.08, spread=0.002)
    (case,) = judge(paired_record(base, head), FAST, heads(base), against="stored.json").cases
    assert case.base_us == pytest.approx(100, rel=0.01)
    assert case.head_us == pytest.approx(108, rel=0.01)
    assert case.change_pct == pytest.approx(100 * math.expm1(math.log(case.head_us / case.base_us)), abs=1e-9)
