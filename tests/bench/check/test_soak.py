"""A soak keeps what it finds, whatever ends it, and begins with what was kept."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, trials
from kernelgate.bench.check.fuzz import Soak
from kernelgate.bench.check.trials import TrialProcess
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import KeptTrial, Trial
from kernelgate.bench.system.worker import worker_pool
from tests import faulty
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")
ID = "s{}_b1_h2_d64_{}_causal_scale0.5_distribution-{}_way-plain"
SMALLEST = "s37_b1_h1_d64_fp32_causal_scale1_distribution-normal_way-plain"

Build = Callable[[str], Library]


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SHRINK_S", {None: 600.0, "crashed": 600.0, "hung": 600.0})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """These trials are drawn, then the time is over."""

    def draw(*ids: str) -> None:
        trials = [fuzz_trials.parse(seed, faulty.card(), "cpu", id_) for seed, id_ in enumerate(ids, 50)]

        def few(*_: object) -> Iterator[Trial]:
            yield from filter(None, trials)

        monkeypatch.setattr(fuzz_trials, "drawn", few)

    return draw


def soaked(library: Library, corpus: Path) -> Soak:
    one = Soak(faulty.card(), corpus, 3600.0)
    with worker_pool() as processes:
        fuzz.soak_card(library, one, 50, CPU, processes)
    return one


def files(corpus: Path) -> list[str]:
    return [one.id for one in fuzz_trials.kept_in(corpus, "attention")]


def test_failures_are_kept_made_small_and_tried_first_the_next_time(
    built: Build, tmp_path: Path, drawn: Callable[..., None], capsys: pytest.CaptureFixture[str]
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


def test_it_ends_after_enough_failures(
    built: Build, tmp_path: Path, drawn: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "MAX_FAILURES", 2)
    drawn(*[ID.format(s, "fp32", "normal") for s in (1, 2, 3, 4)])
    done = soaked(built("skips_last_row"), tmp_path)
    assert (done.failed, "ended after 2 failures" in done.summary()) == (2, True)


def test_an_interrupt_says_what_was_found(
    built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(process: TrialProcess, trial: Trial, patience_s: float | None = None) -> object:
        calls.append(trial)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return tried(process, trial, patience_s)

    calls: list[Trial] = []
    tried = TrialProcess.tried
    monkeypatch.setattr(trials.TrialProcess, "tried", interrupted)
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
