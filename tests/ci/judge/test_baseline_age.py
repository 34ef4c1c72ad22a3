"""A record against a stored baseline: what is certain of it, what is not where more than days lies between, and what
`kernelgate compare` says of that first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import BaselineDay, CaseKey, Device, Environment, Run, RunRecord
from kernelgate.ci.github.baseline_pr import as_baseline
from kernelgate.ci.judge.case import Direction, Status
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.baseline import age_of
from tests import runs
from tests.runs import process, run_record

L4 = Path(__file__).parents[3] / ".ci" / "baseline_s512.json"
L4_CASE = "s512_b32_h8_d64_fp16"
L4_MEDIAN, L4_FAST = 321.024, 318.464 / 321.024
"""The time, and its faster speed as a factor."""
MACHINE = {"driver": "580.1", "torch": "2.11.0", "clock_policy": "default"}
L4_MACHINE = {"driver": "570.172.08", "torch": "2.2.1+cu121", "clock_policy": "default"}
OTHER = {"driver": "600.1", "torch": "2.13.0", "clock_policy": "locked"}
SHA = "0123456" + "0" * 33


def measured(
    times_us: Mapping[str, float], machine: Mapping[str, str] = MACHINE, made: str = "2026-08-09", processes: int = 7
) -> RunRecord:
    """Steady processes of an L4 with these times of their cases."""
    rng = np.random.default_rng(3)
    device = Device(name="NVIDIA L4", driver=machine["driver"])
    where = Environment(device=device, torch=machine["torch"], clock_policy=machine["clock_policy"])
    cases = [
        runs.case(id_, [process({"head": us * np.exp(rng.normal(0, 0.003, 100))}, "block") for _ in range(processes)])
        for id_, us in times_us.items()
    ]
    return run_record(cases, where, run=Run(head_sha=SHA, created_at=f"{made}T03:00:00Z"))


STEADY = as_baseline(measured({"one": 100.0}, made="2026-08-01", processes=3))


@pytest.mark.parametrize(
    ("factor", "status"),
    [(1.15, Status.REGRESSED), (0.85, Status.IMPROVED), (1.1, Status.UNDECIDED), (L4_FAST, Status.UNDECIDED)],
)
def test_a_baseline_of_two_speeds_shows_what_lies_beyond_both(factor: float, status: Status) -> None:
    """Which of them unchanged code has today is not known."""
    (case,) = judge(measured({L4_CASE: factor * L4_MEDIAN}, L4_MACHINE), Policy(), record.read(L4)).cases
    assert case.status is status


@pytest.mark.parametrize(
    ("us", "status"),
    [(110.0, Status.REGRESSED), (88.0, Status.IMPROVED), (100.0, Status.UNDECIDED), (102.5, Status.UNDECIDED)],
)
@pytest.mark.parametrize("processes", [3, 7])
def test_a_tenth_is_certain_on_the_same_machine_and_what_days_drift_is_not(
    us: float, status: Status, processes: int
) -> None:
    verdict = judge(measured({"one": us}, processes=processes), Policy(), STEADY)
    assert (verdict.cases[0].status, verdict.apart) == (status, ())


@pytest.mark.parametrize(
    ("machine", "made", "name"),
    [
        ({"driver": OTHER["driver"]}, "2026-08-09", "driver"),
        ({"torch": OTHER["torch"]}, "2026-08-09", "torch"),
        ({"clock_policy": OTHER["clock_policy"]}, "2026-08-09", "clocks"),
        ({}, "2027-08-09", "year"),
    ],
)
def test_what_lies_between_beside_days_is_said_first_and_widens(
    machine: Mapping[str, str], made: str, name: str
) -> None:
    quiet = [BaselineDay(measured=f"2026-07-{n:02}", code="c", median_us=100 + n % 2 / 10) for n in range(1, 7)]
    for known in (NO_HISTORY, History(days={("NVIDIA L4", CaseKey("", "one")): tuple(quiet)})):
        tenth, more = (
            judge(measured({"one": us}, MACHINE | machine, made), Policy(), STEADY, history=known)
            for us in (110.0, 130.0)
        )
        assert tenth.cases[0].direction is Direction.NONE
        assert more.cases[0].status is Status.REGRESSED
        assert [one.name for one in tenth.apart] == [name]
        assert tenth.reason.startswith(f"the baseline was measured otherwise ({name} ")


@pytest.mark.parametrize(("made", "age"), [("9999-12-31", "of unknown age"), ("2026-08-20", "of 2026-08-20")])
def test_a_baseline_of_a_wrong_clock_has_no_age(made: str, age: str) -> None:
    assert age_of(Run(created_at="2026-08-09T03:00:00Z"), Run(created_at=made)) == age
