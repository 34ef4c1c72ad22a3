"""Each gate of the policy exactly at the limit and on either side: the limit is moved to what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge.case import Outcome, RecordVerdict, Status, overall
from kernelgate.ci.judge.stopping import undecided
from kernelgate.ci.judge.verdict import exit_code, judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.judge.told import only
from tests.ci.records import heads, noise, paired_record
from tests.runs import case, process, run_record

LITTLE = 1e-9
PATCH = pytest.MonkeyPatch()


@pytest.fixture(autouse=True)
def _constants_as_they_are() -> Iterator[None]:
    PATCH.undo()
    yield
    PATCH.undo()


def policy(**sections: dict[str, Any]) -> Policy:
    """The policy with these numbers; `model`: constants, which are set in every module of the judge."""
    PATCH.undo()
    for name, value in sections.pop("model", {}).items():
        for module in [one for key, one in sys.modules.items() if key.startswith("kernelgate.ci.judge.")]:
            if hasattr(module, name):
                PATCH.setattr(module, name, value)
    return Policy.model_validate(sections)


def differing(change_pct: float, processes: int = 4, spread: float = 0.001) -> RunRecord:
    return paired_record(*noise(np.random.default_rng(7), change_pct / 100, processes, spread=spread))


def around(value: float, record: RunRecord, rules: Callable[[float], Policy]) -> tuple[Status, ...]:
    """With the limit just below the value, at it, and just above."""
    return tuple(only(record, rules(limit)).status for limit in (value * (1 - LITTLE), value, value * (1 + LITTLE)))


SLOW, FAST_HEAD = differing(5.0), differing(-20.0)
REGRESSED, LIKELY_SLOWER, SLOWER = Status.REGRESSED, Status.LIKELY_SLOWER, Status.SLOWER
IMPROVED, FASTER = Status.IMPROVED, Status.FASTER


def test_more_than_regression_pct_blocks() -> None:
    change = only(SLOW, policy()).change_pct
    assert change is not None
    statuses = around(change, SLOW, lambda limit: policy(gates={"regression_pct": limit}))
    assert statuses == (REGRESSED, SLOWER, SLOWER)


@pytest.mark.parametrize(("change", "passed", "short"), [(5.0, REGRESSED, SLOWER), (-20.0, IMPROVED, FASTER)])
def test_an_effect_of_cliffs_delta_is_enough(change: float, passed: Status, short: Status) -> None:
    record = differing(change, spread=0.2)
    rules: dict[str, Any] = {"certainty": {"alpha": 0.4}, "gates": {"regression_pct": 1, "improvement_pct": 1}}
    model = {"WARN_CV_PCT": 50, "GATES_P": 0.9}
    delta = only(record, policy(certainty={"alpha": 0.4}, model={"WARN_CV_PCT": 50})).cliffs_delta
    assert 0.05 < abs(delta) < 0.95
    statuses = around(abs(delta), record, lambda limit: policy(**rules, model={**model, "CLIFFS_DELTA": limit}))
    assert statuses == (passed, passed, short)


@pytest.mark.parametrize(("processes", "status"), [(4, LIKELY_SLOWER), (5, REGRESSED), (6, REGRESSED)])
def test_a_regression_is_confirmed_by_enough_processes(processes: int, status: Status) -> None:
    rules = policy(processes={"to_block": 5})
    verdict = only(differing(5.0, processes), rules)
    assert verdict.status is status
    assert ("after 4 of 5 repeats" in verdict.sentence) == (status is LIKELY_SLOWER)
    assert only(differing(-20.0, 4), rules).status is IMPROVED, "an improvement blocks nothing"


def test_within_the_margin_is_unchanged() -> None:
    """Both ends of the interval of twice equivalence_alpha lie within, however certain the difference is."""
    record = differing(0.5, spread=0.002)
    rules: dict[str, Any] = {
        "model": {"EQUIVALENCE_ALPHA": 0.025},
        "processes": {"minimum": 4, "to_block": 4, "limit": 4},
    }
    verdict = only(record, policy(**rules))
    assert verdict.interval_pct[0] > 0
    statuses = around(verdict.interval_pct[1], record, lambda limit: policy(**rules, gates={"margin_pct": limit}))
    assert (statuses[0], statuses[2]) == (Status.SLOWER, Status.UNCHANGED)
    assert only(differing(-0.5, spread=0.002), policy(**rules, gates={"margin_pct": 0.3})).status is Status.FASTER


@pytest.mark.parametrize(("side", "us"), [("base", 9.9e-4), ("head", 1.1e10), ("reference", 1e11)])
def test_a_time_that_no_kernel_and_no_clock_gives_is_refused(side: str, us: float) -> None:
    times = {one: [100.0, 101.0] * 15 for one in ("base", "head", "reference")}
    times[side][7] = us
    record = run_record((case("x", [process(times)] * 2),))
    assert "holds a time of" in judge(record, policy()).refused
    steady = run_record((case("x", [process({"head": [100.0, 101.0] * 15})] * 2),))
    of_baseline = judge(steady, policy(), record).refused
    assert side != "head" or of_baseline.startswith("the baseline's x holds a time of ")


def test_a_baseline_of_other_numerics_is_refused() -> None:
    held = heads([100 * np.exp(np.random.default_rng(seed).normal(0, 0.001, 50)) for seed in range(3)])
    plain, ieee, tf32 = (
        held.model_copy(update={"environments": (held.environment.model_copy(update={"numerics": numerics}),)})
        for numerics in (None, record.Numerics(matmul="ieee"), record.Numerics(matmul="tf32"))
    )
    assert [judge(ieee, policy(), then).refused for then in (ieee, plain)] == [None, None]
    assert judge(plain, policy(), tf32).refused is None
    refused = judge(ieee, policy(), tf32).refused
    assert refused.startswith("the baseline was measured with float32 products in tf32, ")


@pytest.mark.parametrize(
    ("statuses", "outcome", "code"),
    [
        ((Status.REGRESSED, Status.IMPROVED, Status.UNDECIDED), Outcome.REGRESSED, 1),
        ((Status.IMPROVED, Status.SLOWER), Outcome.SLOWER, 2),
        ((Status.UNCHANGED,), Outcome.EQUIVALENT, 2),
        ((), Outcome.EQUIVALENT, 2),
        ((Status.IMPROVED, Status.UNDECIDED), Outcome.INCONCLUSIVE, 3),
        ((Status.SLOWER, Status.ALONE), Outcome.INCONCLUSIVE, 3),
        ((Status.UNDECIDED, Status.LIKELY_SLOWER, Status.IMPROVED), Outcome.LIKELY_SLOWER, 3),
        ((Status.LIKELY_FASTER, Status.IMPROVED), Outcome.LIKELY_FASTER, 3),
    ],
)
def test_the_verdict_on_a_record_of_several_cases(statuses: tuple[Status, ...], outcome: Outcome, code: int) -> None:
    cases = [replace(only(SLOW, policy()), status=status) for status in statuses]
    assert overall(cases) is outcome
    assert exit_code(RecordVerdict("", outcome, "", ())) == code


@pytest.mark.parametrize(
    ("change", "processes", "settled"),
    [
        (0.0, 3, True),  # no change, and a small one would have shown
        (5.0, 2, False),  # beyond the gate that blocks: it may be placement
        (5.0, 3, True),
        (-20.0, 4, True),
        (2.0, 3, False),
        (2.0, 4, True),  # certain, on one side of each gate
        (3.0, 4, False),  # at a gate
        (-10.0, 4, True),  # at a gate that only gives a gain its name, and well known
    ],
)
def test_a_case_is_settled_on_one_side_of_each_gate(change: float, processes: int, settled: bool) -> None:
    assert (not undecided(differing(change, processes), policy())) == settled
