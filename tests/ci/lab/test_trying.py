from __future__ import annotations

from typing import Literal

import pytest

from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Status
from kernelgate.ci.lab import trying
from kernelgate.ci.lab.folder import Session
from tests.ci.lab import session_events as made


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
        (Status.UNDECIDED, -50.0, True, "revert"),
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
