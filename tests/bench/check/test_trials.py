"""A failure is made as small as it gets, and said to be rare where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, trials
from kernelgate.bench.check.trials import FailureFacts, TrialProcess
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.system.worker import worker_pool
from tests import faulty
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")
PLAIN = "d64_fp32_scale1_distribution-normal_way-plain"
LARGE = "s{}_b2_h3_d64_bf16_causal_scale-0.75_distribution-peaked_way-{}"

Build = Callable[[str], Library]


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(trials, "SHRINK_S", {None: 600.0, "crashed": 600.0, "hung": 600.0})


def examined(library: Library, id_: str) -> FailureFacts:
    trial = fuzz_trials.parse(1, faulty.card(), "cpu", id_)
    with worker_pool() as processes, TrialProcess(library, faulty.card(), "cpu", processes) as process:
        outcome = process.tried(trial)
        assert outcome.fault is not None
        return trials.examined(process, trial, outcome)


@pytest.mark.parametrize(
    ("fault", "failing", "smallest"),
    [
        ("wrong_from_37_keys_on_if_causal", LARGE.format(130, "gaps"), "s37_b1_h1_d64_fp32_causal_scale1_"),
        ("wrong_where_37_keys_are_left_over", LARGE.format(165, "plain"), "s37_b1_h1_d64_fp32_causal_scale1_"),
        ("skips_last_row", LARGE.format(65, "repeat"), "s1_b1_h1_d64_fp32_scale1_"),
    ],
)
def test_a_failure_becomes_the_smallest_case(built: Build, fault: str, failing: str, smallest: str) -> None:
    facts = examined(built(fault), failing)
    assert facts.smallest.id == f"{smallest}distribution-normal_way-plain"
    assert (facts.failed, facts.runs, facts.alone) == (5, 5, True)
    again = fuzz.run(built(fault), faulty.card(), facts.smallest.run_seed, CPU, [facts.smallest.id])
    assert [one.message for one in again.results] == [facts.fault], "the command repeats it"


def test_what_only_a_way_of_calling_shows_keeps_that_way(built: Build) -> None:
    facts = examined(built("ignores_strides"), "s9_b2_h3_d64_fp16_scale0.125_distribution-mixed_way-gaps")
    assert facts.smallest.way == "gaps"
    assert facts.smallest.distribution == "normal"


def test_what_fails_only_sometimes_is_not_made_smaller(built: Build) -> None:
    facts = examined(built("wrong_in_the_first_two_calls"), LARGE.format(65, "plain"))
    assert facts == FailureFacts(5, 1)
    assert facts.words == "it fails only sometimes: in 1 of 5 runs of this very case"


def test_a_run_says_the_smallest_case_of_its_first_failures(
    built: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tuple(
        trial
        for s in (70, 30, 65, 80)
        if (trial := fuzz_trials.parse(1, faulty.card(), "cpu", LARGE.format(s, "plain")))
    )
    monkeypatch.setattr(fuzz_trials, "select", lambda *_: listed)
    done = fuzz.run(built("wrong_from_37_keys_on_if_causal"), faulty.card(), 1, CPU)
    smallest = f"s37_b1_h1_{PLAIN.replace('scale', 'causal_scale')}"
    assert [one.smallest for one in done.results] == [smallest, None, smallest, None], "the first two that failed"
    assert [one.runs for one in done.results] == [5, None, 5, None]
    assert [one.smallest_axes.get("S") for one in done.results] == [37, None, 37, None]
    assert record.from_json(record.to_json(record.RunRecord(checks=(done,)))).checks == (done,)
    said = capsys.readouterr().err
    assert f"  the smallest that fails: {smallest}: error " in said
    assert f"  repeat: kernelgate fuzz --seed 1 --case attention/{smallest}\n" in said


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_crash_and_a_hang_become_smaller_in_few_tries(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = examined(built("crashes_from_37_keys_on"), LARGE.format(130, "plain"))
    assert (facts.smallest.id, "SIGSEGV" in (facts.fault or "")) == (f"s37_b1_h1_{PLAIN}", True)
    monkeypatch.setattr(trials, "PATIENCE_S", 6.0)
    monkeypatch.setattr(trials, "SHRINK_PATIENCE_S", 6.0)
    facts = examined(built("hangs_if_long"), "s2_b2_h2_d64_fp32_scale0.125_distribution-normal_way-plain")
    assert (facts.smallest.id, facts.runs) == (f"s2_b1_h1_{PLAIN}", 1), "each costs its patience"
