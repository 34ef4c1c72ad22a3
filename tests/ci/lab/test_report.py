"""The report of a session. One is of a real session on an H200, word for word; after a change of words that is meant:
`KERNELGATE_GOLDEN=write .venv/bin/pytest tests/ci/lab/test_report.py`."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernelgate.ci.lab import folder, report
from kernelgate.ci.lab.log import Closed, SessionNote
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made

REAL = Path(__file__).parents[2] / "data/sessions/int8-on-tensor-cores"
EVENTS = (
    made.opened(hypothesis="the <loop> waits\nfor memory", target=2.0),
    *made.passed(0.8),
    made.tried(1, -50),
    made.decided(1, True),
    made.tried(2, 0, outcomes=(), failed="build", said="a semicolon | is missing"),
    made.decided(2, False),
    SessionNote(said="larger is better", kind="learnt"),
    Closed(at=made.clock(30), why="done", said="reached"),
)


def test_a_real_sessions_report_is_word_for_word_the_kept_one() -> None:
    events = folder.read(REAL).events
    closed = events[-1].at
    assert closed is not None
    text = report.of(events, Policy(), closed)["report.md"]
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        (REAL / "report.md").write_text(text, encoding="utf-8")
    assert text == (REAL / "report.md").read_text(encoding="utf-8")


def test_the_report_says_what_was_believed_measured_and_learnt() -> None:
    files = report.of(EVENTS, Policy(), made.clock(99))
    text = files["report.md"]

    assert "- the <loop> waits for memory" in text
    assert "- try 1: wider: 50% faster (95%" in text
    assert "- try 2: wider: does not compile; reverted: a semicolon | is missing" in text
    assert "- at the end 1.6x the reference, 50% less time than at the beginning, by what was kept; the target" in text
    assert "- larger is better" in text
    assert "- time to a working build: 2 min (goal: ≤ 30 min)" in text
    assert "- time to a named bottleneck: – (goal: ≤ 15 min)" in text
    assert "toy, cpu; 30 minutes; closed (done): reached" in text


def test_drawings_stand_where_there_is_something_to_draw_and_speak() -> None:
    files = report.of(EVENTS, Policy(), made.clock(99))

    assert "gains.svg" in files["report.md"]
    assert "1:" in ElementTree.fromstring(files["gains.svg"]).attrib["aria-label"]  # noqa: S314 - ours
    assert "less time than what stood before</text>" in files["gains.svg"], "the axis upwards has a name"
    assert ">try</text>" in files["gains.svg"], "the axis to the right has one"
    assert set(report.of((made.opened(),), Policy(), made.clock(1))) == {"report.md"}


def test_an_expert_gets_the_questions_and_room_for_each_try() -> None:
    asked = report.for_review((*EVENTS, SessionNote(said="is it the L2?", kind="question")), Policy(), made.clock(99))
    assert "## Questions\n\n- is it the L2?" in asked
    assert "| 1 | none | none | |\n| 2 | none | none | |" in asked
    assert "Is what limits each try named rightly?" in report.for_review(EVENTS, Policy(), made.clock(99))


@pytest.mark.parametrize(
    ("change_pct", "fields", "ends"),
    [
        (-2.3, {"advised": "revert"}, "(KEEP_FROM)"),
        (-2.3, {"advised": "keep"}, "`kernelgate session keep`"),
        (4.7, {"advised": "revert"}, "`kernelgate session revert`"),
        (0, {"advised": "revert", "outcomes": (), "failed": "build"}, "By default: `kernelgate session revert`"),
    ],
)
def test_a_gain_that_is_not_kept_is_told_why(change_pct: float, fields: dict[str, object], ends: str) -> None:
    assert list(report.try_lines(made.tried(1, change_pct, **fields)))[-1].endswith(ends)
