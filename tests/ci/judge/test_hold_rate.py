"""Holding does not cry wolf: of 1,000 simulated honest changes, hardly one is still held after it was measured again
twice, and of those that are far past the gate none passes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import Decision, decide
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.records import case
from tests.runs import run_record

POLICY = Policy()
CASES, MEASUREMENTS = 3, 3


class Kernel:
    """How its processes scatter: of a machine that is quiet or not, with a lottery of placements, odd processes, and
    times that wander."""

    def __init__(self, rng: np.random.Generator, change: float) -> None:
        self.rng, self.change = rng, change
        self.spread = float(np.exp(rng.uniform(np.log(2e-4), np.log(3e-2))))
        self.rounds = float(np.exp(rng.uniform(np.log(1e-3), np.log(5e-2))))
        self.lottery = 0.005 if rng.random() < 0.2 else 0.0
        self.odd = 0.02 if rng.random() < 0.2 else 0.0
        self.wander = 0.009 if rng.random() < 0.1 else 0.0

    def process(self) -> tuple[np.ndarray, np.ndarray]:
        rng = self.rng
        steps = rng.normal(0, self.wander * np.sqrt(1 - 0.9**2), (2, 100))
        wander = np.zeros((2, 100))
        for at in range(1, 100):
            wander[:, at] = 0.9 * wander[:, at - 1] + steps[:, at]
        levels = rng.normal(0, self.spread / np.sqrt(2), 2) + rng.choice((-1, 1), 2) * self.lottery
        levels[1] += self.change + self.odd * (rng.random() < 0.2)
        base, head = 100 * np.exp(rng.normal(0, self.rounds, (2, 100)) + wander + levels[:, None])
        return base, head

    def measured(self) -> RunRecord:
        """As `kernelgate bench` stops: at the limit, or once more processes would change nothing."""
        cases = [[self.process() for _ in range(POLICY.processes.minimum)] for _ in range(CASES)]
        while True:
            made = run_record(tuple(case(*zip(*one, strict=True), id_=str(at)) for at, one in enumerate(cases)))
            lacking = {key.id for key in undecided(made, POLICY)}
            if not lacking:
                return made
            for at in lacking:
                cases[int(at)].append(self.process())

    def decided(self) -> Decision:
        for _ in range(MEASUREMENTS):
            made = self.measured()
            found = decide([gate.evidence("l4", made, judge(made, POLICY), POLICY)])
            if not found.held:
                break
        return found


@pytest.mark.parametrize(
    "honest", [pytest.param(50, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.nightly)]
)
def test_of_honest_changes_hardly_one_is_held_after_it_was_measured_again_twice(honest: int) -> None:
    rng = np.random.default_rng(30)
    found = Counter(Kernel(rng, 0.0).decided().conclusion for _ in range(honest))
    assert found["action_required"] + found["failure"] <= honest // 100, found


@pytest.mark.slow
def test_of_changes_far_past_the_gate_none_passes() -> None:
    rng = np.random.default_rng(31)
    found = Counter(Kernel(rng, 0.1).decided().conclusion for _ in range(50))
    assert found.keys() <= {"failure", "action_required"}, found
