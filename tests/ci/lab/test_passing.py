"""What gates say of what they measured; a bench that is made up in the place of the verb's."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.measure import machine
from kernelgate.bench.system import lock
from kernelgate.ci.lab import gating, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.watching import Watched
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made
from tests.runs import case, process, run_record


@pytest.mark.parametrize(
    ("head_us", "said"),
    [
        (4000.0, "0.25x the reference: 4 ms against 1 ms; critical: stop, and profile before changing anything"),
        (600.0, "success: document what made it fast, and keep it from getting slower"),
    ],
)
def test_the_performance_gate_says_which_band_it_is(
    head_us: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"head": [head_us] * 40, "reference": [1000.0] * 40}

    def ran(_: str, words: list[str], *__: object) -> Watched:
        made_up = run_record([case("n4", [process(times) for _ in range(3)])])
        path = Path(words[words.index("--output") + 1])
        if words[0] == "build":
            (path / "toy").mkdir(parents=True)
        else:
            record.write(made_up, path)
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    attempt = gating.attempt(Session(tmp_path, (made.opened(),)), tmp_path, Policy(), "performance", ())
    assert attempt.passed
    assert attempt.said.endswith(said)


def test_the_environment_gate_names_the_lock_and_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "path", lambda _: tmp_path / "gpu.lock")

    def ran(_: str, words: list[str], *__: object) -> Watched:
        told = [asdict(machine.lock_check("GPU-1"))]
        Path(words[words.index("--output") + 1]).write_text(json.dumps({"checks": told}), encoding="utf-8")
        return Watched(0, "", 1.0)

    monkeypatch.setattr(watching, "run", ran)
    session = Session(tmp_path, (made.opened(),))
    session.work.mkdir()
    assert gating.attempt(session, tmp_path, Policy(), "environment", ()).said == "fit to measure"
    with lock.device("GPU-1"):
        attempt = gating.attempt(session, tmp_path, Policy(), "environment", ())
    assert attempt.passed
    assert f"device lock: {tmp_path}/gpu.lock is held by process {os.getpid()} since 20" in attempt.said
