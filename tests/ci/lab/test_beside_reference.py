"""The interval of a speed-up over the reference holds the true one as often as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import gating
from kernelgate.ci.policy.policy import Policy
from tests.runs import case, process, run_record

JUDGED = judge(run_record([case("0", [process({"head": [10.0], "reference": [20.0]}, "block")])]), Policy()).cases[0]


def figures(rng: np.random.Generator, processes: int, cases: int = 1) -> dict[str, float]:
    """Of kernels twice as fast as their reference, whose processes scatter by 2%."""
    heads = 10 * rng.lognormal(0, 0.02, (cases, processes))
    timed = [
        case(str(number), [process({"head": [us], "reference": [20.0]}, "block") for us in row])
        for number, row in enumerate(heads)
    ]
    both = [
        replace(JUDGED, id=str(number), head_us=float(np.exp(np.log(row).mean())), reference_us=20.0)
        for number, row in enumerate(heads)
    ]
    return gating.beside_reference(run_record(timed), both)


@pytest.mark.parametrize("cases", [1, 3])
def test_it_holds_the_truth_in_19_of_20(cases: int) -> None:
    rng = np.random.default_rng(7)
    found = [figures(rng, 5, cases) for _ in range(60)]
    assert np.mean([one["speedup_low"] <= 2 <= one["speedup_high"] for one in found]) >= 0.88
    assert np.median([one["speedup_high"] / one["speedup_low"] for one in found]) < 1.1


def test_of_a_single_process_there_is_none() -> None:
    assert figures(np.random.default_rng(7), 1).keys() == {"speedup"}
