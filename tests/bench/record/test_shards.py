"""Which shard has which case, and what becomes of shards that are merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record import CaseKey, Check, Environment, RunRecord, Shard
from kernelgate.ci.judge import completeness
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy

KEPT = Path(__file__).parents[2] / "data" / "comparisons" / "exact_maxima.json"
SECONDS = st.floats(0.1, 100)


@given(st.lists(SECONDS, min_size=1, max_size=12), st.integers(1, 5), st.sets(st.integers(0, 11)))
def test_every_case_has_one_shard_and_none_waits_long(taken: list[float], shards: int, unknown: set[int]) -> None:
    keys = [CaseKey("k", str(number)) for number in range(len(taken))]
    seconds = {key: took for number, (key, took) in enumerate(zip(keys, taken, strict=True)) if number not in unknown}
    parts = record.assigned(keys, seconds, shards)
    assert sorted(key for part in parts for key in part) == sorted(keys)
    assert parts == record.assigned(keys, dict(reversed(seconds.items())), shards), "whatever order it was read in"
    if len(seconds) == len(keys):
        loads = [sum(seconds[key] for key in part) for part in parts]
        best = max(max(taken), sum(taken) / shards)
        assert max(loads) <= (4 / 3 + 1e-9) * max(best, _two_of_the_longest(taken, shards)), "Graham's bound"


def _two_of_the_longest(taken: list[float], shards: int) -> float:
    """With more cases than shards, some shard has two of the first shards + 1."""
    longest = sorted(taken, reverse=True)
    return longest[shards - 1] + longest[shards] if len(longest) > shards else 0.0


def parts(of: int = 3) -> list[RunRecord]:
    """The kept record as shards would have measured it; the first has the checks."""
    whole = record.read(KEPT)
    plan = (whole.expected or record.Expected()).model_copy(update={"cases": whole.cases, "checks": ("witness",)})
    dealt = record.assigned([case.key for case in whole.cases], record.measured_seconds(whole), of)
    made = []
    for number, keys in enumerate(dealt, 1):
        processes = (
            process.model_copy(update={"timings": tuple(one for one in process.timings if one.key in keys)})
            for process in whole.processes
        )
        checks = (
            check.model_copy(
                update={"accuracies": tuple(a for a in check.accuracies if CaseKey(check.card, a.case) in keys)}
            )
            for check in whole.checks
            if number == 1 or check.kind == "accuracy"
        )
        of_shard = changed(
            {"shard": Shard(number=number, of=of, seed=7, policy="p"), "ended": "complete"},
            expected=plan,
            cases=tuple(case for case in whole.cases if case.key in keys),
            processes=tuple(process for process in processes if process.timings),
            checks=tuple(checks),
        )
        made.append(of_shard(whole))
    return made


def put_together(made: list[RunRecord]) -> RunRecord:
    return record.merged({f"{number}.json": one for number, one in enumerate(made, 1)})


@pytest.mark.slow
def test_merged_shards_are_judged_as_the_unbroken_record() -> None:
    """As one family: p is adjusted over the cases of all shards, so it is no shard's own."""
    whole, shards = record.read(KEPT), parts()
    together = record.from_json(record.to_json(put_together(shards)))
    assert together.cases == whole.cases
    assert together.run.shard is None
    assert together.run.ended == "complete"
    before, after = judge(whole, Policy()), judge(together, Policy())
    assert after.cases == before.cases
    assert after.verdict == before.verdict
    own = {case.key: case.p for shard in shards for case in judge(shard, Policy()).cases}
    assert own != {case.key: case.p for case in after.cases}
    assert not completeness.against_plan(together, "").contrary


def test_the_cases_of_a_lost_shard_are_not_measured_and_the_rest_stands() -> None:
    whole, shards = record.read(KEPT), parts()
    lost = {case.key for case in shards[1].cases}
    together = put_together([shards[0], shards[2]])
    [note] = [note for note in together.notes if note.code == record.SHARD_MISSING]
    assert note.text.startswith("shard 2/3 is missing: not measured: ")
    assert all(key.id in note.text for key in lost)
    verdicts = {case.key: case for case in judge(together, Policy()).cases}
    assert {key for key, case in verdicts.items() if case.processes == 0} == lost
    assert all(verdicts[key].verdict == Outcome.INCONCLUSIVE for key in lost)
    before = {case.key: case.status for case in judge(whole, Policy()).cases}
    assert {key: case.status for key, case in verdicts.items() if key not in lost} == {
        key: status for key, status in before.items() if key not in lost
    }
    missing = completeness.against_plan(together, "").missing
    assert any("not timed" in "".join(map(str, line)) for line in missing)


def test_processes_keep_the_gpu_that_they_ran_on() -> None:
    shards = parts()
    here = shards[1].environments[0]
    other = here.model_copy(update={"device": here.device.model_copy(update={"uuid": "GPU-2"})})
    shards[1] = shards[1].model_copy(update={"environments": (other,)})
    together = put_together(shards)
    assert [one.device.uuid for one in together.environments] == [here.device.uuid, "GPU-2"]
    assert {process.environment for process in together.processes if process.id.startswith("2-")} == {"1"}
    assert {process.environment for process in together.processes if process.id.startswith("3-")} == {"0"}


def changed(of_run: dict[str, object] | None = None, **more: object) -> Callable[[RunRecord], RunRecord]:
    def change(made: RunRecord) -> RunRecord:
        return made.model_copy(update={**more, "run": made.run.model_copy(update=of_run or {})})

    return change


OTHER_SEED = Shard(number=2, of=3, seed=8, policy="p")
OTHERS = [
    (changed({"head_sha": "f" * 40}), "the head commit is c840"),
    (changed({"shard": OTHER_SEED}), "the seed is 7 in the first and 8 in the second"),
    (changed({"shard": OTHER_SEED.model_copy(update={"seed": 7, "policy": "q"})}), "the policy is p in the first"),
    (
        changed(environments=(Environment(device=record.Device(name="NVIDIA L4")),)),
        "NVIDIA H200 in the first and NVIDIA L4",
    ),
    (
        lambda made: made.model_copy(update={"expected": record.Expected()}),
        "the number of processes is 2 in the first and None",
    ),
    (changed({"shard": Shard(number=1, of=3, seed=7, policy="p")}), "are both shard 1/3: give one of them"),
    (changed({"shard": None}), "2.json is no shard: measure each part with `kernelgate bench --shard NUMBER/COUNT`"),
]


def test_what_is_not_of_one_measurement_is_refused() -> None:
    shards = parts()
    for change, says in OTHERS:
        with pytest.raises(RecordError) as refused:
            put_together([shards[0], change(shards[1]), shards[2]])
        assert says in str(refused.value)
        assert "2.json" in str(refused.value)


def test_the_worst_end_is_the_end_of_all_and_a_failed_check_fails_the_whole() -> None:
    shards = parts()
    failed = Check(kind="fuzz", card="attention", status="failed", failed=1)
    shards[0] = changed(checks=(*shards[0].checks, failed))(shards[0])
    assert judge(put_together(shards), Policy()).refused
    shards[2] = changed({"ended": "preempted"})(shards[2])
    together = put_together(shards)
    assert together.run.ended == "preempted"
    missing = ["".join(map(str, line)) for line in completeness.against_plan(together, "").missing]
    assert "the run ended early: preempted" in missing
