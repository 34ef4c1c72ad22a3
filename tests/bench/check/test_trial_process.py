"""Each way of calling a kernel finds the fault that it is for; a failure is made as small as it gets, and said to be
rare where it is; a soak keeps what it finds, whatever ends it, and begins with what was kept."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, trial_process, ways
from kernelgate.bench.check.fuzz import Soak
from kernelgate.bench.check.trial_process import FailureFacts, TrialOutcome, TrialProcess
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import KeptTrial
from kernelgate.bench.record import FuzzResult
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
    monkeypatch.setattr(trial_process, "SHRINK_S", {None: 600.0, "crashed": 600.0, "hung": 600.0})
    monkeypatch.setattr(ways, "REPEAT_S", 60.0)
    monkeypatch.setattr(ways, "REPEATS", 20)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def examined(library: Library, id_: str) -> FailureFacts:
    trial = fuzz_trials.parse(1, faulty.card(), "cpu", id_)
    with worker_pool() as processes, TrialProcess(library, faulty.card(), "cpu", processes) as process:
        outcome = process.tried(trial)
        assert outcome.fault is not None
        return trial_process.examined(process, trial, outcome)


@pytest.mark.parametrize(
    ("fault", "failing", "smallest"),
    [
        ("wrong_from_37_keys_on_if_causal", LARGE.format(130, "gaps"), "s37_b1_h1_d64_fp32_causal_scale1_"),
        ("wrong_where_37_keys_are_left_over", LARGE.format(165, "plain"), "s37_b1_h1_d64_fp32_causal_scale1_"),
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


@pytest.mark.slow
def test_a_run_says_the_smallest_case_of_its_first_failures(
    built: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [LARGE.format(s, "plain") for s in (70, 30, 65, 80)]
    listed = [fuzz_trials.parse(1, faulty.card(), "cpu", id_) for id_ in ids]
    monkeypatch.setattr(fuzz_trials, "select", lambda *_: listed)
    done = fuzz.run(built("wrong_from_37_keys_on_if_causal"), faulty.card(), 1, CPU)
    smallest = f"s37_b1_h1_{PLAIN.replace('scale', 'causal_scale')}"
    said = [(one.smallest, one.runs, one.smallest_axes.get("S")) for one in done.results]
    assert said == [(smallest, 5, 37), (None, None, None)] * 2, "the first two that failed"
    assert record.from_json(record.to_json(record.RunRecord(checks=(done,)))).checks == (done,)
    told = capsys.readouterr().err
    assert f"  the smallest that fails: {smallest}: error " in told
    assert f"  repeat: kernelgate fuzz --seed 1 --case attention/{smallest}\n" in told


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_crash_and_a_hang_become_smaller_in_few_tries(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = examined(built("crashes_from_37_keys_on"), LARGE.format(130, "plain"))
    assert (facts.smallest.id, "SIGSEGV" in (facts.fault or "")) == (f"s37_b1_h1_{PLAIN}", True)
    monkeypatch.setattr(trial_process, "PATIENCE_S", 6.0)
    monkeypatch.setattr(trial_process, "SHRINK_PATIENCE_S", 6.0)
    facts = examined(built("hangs_if_long"), "s2_b2_h2_d64_fp32_scale0.125_distribution-normal_way-plain")
    assert (facts.smallest.id, facts.runs) == (f"s2_b1_h1_{PLAIN}", 1), "each costs its patience"


CASE = "b2_h3_d64_fp32_scale0.125_distribution-normal_way-"
SCALED = "d64_fp32_scale{}_distribution-normal_way-plain"
ALLOWED = "times what is allowed"


def tried(library: Library, trial: str) -> FuzzResult:
    (result,) = fuzz.run(library, faulty.card(), 1, CPU, [trial]).results
    return result


@pytest.mark.parametrize(
    ("fault", "trial", "says"),
    [
        ("ignores_strides", f"s9_{CASE}gaps", "where q has gaps between its rows: .* or refuse it by an error"),
        ("ignores_strides", f"s9_{CASE}transposed", "where q has its last two axes exchanged in memory: "),
        ("refuses_without_a_name", f"s0_{CASE}plain", "the kernel raised an error: bad memory"),
        ("rarely_wrong", f"s9_{CASE}repeat", "call 400 on the same inputs: error 1"),
        ("keeps_its_choice_by_shape", f"s9_{CASE}between-others", "called with causal=True in between: .* keep some"),
        (
            "wrong_where_inputs_are_one",
            f"s9_{CASE.replace('fp32', 'fp32_causal')}shared-inputs",
            "where inputs of one shape are one tensor: error",
        ),
        ("static_workspace", f"s9_{CASE}two-threads", "called from two threads at once: error"),
        ("writes_before_output", f"s9_{CASE}offset", "the kernel wrote to memory outside the output out"),
        ("loses_the_sign_of_the_scale", f"s65_b1_h2_{SCALED.format('-0.5')}", ALLOWED),
        pytest.param("cuts_off_after_1024", f"s1025_b1_h1_{SCALED.format(0.125)}", ALLOWED, marks=pytest.mark.slow),
        pytest.param("folds_heads", f"s2_b1025_h1_{SCALED.format(0.125)}", ALLOWED, marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_found(built: Build, fault: str, trial: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "rarely_wrong":
        monkeypatch.setattr(ways, "REPEATS", 450)
    result = tried(built(fault), trial)
    assert not result.passed
    assert re.search(says, result.message or ""), result.message
    assert result.repeat == f"kernelgate fuzz --seed 1 --case attention/{trial}"


@pytest.mark.parametrize(
    "way",
    ["offset", "gaps", "transposed", "repeat", "plain", "between-others", "shared-inputs", "two-threads"],
)
def test_a_right_kernel_passes_every_way(built: Build, way: str) -> None:
    result = tried(built("none"), f"s{0 if way == 'plain' else 9}_{CASE}{way}")
    assert (result.passed, result.note, result.repeatable) == (True, None, True if way == "repeat" else None)


@pytest.mark.parametrize("kernel", ["refuses_views", "refuses_without_a_name"])
def test_a_kernel_may_refuse_a_view_by_an_error_of_any_words(built: Build, kernel: str) -> None:
    result = tried(built(kernel), f"s9_{CASE}transposed")
    assert (result.passed, result.note) == (True, "refused by an error: q, k, v, out")
    assert result.kind == "refused", "which is no result that others are held against"


def test_other_bits_at_another_call_are_said_and_no_fault(built: Build) -> None:
    result = tried(built("never_twice_the_same"), f"s9_{CASE}repeat")
    assert (result.passed, result.repeatable) == (True, False)
    assert re.fullmatch(r"not the same to the bit in \d+ of \d+ calls on the same inputs", result.note or "")


def test_of_few_entries_none_beyond_the_last_is_looked_at() -> None:
    """On a GPU an index past the end would end the process's context."""
    for count in (1, 3, 100):
        found = ways._entries(count, {"out": torch.empty(count, 5)})
        assert {0, count - 1} <= set(found) <= set(range(count))


ID = "s{}_b1_h2_d64_{}_causal_scale0.5_distribution-{}_way-plain"
SMALLEST = "s37_b1_h1_d64_fp32_causal_scale1_distribution-normal_way-plain"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """These trials are drawn, then the time is over."""

    def draw(*ids: str) -> None:
        drawn = [fuzz_trials.parse(seed, faulty.card(), "cpu", id_) for seed, id_ in enumerate(ids, 50)]
        monkeypatch.setattr(fuzz_trials, "drawn", lambda *_: iter(drawn))

    return draw


def soaked(library: Library, corpus: Path) -> Soak:
    one = Soak(faulty.card(), corpus, 3600.0)
    with worker_pool() as processes:
        fuzz.soak_card(library, one, 50, CPU, processes)
    return one


def files(corpus: Path) -> list[str]:
    return [one.id for one in fuzz_trials.kept_in(corpus, "attention")]


@pytest.mark.slow
def test_failures_are_kept_made_small_and_tried_first_the_next_time(
    built: Build,
    tmp_path: Path,
    drawn: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn(ID.format(12, "fp32", "normal"), ID.format(80, "fp16", "tiny"), ID.format(91, "bf16", "mixed"))
    done = soaked(built("wrong_from_37_keys_on_if_causal"), tmp_path)
    assert (done.tried, done.failed) == (3, 2)
    assert files(tmp_path) == [SMALLEST, SMALLEST], "of two seeds"
    assert list(done.kept.values()) == [f"kernelgate fuzz --seed 51 --case attention/{SMALLEST}"]
    assert f"the smallest that fails: {SMALLEST}" in capsys.readouterr().err
    assert re.search(r"3 tried in .*, 2 failed; kept in .*\n  repeat: kernelgate fuzz", done.summary())
    drawn()
    again = soaked(built("none"), tmp_path)
    assert (again.tried, again.failed) == (2, 0), "two failures that are fixed"
    assert files(tmp_path) == [SMALLEST, SMALLEST]
    monkeypatch.setattr(fuzz, "MAX_FAILURES", 1)
    ended = soaked(built("wrong_from_37_keys_on_if_causal"), tmp_path)
    assert (ended.tried, ended.failed, "ended after 1 failures" in ended.summary()) == (1, 1, True)


def test_an_interrupt_says_what_was_found(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = Mock(side_effect=[TrialOutcome()] * 3 + [KeyboardInterrupt])
    monkeypatch.setattr(TrialProcess, "tried", outcomes)
    with pytest.raises(KeyboardInterrupt):
        soaked(built("none"), tmp_path)
    assert re.search(r"soak attention: 3 tried in \d:\d\d:\d\d, 0 failed; kept in ", capsys.readouterr().err)


def test_the_repositorys_own_failures_are_tried_before_the_list(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_trials, "corpus_beside", lambda _: tmp_path)
    monkeypatch.setattr(fuzz.fuzz_trials, "select", lambda *_: (fuzz_trials.parse(1, faulty.card(), "cpu", SMALLEST),))
    fuzz_trials.keep(tmp_path, "attention", KeptTrial(id=SMALLEST, seed=9, why="it failed"))
    done = fuzz.run(built("none"), faulty.card(), 1, CPU)
    assert [(one.id, one.seed) for one in done.results] == [(SMALLEST, 9), (SMALLEST, 1)]
    assert done.results[0].repeat == f"kernelgate fuzz --seed 9 --case attention/{SMALLEST}"


def test_what_there_is_no_time_for_is_counted(
    built: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hours = itertools.count(0, 20.0)  # each look at the clock is 20 s after the last
    monkeypatch.setattr(fuzz, "monotonic", lambda: next(hours))
    done = fuzz.run(built("none"), faulty.card(), 1, CPU, how=(fuzz.FuzzLimits(30.0), None))
    assert (done.status, done.run) == ("passed", 3), "the first waits for torch, and then two take 40 s"
    assert done.asked == 39, "the card's own list is to run whole, what is risky besides for as long as there is time"
    assert re.fullmatch(r"the 30 s of the time limit were over before the last \d+, the least risky", done.reason or "")
    assert done.reason
    assert done.reason in capsys.readouterr().err
