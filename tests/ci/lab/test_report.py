"""The report of a session. One is of a real session on an H200, word for word; after a change of words that is meant:
`KERNELGATE_GOLDEN=write .venv/bin/pytest tests/ci/lab/test_report.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelgate.ci.lab import folder, report
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made

REAL = Path(__file__).parents[2] / "data/sessions/int8-on-tensor-cores"


def test_a_real_sessions_report_is_word_for_word_the_kept_one() -> None:
    events = folder.read(REAL).events
    closed = events[-1].at
    assert closed is not None
    text = report.of(events, Policy(), closed)["report.md"]
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        (REAL / "report.md").write_text(text, encoding="utf-8")
    assert text == (REAL / "report.md").read_text(encoding="utf-8")


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
