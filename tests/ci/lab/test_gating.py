"""What gates say of what they measured; a bench that is made up in the place of the verb's."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.measure import machine
from kernelgate.bench.system import lock
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import gating, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.watching import Watched
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made
from tests.runs import case, process, run_record


def test_the_performance_gate_says_which_band_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"head": [4000.0] * 40, "reference": [1000.0] * 40}

    def ran(_: str, words: list[str], *__: object) -> Watched:
        made_up = run_record([case("n4", [process(times) for _ in range(3)])])
        path = Path(words[words.index("--output") + 1])
        if words[0] == "build":
            (path / "toy").mkdir(parents=True)
        else:
            record.write(made_up, path)
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    attempt = gating.attempt(Session(tmp_path, (made.opened(),)), tmp_path, Policy(), "performance")
    assert attempt.passed
    said = "0.25x the reference: 4 ms against 1 ms; critical: stop, and profile before changing anything"
    assert attempt.said == said


def test_the_environment_gate_names_the_lock_and_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "path", lambda _: tmp_path / "gpu.lock")

    def ran(_: str, words: list[str], *__: object) -> Watched:
        told = [asdict(machine.lock_check("GPU-1"))]
        Path(words[words.index("--output") + 1]).write_text(json.dumps({"checks": told}), encoding="utf-8")
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    session = Session(tmp_path, (made.opened(),))
    session.work.mkdir()
    assert gating.attempt(session, tmp_path, Policy(), "environment").said == "fit to measure"
    with lock.device("GPU-1"):
        attempt = gating.attempt(session, tmp_path, Policy(), "environment")
    assert attempt.passed
    assert f"device lock: {tmp_path}/gpu.lock is held by process {os.getpid()} since 20" in attempt.said


JUDGED = judge(run_record([case("0", [process({"head": [10.0], "reference": [20.0]}, "block")])]), Policy()).cases[0]


def figures(rng: np.random.Generator, processes: int, cases: int = 1) -> dict[str, float]:
    """Of kernels twice as fast as their reference, whose processes scatter by 2%."""
    heads = 10 * rng.lognormal(0, 0.02, (cases, processes))
    timed = [
        case(str(number), [process({"head": [us], "reference": [20.0]}, "block") for us in row])
        for number, row in enumerate(heads)
    ]
    both = [
        replace(JUDGED, id=str(number), head_us=float(np.exp(np.log(row).mean())), reference_us=20.0)
        for number, row in enumerate(heads)
    ]
    return gating.beside_reference(run_record(timed), both)


@pytest.mark.parametrize("cases", [1, 3])
def test_the_interval_of_a_speed_up_holds_the_truth_in_19_of_20(cases: int) -> None:
    rng = np.random.default_rng(7)
    found = [figures(rng, 5, cases) for _ in range(60)]
    assert np.mean([one["speedup_low"] <= 2 <= one["speedup_high"] for one in found]) >= 0.88
    assert np.median([one["speedup_high"] / one["speedup_low"] for one in found]) < 1.1


def test_of_a_single_process_there_is_no_interval() -> None:
    assert figures(np.random.default_rng(7), 1).keys() == {"speedup"}
