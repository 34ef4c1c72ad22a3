"""Wrong outputs of timed calls: whose they are, how many, and in which process."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.bench.record import Calls, OutputErrors, RunRecord, TimedCase, TimedProcess
from kernelgate.ci.judge import correctness
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.verdict import exit_code, judge, undecided
from kernelgate.ci.policy.policy import Policy
from tests import runs
from tests.ci.records import case, noise
from tests.runs import changed, process, run_record

POLICY = Policy()


def checked(side: str = "head", compared: int | None = 200, failed: int = 0, role: str = "paired") -> TimedProcess:
    calls = {side: Calls(compared=compared, failed=failed)}
    errors = {side: OutputErrors(maximum=0.25)} if failed else {}
    return process({"head": [1.0]}, role, calls=calls, errors=errors)  # type: ignore[arg-type]


def record(*processes: TimedProcess) -> RunRecord:
    return run_record((runs.case("x", processes),))


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        ([checked()], None),
        ([checked(), checked(failed=12)], "12 of 200 compared calls of process 2 (largest error 0.25)"),
        ([checked(compared=None, failed=2)], "2 calls of process 1 (largest error 0.25)"),
        (
            [checked(), checked(compared=8, failed=3, role="witness")],
            "3 of 8 compared calls of the process that holds the head alone (largest error 0.25)",
        ),
        ([checked(role="witness"), checked(failed=1)], "1 of 200 compared calls of process 1 (largest error 0.25)"),
        ([checked(role="canary", failed=1)], None),
        ([checked("base", failed=1)], None),
    ],
)
def test_a_wrong_output_of_the_head_is_counted_where_it_was_first_seen(
    processes: list[TimedProcess], said: str | None
) -> None:
    found = list(correctness.wrong_outputs(record(*processes)).values())
    assert [finding.message for finding in found] == ([f"the head's timed output is wrong in {said}"] if said else [])
    assert correctness.is_wrong(record(*processes)) == bool(said)


def with_calls(made: TimedCase, **calls: Calls) -> TimedCase:
    return runs.case(made.id, [changed(made.processes[0], calls=calls), *made.processes[1:]])


def test_a_wrong_base_spoils_its_case_and_is_not_blamed_on_the_head() -> None:
    rng = np.random.default_rng(1)
    spoilt = with_calls(case(*noise(rng, change=0.2), id_="spoilt"), base=Calls(compared=200, failed=1))
    made = run_record((spoilt, case(*noise(rng), id_="good")))
    assert not correctness.is_wrong(made)
    verdict = judge(made, POLICY)
    first, second = verdict.cases
    assert (first.status, second.status, verdict.refused) == (Status.UNDECIDED, Status.UNCHANGED, None)
    said = "the base's timed output is wrong in 1 of 200 compared calls of process 1: nothing can be compared with it"
    assert [finding.code for finding in first.disqualifying] == ["base_wrong"]
    assert first.sentence == f"cannot tell: {said}"
    assert exit_code(verdict) == 3, "nothing can be said of one case"


def test_a_case_with_a_wrong_base_is_not_timed_again() -> None:
    spoilt = with_calls(case(*noise(np.random.default_rng(2), processes=2)), base=Calls(compared=3, failed=1))
    assert undecided(run_record((spoilt,)), POLICY) == frozenset()
    few = runs.case("one", spoilt.processes[:1])
    assert undecided(run_record((few,)), POLICY) == {few.key}, "below the least number of processes"


def test_a_witness_with_a_wrong_head_refuses_the_record() -> None:
    timed = case(*noise(np.random.default_rng(3), change=-0.2))
    alone = process({"base": [9.0] * 8, "head": [9.0] * 8}, "witness", calls={"head": Calls(compared=8, failed=8)})
    verdict = judge(run_record((runs.case("one", [*timed.processes, alone]),)), POLICY)
    wrong = "8 of 8 compared calls of the process that holds the head alone"
    assert verdict.refused == f"wrong result: one: the head's timed output is wrong in {wrong}; speed was not judged"
