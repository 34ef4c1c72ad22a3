from __future__ import annotations

import random
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest

from kernelgate.bench.build.library import Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Device, Environment, RunRecord
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Status
from kernelgate.ci.lab import trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.pipeline import local
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made
from tests.runs import case, process, run_record


def verdict(status: Status, change_pct: float) -> RecordVerdict:
    direction = Direction.FASTER if status.is_faster else Direction.SLOWER if status.is_slower else Direction.NONE
    interval = (change_pct - 1, change_pct + 1)
    mean = MeanVerdict("toy", status, direction, "so", change_pct, interval, 1e-9, 2, 2, 4)
    return RecordVerdict("run.json", Outcome.INCONCLUSIVE, "so", (), means=(mean,))


@pytest.mark.parametrize(
    ("status", "change_pct", "tuning", "advised"),
    [
        (Status.IMPROVED, -20.0, False, "keep"),  # 1.25 times as fast
        (Status.IMPROVED, -15.0, False, "revert"),  # 1.18 times, and 1.2 is the policy's bar
        (Status.FASTER, -2.0, False, "revert"),
        (Status.FASTER, -2.0, True, "keep"),
        (Status.LIKELY_FASTER, -50.0, True, "revert"),
        (Status.SLOWER, 2.0, True, "revert"),
    ],
)
def test_what_is_kept_by_default(
    status: Status, change_pct: float, tuning: bool, advised: Literal["keep", "revert"]
) -> None:
    assert trying.advised(verdict(status, change_pct), tuning) == advised


def test_what_is_kept_last_is_measured_against() -> None:
    tries = (made.tried(1, -5, head="1" * 40), made.tried(2, -5, head="2" * 40), made.tried(3, 5, head="3" * 40))
    decisions = (made.decided(1, True), made.decided(2, True), made.decided(3, False))
    session = Session(folder=made.HERE, events=(made.opened(), *tries, *decisions))
    assert trying.kept_state(session) == "2" * 40
    assert trying.kept_state(Session(made.HERE, (made.opened(),))) == "b" * 40


H200 = Environment(device=Device(name="NVIDIA H200", compute_capability="9.0", driver="570"))


def compared(change: float) -> RunRecord:
    """Times of one case that changes by this in each process, give or take what processes differ by."""
    drawn = random.Random(5)

    def timed() -> dict[str, list[float]]:
        base = [100 * drawn.gauss(1, 0.003) for _ in range(100)]
        ratio = (1 + change) * drawn.gauss(1, 0.014)
        return {"base": base, "head": [one * ratio * drawn.gauss(1, 0.003) for one in base], "reference": base}

    return run_record([case("n4", [process(timed()) for _ in range(4)])], H200)


@pytest.mark.parametrize(
    ("change", "advised"),
    [
        (-0.36, "keep"),  # in processes that lie 4% apart, which the verdict leaves open
        (-0.06, "revert"),  # of which a gain of 6% is not certain
        (0.0, "revert"),
        (0.36, "revert"),
        (-0.999, "revert"),  # a thousand times as fast as base and reference
    ],
)
def test_a_try_is_decided_by_its_time_and_how_certain_that_is(change: float, advised: str) -> None:
    tuning = Session(made.HERE, (made.opened(gpu="NVIDIA H200"), *made.passed(1.0)))
    found = trying._judged(tuning, compared(change), Policy())
    assert found["advised"] == advised, found["said"]


def test_a_base_that_does_not_compile_is_told_before_anything_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library: Any = object()
    sides = {"toy": Sides(None, library, "commit b: toy.cu:3: expected a ;")}
    monkeypatch.setattr(trying.git, "worktree", lambda *_: nullcontext(tmp_path))
    for name, made_up in (("libraries", None), ("bases", None), ("against", sides)):
        monkeypatch.setattr(f"kernelgate.bench.measure.run.{name}", lambda *_, made_up=made_up: made_up)
    monkeypatch.setattr(local, "measured", lambda *_: pytest.fail("it was timed"))
    said = "the last kept state cannot be measured against, so nothing was timed: commit b: toy.cu:3: expected a ;"
    with pytest.raises(KernelgateError, match=re.escape(said)):
        trying.measure(tmp_path, made.opened(), made.tried(1, -5, base="b" * 40), tmp_path)
