"""The fuzzer finds what is wrong, says so in a way that helps, and survives kernels that crash or hang.

With attention and its planted faults (tests/faulty.py); other kinds of kernels are in test_fuzz_kinds.py.
"""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.check import fuzz, trial_process
from kernelgate.bench.check.fuzz import FuzzLimits
from kernelgate.bench.check.trial_process import TrialOutcome, TrialProcess
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import compare, fuzz_trials
from kernelgate.bench.record import BaseTrial, Check, FuzzResult
from kernelgate.bench.system.worker import WorkerProcess
from kernelgate.ci.commands import cli
from tests import faulty
from tests.bench.in_process import ThreadWorker
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")
SEED = 1

Build = Callable[[str], Library]


def drawn(causal: bool) -> list[str]:
    """The configurations that this seed draws with a mask, or without."""
    trials = fuzz_trials.trials(SEED, faulty.card(), "cpu")
    return [trial.id for trial in trials if trial.axes["causal"] == causal and trial.axes["S"] != 1]


def run(library: Library, ids: list[str] | None = None, seed: int = SEED) -> Check:
    return fuzz.run(library, faulty.card(), seed, CPU, ids or [])


def test_a_kernel_runs_in_torchs_default_mode_and_its_oracle_repeats_its_bits(
    built: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mamba's 620cd98 takes another way in torch's deterministic mode: 59% slower, which nobody had asked for."""
    modes = set()
    right = compare.operands.named
    monkeypatch.setattr(
        compare.operands,
        "named",
        lambda *given: modes.add(torch.are_deterministic_algorithms_enabled()) or right(*given),
    )
    assert run(built("asks_torch_for_its_mode"), [PLAIN]).status == "passed"
    assert modes == {True}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("skips_last_row", r"^384 of 24960 elements, the first at out\[0,0,64,0\], are never written$"),
        ("reads_past_input", r"^64 of 24960 elements, the first at out\[1,2,64,0\], are NaN or Inf$"),
        ("slightly_wrong", r"^error [\d.]+, at out\[1,2,64,7\] of shape \[2, 3, 65, 64\] [\d.e+]+ times "),
        ("writes_before_output", r"^the kernel wrote to memory outside the output out$"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    built: Build, fault: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(built(fault), ["edge_s63", "edge_s65"])
    assert done.status == "failed"
    assert fuzz.exit_code([done]) == 1
    result = done.results[1]
    assert not result.passed
    assert re.search(says, result.message or ""), result.message
    assert fuzz.failure(result) in capsys.readouterr().err


def test_an_error_that_a_kernel_raises_fails_its_case_alone(built: Build) -> None:
    causal, full = drawn(True), drawn(False)
    ids = [causal[0], full[0], *causal[1:5], full[1]]
    done = run(built("raises_if_causal"), ids)
    assert [result.passed for result in done.results] == [False, True, False, False, False, False, True]
    assert (done.tolerance, done.seed) == (record.Tolerance(atol=2e-3, rtol=1e-3), SEED)
    assert fuzz.summary(done) == "fuzz attention: 2 of 7 configurations passed, seed 1"
    assert done.results[0].message == "the kernel raised an error: causal is not implemented"
    assert done.results[0].max_abs_error is None


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_crash_fails_its_case_and_the_list_goes_on(built: Build) -> None:
    """However many: each has a process of its own."""
    causal, full = drawn(True), drawn(False)
    done = run(built("crashes_if_causal"), [full[0], *causal[:2], full[1]])
    assert sorted(result.passed for result in done.results) == [False, False, True, True]
    assert done.results[1].message == "the process was killed by SIGSEGV; last lines of stderr: about to crash"
    assert (done.asked, done.run, done.failed, done.reason) == (4, 4, 2, None)


@pytest.mark.parametrize(("times", "status"), [(1, "passed"), (2, "failed")])
def test_a_process_that_is_killed_once_fails_nothing(
    built: Build, monkeypatch: pytest.MonkeyPatch, times: int, status: str
) -> None:
    """As for want of memory; a kernel that takes too much is killed again. Which process counts as killed, processes
    show in bench/system/test_worker.py."""
    started, killed = TrialProcess.started, list[WorkerProcess]()

    def killing(process: TrialProcess) -> WorkerProcess:
        worker = started(process)
        if len(killed) < times:
            killed.append(worker)
            worker.__exit__()
        return worker

    monkeypatch.setattr(TrialProcess, "started", killing)
    monkeypatch.setattr(ThreadWorker, "killed", True, raising=False)
    assert run(built("none"), drawn(False)[:1]).status == status
    assert len(killed) == times


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_hang_fails_its_case_and_the_list_goes_on(
    built: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which one it is, is said long before."""
    assert trial_process.NAMED_S <= 30
    causal, full = drawn(True), drawn(False)
    monkeypatch.setattr(trial_process, "PATIENCE_S", 8.0)
    monkeypatch.setattr(trial_process, "NAMED_S", 4.0)
    done = run(built("hangs_if_causal"), [causal[0], full[0]])
    said = capsys.readouterr().err
    assert f"{causal[0]} has not answered for 4 s; after 8 s it counts as hung" in said
    assert f"{full[0]} has not answered" not in said
    assert [result.passed for result in done.results] == [False, True]
    assert "did not answer for 8 s and was killed" in (done.results[0].message or "")


def test_a_library_that_does_not_load_is_named_while_it_is_waited_for(
    built: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One whose import or constructor hangs is given up after two minutes; whoever waits hears of it long before."""
    monkeypatch.setattr(trial_process, "NAMED_S", 0.1)

    def started(_: TrialProcess) -> None:
        time.sleep(0.5)
        raise KernelgateError("it cannot be loaded")

    monkeypatch.setattr(TrialProcess, "started", started)
    with pytest.raises(KernelgateError, match="it cannot be loaded"):
        run(built("none"), [drawn(True)[0]])
    assert "has not been loaded after 0.1 s; after 120 s it is given up" in capsys.readouterr().err


def test_what_is_as_large_as_a_crash_comes_last_and_is_not_run_where_crashes_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a kernel that crashes from N = 64 on."""
    crash = TrialOutcome(fault="the process was killed by SIGSEGV", ended="crashed", last=True)
    monkeypatch.setattr(TrialProcess, "tried", lambda _, one: crash if one.axes["N"] >= 64 else TrialOutcome())
    hours = itertools.count(0, 30.0)
    monkeypatch.setattr(fuzz, "monotonic", lambda: next(hours))
    monkeypatch.setattr(fuzz, "LOST_S", 60.0)
    done = listed(monkeypatch, (1, 64, 70, 2, 200, 3, 64, 4))
    assert [one.id for one in done.results] == ["n1", "n64", "n2", "n3", "n4", "n70"]
    assert (done.failed, done.asked) == (2, 8), "what is not run is not called wrong"
    assert done.reason == "2 not run, because crashes and hangs before had taken 60 s"


PLAIN = "s65_b1_h2_d64_fp32_causal_scale0.125_distribution-normal_way-plain"
TIMED = "s512_b1_h8_d64_fp32_causal_distribution-normal_way-plain"


@pytest.mark.parametrize(
    ("head", "base", "blocks", "did"),
    [
        ("slightly_wrong", "ignores_mask", False, ("wrong", "wrong")),
        ("raises_if_causal", "none", True, ("refused", None)),
        ("slightly_wrong", "raises_if_causal", True, ("wrong", "refused")),
        ("writes_before_output", "changes_input", True, ("wrote", "wrote")),
    ],
)
def test_what_the_base_does_alike_does_not_block(
    built: Build, head: str, base: str, blocks: bool, did: tuple[str, str | None]
) -> None:
    done = fuzz.run(built(head), faulty.card(), SEED, CPU, [PLAIN], base=built(base))
    (result,) = done.results
    assert (result.kind, result.base and result.base.kind) == did
    assert (done.status, done.failed, fuzz.exit_code([done])) == (("failed", 1, 1) if blocks else ("passed", 0, 0))
    assert not result.passed
    assert ("the base does the same in 1" in fuzz.summary(done)) != blocks


def test_what_is_timed_must_be_right_whatever_the_base_does() -> None:
    for case, fails in ((PLAIN, False), (TIMED, True)):
        trial = fuzz_trials.parse(SEED, faulty.card(), "cpu", case)
        assert trial is not None
        result = fuzz.result_of(faulty.card(), trial, TrialOutcome(fault="error 1", error_ratio=9.0))
        assert result.model_copy(update={"base": BaseTrial(kind="wrong", error_ratio=9.0)}).fails == fails


@pytest.mark.parametrize(
    ("way", "base", "blocks"),
    [
        ("transposed", BaseTrial(kind="wrong", message="4096 of 4225 elements are NaN"), False),
        ("transposed", BaseTrial(kind="refused", message="refused by an error: gate"), True),
        ("plain", BaseTrial(kind="wrong", message="4096 of 4225 elements are NaN"), True),
    ],
)
def test_a_layout_that_the_base_does_not_support_either_is_no_fault_of_the_head(
    way: str, base: BaseTrial, blocks: bool
) -> None:
    """How wrong it comes out is up to what lies beside the tensor in memory."""
    axes = {"M": 65, "way": way}
    result = FuzzResult(id="m65", seed=1, axes=axes, passed=False, kind="wrong", message="7 of 4225", base=base)
    assert result.fails == blocks


def test_what_both_refuse_is_right(built: Build) -> None:
    done = fuzz.run(built("raises_if_causal"), faulty.card(), SEED, CPU, [PLAIN], base=built("raises_if_causal"))
    (result,) = done.results
    assert (done.status, result.passed, result.message) == ("passed", True, None)
    said = "refused by an error, as the base does: the kernel raised an error: causal is not implemented"
    assert result.note == said


def test_the_base_is_tried_again_where_the_head_fails_only_sometimes(
    built: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a race does: the base has it, too, and passes at first."""
    race = TrialOutcome(fault="error 1", error_ratio=9.0)
    outcomes = iter([race, TrialOutcome(), TrialOutcome(), race])
    monkeypatch.setattr(TrialProcess, "tried", lambda *_: next(outcomes))
    done = fuzz.run(built("none"), faulty.card(), SEED, CPU, [PLAIN], base=built("none"))
    assert (done.status, done.results[0].passed) == ("passed", False)
    assert next(outcomes, None) is None


def test_a_base_that_cannot_be_loaded_excuses_nothing(built: Build, tmp_path: Path) -> None:
    broken = faulty.build(tmp_path / "broken", "fuzz_broken_base")
    broken.path.write_bytes(b"no library")
    done = fuzz.run(built("skips_last_row"), faulty.card(), SEED, CPU, [PLAIN], base=broken)
    assert (done.status, done.results[0].base) == ("failed", None)
    assert (done.reason or "").startswith("the base could not be tried: ")


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.slow
def test_the_command_of_a_failure_repeats_it(built: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = built("slightly_wrong")
    failed = run(library, ["edge_s63", "edge_s65"], seed=11).results[1]
    words = shlex.split(failed.repeat or "")
    assert words == ["kernelgate", "fuzz", "--seed", "11", "--case", "attention/edge_s65"]
    output = tmp_path / "fuzz.json"
    capsys.readouterr()
    assert cli.run([*words[1:], "--library", str(library.folder), "-o", str(output)]) == 1
    told = capsys.readouterr()
    assert "fuzz attention: 0 of 1 configurations passed, seed 11" in told.out
    assert failed.message in told.err
    written = record.read(output)
    assert written.fuzz.results == (failed,)
    assert written.environment.torch == torch.__version__


def test_without_a_kernel_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["fuzz", "-o", "fuzz.json"]) == 2
    told = capsys.readouterr().out.strip()
    assert record.read(tmp_path / "fuzz.json").fuzz == fuzz.skipped(told.removeprefix("fuzz: skipped: "))


def listed(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], limits: FuzzLimits = fuzz.NO_LIMITS) -> Check:
    """What comes of trials of these sizes, of which none is made smaller."""
    axes = {"distribution": "normal", "causal": False}
    made = [fuzz_trials.Trial(id=f"n{n}", axes={"N": n, **axes}, run_seed=1, seed=1) for n in sizes]
    monkeypatch.setattr(fuzz.fuzz_trials, "select", lambda *_: tuple(made))
    monkeypatch.setattr(fuzz, "MAX_SHRUNK", 0)
    library = Library(Path("x"), Manifest.model_construct(), cached=True)
    return fuzz.run(library, faulty.card(), 1, CPU, (), (limits, None))


def test_the_small_ones_come_first_and_end_with_the_first_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = TrialOutcome(fault="wrong", max_abs_error=1.0, error_ratio=2.0)
    monkeypatch.setattr(TrialProcess, "tried", lambda _, one: wrong if one.axes["N"] == 64 else TrialOutcome())
    done = listed(monkeypatch, (9, 64, 2, 65), FuzzLimits(smallest_first=True))
    assert [(one.id, one.passed) for one in done.results] == [("n2", True), ("n9", True), ("n64", False)]
    assert (done.reason or "").startswith("the larger 1 are not run after the first that fails")
