"""The paired comparison: what it records, what it catches, and what a killed run loses.

What takes a process (loading, crashes, signals) is tested with real ones, all else with workers in threads.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.system.preemption import Notice, NoticeOverError
from kernelgate.bench.timing import case_timing, paired, pool, process, verifier, worker
from kernelgate.bench.timing.case_timing import LoadError, ProcessError
from kernelgate.bench.timing.paired import CardPlan, PairedPlan
from kernelgate.bench.timing.process import Measuring
from kernelgate.ci.history import judging
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import machine
from tests import faulty
from tests.bench import in_process
from tests.bench.in_process import put_workers_in_threads
from tests.bench.machine import CPU
from tests.bench.timing.conftest import calls, roles
from tests.processes import alive, wait_for

ROOT = Path(__file__).parents[3]
SMALL = "s16_b1_h1_d64_fp32"
CAUSAL = f"{SMALL}_causal"
OTHER = "s16_b1_h2_d64_fp32"

Build = Callable[..., Library]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a kernel with a fault, under a namespace of its own where none is named."""

    def build(fault: str = "none", namespace: str | None = None) -> Library:
        folder = tmp_path_factory.mktemp(fault)
        return faulty.build(folder / "library", namespace or f"paired_{folder.name.replace('-', '_')}", fault)

    return build


@functools.cache
def case(id_: str) -> CaseFacts:
    return cards.select(cards.Cards(faulty.CARD.parent, (faulty.card(),)), "cpu", None, (id_,))[0].case


def plan(
    base: Library | None, head: Library, ids: tuple[str, ...] = (SMALL,), rounds: int = 6, **changes: Any
) -> PairedPlan:
    part = CardPlan(card=faulty.card(), sides=Sides(base, head), cases=tuple(map(case, ids)))
    small = PairedPlan(parts=(part,), environment=CPU, how=Measuring(5, rounds, 60), processes=1, witness=False)
    return replace(small, **changes)


def run(planned: PairedPlan, path: Path, **options: object) -> RunRecord:
    return paired.run(
        planned, RunRecord(run=record.Run(id="this"), notes=(record.Note(text="from the caller"),)), path, **options
    )  # type: ignore[arg-type]


def texts(done: RunRecord) -> list[str]:
    return [note.text for note in done.notes]


def looked_at(calls: record.Calls) -> bool:
    """Whether some of the calls were compared and none was wrong. A quarter of them is drawn, of 128 more than 90 less
    than once in a million times; fewer are on a busy machine."""
    return calls.failed == 0 and 0 < (calls.compared or 0) < 0.7 * (calls.made or 0)


@pytest.mark.usefixtures("in_process")
def test_a_paired_comparison_of_two_cases_and_two_processes(
    built: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = built(), built()
    planned = plan(base, head, (SMALL, CAUSAL), processes=2, rounds=25)
    done = run(planned, tmp_path / "out" / "run.json")
    assert record.read(tmp_path / "out" / "run.json") == done
    libraries = [("base", base.manifest.sha256), ("head", head.manifest.sha256)]
    assert [(build.side, build.library_sha256) for build in done.builds] == libraries
    assert (done.environment, done.cases, done.cards[0].name) == (CPU, planned.cases, "attention")
    assert [(one.id, one.role, one.exit) for one in done.processes] == [("1", "paired", 0), ("2", "paired", 0)]
    for one in done.processes:
        assert sorted(one.loaded) == ["base", "head"]
        assert (one.environment, one.seed) == (CPU.id, f"5/{int(one.id) - 1}")
        assert None not in (one.started_at, one.wall_seconds)
        assert {timing.key for timing in one.timings} == {case.key for case in done.cases}
        for timing in one.timings:
            lengths = {side: len(samples) for side, samples in timing.samples_us.items()}
            assert lengths == {"base": 25, "head": 25, "reference": 7}
            assert timing.started_us["base"][0] < timing.started_us["base"][-1]
            assert None not in (timing.inner_repeats, timing.clock_step_us, timing.telemetry)
            assert (timing.graph_us, set(timing.calls)) == ({}, {"base", "head"})
            assert all(map(looked_at, timing.calls.values()))
            assert all(errors.maximum is not None for errors in timing.errors.values())
    assert texts(done)[:2] == ["from the caller", "seed 5 from process 1 on"]
    said = capsys.readouterr()
    assert ("seed 5" in said.err, said.out) == (True, "")


def test_a_head_alone_is_timed_from_its_smallest_case_on() -> None:
    """Beside a base in the card's order, whose first case is the target."""
    library: Any = object()
    ids = ("s512_b1_h1_d64_fp32", SMALL)
    for base, wanted in ((None, ids[::-1]), (library, ids)):
        planned = plan(base, library, ids)
        needed = frozenset(one.key for one in planned.cases)
        assert tuple(one.id for one in paired.chosen(planned, planned.parts[0], RunRecord(), needed)) == wanted


@pytest.mark.usefixtures("in_process")
def test_a_library_against_itself_and_a_head_alone(built: Build, tmp_path: Path) -> None:
    same = built()
    record.write(RunRecord(), tmp_path / "run.json")  # as fuzzing leaves one: nothing was timed, so all is
    done = run(plan(same, same), tmp_path / "run.json", resume=True)
    assert "base and head of attention are the same library, which is timed against itself" in texts(done)
    assert set(done.processes[0].timings[0].samples_us) == {"base", "head", "reference"}
    done = run(plan(None, same), tmp_path / "run.json")
    assert [build.side for build in done.builds] == ["head"]
    assert set(done.processes[0].timings[0].samples_us) == {"head", "reference"}
    assert done.processes[0].role == "block"


def beside_pinned(planned: PairedPlan, pin: Library) -> PairedPlan:
    pinned = replace(pin, manifest=pin.manifest.model_copy(update={"sha": "b" * 40}))
    [part] = planned.parts
    return replace(planned, parts=(replace(part, sides=replace(part.sides, pinned=pinned)),))


@pytest.mark.usefixtures("in_process")
def test_a_head_beside_a_pinned_commit_is_a_night_of_the_history(built: Build, tmp_path: Path) -> None:
    """In one process, round by round, and the head is still one without a base: what a baseline is made of."""
    done = run(beside_pinned(plan(None, built(), processes=2, rounds=25), built()), tmp_path / "run.json")
    assert [build.side for build in done.builds] == ["head", f"commit:{'b' * 40}"]
    assert roles(done) == ["block", "block"]
    assert {*done.processes[0].timings[0].samples_us} == {"head", "reference", f"commit:{'b' * 40}"}
    of_head = done.model_copy(update={"run": record.Run(head_sha="a" * 40)})
    [case_] = judging.judged("name", of_head, Policy()).cases
    [compared] = case_.comparisons
    assert (compared.base, compared.head, compared.status, compared.processes) == ("b" * 40, "a" * 40, None, 2)
    assert case_.finding is None


@pytest.mark.usefixtures("in_process")
def test_a_pinned_commit_that_does_not_run_keeps_no_head_from_being_timed(built: Build, tmp_path: Path) -> None:
    done = run(beside_pinned(plan(None, built(), (CAUSAL,)), built("raises_if_causal")), tmp_path / "run.json")
    assert {*done.processes[0].timings[0].samples_us} == {"head", "reference"}
    assert any("measured without the pinned commit: process 1 of 1 failed" in text for text in texts(done))


@pytest.mark.usefixtures("in_process")
def test_only_what_is_undecided_is_timed_again_beside_controls(built: Build, tmp_path: Path) -> None:
    ids = (SMALL, CAUSAL, *(f"s{size}_b1_h1_d64_fp32" for size in (2, 3)))
    open_ = CaseKey("attention", CAUSAL)
    planned = plan(built(), built(), ids, processes=3, rounds=2)
    done = run(planned, tmp_path / "run.json", undecided=lambda _: frozenset({open_}))
    held = [{timing.key for timing in process.timings} for process in done.processes]
    assert held[0] == {case.key for case in done.cases}
    for later in held[1:]:
        assert open_ in later
        assert len(later) == 1 + paired.CONTROLS
    orders = {tuple(timing.case for timing in process.timings) for process in done.processes[1:]}
    assert len(orders) == 2, "drawn anew for each process"
    longer = replace(planned, processes=9)
    plain, wrong = (
        paired.chosen(longer, planned.parts[0], made, frozenset({open_})) for made in (done, with_wrong_base(done, ids))
    )
    assert (len(plain), [one.id for one in wrong]) == (1 + paired.CONTROLS, [CAUSAL]), "a wrong base is no control"


def with_wrong_base(made: RunRecord, cases: Collection[str]) -> RunRecord:
    """As if what base made of these cases had been wrong in the first process."""
    first, *others = made.processes
    wrong = {"base": record.Calls(made=5, compared=5, failed=5)}
    timings = [one.model_copy(update={"calls": wrong}) if one.case in cases else one for one in first.timings]
    return made.model_copy(update={"processes": (first.model_copy(update={"timings": tuple(timings)}), *others)})


# Kernels that cheat, and kernels that die


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("fault", ["stops_working", "remembers", "writes_nan", "skips_last_row"])
def test_a_kernel_that_does_not_do_its_work_when_timed_is_caught(
    built: Build, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool is small, as where inputs are large, so that its parts are read again and again."""
    monkeypatch.setattr(process, "MAX_CPU_CACHE", 0)
    monkeypatch.setattr(pool, "CHEAP_BYTES", 0)
    monkeypatch.setitem(verifier.LEAST_US, "cpu", 1e9)
    done = run(plan(built(), built(fault), rounds=60), tmp_path / "run.json")
    errors = done.processes[0].timings[0].errors
    assert looked_at(calls(done)["base"])
    assert calls(done)["head"].failed > 0
    assert errors["base"].maximum is not None
    assert (errors["head"].maximum is None) == (fault != "remembers"), "what was not written is poisoned"


CRASHED = "the process was killed by SIGSEGV; last lines of stderr: about to crash"
KILLED = "process 1 of 1 was killed by SIGSEGV"


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[process.Turn]]:
    """Processes crash that are so, and have finished nothing by then; all that were tried are listed."""
    timed = process.timed

    def crash(of: Callable[[process.Turn, process.Timed], bool], *sides: record.Side, hung: bool = False) -> Any:
        tried: list[process.Turn] = []

        def crashes(setup: process.Setup, turn: process.Turn, advance: Callable[[str], None]) -> process.Timed:
            tried.append(turn)
            done = timed(setup, turn, advance)
            if not of(turn, done):
                return done
            error = ProcessError(KILLED)
            error.crash, error.hung, error.sides = "killed by SIGSEGV", hung, sides or tuple(turn.libraries)
            nothing = done.process.model_copy(update={"timings": ()})
            raise process.CrashError(error, turn.cases[0], replace(done, process=nothing))

        monkeypatch.setattr(process, "timed", crashes)
        return tried

    return crash


def crashes(done: RunRecord) -> dict[tuple[str, str], str | None]:
    """By case and side."""
    timings = [timing for one in done.processes for timing in one.timings]
    return {(one.case, side): calls.crashed for one in timings for side, calls in one.calls.items() if calls.failed}


@pytest.mark.slow
def test_kernels_are_timed_in_torchs_default_mode(built: Build, tmp_path: Path) -> None:
    done = run(plan(built(), built("asks_torch_for_its_mode")), tmp_path / "run.json")
    assert all(one.failed == 0 and one.compared for one in done.processes[0].timings[0].calls.values())


@pytest.mark.slow
def test_a_head_that_crashes_is_a_finding_and_what_was_timed_before_it_is_kept(built: Build, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    planned = plan(built(), built("crashes_if_causal"), (SMALL, CAUSAL, OTHER), processes=2, witness=True)
    done = run(planned, path)
    assert crashes(done) == {(CAUSAL, "head"): CRASHED}
    assert [one.case for one in done.processes[0].timings] == [SMALL]
    assert {"base", "head"} <= done.processes[0].timings[0].samples_us.keys()
    assert [one.loaded for one in done.processes[1:]] == [("head",)], "nothing is timed after that"
    assert record.read(path) == done
    resumed = run(planned, path, resume=True)
    assert resumed.processes == done.processes


@pytest.mark.slow
def test_a_base_that_crashes_is_not_the_heads_fault_and_other_cases_go_on(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(process.WITNESS_TURNS, "cpu", 1)
    planned = plan(built("crashes_if_causal"), built(), (CAUSAL, SMALL), processes=1, witness=True)
    done = run(planned, tmp_path / "run.json")
    assert crashes(done) == {(CAUSAL, "base"): CRASHED}
    held = [(one.role, tuple(timing.case for timing in one.timings)) for one in done.processes]
    assert held == [("witness", (CAUSAL,)), ("paired", (SMALL,)), ("witness", (SMALL,))]


@pytest.mark.slow
def test_both_are_named_where_both_crash(built: Build, tmp_path: Path) -> None:
    done = run(plan(built("crashes_if_causal"), built("crashes_if_causal"), (CAUSAL,)), tmp_path / "run.json")
    assert crashes(done) == {(CAUSAL, "base"): CRASHED, (CAUSAL, "head"): CRASHED}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("hung", [False, True])
def test_where_neither_crashes_without_the_other_they_take_turns(
    hung: bool, built: Build, tmp_path: Path, crashing: Callable[..., Any]
) -> None:
    crashing(lambda turn, _: turn.role == "paired", "base", "head", hung=hung)
    done = run(plan(built(), built()), tmp_path / "run.json")
    assert roles(done) == ["alternating"]
    assert any(KILLED in text for text in texts(done))
    assert not crashes(done)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("based", [True, False], ids=["beside a base", "alone"])
def test_a_reference_that_crashes_is_no_fault_of_the_head(
    based: bool, built: Build, tmp_path: Path, crashing: Callable[..., Any]
) -> None:
    crashing(lambda _, done: any("reference" in one.samples_us for one in done.process.timings))
    done = run(plan(built() if based else None, built()), tmp_path / "run.json")
    assert not crashes(done)
    [made] = done.processes
    assert made.role == ("paired" if based else "block"), "they are not kept apart for the reference's sake"
    assert made.timings[0].samples_us.keys() == ({"base", "head"} if based else {"head"})
    assert any(f"the reference is not timed: beside it {KILLED}" in one for one in texts(done))


@pytest.mark.usefixtures("in_process")
def test_a_head_that_crashes_in_the_witness_is_not_tried_again(
    built: Build, tmp_path: Path, crashing: Callable[..., Any]
) -> None:
    tried = crashing(lambda turn, _: turn.role == "witness", "head")
    done = run(plan(built(), built(), witness=True), tmp_path / "run.json")
    assert crashes(done) == {(SMALL, "head"): "killed by SIGSEGV"}
    alone = [turn.role for turn in tried].count("block")
    assert alone == 1, "whether the base crashes, too, is looked at; of the head it is known"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("how", ["slowed", "stopped", "neither"])
def test_a_witness_that_another_process_touched_confirms_nothing(
    how: str, built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a process of another sandbox of the same user."""
    monkeypatch.setattr(in_process.ThreadWorker, "touched", how == "slowed")
    if how == "stopped":
        monkeypatch.setattr(worker, "orphans", SimpleNamespace(watch_stops=lambda: count().__next__))
    done = run(plan(built(), built(), witness=True), tmp_path / "run.json")
    found = [one.text for check in done.checks for one in check.findings]
    touched = how != "neither"
    assert any("witness, " in one and process.TOUCHED in one for one in found) == touched
    assert {check.status for check in done.checks if check.kind == "witness"} == ({"failed"} if touched else set())


@pytest.mark.usefixtures("in_process")
def test_a_kernel_that_raises_is_a_finding(built: Build, tmp_path: Path) -> None:
    done = run(plan(built(), built("raises_if_causal"), (SMALL, CAUSAL), processes=2), tmp_path / "run.json")
    [(key, said)] = crashes(done).items()
    assert key == (CAUSAL, "head")
    assert str(said).startswith("a call raised an error: ")
    assert "causal is not implemented" in str(said)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["head", "base"])
def test_a_side_that_hangs_is_a_finding_as_one_that_crashes(
    side: str, built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(case_timing.FIRST_CALLS_S, "cpu", 3.0)
    monkeypatch.setattr(case_timing, "HANGS_S", 2.0)
    sides = (built(), built("hangs_if_causal")) if side == "head" else (built("hangs_if_causal"), built())
    done = run(plan(*sides, (SMALL, CAUSAL)), tmp_path / "run.json")
    said = "the process did not answer for 3 s and was killed"
    assert done.processes[1].timings[0].calls == {side: record.Calls(failed=1, crashed=said, hung=True)}
    assert [one.case for one in done.processes[0].timings] == [SMALL], "what was timed before it is kept"


@pytest.mark.slow
def test_a_kernel_that_takes_long_does_not_hang_and_one_that_waits_forever_later_does(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(case_timing.FIRST_CALLS_S, "cpu", 6.0)
    monkeypatch.setattr(case_timing, "HANGS_S", 3.0)
    slow = run(plan(built(), built("sleeps"), rounds=12), tmp_path / "slow.json")
    assert crashes(slow) == {}
    assert sum(slow.processes[0].timings[0].samples_us["head"]) > 6e6, "more than what first calls may take"
    hangs = run(plan(built(), built("hangs_in_the_tenth_call")), tmp_path / "hangs.json")
    assert "the process did not answer for " in (crashes(hangs)[SMALL, "head"] or "")


@pytest.mark.usefixtures("in_process")
def test_processes_before_a_failure_are_kept(built: Build, tmp_path: Path) -> None:
    base, head = built(), built()
    path = tmp_path / "run.json"

    def break_head(so_far: RunRecord) -> frozenset[CaseKey]:
        (head.folder / "kernel.so").unlink()  # it is loaded here: cut short, it would end this process
        (head.folder / "kernel.so").write_bytes(b"no library")
        return paired.all_cases(so_far)

    with pytest.raises(LoadError, match=r"process 2 of 3 failed while loading head: .* is not the one that"):
        run(plan(base, head, processes=3), path, undecided=break_head)
    assert paired.process_count(record.read(path)) == 1
    path.unlink()
    with pytest.raises(LoadError, match=r"process 1 of 1 failed while loading head: .* build it again"):
        run(plan(base, head), path)
    assert not path.exists(), "nothing was measured"


@pytest.mark.slow
def test_a_library_that_bears_no_other_takes_turns_too(built: Build, tmp_path: Path) -> None:
    """Found out by loading both: the process that tries it is ended."""
    path = tmp_path / "run.json"
    planned = plan(built("loner"), built())
    done = run(planned, path)
    (note,) = [note for note in texts(done) if "took turns" in note]
    assert "while loading" in note
    assert "SIGABRT" in note
    assert roles(done) == ["alternating"]
    done = run(replace(planned, processes=2), path, resume=True)
    assert roles(done) == ["alternating"] * 2, "and a resumed run goes on so"


@pytest.fixture(scope="module")
def one_process(built: Build, tmp_path_factory: pytest.TempPathFactory) -> tuple[PairedPlan, RunRecord]:
    planned = plan(built(), built(), processes=1)
    with pytest.MonkeyPatch.context() as patch:
        put_workers_in_threads(patch)
        patch.setattr(lock.tempfile, "tempdir", str(tmp_path_factory.mktemp("lock")))
        return planned, run(planned, tmp_path_factory.mktemp("one") / "run.json")


def test_resuming_what_is_complete_or_decided_times_nothing(
    one_process: tuple[PairedPlan, RunRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned, before = one_process
    path = tmp_path / "run.json"
    record.write(before.model_copy(update={"run": before.run.model_copy(update={"ended": "cancelled"})}), path)
    assert run(planned, path, resume=True).processes == before.processes
    assert record.read(path).run.ended == "complete", "all that was asked for is there"
    decided = run(replace(planned, processes=9), path, resume=True, undecided=lambda _: frozenset())
    assert decided.processes == before.processes
    assert "nothing to do" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ids": (CAUSAL,)}, "it holds other cases \\(s16_b1_h1_d64_fp32\\)"),
        ({"rounds": 5}, "its processes have 6 rounds, not 5"),
        ({"base": None}, "it was measured with other libraries"),
        (
            {"environment": CPU.model_copy(update={"device": record.Device(name="NVIDIA L4")})},
            "device .*, now NVIDIA L4",
        ),
        ({"shard": record.Shard(number=1, of=2, seed=5)}, "it was begun as another shard, .*than all cases; write to"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(
    one_process: tuple[PairedPlan, RunRecord], tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    planned, before = one_process
    path = tmp_path / "run.json"
    shard = changes.pop("shard", None)
    before = before.model_copy(update={"run": record.Run(shard=shard)}) if shard else before
    record.write(before, path)
    sides = planned.parts[0].sides
    other: dict[str, Any] = {"base": sides.base, "head": sides.head, "processes": 2, **changes}
    with pytest.raises(RecordError, match=f"cannot be resumed: {says}"):
        run(plan(**other), path, resume=True)
    assert record.read(path) == before


def preempted(planned: PairedPlan, path: Path, after: int) -> RunRecord:
    """A run that gets notice while its process number `after` is timed."""
    notice = Notice()

    def undecided(so_far: RunRecord) -> frozenset[CaseKey]:
        assert record.read(path) == so_far, "it is written before the question is asked"
        notice.given = len(so_far.processes) >= after
        return paired.all_cases(so_far)

    with pytest.raises(NoticeOverError):
        run(planned, path, undecided=undecided, notice=notice)
    return record.read(path)


@pytest.mark.usefixtures("in_process")
def test_a_preempted_run_keeps_what_was_finished_and_goes_on(
    one_process: tuple[PairedPlan, RunRecord], tmp_path: Path
) -> None:
    planned, path = replace(one_process[0], processes=3), tmp_path / "run.json"
    before = preempted(planned, path, after=1)
    assert before.run.ended == "preempted"
    assert [one.id for one in before.processes] == ["1"]
    done = run(replace(planned, how=Measuring(6, 6, 60)), path, resume=True)
    assert done.processes[:1] == before.processes
    assert [one.id for one in done.processes] == ["1", "2", "3"]
    assert (done.run.ended, done.run.resumed_from) == ("complete", before.run.id)
    said = {"seed 5 from process 1 on", "seed 6 from process 2 on", "resumed after preemption, from process 2 on"}
    assert said <= set(texts(done))
    assert "resumed after preemption" in str(machine.how_measured(done)), "and the comment says so"


@pytest.mark.usefixtures("in_process")
def test_a_run_goes_on_on_another_machine_of_the_kind(
    one_process: tuple[PairedPlan, RunRecord], tmp_path: Path
) -> None:
    """Each process says where it ran. Back on the first machine, it is the one that it was."""
    planned, path = replace(one_process[0], processes=2), tmp_path / "run.json"
    preempted(planned, path, after=1)
    elsewhere = CPU.model_copy(update={"host": "another"})
    done = run(replace(planned, environment=elsewhere), path, resume=True)
    assert [one.host for one in done.environments] == [CPU.host, "another"]
    assert [one.environment for one in done.processes] == ["0", "1"]
    assert any(text.startswith("resumed after preemption on another ") for text in texts(done))
    done = run(replace(planned, processes=3), path, resume=True)
    assert [one.environment for one in done.processes] == ["0", "1", "0"]
    assert len(done.environments) == 2


def test_a_worker_that_is_asked_to_end_too_blames_nobody(
    one_process: tuple[PairedPlan, RunRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clouds send SIGTERM to every process of the machine."""
    planned, path, notice = one_process[0], tmp_path / "run.json", Notice()

    def dies(*_: object) -> None:
        notice.given = True
        raise LoadError("the process ended by SIGTERM")

    monkeypatch.setattr(process, "timed", dies)
    with pytest.raises(LoadError):
        run(planned, path, notice=notice)
    after = record.read(path)
    assert after.run.ended == "preempted"
    assert not any("took turns" in text for text in texts(after))


def bench(base: Library, head: Library, output: Path, *words: str) -> subprocess.Popen[str]:
    """The command as a user runs it, on the CPU."""
    libraries = f"--base-library {base.folder} --head-library {head.folder} --case {SMALL} -o {output}".split()
    command = [sys.executable, "-m", "kernelgate.ci.commands.cli", "bench", *libraries, *words]
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(output.parent)}
    return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers(pid: int) -> list[int]:
    """Processes whose parent is, or was, `pid`."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def wait_until_written(output: Path, processes: int, running: subprocess.Popen[str]) -> list[int]:
    """Until the record holds so many, and others are being timed: which are those."""

    def written() -> bool:
        assert running.poll() is None, running.communicate()
        return output.exists() and paired.process_count(record.read(output)) >= processes and bool(workers(running.pid))

    wait_for(written)
    return workers(running.pid)


@pytest.mark.slow
def test_ctrl_c_ends_the_process_too(built: Build, tmp_path: Path) -> None:
    """Here of a base that prints messages of its own, which do no harm."""
    stopped = bench(built("prints"), built(), tmp_path / "run.json", "--processes", "50", "--rounds", "10")
    started = wait_until_written(tmp_path / "run.json", 1, stopped)
    stopped.send_signal(signal.SIGINT)
    said, told = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert said == ""
    assert told.rstrip().endswith("kernelgate: interrupted")
    assert "Traceback" not in told
    wait_for(lambda: not any(map(alive, started)), what="a process outlives the run")
    kept = record.read(tmp_path / "run.json")
    assert kept.run.ended == "cancelled"
    assert set(kept.processes[0].timings[0].samples_us) == {"base", "head", "reference"}
    assert (kept.processes[0].role, calls(kept)["head"].failed) == ("paired", 0)
